//! Cards and MIG devices.

use dualplane_node::gpu::Health;

use super::family::{Family, Labels, Metric, Page, counter, gauge};
use crate::figures::{bytes, number};
use crate::view::{GpuView, View};

/// Devices of a page: 16 cards with 7 MIG devices each.
const MAX_DEVICES: usize = 128;

const OWN: &str = "gpu UUID model GPU_I_ID";

fn flag(on: Option<bool>) -> Option<f64> {
    on.map(|on| f64::from(u8::from(on)))
}

fn share(percent: Option<u32>) -> Option<f64> {
    percent.map(|p| f64::from(p) / 100.0)
}

const READABLE: Family = gauge("dualplane_gpus_readable", "", "1 if the node's GPUs can be read, else 0.");
const INFO: Family = gauge(
    "dualplane_gpu_info",
    "gpu UUID model GPU_I_ID pci_bus_id mig",
    "Always 1; the labels identify the device; mig is on, off or device.",
);

const DEVICE: &[Metric<GpuView>] = &[
    (gauge("dualplane_gpu_memory_size_bytes", OWN, "Total VRAM of the device."), |g| bytes(g.reading.total)),
    (
        gauge(
            "dualplane_gpu_memory_used_bytes",
            OWN,
            "VRAM used by processes, without the driver's reserve.",
        ),
        |g| bytes(g.reading.used),
    ),
    (gauge("dualplane_gpu_memory_free_bytes", OWN, "Unused VRAM."), |g| bytes(g.reading.free)),
    (gauge("dualplane_gpu_memory_reserved_bytes", OWN, "VRAM reserved by the driver."), |g| {
        bytes(g.reading.reserved)
    }),
    (
        gauge(
            "dualplane_gpu_memory_unassigned_bytes",
            OWN,
            "VRAM of processes outside any known container; absent if no process is listed.",
        ),
        |g| {
            let known = g.processes.iter().filter_map(|(p, slot)| Some((p.used?, slot)));
            known.fold(None, |sum: Option<f64>, (b, slot)| {
                Some(sum.unwrap_or(0.0) + if slot.is_none() { b.0 as f64 } else { 0.0 })
            })
        },
    ),
    (gauge("dualplane_gpu_processes", OWN, "Processes that use memory on the device."), |g| {
        Some(g.processes.len() as f64)
    }),
    (
        gauge(
            "dualplane_gpu_busy_ratio",
            OWN,
            "Share of time in which a GPU kernel was running (not with \
    MIG).",
        ),
        |g| share(g.reading.busy),
    ),
    (
        gauge(
            "dualplane_gpu_memory_busy_ratio",
            OWN,
            "Share of time in which VRAM was read or written; unrelated to how full it is.",
        ),
        |g| share(g.reading.memory_busy),
    ),
    (gauge("dualplane_gpu_power_watts", OWN, "Power."), |g| {
        g.reading.power_mw.map(|m| f64::from(m) / 1000.0)
    }),
    (gauge("dualplane_gpu_temperature_celsius", OWN, "Temperature of the chip."), |g| {
        g.reading.celsius.map(f64::from)
    }),
    (gauge("dualplane_gpu_memory_temperature_celsius", OWN, "Temperature of the memory."), |g| {
        g.health?.memory_celsius.map(f64::from)
    }),
    (gauge("dualplane_gpu_clock_hertz", OWN, "Clock of the processors."), |g| {
        g.reading.sm_mhz.map(|m| f64::from(m) * 1e6)
    }),
    (gauge("dualplane_gpu_memory_clock_hertz", OWN, "Clock of the memory."), |g| {
        g.reading.memory_mhz.map(|m| f64::from(m) * 1e6)
    }),
    (counter("dualplane_gpu_pcie_sent_bytes_total", OWN, "Bytes that the card sent over PCIe."), |g| {
        number(g.health?.pcie_sent)
    }),
    (
        counter("dualplane_gpu_pcie_received_bytes_total", OWN, "Bytes that the card received over PCIe."),
        |g| number(g.health?.pcie_received),
    ),
    (
        counter(
            "dualplane_gpu_nvlink0_sent_bytes_total",
            OWN,
            "Bytes of data that the card sent over its first NVLink.",
        ),
        |g| number(g.health?.nvlink0_sent),
    ),
    (
        counter(
            "dualplane_gpu_nvlink0_received_bytes_total",
            OWN,
            "Bytes of data that the card received over its first NVLink.",
        ),
        |g| number(g.health?.nvlink0_received),
    ),
    (
        gauge(
            "dualplane_gpu_remap_pending",
            OWN,
            "1 if a row or page of memory is replaced at the next reset of the card, else 0.",
        ),
        |g| flag(g.health?.remap_pending),
    ),
    (
        gauge(
            "dualplane_gpu_remap_failed",
            OWN,
            "1 if a row or page of memory could not be replaced: no spare is left; else 0.",
        ),
        |g| flag(g.health?.remap_failed),
    ),
    (counter("dualplane_gpu_pcie_replays_total", OWN, "PCIe packets that were retransmitted."), |g| {
        g.health?.pcie_replays.map(f64::from)
    }),
    (gauge("dualplane_gpu_nvlinks_up", OWN, "NVLinks that are up."), |g| g.health?.nvlinks.map(f64::from)),
    (
        counter(
            "dualplane_gpu_nvlink_errors_total",
            OWN,
            "Replays, recoveries and CRC errors of all NVLinks.",
        ),
        |g| g.health?.nvlink_errors.map(|n| n as f64),
    ),
];

const THROTTLED: Family =
    gauge("dualplane_gpu_throttled", "gpu UUID model GPU_I_ID reason", "1 while a fault limits the clocks.");
/// Bits of `nvmlClocksEventReasons`.
const REASONS: [(&str, u64); 4] =
    [("hw_slowdown", 0x8), ("sw_thermal", 0x20), ("hw_thermal", 0x40), ("hw_power_brake", 0x80)];

const ECC: Family = counter(
    "dualplane_gpu_ecc_errors_total",
    "gpu UUID model GPU_I_ID type",
    "Memory errors since the driver was loaded, by type.",
);

const ECC_LIFETIME: Family = counter(
    "dualplane_gpu_ecc_errors_lifetime_total",
    "gpu UUID model GPU_I_ID type",
    "Memory errors over the card's life, by type.",
);

const REMAPPED: Family = gauge(
    "dualplane_gpu_remapped_rows",
    "gpu UUID model GPU_I_ID type",
    "Rows or pages of memory that were replaced, by type of the errors.",
);

const XIDS: Family = counter(
    "dualplane_gpu_xid_errors_total",
    "gpu UUID model GPU_I_ID xid",
    "Xids of the card since boot, by code; since the agent's start where the kernel log cannot be read.",
);

pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    let last = [&THROTTLED, &ECC, &ECC_LIFETIME, &REMAPPED, &XIDS];
    [&READABLE, &INFO].into_iter().chain(DEVICE.iter().map(|f| &f.0)).chain(last)
}

pub(super) fn render(view: &View, node: &Labels, page: &mut Page<'_>) {
    if view.round.is_some() {
        let readable = view.gpu_gap.is_none() && !view.gpus.is_empty();
        page.family(&READABLE, [(node.clone(), f64::from(u8::from(readable)))].into_iter());
    }
    page.leave_out(view.gpus.len().saturating_sub(MAX_DEVICES));
    let all: Vec<(Labels, &GpuView)> =
        view.gpus.iter().take(MAX_DEVICES).map(|g| (labels(node, g), g)).collect();
    page.family(
        &INFO,
        all.iter().map(|(l, g)| {
            let mig = match (g.device.card, g.device.mig) {
                (Some(_), _) => "device",
                (None, Some(true)) => "on",
                (None, Some(false)) => "off",
                (None, None) => "",
            };
            (l.with("pci_bus_id", &g.device.pci).with("mig", mig), 1.0)
        }),
    );
    // A device that was listed and has not been read yet has nothing to say.
    let read: Vec<_> = all.into_iter().filter(|(_, g)| g.at.0 > 0).collect();
    page.all(DEVICE, &read);
    page.family(
        &THROTTLED,
        read.iter().filter_map(|(l, g)| Some((l, g.reading.throttle?))).flat_map(|(l, bits)| {
            REASONS
                .iter()
                .map(move |(reason, bit)| (l.with("reason", reason), f64::from(u8::from(bits & bit != 0))))
        }),
    );
    let pairs = |f: &Family, page: &mut Page<'_>, of: fn(&Health) -> [Option<f64>; 2]| {
        page.family(
            f,
            read.iter().filter_map(|(l, g)| Some((l, g.health?))).flat_map(|(l, h)| {
                let kinds = ["corrected", "uncorrected"].into_iter().zip(of(&h));
                kinds.filter_map(|(kind, n)| Some((l.with("type", kind), n?)))
            }),
        );
    };
    pairs(&ECC, page, |h| [number(h.ecc_corrected), number(h.ecc_uncorrected)]);
    pairs(&ECC_LIFETIME, page, |h| [number(h.ecc_corrected_lifetime), number(h.ecc_uncorrected_lifetime)]);
    pairs(&REMAPPED, page, |h| [h.remapped_corrected.map(f64::from), h.remapped_uncorrected.map(f64::from)]);
    page.family(
        &XIDS,
        read.iter().flat_map(|(l, g)| {
            g.xids.by_code.iter().map(move |(code, n)| (l.with("xid", &code.to_string()), *n as f64))
        }),
    );
}

/// The names that NVIDIA's own exporter gives: its series and these can be joined by `UUID`.
fn labels(node: &Labels, g: &GpuView) -> Labels {
    let d = &g.device;
    let l = node.with("gpu", &d.index.to_string()).with("UUID", &d.uuid).with("model", &d.name);
    match d.instance {
        Some((gpu_instance, _)) => l.with("GPU_I_ID", &gpu_instance.to_string()),
        None => l,
    }
}
