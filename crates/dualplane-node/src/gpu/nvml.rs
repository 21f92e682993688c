//! NVML of the driver, loaded at run time: a machine without it runs the same binary.
//!
//! Bytes over PCIe and NVLink are read as counters, not by the calls that measure a rate and sleep 20 ms meanwhile. Not asked:
//! MIG devices' utilisation, which the driver does not know.

use dualplane_base::units::Bytes;
use dualplane_core::facts::pci_address;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enum_wrappers::nv_link::ErrorCounter;
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id;
use nvml_wrapper::{Device as Handle, Nvml as Library};

use super::nvml_events::Listener;
use super::{Device, DeviceId, Driver, Event, GpuGap, GpuProcess, Gpus, Health, Reading};

/// NVLinks of a card: 18 on Hopper and Blackwell.
const MAX_LINKS: u32 = 18;

/// The driver's library with the handles of its devices.
pub struct Nvml {
    library: &'static Library,
    devices: Vec<(Device, Handle<'static>)>,
    listener: Option<Listener>,
}

impl Nvml {
    /// Loads the library. `path` where it is not in the loader's way (`/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1`).
    ///
    /// # Errors
    /// No library, or no driver behind it; or this binary is static.
    pub fn load(path: Option<&std::path::Path>) -> Result<Self, GpuGap> {
        if cfg!(all(target_env = "musl", target_feature = "crt-static")) {
            return Err(GpuGap::Static);
        }
        let loaded = match path {
            Some(p) => Library::builder().lib_path(p.as_os_str()).init(),
            None => Library::init(),
        };
        let library = loaded.map_err(|e| match e {
            NvmlError::LibloadingError(e) => GpuGap::NoLibrary(e.to_string()),
            e => GpuGap::NoDriver(e.to_string()),
        })?;
        // Handles borrow from the library. One agent loads it once and keeps it to its end, so it is given away for good.
        Ok(Self { library: Box::leak(Box::new(library)), devices: Vec::new(), listener: None })
    }

    /// The same as a source of GPUs.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn boxed(path: Option<&std::path::Path>) -> Result<Box<dyn Gpus>, GpuGap> {
        Ok(Box::new(Self::load(path)?))
    }

    fn add(&mut self, device: Device, handle: Handle<'static>) -> DeviceId {
        let id = DeviceId(u16::try_from(self.devices.len()).unwrap_or(u16::MAX));
        self.devices.push((device, handle));
        id
    }

    fn add_card(&mut self, index: u32) -> Result<(), NvmlError> {
        let handle = self.library.device_by_index(index)?;
        let pci = handle.pci_info().map(|p| p.bus_id).unwrap_or_default();
        let pci = pci_address(&pci).unwrap_or(pci);
        let name = handle.name().unwrap_or_default();
        let mig = handle.mig_mode().ok().map(|m| m.current == 1);
        let slots = if mig == Some(true) { handle.mig_device_count().unwrap_or(0) } else { 0 };
        let parts: Vec<_> = (0..slots).filter_map(|i| handle.mig_device_by_index(i).ok()).collect();
        let capability = handle
            .cuda_compute_capability()
            .ok()
            .and_then(|c| Some((u32::try_from(c.major).ok()?, u32::try_from(c.minor).ok()?)));
        let minor = handle.minor_number().ok();
        let card = Device {
            capability,
            minor,
            uuid: handle.uuid()?,
            index,
            name: name.clone(),
            pci: pci.clone(),
            mig,
            ..Device::default()
        };
        let card = self.add(card, handle);
        for part in parts {
            let Ok(uuid) = part.uuid() else { continue };
            // The wrapper does not ask for the ids of an instance; the processes of the part's own handle tell.
            let instance =
                processes_of(&part).find_map(|(p, _)| Some((p.gpu_instance_id?, p.compute_instance_id?)));
            let name = part.name().unwrap_or_else(|_| name.clone());
            let pci = pci.clone();
            let part_device =
                Device { uuid, index, minor, name, pci, card: Some(card), instance, mig: None, capability };
            self.add(part_device, part);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Nvml {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nvml").field("devices", &self.devices.len()).finish_non_exhaustive()
    }
}

impl Gpus for Nvml {
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap> {
        out.clear();
        let failed = |call, e: NvmlError| GpuGap::Call { call, why: e.to_string() };
        let count = self.library.device_count().map_err(|e| failed("nvmlDeviceGetCount", e))?;
        self.devices.clear();
        let mut last = None;
        for index in 0..count {
            // A card that fell off the bus must not hide the others.
            if let Err(e) = self.add_card(index) {
                last = Some(e);
            }
        }
        if let (true, Some(e)) = (self.devices.is_empty(), last) {
            return Err(failed("nvmlDeviceGetHandleByIndex", e));
        }
        out.extend(self.devices.iter().map(|(d, _)| d.clone()));
        if self.listener.is_none() {
            self.listener = Listener::start(self.library);
        }
        Ok(())
    }

    fn read(&mut self, out: &mut Vec<Reading>) -> u32 {
        out.clear();
        let mut silent = 0;
        for (i, (device, h)) in self.devices.iter().enumerate() {
            let mut r =
                Reading { device: DeviceId(u16::try_from(i).unwrap_or(u16::MAX)), ..Reading::default() };
            match h.memory_info() {
                Ok(m) => {
                    // In this version of the call "used" is without what the driver reserved.
                    r.total = Some(Bytes(m.total));
                    r.used = Some(Bytes(m.used));
                    r.free = Some(Bytes(m.free));
                    r.reserved = Some(Bytes(m.reserved));
                }
                // Boards that share the host's memory have none of their own to tell; a lost card answers nothing at all.
                Err(NvmlError::NotSupported) => {}
                Err(_) => {
                    silent += 1;
                    continue;
                }
            }
            if device.card.is_none() {
                if let Ok(u) = h.utilization_rates() {
                    r.busy = Some(u.gpu);
                    r.memory_busy = Some(u.memory);
                }
                r.power_mw = h.power_usage().ok();
                r.celsius = h.temperature(TemperatureSensor::Gpu).ok();
                r.throttle = h.current_throttle_reasons().ok().map(|t| t.bits());
                r.sm_mhz = h.clock_info(Clock::SM).ok();
                r.memory_mhz = h.clock_info(Clock::Memory).ok();
            }
            out.push(r);
        }
        silent
    }

    fn processes(&mut self, out: &mut Vec<GpuProcess>) {
        out.clear();
        for (i, (device, h)) in self.devices.iter().enumerate() {
            // With MIG the parts tell their own.
            if device.mig == Some(true) {
                continue;
            }
            let id = DeviceId(u16::try_from(i).unwrap_or(u16::MAX));
            out.extend(processes_of(h).map(|(p, other_kind)| GpuProcess {
                device: id,
                pid: p.pid,
                used: match p.used_gpu_memory {
                    UsedGpuMemory::Used(n) => Some(Bytes(n)),
                    UsedGpuMemory::Unavailable => None,
                },
                other_kind,
            }));
        }
    }

    fn health(&mut self, out: &mut Vec<Health>) {
        out.clear();
        for (i, (_, h)) in self.devices.iter().enumerate().filter(|(_, (d, _))| d.card.is_none()) {
            let ecc = |kind| h.total_ecc_errors(kind, EccCounter::Volatile).ok();
            let lifetime = |kind| h.total_ecc_errors(kind, EccCounter::Aggregate).ok();
            let fields = Fields::of(h);
            let narrow = |id| fields.get(id).and_then(|v| u32::try_from(v).ok());
            let flag = |id| fields.get(id).map(|v| v != 0);
            // Fields 138 and 139 count KiB, of the link that is asked for: the wrapper asks for the first.
            let kib = |id| fields.get(id).and_then(|v| v.checked_mul(1024));
            let links: Vec<u32> =
                (0..MAX_LINKS).filter(|l| h.link_wrapper_for(*l).is_active().unwrap_or(false)).collect();
            let errors = links.iter().filter_map(|l| {
                let link = h.link_wrapper_for(*l);
                let kinds = [ErrorCounter::DlReplay, ErrorCounter::DlRecovery, ErrorCounter::DlCrcFlit];
                kinds
                    .into_iter()
                    .filter_map(|k| link.error_counter(k).ok())
                    .reduce(|a, b| a.saturating_add(b))
            });
            out.push(Health {
                device: DeviceId(u16::try_from(i).unwrap_or(u16::MAX)),
                ecc_corrected: ecc(MemoryError::Corrected),
                ecc_uncorrected: ecc(MemoryError::Uncorrected),
                pcie_replays: h.pcie_replay_counter().ok(),
                nvlinks: h
                    .link_wrapper_for(0)
                    .is_active()
                    .ok()
                    .map(|_| u32::try_from(links.len()).unwrap_or(0)),
                nvlink_errors: errors.reduce(|a, b| a.saturating_add(b)),
                ecc_corrected_lifetime: lifetime(MemoryError::Corrected),
                ecc_uncorrected_lifetime: lifetime(MemoryError::Uncorrected),
                remapped_corrected: narrow(field_id::NVML_FI_DEV_REMAPPED_COR),
                remapped_uncorrected: narrow(field_id::NVML_FI_DEV_REMAPPED_UNC),
                // Cards before Ampere retire pages instead of remapping rows.
                remap_pending: flag(field_id::NVML_FI_DEV_REMAPPED_PENDING)
                    .or_else(|| flag(field_id::NVML_FI_DEV_RETIRED_PENDING)),
                remap_failed: flag(field_id::NVML_FI_DEV_REMAPPED_FAILURE),
                pcie_sent: fields.get(field_id::NVML_FI_DEV_PCIE_COUNT_TX_BYTES),
                pcie_received: fields.get(field_id::NVML_FI_DEV_PCIE_COUNT_RX_BYTES),
                nvlink0_sent: kib(field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
                nvlink0_received: kib(field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX),
                memory_celsius: narrow(field_id::NVML_FI_DEV_MEMORY_TEMP).filter(|c| *c > 0),
                xids: None,
                last_xid: None,
            });
        }
    }

    fn driver(&mut self) -> Driver {
        let version = self.library.sys_driver_version().ok();
        // 12080 is CUDA 12.8.
        let cuda = self.library.sys_cuda_driver_version().ok().and_then(|v| u32::try_from(v).ok());
        Driver { version, cuda: cuda.map(|v| (v / 1000, v % 1000 / 10)) }
    }

    fn events(&mut self, out: &mut Vec<Event>) {
        if let Some(l) = &self.listener {
            l.take(out);
        }
    }
}

/// Fields that have no call of their own.
///
/// Source: NVML API reference, "Field Value Enums" (docs.nvidia.com/deploy/nvml-api): numbers and units.
const FIELDS: [u32; 10] = [
    field_id::NVML_FI_DEV_REMAPPED_COR,
    field_id::NVML_FI_DEV_REMAPPED_UNC,
    field_id::NVML_FI_DEV_REMAPPED_PENDING,
    field_id::NVML_FI_DEV_REMAPPED_FAILURE,
    field_id::NVML_FI_DEV_RETIRED_PENDING,
    field_id::NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
    field_id::NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
    field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
    field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    field_id::NVML_FI_DEV_MEMORY_TEMP,
];

/// Their values, those that this card and driver have.
struct Fields(Vec<(u32, u64)>);

impl Fields {
    fn of(h: &Handle<'_>) -> Self {
        let values = h.field_values_for(&FIELDS.map(FieldId)).unwrap_or_default();
        // Answers come in the order of the questions; a driver may number them otherwise.
        let known =
            FIELDS.into_iter().zip(values).filter_map(|(id, v)| Some((id, number(v.ok()?.value.ok()?)?)));
        Self(known.collect())
    }

    fn get(&self, id: u32) -> Option<u64> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, v)| *v)
    }
}

fn number(value: SampleValue) -> Option<u64> {
    match value {
        SampleValue::U32(n) => Some(u64::from(n)),
        SampleValue::U64(n) => Some(n),
        SampleValue::I64(n) => u64::try_from(n).ok(),
        SampleValue::F64(n) => (n >= 0.0 && n.is_finite()).then_some(n as u64),
    }
}

/// Processes of a handle, each with whether it draws or is a client of MPS.
fn processes_of(h: &Handle<'_>) -> impl Iterator<Item = (ProcessInfo, bool)> {
    let compute = h.running_compute_processes().unwrap_or_default();
    let known: Vec<u32> = compute.iter().map(|p| p.pid).collect();
    let graphics = h.running_graphics_processes().unwrap_or_default();
    let more = graphics.into_iter().filter(move |p| !known.contains(&p.pid)).map(|p| (p, true));
    compute.into_iter().map(|p| (p, false)).chain(more)
}
