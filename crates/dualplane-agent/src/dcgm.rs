//! GPUs by the page of the DCGM exporter, for an agent that NVML does not reach: the exporter runs on most GPU nodes.
//!
//! The exporter itself collects each 30 s by default, so its page is asked seldom, and between two pages nothing is read.
//! It does not tell whose VRAM it is: processes are unknown. Names and units: `etc/default-counters.csv` of dcgm-exporter.

use std::time::Duration;

use dualplane_base::metrics::sample;
use dualplane_base::order::Order as _;
use dualplane_base::units::{Bytes, MIB};
use dualplane_core::facts::pci_address;
use dualplane_node::clock::Moment;
use dualplane_node::gpu::{Device, DeviceId, Event, GpuGap, GpuProcess, Gpus, Health, Reading};

use crate::engine::{Client, Response};

/// Between two pages.
const EVERY: Duration = Duration::from_secs(10);
/// Devices of a page: 16 cards with 7 MIG devices each.
const MAX_DEVICES: usize = 128;

/// One device of the page.
#[derive(Debug, Clone, Default)]
struct Told {
    device: Device,
    reading: Reading,
    health: Health,
}

/// The exporter's page.
#[derive(Debug)]
pub struct DcgmPage {
    client: Client,
    url: String,
    asked: Option<Moment>,
    /// Of the last page.
    told: Vec<Told>,
    listed: Vec<Device>,
    /// The page is newer than what was read of it.
    fresh: bool,
}

impl DcgmPage {
    /// `http://localhost:9400/metrics`; nothing is asked yet.
    #[must_use]
    pub fn at(url: &str) -> Self {
        let url = url.to_owned();
        Self { client: Client::new(), url, asked: None, told: Vec::new(), listed: Vec::new(), fresh: false }
    }

    fn turn(&mut self, now: Moment) -> Result<(), GpuGap> {
        if self.asked.is_some_and(|at| now.since(at) < EVERY) {
            return Ok(());
        }
        self.asked = Some(now);
        let gap = |why: &str| GpuGap::Call { call: "the DCGM exporter", why: format!("{}: {why}", self.url) };
        let page = match self.client.get_url(&self.url) {
            Response::Page(page) => page,
            Response::Unusable => return Err(gap("no page of metrics")),
            Response::NoAnswer => return Err(gap("no answer")),
        };
        self.told = devices(&page);
        self.fresh = true;
        if self.told.is_empty() { Err(gap("no GPU on the page")) } else { Ok(()) }
    }

    /// Where a device stands in the list that was given out; one that came since waits for the next list.
    fn place(&self, told: &Told) -> Option<DeviceId> {
        let at = self.listed.iter().position(|d| d.uuid == told.device.uuid)?;
        u16::try_from(at).ok().map(DeviceId)
    }
}

impl Gpus for DcgmPage {
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap> {
        out.clear();
        self.turn(Moment::now())?;
        self.listed = self.told.iter().map(|t| t.device.clone()).collect();
        out.extend(self.listed.iter().cloned());
        Ok(())
    }

    fn read(&mut self, out: &mut Vec<Reading>) -> u32 {
        out.clear();
        let failed = self.turn(Moment::now()).is_err();
        if std::mem::take(&mut self.fresh) {
            out.extend(
                self.told.iter().filter_map(|t| Some(Reading { device: self.place(t)?, ..t.reading })),
            );
        }
        if failed { u32::try_from(self.listed.len()).unwrap_or(u32::MAX) } else { 0 }
    }

    fn processes(&mut self, out: &mut Vec<GpuProcess>) {
        out.clear();
    }

    fn health(&mut self, out: &mut Vec<Health>) {
        out.clear();
        let cards = self.told.iter().filter(|t| t.device.instance.is_none());
        out.extend(cards.filter_map(|t| Some(Health { device: self.place(t)?, ..t.health })));
    }

    fn events(&mut self, _out: &mut Vec<Event>) {}
}

/// Devices of a page, cards before their MIG devices.
fn devices(page: &str) -> Vec<Told> {
    let mut all: Vec<Told> = Vec::new();
    for line in page.lines().filter(|l| l.starts_with("DCGM_FI_DEV_")) {
        let Some((name, labels, value, _)) = sample(line) else { continue };
        if !value.is_finite() || value < 0.0 {
            continue;
        }
        let of = |key: &str| {
            labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
        };
        let Some(card) = of("UUID") else { continue };
        let instance = of("GPU_I_ID").and_then(|i| i.parse().ok());
        // Of a MIG device the exporter tells the card's UUID and the instance.
        let uuid = instance.map_or_else(|| card.to_owned(), |i: u32| format!("{card}/{i}"));
        let at = match all.iter().position(|t| t.device.uuid == uuid) {
            Some(at) => at,
            None if all.len() >= MAX_DEVICES => continue,
            None => {
                let device = Device {
                    uuid,
                    index: of("gpu").and_then(|g| g.parse().ok()).unwrap_or(0),
                    name: of("GPU_I_PROFILE").or_else(|| of("modelName")).unwrap_or_default().to_owned(),
                    pci: of("pci_bus_id").and_then(pci_address).unwrap_or_default(),
                    instance: instance.map(|i| (i, 0)),
                    ..Device::default()
                };
                all.push(Told { device, ..Told::default() });
                all.len() - 1
            }
        };
        if let Some(t) = all.get_mut(at) {
            t.take(name, value);
        }
    }
    all.order_by_key(|t| (t.device.index, t.device.instance));
    let cards: Vec<(String, DeviceId)> = all
        .iter()
        .enumerate()
        .filter(|(_, t)| t.device.instance.is_none())
        .filter_map(|(i, t)| Some((t.device.uuid.clone(), DeviceId(u16::try_from(i).ok()?))))
        .collect();
    for t in all.iter_mut().filter(|t| t.device.instance.is_some()) {
        let card = t.device.uuid.split('/').next().unwrap_or_default();
        t.device.card = cards.iter().find(|(u, _)| u == card).map(|(_, id)| *id);
    }
    all
}

impl Told {
    fn take(&mut self, name: &str, value: f64) {
        // Checked above: finite and not negative.
        let n = value as u64;
        let small = u32::try_from(n).ok();
        let mib = || Some(Bytes(n.saturating_mul(MIB)));
        let (r, h) = (&mut self.reading, &mut self.health);
        match name.trim_start_matches("DCGM_FI_DEV_") {
            "FB_USED" => r.used = mib(),
            "FB_FREE" => r.free = mib(),
            "FB_RESERVED" => r.reserved = mib(),
            "FB_TOTAL" => r.total = mib(),
            "GPU_UTIL" => r.busy = small,
            "MEM_COPY_UTIL" => r.memory_busy = small,
            "POWER_USAGE" => r.power_mw = u32::try_from((value * 1000.0) as u64).ok(),
            "GPU_TEMP" => r.celsius = small,
            "SM_CLOCK" => r.sm_mhz = small,
            "MEM_CLOCK" => r.memory_mhz = small,
            "CLOCK_THROTTLE_REASONS" | "CLOCKS_EVENT_REASONS" => r.throttle = Some(n),
            "MEMORY_TEMP" => h.memory_celsius = small,
            "ECC_SBE_VOL_TOTAL" => h.ecc_corrected = Some(n),
            "ECC_DBE_VOL_TOTAL" => h.ecc_uncorrected = Some(n),
            "ECC_SBE_AGG_TOTAL" => h.ecc_corrected_lifetime = Some(n),
            "ECC_DBE_AGG_TOTAL" => h.ecc_uncorrected_lifetime = Some(n),
            "CORRECTABLE_REMAPPED_ROWS" => h.remapped_corrected = small,
            "UNCORRECTABLE_REMAPPED_ROWS" => h.remapped_uncorrected = small,
            "ROW_REMAP_PENDING" => h.remap_pending = Some(n != 0),
            "ROW_REMAP_FAILURE" => h.remap_failed = Some(n != 0),
            "PCIE_REPLAY_COUNTER" => h.pcie_replays = small,
            _ => {}
        }
        // The default list of counters has no total.
        if let (Some(used), Some(free), true) = (r.used, r.free, !name.ends_with("FB_TOTAL")) {
            let reserved = r.reserved.unwrap_or_default();
            let sum = used.saturating_add(free).saturating_add(reserved);
            r.total = Some(r.total.map_or(sum, |t| t.max(sum)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = r#"gpu="0",UUID="GPU-a",pci_bus_id="00000000:4A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n""#;

    fn page() -> String {
        let line =
            |name: &str, more: &str, value: &str| format!("DCGM_FI_DEV_{name}{{{CARD}{more}}} {value}\n");
        let mig = r#",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7""#;
        [
            "# TYPE DCGM_FI_DEV_FB_USED gauge\n".to_owned(),
            line("FB_USED", mig, "9000"),
            line("FB_FREE", mig, "728"),
            line("FB_USED", "", "40000"),
            line("FB_FREE", "", "41000"),
            line("FB_RESERVED", "", "559"),
            line("POWER_USAGE", "", "432.125"),
            line("SM_CLOCK", "", "1980"),
            line("MEMORY_TEMP", "", "61"),
            line("ROW_REMAP_PENDING", "", "1"),
            line("ECC_DBE_AGG_TOTAL", "", "3"),
            line("GPU_TEMP", "", "NaN"),
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 3\nup 1\n".to_owned(),
        ]
        .concat()
    }

    #[test]
    fn a_page_becomes_devices_readings_and_counters() {
        let all = devices(&page());
        assert_eq!(all.len(), 2, "{all:?}");
        let [card, mig] = [&all[0], &all[1]];
        assert_eq!(
            (card.device.uuid.as_str(), card.device.pci.as_str(), card.device.instance),
            ("GPU-a", "0000:4a:00", None)
        );
        assert_eq!(
            (mig.device.uuid.as_str(), mig.device.name.as_str(), mig.device.card),
            ("GPU-a/7", "1g.10gb", Some(DeviceId(0)))
        );
        let r = &card.reading;
        assert_eq!((r.used, r.total), (Some(Bytes(40_000 << 20)), Some(Bytes(81_559 << 20))));
        assert_eq!((r.power_mw, r.sm_mhz, r.celsius), (Some(432_125), Some(1980), None));
        let h = &card.health;
        assert_eq!(
            (h.memory_celsius, h.remap_pending, h.ecc_uncorrected_lifetime, h.xids),
            (Some(61), Some(true), Some(3), None)
        );
        assert_eq!(mig.reading.total, Some(Bytes(9728 << 20)));
    }

    #[test]
    fn a_page_is_asked_now_and_then_and_read_once() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", server.local_addr().unwrap());
        let serves = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = server.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = page();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        });
        let mut dcgm = DcgmPage::at(&url);
        let (mut d, mut r, mut h) = (vec![], vec![], vec![]);
        dcgm.devices(&mut d).unwrap();
        serves.join().unwrap();
        assert_eq!((d.len(), dcgm.read(&mut r), r.len()), (2, 0, 2));
        assert_eq!((dcgm.read(&mut r), r.len()), (0, 0), "nothing new, and nobody is asked");
        dcgm.health(&mut h);
        assert_eq!(h.len(), 1, "counters are of cards");
        dcgm.asked = None;
        assert!(matches!(dcgm.devices(&mut d), Err(GpuGap::Call { .. })), "it is gone");
    }
}
