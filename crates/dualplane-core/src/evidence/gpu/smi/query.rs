//! `nvidia-smi -q`, whole or with `-d MEMORY,ECC,…`: keys and values by indentation.

use super::{MAX_ROWS, Printout, address, size};
use crate::evidence::gpu_model::{Gpu, GpuProcess, GpuSnapshot, MigInstance};
use crate::time::find_stamp;

pub(super) fn read(lines: &[&str], first: u64) -> Option<Printout> {
    let head = lines.first()?.trim_end();
    let log = head.trim_start().starts_with("==============NVSMI LOG");
    // A card's record that stands alone; other tools begin lines like that, but put no keys below.
    if !(log || is_card(head) && lines.get(1).is_some_and(|l| l.starts_with("    "))) {
        return None;
    }
    let mut s = GpuSnapshot { tool: "nvidia-smi -q", ..GpuSnapshot::default() };
    let mut state = State::default();
    let mut taken = 0;
    for (i, raw) in lines.iter().enumerate() {
        let line = raw.trim_end();
        let again = i > 0 && line.contains("==============NVSMI LOG");
        if again || s.gpus.len() + s.processes.len() >= MAX_ROWS {
            break;
        }
        if line.is_empty() {
            continue;
        }
        // Outside of the keys and headings of this form other text begins.
        let indented = line.starts_with("    ");
        let own = indented || is_card(line) || i == 0 || line.contains("  : ");
        if !own {
            break;
        }
        taken = i + 1;
        state.line(&mut s, line, first + i as u64);
    }
    Some(Printout { lines: taken, snapshot: s, unclear: None })
}

/// `GPU 00000000:01:00.0`
fn is_card(line: &str) -> bool {
    line.strip_prefix("GPU ").is_some_and(|a| address(a).is_some())
}

#[derive(Default)]
struct State {
    /// Headings above, by indentation.
    headings: Vec<(usize, String)>,
    in_mig: bool,
}

impl State {
    fn line(&mut self, s: &mut GpuSnapshot, line: &str, number: u64) {
        let depth = line.len() - line.trim_start().len();
        let text = line.trim();
        if let Some(a) = line.strip_prefix("GPU ").and_then(address) {
            self.headings.clear();
            self.in_mig = false;
            let index = u32::try_from(s.gpus.len()).ok();
            s.gpus.push(Gpu { line: number, index, pci: Some(a), ..Gpu::default() });
            return;
        }
        while self.headings.last().is_some_and(|(d, _)| *d >= depth) {
            self.headings.pop();
        }
        let Some((key, value)) = text.split_once(" : ").map(|(k, v)| (k.trim(), v.trim())) else {
            if depth == 4 {
                self.in_mig = text == "MIG Device";
                if self.in_mig {
                    let gpu = s.gpus.last().and_then(|g| g.index);
                    s.mig.push(MigInstance { line: number, gpu, ..MigInstance::default() });
                }
            }
            if self.headings.len() < 12 {
                self.headings.push((depth, text.to_owned()));
            }
            return;
        };
        let under = |h: &str| self.headings.iter().any(|(_, t)| t == h);
        if key == "Timestamp" {
            s.stamp = find_stamp(value);
            return;
        }
        if under("Processes") || key == "Process ID" {
            process(s, key, value, number);
            return;
        }
        if self.in_mig && depth > 4 {
            let Some(m) = s.mig.last_mut() else { return };
            match key {
                "GPU Instance ID" => m.instance = value.parse().ok(),
                "Total" if under("FB Memory Usage") => {
                    m.total = size(value);
                    m.line = number;
                    line.trim().clone_into(&mut m.text);
                }
                "Used" if under("FB Memory Usage") => m.used = size(value),
                _ => {}
            }
            return;
        }
        let Some(gpu) = s.gpus.last_mut() else { return };
        match key {
            "Product Name" => gpu.name = Some(value.to_owned()),
            "GPU UUID" => gpu.uuid = Some(value.to_owned()),
            "Total" if under("FB Memory Usage") => gpu.total = size(value),
            "Used" if under("FB Memory Usage") => gpu.used = size(value),
            "Free" if under("FB Memory Usage") => gpu.free = size(value),
            "Current" if under("MIG Mode") => gpu.mig_enabled = value == "Enabled",
            // Volatile only: the aggregate holds the errors of the card's whole life.
            "SRAM Uncorrectable"
            | "DRAM Uncorrectable"
            | "SRAM Uncorrectable Parity"
            | "SRAM Uncorrectable SEC-DED"
                if under("Volatile") =>
            {
                if let Ok(n) = value.parse::<u64>() {
                    gpu.ecc_uncorrected = Some(gpu.ecc_uncorrected.unwrap_or(0).saturating_add(n));
                }
            }
            "GPU Current Temp" => gpu.celsius = value.split_whitespace().next().and_then(|v| v.parse().ok()),
            "Pending" if under("Remapped Rows") => gpu.remap_pending = value == "Yes",
            _ => {}
        }
    }
}

fn process(s: &mut GpuSnapshot, key: &str, value: &str, line: u64) {
    if key == "Process ID" {
        let Ok(pid) = value.parse() else { return };
        let gpu = s.gpus.last().and_then(|g| g.index);
        let card = s.gpus.last().and_then(|g| g.pci.clone());
        s.processes.push(GpuProcess { line, gpu, card, pid, ..GpuProcess::default() });
        return;
    }
    let Some(p) = s.processes.last_mut() else { return };
    match key {
        "Name" => value.clone_into(&mut p.name),
        "Used GPU Memory" => p.used = value.ends_with("MiB").then(|| size(value)).flatten(),
        _ => {}
    }
}
