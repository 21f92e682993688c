//! What Python's own tools print of a process: `torch.cuda.memory_summary()`, and `py-spy dump`.
//!
//! Source of the table: PyTorch `torch/cuda/memory.py`, `memory_summary`; `Reserved memory` in abbreviated forms.

use crate::units::{Bytes, parse_memory};

/// The allocator's ledger of one device.
#[derive(Debug, Clone, Default)]
pub struct TorchSummary {
    /// File.
    pub file: String,
    /// Its first line, from 1.
    pub line: u64,
    /// Device as the process counts it.
    pub device: u32,
    /// How many allocations failed.
    pub ooms: u64,
    /// Held by tensors.
    pub allocated: Option<Bytes>,
    /// Taken from the driver.
    pub reserved: Option<Bytes>,
    /// Free pieces of blocks that are in part in use: what cannot be given back.
    pub unreleasable: Option<Bytes>,
}

/// Reads the summary that begins with the first of these lines, and how many it takes.
pub(in crate::evidence) fn summary(lines: &[&str], first: u64, file: &str) -> Option<(usize, TorchSummary)> {
    let rule = |l: &str| l.starts_with("|==") || l.starts_with("|--");
    let title = |l: &str| l.contains("CUDA memory summary, device ID ");
    let head = lines.first()?.trim();
    let at = if title(head) {
        0
    } else if rule(head) && title(lines.get(1)?) {
        1
    } else {
        return None;
    };
    let device = lines.get(at)?.split_once("device ID ")?.1.split_whitespace().next()?.parse().ok()?;
    let mut s = TorchSummary { file: file.to_owned(), line: first, device, ..TorchSummary::default() };
    let mut taken = at + 1;
    for (i, raw) in lines.iter().enumerate().skip(at + 1) {
        let line = raw.trim();
        if !line.starts_with('|') || title(line) {
            break;
        }
        // The rule above the next device's title is its own.
        if rule(line) && lines.get(i + 1).is_some_and(|l| title(l)) {
            break;
        }
        taken = i + 1;
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let (name, now) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        match name {
            "Allocated memory" => s.allocated = size(now),
            "GPU reserved memory" | "Reserved memory" => s.reserved = size(now),
            "Non-releasable memory" => s.unreleasable = size(now),
            _ => {
                if let Some(n) = name.strip_prefix("CUDA OOMs:") {
                    s.ooms = n.trim().parse().unwrap_or(0);
                }
            }
        }
    }
    Some((taken, s))
}

/// It prints powers of 1024; older versions called them `KB`, `MB`, `GB`.
fn size(text: &str) -> Option<Bytes> {
    let (number, unit) = text.split_once(' ')?;
    let unit = match unit.trim() {
        "KB" => "KiB",
        "MB" => "MiB",
        "GB" => "GiB",
        "TB" => "TiB",
        other => other,
    };
    parse_memory(&format!("{number} {unit}"), None)
}

/// `py-spy dump`: `Process 123: python3 …`, `Python v3.12.3 (…)`, threads with their frames. Returns the lines it takes.
pub(in crate::evidence) fn py_spy(lines: &[&str]) -> Option<usize> {
    let (pid, _) = lines.first()?.strip_prefix("Process ")?.split_once(": ")?;
    if pid.parse::<u64>().is_err() || !lines.get(1)?.starts_with("Python v") {
        return None;
    }
    let own = |l: &str| {
        l.trim().is_empty() || l.starts_with("    ") || l.starts_with("Thread ") && l.contains(" (")
    };
    let body = lines.iter().skip(2).take_while(|l| own(l)).count();
    Some(2 + body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_devices_and_old_units() {
        let text = "|===========|\n|   PyTorch CUDA memory summary, device ID 0   |\n|-----|\n|  CUDA OOMs: 2  |  cudaMalloc retries: 3  |\n|=====|\n| Metric | Cur Usage |\n|---|\n| Allocated memory      |   38042 MB |  1 MB |\n|       from large pool |   37891 MB |  1 MB |\n| GPU reserved memory   |   78912 MiB |\n| Non-releasable memory |   870 MB |\n|===========|\n|   PyTorch CUDA memory summary, device ID 1   |\n| Allocated memory | 1 GiB |\n";
        let lines: Vec<&str> = text.lines().collect();
        let (n, s) = summary(&lines, 1, "x").unwrap();
        assert_eq!((n, s.device, s.ooms), (11, 0, 2));
        assert_eq!(s.allocated.map(|b| b.0 >> 20), Some(38042));
        assert_eq!(s.reserved.map(|b| b.0 >> 20), Some(78912));
        let (n, s) = summary(&lines[n..], 12, "x").unwrap();
        assert_eq!((n, s.device, s.allocated.map(|b| b.0 >> 30)), (3, 1, Some(1)));
    }

    #[test]
    fn stacks() {
        let text = "Process 7: python3 -m vllm\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 7 (idle): \"MainThread\"\n    wait (threading.py:355)\nINFO next\n";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(py_spy(&lines), Some(5));
        assert_eq!(py_spy(&["Process 7: x", "y"]), None);
    }
}
