//! Lists: `nvidia-smi -L`, `nvidia-smi mig -lgi` (instances) and `-lgip` (profiles), `dcgmi discovery -l`, `dcgmi health`.

use super::{MAX_ROWS, Printout, address, boxed_rows};
use crate::evidence::gpu_model::{Gpu, GpuSnapshot, MigInstance};

pub(super) fn read(lines: &[&str], first: u64) -> Option<Printout> {
    let head = lines.first()?.trim();
    if card(head).is_some() {
        return Some(cards(lines, first));
    }
    // The box above a heading.
    let title = if head.starts_with("+--") { lines.get(1)?.trim() } else { head };
    if title.starts_with("| GPU instances:") {
        return Some(boxed(lines, first, "nvidia-smi mig -lgi", instance));
    }
    if title.starts_with("| GPU instance profiles:") {
        // What could be created, not what is: no evidence of an instance in use.
        return Some(boxed(lines, first, "nvidia-smi mig -lgip", |_, _, _| {}));
    }
    if title.starts_with("| GPU ID |") && title.contains("Device Information") {
        return Some(boxed(lines, first, "dcgmi discovery", discovered));
    }
    if title.starts_with("| Health Monitor Report") {
        return Some(Printout {
            unclear: Some(
                "the result of dcgmi health is not used; the Xid lines in the kernel log show the fault \
                and its time",
            ),
            ..boxed(lines, first, "dcgmi health", |_, _, _| {})
        });
    }
    None
}

/// `GPU 0: NVIDIA A30 (UUID: GPU-557d82ee-…)`
fn card(line: &str) -> Option<Gpu> {
    let (index, rest) = line.strip_prefix("GPU ")?.split_once(": ")?;
    let (name, uuid) = rest.split_once(" (UUID: ")?;
    Some(Gpu {
        index: Some(index.parse().ok()?),
        name: Some(name.to_owned()),
        uuid: Some(uuid.strip_suffix(')')?.to_owned()),
        ..Gpu::default()
    })
}

fn cards(lines: &[&str], first: u64) -> Printout {
    let mut s = GpuSnapshot { tool: "nvidia-smi -L", ..GpuSnapshot::default() };
    let mut taken = 0;
    for (i, raw) in lines.iter().enumerate().take(MAX_ROWS) {
        let (line, number) = (raw.trim(), first + i as u64);
        if let Some(gpu) = card(line) {
            s.gpus.push(Gpu { line: number, ..gpu });
        } else if let Some(profile) = instance_of(line) {
            if let Some(g) = s.gpus.last_mut() {
                g.mig_enabled = true;
            }
            s.mig.push(MigInstance {
                line: number,
                gpu: s.gpus.last().and_then(|g| g.index),
                profile: Some(profile.to_owned()),
                card: s.gpus.last().and_then(|g| g.name.clone()),
                text: line.to_owned(),
                ..MigInstance::default()
            });
        } else {
            break;
        }
        taken = i + 1;
    }
    Printout { lines: taken, snapshot: s, unclear: None }
}

/// `MIG 1g.6gb      Device  0: (UUID: MIG-…)`
fn instance_of(line: &str) -> Option<&str> {
    let profile = line.strip_prefix("MIG ")?.split_whitespace().next()?;
    (line.contains("(UUID: MIG-") && profile.contains("g.")).then_some(profile)
}

type Row = fn(&mut GpuSnapshot, &[&str], u64);

fn boxed(lines: &[&str], first: u64, tool: &'static str, row: Row) -> Printout {
    let mut s = GpuSnapshot { tool, ..GpuSnapshot::default() };
    let mut taken = 0;
    for (i, cells) in boxed_rows(lines).enumerate() {
        taken = i + 1;
        row(&mut s, &cells, first + i as u64);
    }
    Printout { lines: taken, snapshot: s, unclear: None }
}

/// `|   0  MIG 3g.40gb          9        1          4:4     |`
fn instance(s: &mut GpuSnapshot, cells: &[&str], line: u64) {
    let text = cells.first().copied().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let [gpu, "MIG", profile, _, id, placement] = words.as_slice() else { return };
    if !placement.contains(':') {
        return;
    }
    s.mig.push(MigInstance {
        line,
        gpu: gpu.parse().ok(),
        instance: id.parse().ok(),
        profile: Some((*profile).to_owned()),
        text: text.to_owned(),
        ..MigInstance::default()
    });
}

/// `| 0      | Name: NVIDIA A100-SXM4-80GB |`, then `PCI Bus ID:` and `Device UUID:`.
fn discovered(s: &mut GpuSnapshot, cells: &[&str], line: u64) {
    let (Some(id), Some(text)) = (cells.first(), cells.get(1)) else { return };
    if let (Ok(index), Some(name)) = (id.parse(), text.strip_prefix("Name: ")) {
        s.gpus.push(Gpu { line, index: Some(index), name: Some(name.trim().to_owned()), ..Gpu::default() });
    } else if let Some(gpu) = s.gpus.last_mut() {
        if let Some(a) = text.strip_prefix("PCI Bus ID: ") {
            gpu.pci = address(a);
        } else if let Some(u) = text.strip_prefix("Device UUID: ") {
            gpu.uuid = Some(u.trim().to_owned());
        }
    }
}
