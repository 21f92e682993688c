//! amdgpu: files of the card, its sensors, RAS, and the compute driver's (KFD) list of processes.

use std::path::Path;

use dualplane_base::units::Bytes;

use super::files::Folder;
use super::sensors::Sensors;
use crate::gpu::{DeviceId, GpuProcess, Health, Reading};

/// Processes with a compute queue.
const MAX_PROCESSES: usize = 1024;

pub(super) fn total(card: &Folder) -> Option<Bytes> {
    card.number("mem_info_vram_total").map(Bytes)
}

/// Server cards tell their name, others a number of the vendor's list.
pub(super) fn name(card: &Folder, id: &str) -> String {
    let told = card.text("product_name").map(|n| n.trim().to_owned()).filter(|n| !n.is_empty());
    told.map_or_else(|| format!("AMD GPU {id}"), |n| if n.contains("AMD") { n } else { format!("AMD {n}") })
}

/// The same in each machine, as `rocm-smi --showuniqueid` prints it: `0x9246…`.
pub(super) fn unique(card: &Folder) -> Option<String> {
    let id = card.text("unique_id")?.trim().trim_start_matches("0x").to_owned();
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| format!("0x{id}"))
}

pub(super) fn read(card: &Folder, sensors: Option<&Sensors>, r: &mut Reading) {
    r.used = card.number("mem_info_vram_used").map(Bytes);
    r.free = r.total.zip(r.used).and_then(|(t, u)| t.0.checked_sub(u.0)).map(Bytes);
    r.busy = card.small("gpu_busy_percent");
    r.memory_busy = card.small("mem_busy_percent");
    let Some(s) = sensors else { return };
    r.power_mw = s.milliwatts();
    r.celsius = s.celsius();
    (r.sm_mhz, r.memory_mhz) = (s.mhz(), s.memory_mhz());
}

pub(super) fn health(card: &Folder, h: &mut Health) {
    h.pcie_replays = card.small("pcie_replay_count");
    let ras = card.below("ras");
    // Of the memory controller: "ue: 0" and "ce: 3".
    if let Some(counts) = ras.text("umc_err_count") {
        let of = |key: &str| counts.lines().find_map(|l| l.trim().strip_prefix(key)?.trim().parse().ok());
        (h.ecc_uncorrected, h.ecc_corrected) = (of("ue:"), of("ce:"));
    }
    // "0x00000001 : 0x00001000 : R": reserved, pending, or F where it could not be reserved.
    if let Some(pages) = ras.text("gpu_vram_bad_pages") {
        let with = |flag: &str| {
            pages.lines().filter(|l| l.rsplit(':').next().is_some_and(|f| f.trim() == flag)).count()
        };
        h.remapped_uncorrected = u32::try_from(with("R")).ok();
        (h.remap_pending, h.remap_failed) = (Some(with("P") > 0), Some(with("F") > 0));
    }
}

/// The compute driver's number of the card at an address.
pub(super) fn compute_id(root: &Path, pci: &str) -> Option<u64> {
    let nodes = Folder::at(root.join("class/kfd/kfd/topology/nodes"));
    nodes.names().iter().map(|n| nodes.below(n)).find_map(|node| {
        let told = node.text("properties")?;
        let of = |key: &str| -> Option<u64> {
            told.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
        };
        // Bus, device and function as PCI numbers them: 8, 5 and 3 bits.
        let place = of("location_id")?;
        let domain = of("domain").unwrap_or(0);
        let address = format!("{domain:04x}:{:02x}:{:02x}", place >> 8 & 0xff, place >> 3 & 0x1f);
        (address == pci).then(|| node.number("gpu_id"))?.filter(|id| *id > 0)
    })
}

/// Processes with compute queues, with their VRAM on each card: `proc/PID/vram_GPU`.
pub(super) fn processes(root: &Path, known: &[(u64, DeviceId)], out: &mut Vec<GpuProcess>) {
    let all = Folder::at(root.join("class/kfd/kfd/proc"));
    for name in all.names().into_iter().take(MAX_PROCESSES) {
        let Ok(pid) = name.parse() else { continue };
        let process = all.below(&name);
        for (id, device) in known {
            let Some(used) = process.number(&format!("vram_{id}")) else { continue };
            // Each process is listed for every card of the machine.
            if used > 0 {
                out.push(GpuProcess { device: *device, pid, used: Some(Bytes(used)), other_kind: false });
            }
        }
    }
}
