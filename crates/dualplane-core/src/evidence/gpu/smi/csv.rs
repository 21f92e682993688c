//! `nvidia-smi --query-gpu=… --format=csv` and `--query-compute-apps`: by the heading, or by the command above it.
//!
//! Rows without either do not say what is used, free or total: they are recognised and not guessed at.

use super::{MAX_ROWS, Printout, address, size};
use crate::evidence::gpu_model::{Gpu, GpuProcess, GpuSnapshot};
use crate::time::find_stamp;

const UNCLEAR: &str = "these nvidia-smi rows have no header, so the columns are unknown; save them \
without noheader";

pub(super) fn read(lines: &[&str], first: u64, command: Option<&str>) -> Option<Printout> {
    let head = lines.first()?;
    // Nearly every line with a comma ends here.
    if command.is_none() && !["memory", "uuid", " MiB"].iter().any(|w| head.contains(w)) {
        return None;
    }
    if let Some(columns) = heading(head) {
        let (taken, snapshot) = rows(lines.get(1..)?, first + 1, &columns);
        return (taken > 0).then_some(Printout { lines: taken + 1, snapshot, unclear: None });
    }
    if let Some(columns) = command.and_then(queried) {
        let (taken, snapshot) = rows(lines, first, &columns);
        return (taken > 0).then_some(Printout { lines: taken, snapshot, unclear: None });
    }
    let taken = lines.iter().take_while(|l| is_row(l)).take(MAX_ROWS).count();
    (taken > 0).then_some(Printout { lines: taken, snapshot: GpuSnapshot::default(), unclear: Some(UNCLEAR) })
}

/// `index, name, memory.total [MiB], …`
fn heading(line: &str) -> Option<Vec<String>> {
    let columns: Vec<String> = line
        .split(',')
        .map(|c| c.trim().split(" [").next().unwrap_or_default().to_ascii_lowercase())
        .collect();
    let known = columns.iter().filter(|c| is_column(c)).count();
    (columns.len() >= 2 && known * 2 > columns.len() && columns.iter().all(|c| !c.contains(' ')))
        .then_some(columns)
}

fn is_column(name: &str) -> bool {
    matches!(
        name,
        "index"
            | "name"
            | "gpu_name"
            | "uuid"
            | "gpu_uuid"
            | "gpu_bus_id"
            | "gpu_serial"
            | "timestamp"
            | "pid"
            | "process_name"
            | "used_memory"
            | "used_gpu_memory"
            | "driver_version"
            | "count"
            | "serial"
            | "pstate"
            | "compute_cap"
    ) || ["memory.", "pci.", "utilization.", "temperature.", "power.", "ecc.", "mig.", "clocks."]
        .iter()
        .any(|p| name.starts_with(p))
}

/// The columns that a command asks for.
fn queried(command: &str) -> Option<Vec<String>> {
    let list = ["--query-gpu=", "--query-compute-apps=", "--query-gpu ", "--query-compute-apps "]
        .iter()
        .find_map(|flag| Some(command.split_once(flag)?.1))?;
    let list = list.trim_start().trim_matches(['\'', '"']).split_whitespace().next()?;
    Some(list.split(',').map(|c| c.trim_matches(['\'', '"']).to_ascii_lowercase()).collect())
}

/// A row without a heading: several cells, one of them a UUID or address, or an index with sizes behind it.
fn is_row(line: &str) -> bool {
    let cells: Vec<&str> = line.split(", ").map(str::trim).collect();
    cells.len() >= 3
        && cells.len() <= 64
        && cells.iter().any(|c| c.ends_with(" MiB"))
        && cells.iter().all(|c| c.len() < 128)
        && (cells.iter().any(|c| c.starts_with("GPU-") || address(c).is_some())
            || cells.first().is_some_and(|c| c.parse::<u32>().is_ok()))
}

fn rows(lines: &[&str], first: u64, columns: &[String]) -> (usize, GpuSnapshot) {
    let mut s = GpuSnapshot { tool: "nvidia-smi", ..GpuSnapshot::default() };
    let mut taken = 0;
    for (i, line) in lines.iter().enumerate().take(MAX_ROWS) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != columns.len() {
            break;
        }
        let get = |names: &[&str]| {
            let at = columns.iter().position(|c| names.contains(&c.as_str()))?;
            cells.get(at).copied().filter(|c| !c.starts_with('[') && *c != "N/A")
        };
        let number = first + i as u64;
        let card = get(&["uuid", "gpu_uuid"]).map(str::to_owned);
        let pci = get(&["pci.bus_id", "gpu_bus_id", "gpu.pci.bus_id"]).and_then(address);
        if columns.iter().any(|c| c == "pid") {
            let Some(pid) = get(&["pid"]).and_then(|p| p.parse().ok()) else { break };
            s.processes.push(GpuProcess {
                line: number,
                card: card.or(pci),
                pid,
                name: get(&["process_name", "name"]).unwrap_or_default().to_owned(),
                used: get(&["used_memory", "used_gpu_memory"]).and_then(size),
                ..GpuProcess::default()
            });
        } else {
            let stamp = get(&["timestamp"]).and_then(find_stamp);
            s.stamp = s.stamp.or(stamp);
            s.gpus.push(Gpu {
                line: number,
                stamp,
                index: get(&["index"]).and_then(|v| v.parse().ok()),
                name: get(&["name", "gpu_name"]).map(str::to_owned),
                uuid: card,
                pci,
                total: get(&["memory.total"]).and_then(size),
                used: get(&["memory.used"]).and_then(size),
                free: get(&["memory.free"]).and_then(size),
                ecc_uncorrected: get(&["ecc.errors.uncorrected.volatile.total"]).and_then(|v| v.parse().ok()),
                busy: get(&["utilization.gpu"]).and_then(percent),
                celsius: get(&["temperature.gpu"]).and_then(|v| v.parse().ok()),
                mig_enabled: get(&["mig.mode.current"]) == Some("Enabled"),
                ..Gpu::default()
            });
        }
        taken = i + 1;
    }
    (taken, s)
}

/// `97 %`, or without the unit.
fn percent(text: &str) -> Option<u8> {
    text.trim_end_matches('%').trim().parse().ok().filter(|p| *p <= 100)
}
