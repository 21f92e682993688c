//! Small judgements on single lines that are no signatures: is it the kernel speaking, is it a violent end, is it a row of
//! nvidia-smi's MIG table.

use super::openings::{BEHIND_AN_ERROR, Opening, any};
use crate::units::{Bytes, MIB};

/// Words of a violent end: nothing healthy prints them. `FATAL` alone is too short to be found in a large log; as the level
/// of a record something always stands behind it.
pub(crate) const ENDS: &[Opening] = &[
    Opening::new("terminate called after throwing", 2, BEHIND_AN_ERROR),
    Opening::new("core dumped", 2, BEHIND_AN_ERROR),
    // An engine says it of each request whose client has left.
    Opening::new("Aborted", 1, BEHIND_AN_ERROR).unless(" request"),
    Opening::new("panic: ", 2, 200),
    Opening::new("Fatal Python error", 2, 200),
    Opening::new("fatal error", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL ", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL:", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL]", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL|", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL,", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL\t", 1, BEHIND_AN_ERROR),
    Opening::new("FATAL\"", 1, BEHIND_AN_ERROR),
    Opening::new("*** Error in", 1, BEHIND_AN_ERROR),
    Opening::new("double free or corruption", 1, BEHIND_AN_ERROR),
    Opening::new("Assertion failed", 1, BEHIND_AN_ERROR),
    Opening::new("GGML_ASSERT", 2, BEHIND_AN_ERROR),
    Opening::new("killing latest task", 1, BEHIND_AN_ERROR),
];

/// The driver's own beginning of a line, and the name of the switches between GPUs.
const NVRM: &str = "NVRM: ";
const SWITCH: &str = "nvswitch";

/// Lines of the driver and of the switches between GPUs.
pub(crate) const DRIVER: &[Opening] =
    &[Opening::new(NVRM, 2, BEHIND_AN_ERROR), Opening::new(SWITCH, 1, BEHIND_AN_ERROR)];

/// Heading of nvidia-smi's table of slices.
const MIG_TABLE: &str = "MIG devices";

/// Of listings of GPUs and their slices.
pub(crate) const LISTINGS: &[Opening] =
    &[Opening::new(MIG_TABLE, 1, 40), Opening::new("(UUID: MIG-", 1, 2), Opening::new("(UUID: GPU-", 1, 2)];

/// Whether the kernel's message is the driver's, or a switch's.
pub(crate) fn is_of_driver(message: &str) -> bool {
    // The drivers of AMD and Intel name the device first: `xe 0000:03:00.0: [drm] …`.
    let other = ["amdgpu 0000:", "xe 0000:", "i915 0000:"].iter().any(|d| message.starts_with(d));
    other || message.starts_with(NVRM) || message.contains(SWITCH)
}

/// A row of nvidia-smi's MIG table directly below its heading: `|  0    3   0   0  |  25MiB / 19968MiB  | …`.
pub(super) fn mig_table_row(text: &str, previous: Option<&[u8]>) -> Option<Bytes> {
    let heading = previous.is_some_and(|p| {
        contains(p, MIG_TABLE.as_bytes()) || p.starts_with(b"|=====") || p.starts_with(b"+----")
    });
    if !heading || !text.starts_with('|') {
        return None;
    }
    let ids = text.split('|').nth(1)?.split_whitespace().collect::<Vec<_>>();
    if ids.len() != 4 || !ids.iter().all(|i| i.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let total = text.split(" / ").nth(1)?.split("MiB").next()?.trim();
    total.parse::<u64>().ok().map(|m| Bytes(m.saturating_mul(MIB)))
}

/// Words of a violent end, and driver lines that report a failure: nothing healthy prints them.
pub(crate) fn is_alarm(text: &str, kernel: bool) -> bool {
    let driver = kernel && !text.contains("NVRM: Xid (") && is_of_driver(text) && {
        let lower = text.to_ascii_lowercase();
        ["timeout", "timed out", "error", "fail", "fatal"].iter().any(|w| lower.contains(w))
    };
    driver || any(ENDS, text)
}

/// The kernel's message, where the line is one: a whole kernel log, a journal's `kernel:` line, a stamped `dmesg` line
/// between others, or a message that begins as the kernel's do. An engine that quotes one is no kernel.
pub(crate) fn kernel_text(kernel_log: bool, text: &str) -> Option<&str> {
    const BEGINNINGS: &[&str] = &[
        NVRM,
        "oom-kill:constraint=",
        "Out of memory: Kill",
        "Memory cgroup out of memory: Kill",
        "Killed process ",
        "oom_reaper: ",
        "Tasks in /",
        "Task in /",
        "memory: usage ",
        "mce: ",
        "MCE: ",
        "EDAC ",
        "Memory failure: ",
        "Kernel panic",
        "nvidia ",
        "nvidia-",
        "amdgpu ",
        "xe 0000:",
        "i915 0000:",
        "[drm:",
    ];
    if kernel_log {
        return Some(text);
    }
    if let Some((head, message)) = text.split_once("kernel: ").filter(|(head, _)| head.len() < 64) {
        return (!head.contains(['"', '\''])).then_some(message);
    }
    if let Some((_, message)) = crate::time::parse_boot_prefix(text.trim_start()) {
        return Some(message);
    }
    let message = text
        .strip_prefix('[')
        .and_then(|t| t.split_once("] "))
        .filter(|(s, _)| (23..=25).contains(&s.len()))
        .map_or(text, |(_, m)| m);
    let invoked = message.find(" invoked oom-killer: ").is_some_and(|i| i <= 15);
    (invoked || BEGINNINGS.iter().any(|b| message.starts_with(b))).then_some(message)
}

pub(super) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && haystack.windows(needle.len()).any(|w| w == needle)
}
