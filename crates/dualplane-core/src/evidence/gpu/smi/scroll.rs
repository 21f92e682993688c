//! Scrolling output: `nvidia-smi dmon` and `pmon`, `dcgmi dmon`. Columns are told by the heading; those of memory are used.

use super::{Printout, size};
use crate::evidence::gpu_model::{Gpu, GpuProcess, GpuSnapshot};

/// Rows kept, one for each card and process; a loop prints the same ones for days.
const MAX_ROWS: usize = 256;
/// Lines of a heading before its first row.
const HEADING: usize = 4;

pub(super) fn read(lines: &[&str], first: u64) -> Option<Printout> {
    let head = lines.first()?.trim();
    let columns: Vec<String> =
        head.strip_prefix('#')?.split_whitespace().map(str::to_ascii_lowercase).collect();
    let at = |name: &str| columns.iter().position(|c| c == name);
    let dcgm = at("entity") == Some(0);
    if !dcgm && (at("gpu").is_none() || at("sm").is_none() && at("fb").is_none() && at("pwr").is_none()) {
        return None;
    }
    let tool = match (dcgm, at("pid")) {
        (true, _) => "dcgmi dmon",
        (false, Some(_)) => "nvidia-smi pmon",
        (false, None) => "nvidia-smi dmon",
    };
    let mut s = GpuSnapshot { tool, ..GpuSnapshot::default() };
    let mut taken = 0;
    for (i, raw) in lines.iter().enumerate() {
        let line = raw.trim();
        if taken == 0 && i >= HEADING {
            break;
        }
        if line.starts_with('#') || dcgm && line == "ID" || line.is_empty() {
            continue;
        }
        // `GPU 0` is one column.
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let entity = dcgm && matches!(words.first(), Some(&"GPU"));
        if entity {
            words.remove(0);
        }
        let index = at("gpu").unwrap_or(0);
        let Some(gpu) = words.get(index).and_then(|w| w.parse::<u32>().ok()).filter(|_| !dcgm || entity)
        else {
            break;
        };
        taken = i + 1;
        let cell = |name: &str| at(name).and_then(|c| words.get(c)).copied();
        let number = first + i as u64;
        match cell("pid") {
            Some(pid) => {
                let Ok(pid) = pid.parse() else { continue };
                // The name is the rest of the row.
                let name = at("command").or(at("name")).and_then(|c| words.get(c..)).unwrap_or_default();
                // A loop repeats itself: the last row of each process counts.
                s.processes.retain(|p| p.pid != pid || p.gpu != Some(gpu));
                if s.processes.len() < MAX_ROWS {
                    s.processes.push(GpuProcess {
                        line: number,
                        gpu: Some(gpu),
                        pid,
                        name: name.join(" "),
                        used: cell("fb").and_then(size),
                        ..GpuProcess::default()
                    });
                }
            }
            None => {
                s.gpus.retain(|g| g.index != Some(gpu));
                if s.gpus.len() < MAX_ROWS {
                    s.gpus.push(Gpu {
                        line: number,
                        index: Some(gpu),
                        used: cell("fb").or(cell("fbusd")).and_then(size),
                        free: cell("fbfre").and_then(size),
                        total: cell("fbttl").and_then(size),
                        ..Gpu::default()
                    });
                }
            }
        }
    }
    (taken > 0).then_some(Printout { lines: taken, snapshot: s, unclear: None })
}
