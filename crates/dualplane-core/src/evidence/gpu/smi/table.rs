//! The default table of `nvidia-smi`, with its MIG devices and processes, of all driver generations.

use super::{MAX_ROWS, Printout, address, size};
use crate::evidence::gpu_model::{Gpu, GpuProcess, GpuSnapshot, MigInstance};
use crate::time::find_stamp;

/// A line between the parts: other text ends the printout after so many.
const MAX_BLANKS: usize = 2;

/// `Tue Mar  3 09:08:25 2026`, which stands above the table.
pub(super) fn is_date(line: &str) -> bool {
    let line = line.trim();
    line.len() <= 32
        && ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "].iter().any(|d| line.starts_with(d))
        && find_stamp(line).is_some()
}

pub(super) fn read(lines: &[&str], first: u64) -> Option<Printout> {
    let head = lines.first()?.trim();
    let dated = is_date(head);
    // Other tools have boxes of processes too; they are left before anything is walked through.
    let own_processes = lines.iter().take(6).any(|l| l.contains("GPU Memory"));
    let opens = |l: &&str| {
        let l = l.trim();
        l.starts_with("| NVIDIA-SMI ")
            || l.starts_with("| MIG devices:")
            || l.starts_with("| Processes:") && own_processes
            || is_card(l).is_some()
    };
    // The box above the heading, and the date above the box.
    let box_top = head.starts_with("+--");
    let near = if dated { 3 } else { 2 };
    if !(opens(&head) || (dated || box_top) && lines.iter().take(near).any(opens)) {
        return None;
    }
    let mut s = GpuSnapshot { tool: "nvidia-smi", ..GpuSnapshot::default() };
    if dated {
        s.stamp = find_stamp(head);
    }
    let (mut taken, mut blanks, mut part) = (0, 0, Part::Cards);
    for (i, raw) in lines.iter().enumerate().skip(usize::from(dated)) {
        let line = raw.trim();
        if line.is_empty() {
            blanks += 1;
            if blanks > MAX_BLANKS {
                break;
            }
            continue;
        }
        if !(line.starts_with('|') || line.starts_with('+')) {
            break;
        }
        // The next printout of a loop.
        if line.starts_with("| NVIDIA-SMI ") && !s.is_empty() {
            break;
        }
        (taken, blanks) = (i + 1, 0);
        part = if line.starts_with("| MIG devices:") {
            Part::Mig
        } else if line.starts_with("| Processes:") {
            Part::Processes
        } else {
            part
        };
        if s.gpus.len() + s.mig.len() + s.processes.len() < MAX_ROWS {
            row(&mut s, part, line, first + i as u64);
        }
    }
    Some(Printout { lines: taken, snapshot: s, unclear: None })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Cards,
    Mig,
    Processes,
}

fn row(s: &mut GpuSnapshot, part: Part, line: &str, number: u64) {
    let cells: Vec<&str> = line.split('|').collect();
    match part {
        Part::Cards => {
            if let Some(mut gpu) = is_card(line) {
                gpu.line = number;
                s.gpus.push(gpu);
            } else if let Some(gpu) = s.gpus.last_mut() {
                let memory = cells.get(2).and_then(|c| c.split_once('/'));
                if let Some((used, total)) = memory.filter(|_| gpu.total.is_none()) {
                    gpu.used = size(used);
                    gpu.total = size(total);
                    // `N/A   94C    P0   612W / 700W`
                    let mut words = cells.get(1).into_iter().flat_map(|c| c.split_whitespace());
                    gpu.celsius = words.find_map(|w| w.strip_suffix('C')?.parse().ok());
                } else if cells.get(3).is_some_and(|c| c.trim() == "Enabled") {
                    gpu.mig_enabled = true;
                }
            }
        }
        Part::Mig => {
            let ids: Vec<u32> = numbers(cells.get(1).unwrap_or(&""));
            let [gpu, instance, _, _] = ids.as_slice() else { return };
            let Some((used, total)) = cells.get(2).and_then(|c| c.split_once('/')) else { return };
            let card = s.gpus.iter().find(|g| g.index == Some(*gpu)).and_then(|g| g.name.clone());
            s.mig.push(MigInstance {
                line: number,
                gpu: Some(*gpu),
                instance: Some(*instance),
                card,
                used: size(used),
                total: size(total),
                text: line.to_owned(),
                ..MigInstance::default()
            });
        }
        Part::Processes => s.processes.extend(process(cells.get(1).unwrap_or(&""), number)),
    }
}

fn numbers(cell: &str) -> Vec<u32> {
    cell.split_whitespace().map_while(|w| w.parse().ok()).collect()
}

/// `|   0  NVIDIA A30        Off | 00000000:00:06.0 Off |       0 |`
fn is_card(line: &str) -> Option<Gpu> {
    let mut cells = line.strip_prefix('|')?.split('|');
    let mut name: Vec<&str> = cells.next()?.split_whitespace().collect();
    let pci = address(cells.next()?.split_whitespace().next()?)?;
    if name.len() < 2 {
        return None;
    }
    let index = name.remove(0).parse().ok()?;
    // Persistence mode, or the driver model on Windows; a long name may run into it.
    if name.last().is_some_and(|l| matches!(*l, "On" | "Off" | "WDDM" | "TCC")) {
        name.pop();
    }
    let ecc = cells.next().and_then(|c| c.split_whitespace().next()?.parse().ok());
    Some(Gpu {
        index: Some(index),
        name: Some(name.join(" ")),
        pci: Some(pci),
        ecc_uncorrected: ecc,
        ..Gpu::default()
    })
}

/// `|    0   N/A  N/A      1234      C   python3        45678MiB |`, without the instance ids before driver 450.
fn process(cell: &str, line: u64) -> Option<GpuProcess> {
    let words: Vec<&str> = cell.split_whitespace().collect();
    let kind =
        words.iter().take(6).position(|w| matches!(*w, "C" | "G" | "C+G" | "G+C" | "M+C" | "M+C+G"))?;
    let pid = words.get(kind.checked_sub(1)?)?.parse().ok()?;
    let (usage, name) = words.get(kind + 1..)?.split_last()?;
    let instance = if kind == 4 { words.get(1).and_then(|w| w.parse().ok()) } else { None };
    Some(GpuProcess {
        line,
        gpu: words.first().and_then(|w| w.parse().ok()),
        card: None,
        instance,
        pid,
        name: name.join(" "),
        used: usage.ends_with("MiB").then(|| size(usage)).flatten(),
    })
}
