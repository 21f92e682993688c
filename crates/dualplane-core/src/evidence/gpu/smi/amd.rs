//! `rocm-smi` and `amd-smi`: VRAM total and used where they are printed. The concise table of `rocm-smi` has shares only.

use super::{MAX_ROWS, Printout, address, boxed_rows};
use crate::evidence::gpu_model::{Gpu, GpuSnapshot};
use crate::units::{Bytes, MIB};

const SHARES: &str = "the concise table of rocm-smi shows VRAM as a percentage only; use rocm-smi \
--showmeminfo vram";

pub(super) fn read(lines: &[&str], first: u64) -> Option<Printout> {
    let head = lines.first()?.trim();
    if head.starts_with("GPU[") && vram(head).is_some() {
        return Some(memory(lines, first));
    }
    let title = if head.starts_with("+--") { lines.get(1)?.trim() } else { head };
    if title.starts_with("| AMD-SMI ") {
        return Some(amd_smi(lines, first));
    }
    if head.starts_with('=') && head.contains("ROCm System Management Interface") {
        let table = |l: &str| {
            l.starts_with('=')
                || l.is_empty()
                || l.starts_with("GPU")
                || l.starts_with("Device")
                || l.starts_with('(')
                || l.starts_with("0x")
                || l.starts_with(|c: char| c.is_ascii_digit())
        };
        let taken = lines.iter().take_while(|l| table(l.trim())).take(MAX_ROWS).count();
        let mut p = memory(lines.get(..taken)?, first);
        p.lines = taken;
        p.unclear = p.snapshot.is_empty().then_some(SHARES);
        return Some(p);
    }
    None
}

/// `GPU[0]  : VRAM Total Used Memory (B): 10985472`: the card, whether it is what is used, bytes.
fn vram(line: &str) -> Option<(u32, bool, Bytes)> {
    let (index, rest) = line.strip_prefix("GPU[")?.split_once(']')?;
    let text = rest.trim_start().strip_prefix(':')?.trim();
    let used = text.strip_prefix("VRAM Total Used Memory (B):");
    let bytes = used.or_else(|| text.strip_prefix("VRAM Total Memory (B):"))?.trim();
    Some((index.parse().ok()?, used.is_some(), Bytes(bytes.parse().ok()?)))
}

fn memory(lines: &[&str], first: u64) -> Printout {
    let mut s = GpuSnapshot { tool: "rocm-smi", ..GpuSnapshot::default() };
    let mut taken = 0;
    for (i, raw) in lines.iter().enumerate().take(MAX_ROWS) {
        let line = raw.trim();
        if !(line.starts_with("GPU[") || line.starts_with('=') || line.is_empty()) {
            if taken > 0 {
                break;
            }
            continue;
        }
        taken = i + 1;
        let Some((index, used, bytes)) = vram(line) else { continue };
        if s.gpus.len() >= MAX_ROWS {
            break;
        }
        if !s.gpus.iter().any(|g| g.index == Some(index)) {
            s.gpus.push(Gpu { line: first + i as u64, index: Some(index), ..Gpu::default() });
        }
        let Some(gpu) = s.gpus.iter_mut().find(|g| g.index == Some(index)) else { continue };
        if used {
            gpu.used = Some(bytes);
        } else {
            gpu.total = Some(bytes);
        }
    }
    Printout { lines: taken, snapshot: s, unclear: None }
}

/// Two rows a card: `| 0000:83:00.0 AMD Instinct MI300X VF | …` and `|   0  …  | 0 %  N/A  285/196288 MB |`.
///
/// Its `MB` are MiB: 196288 of them are the 192 GB (2^30) of a MI300X, less what is reserved.
fn amd_smi(lines: &[&str], first: u64) -> Printout {
    let mut s = GpuSnapshot { tool: "amd-smi", ..GpuSnapshot::default() };
    let mut taken = 0;
    for (i, cells) in boxed_rows(lines).enumerate() {
        taken = i + 1;
        let cell = |n: usize| cells.get(n).copied().unwrap_or_default();
        let (left, right) = (cell(0), cell(1));
        let (word, name) = left.split_once(' ').unwrap_or((left, ""));
        if let Some(pci) = address(word) {
            let name = Some(name.trim().to_owned());
            s.gpus.push(Gpu { line: first + i as u64, pci: Some(pci), name, ..Gpu::default() });
        } else if let Some(gpu) = s.gpus.last_mut().filter(|g| g.total.is_none()) {
            let mib = |t: &str| t.parse::<u64>().ok().map(|m| Bytes(m.saturating_mul(MIB)));
            let sizes = right.strip_suffix(" MB").and_then(|r| r.split_whitespace().last()?.split_once('/'));
            if let Some((used, total)) = sizes {
                gpu.index = word.parse().ok();
                gpu.used = mib(used);
                gpu.total = mib(total);
            }
        }
    }
    Printout { lines: taken, snapshot: s, unclear: None }
}
