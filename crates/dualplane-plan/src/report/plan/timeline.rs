//! The stages of a start as a short timeline.

use crate::Verdict;
use crate::report::page::Page;
use crate::stages::{Ending, Stage};
use crate::{Answer, Plane};
use dualplane_base::text::printable;
use dualplane_base::units::Bytes;

/// Width of a stage's bar of VRAM.
const CELLS: u64 = 20;

/// Who says what ends a start.
pub(super) fn speaker(e: &Ending) -> String {
    let step = e.step.as_str();
    match e.plane {
        Plane::Host if e.line.starts_with("Memory cgroup") => format!("the kernel would log, at {step}:"),
        Plane::Gpu if e.line.starts_with("torch.") => format!("torch would raise, at {step}:"),
        _ => format!("the engine would print, at {step}:"),
    }
}

/// The stages that a start reaches, and those that it does not.
pub(super) fn reached(a: &Answer) -> (&[Stage], &[Stage]) {
    let list = a.stages.list.as_slice();
    let last = a.stages.ending.as_ref().filter(|e| e.verdict == Verdict::Refused).map(|e| e.step);
    let at = last.and_then(|s| list.iter().position(|l| l.step == s)).map_or(list.len(), |i| i + 1);
    list.split_at_checked(at).unwrap_or((list, &[]))
}

/// `load, KV cache`.
pub(super) fn names(stages: &[Stage]) -> String {
    stages.iter().map(|s| s.step.as_str()).collect::<Vec<_>>().join(", ")
}

impl Page {
    pub(super) fn stages(&mut self, a: &Answer) {
        let total = a.gpu.total_bytes.max(1);
        let limit = a.line.host.pod.limit.map_or(String::new(), |l| format!(" of {l}"));
        self.heading(&format!("Stages  VRAM of {} in use, RAM{limit} of the pod", Bytes(a.gpu.total_bytes)));
        let (reached, not) = reached(a);
        for s in reached {
            let mark = match s.verdict {
                Verdict::Fits => " ",
                Verdict::Uncertain => "?",
                Verdict::Refused => "x",
            };
            let vram = s.gpu_bytes.map_or_else(
                || format!("{:>11} {:<20}", "?", ""),
                |q| {
                    let cells = (u128::from(q.expected) * u128::from(CELLS) / u128::from(total))
                        .min(u128::from(CELLS));
                    let cells = usize::try_from(cells).unwrap_or_default();
                    let bar = format!("{}{}", "█".repeat(cells), "·".repeat(CELLS as usize - cells));
                    format!("{:>11} {bar}", Bytes(q.expected).to_string())
                },
            );
            let line = format!(
                "{mark} {:<14}{vram} {:>11}",
                s.step.as_str(),
                Bytes(s.host_bytes.expected).to_string()
            );
            let line = match s.verdict {
                Verdict::Refused => self.style.bad(&line),
                _ => line,
            };
            self.line(&line);
            if let Some(why) = &s.why {
                self.wrapped(&printable(why), "      ", "      ");
            }
        }
        if !not.is_empty() {
            self.wrapped(&format!("not reached: {}", names(not)), "  ", "    ");
        }
    }
}
