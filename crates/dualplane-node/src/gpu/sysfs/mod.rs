//! Cards of AMD and Intel by what their drivers tell in `/sys`, without a library: VRAM, use, clocks, heat, errors.
//!
//! Sources: `Documentation/gpu/amdgpu` of Linux (driver-misc, thermal, ras) for amdgpu, `drivers/gpu/drm/amd/amdkfd/kfd_process.c`
//! for VRAM by process; `Documentation/gpu/xe`, `Documentation/ABI/testing/sysfs-driver-intel-{xe,i915}-hwmon` for Intel.
//! A file that a card or a kernel has not is a value that is `None`.
//!
//! `pcie_bw` of amdgpu is not read: it sleeps a second. VRAM in use of an Intel card stands only in the descriptors of its
//! users and in debugfs.

mod amd;
mod files;
mod intel;
mod sensors;

use std::path::{Path, PathBuf};

use dualplane_base::order::Order as _;
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::facts::pci_address;

use self::files::Folder;
use self::sensors::Sensors;
use super::{Device, DeviceId, Event, GpuGap, GpuProcess, Gpus, Health, Reading};

/// Cards; a node has 16 at most, in partitions some more.
const MAX_CARDS: usize = 128;
/// A graphics unit within a processor has some hundred MiB of the host's memory: no card that serves models.
const LEAST_VRAM: u64 = 2 * GIB;

/// Whose driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Amd,
    Intel,
}

/// A card.
#[derive(Debug)]
struct Card {
    vendor: Vendor,
    device: Device,
    /// `/sys/class/drm/cardN`.
    node: Folder,
    /// `device` in it: the card on its bus.
    folder: Folder,
    /// `device/hwmon/hwmonN`.
    sensors: Option<Sensors>,
    total: Bytes,
    /// Energy counter and its time at the last reading, where power is told only so.
    energy: Option<intel::Energy>,
    /// The name that AMD's compute driver gives the card.
    kfd: Option<u64>,
}

/// All of them.
#[derive(Debug)]
pub struct SysfsGpus {
    root: PathBuf,
    cards: Vec<Card>,
}

impl SysfsGpus {
    /// Looks below `/sys`; `None` where no card of these drivers has memory of its own.
    #[must_use]
    pub fn below(root: &Path) -> Option<Self> {
        let cards = cards(root);
        (!cards.is_empty()).then(|| Self { root: root.to_owned(), cards })
    }

    fn id(at: usize) -> DeviceId {
        DeviceId(u16::try_from(at).unwrap_or(u16::MAX))
    }
}

/// The cards in the order of their addresses, as the vendors' tools count.
fn cards(root: &Path) -> Vec<Card> {
    let drm = Folder::at(root.join("class/drm"));
    let is_card = |n: &String| {
        n.strip_prefix("card").is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    let names = drm.names().into_iter().filter(is_card).take(MAX_CARDS);
    let mut all: Vec<Card> = names.filter_map(|n| card(root, drm.below(&n))).collect();
    all.order_by(|a, b| a.device.pci.cmp(&b.device.pci));
    for (i, c) in all.iter_mut().enumerate() {
        c.device.index = u32::try_from(i).unwrap_or(u32::MAX);
    }
    all
}

fn card(root: &Path, node: Folder) -> Option<Card> {
    let folder = node.below("device");
    let told = folder.text("uevent")?;
    let of = |key: &str| told.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('=')).map(str::trim);
    let (vendor, total) = match of("DRIVER")? {
        "amdgpu" => (Vendor::Amd, amd::total(&folder)?),
        "xe" | "i915" => (Vendor::Intel, intel::total(&node, &folder)?),
        _ => return None,
    };
    if total.0 < LEAST_VRAM {
        return None;
    }
    let pci = of("PCI_SLOT_NAME").and_then(pci_address)?;
    let id = of("PCI_ID").unwrap_or_default();
    let (name, uuid) = match vendor {
        Vendor::Amd => (amd::name(&folder, id), amd::unique(&folder)),
        Vendor::Intel => (format!("Intel GPU {id}"), None),
    };
    let sensors = folder.below("hwmon");
    let sensors = sensors.names().first().map(|n| Sensors::of(sensors.below(n)));
    let kfd = if vendor == Vendor::Amd { amd::compute_id(root, &pci) } else { None };
    // Where nothing names the card for life, its place in the machine does.
    let uuid = uuid.unwrap_or_else(|| pci.clone());
    let device = Device { uuid, name, pci, ..Device::default() };
    Some(Card { vendor, device, node, folder, sensors, total, energy: None, kfd })
}

impl Gpus for SysfsGpus {
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap> {
        let mut now = cards(&self.root);
        for c in &mut now {
            let before = self.cards.iter_mut().find(|b| b.device.pci == c.device.pci);
            c.energy = before.and_then(|b| b.energy.take());
        }
        self.cards = now;
        out.clear();
        out.extend(self.cards.iter().map(|c| c.device.clone()));
        Ok(())
    }

    fn read(&mut self, out: &mut Vec<Reading>) -> u32 {
        out.clear();
        for (i, c) in self.cards.iter_mut().enumerate() {
            let mut r = Reading { device: Self::id(i), total: Some(c.total), ..Reading::default() };
            match c.vendor {
                Vendor::Amd => amd::read(&c.folder, c.sensors.as_ref(), &mut r),
                Vendor::Intel => intel::read(&c.node, &c.folder, c.sensors.as_ref(), &mut c.energy, &mut r),
            }
            out.push(r);
        }
        0
    }

    fn processes(&mut self, out: &mut Vec<GpuProcess>) {
        out.clear();
        let known: Vec<(u64, DeviceId)> =
            self.cards.iter().enumerate().filter_map(|(i, c)| Some((c.kfd?, Self::id(i)))).collect();
        if !known.is_empty() {
            amd::processes(&self.root, &known, out);
        }
    }

    fn health(&mut self, out: &mut Vec<Health>) {
        out.clear();
        for (i, c) in self.cards.iter().enumerate() {
            let memory_celsius = c.sensors.as_ref().and_then(Sensors::memory_celsius);
            let mut h = Health { device: Self::id(i), memory_celsius, ..Health::default() };
            if c.vendor == Vendor::Amd {
                amd::health(&c.folder, &mut h);
            }
            out.push(h);
        }
    }

    fn events(&mut self, _out: &mut Vec<Event>) {}
}

#[cfg(test)]
mod tests;
