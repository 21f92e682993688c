//! Words for what tools show of GPUs.

use dualplane_base::text::{counted, shorten};
use dualplane_core::verdict::proof::{Fault, Gpu};

pub(super) fn sentence(proof: &Gpu) -> String {
    match proof {
        Gpu::Holder { tool, process, pid, used, at, named } => {
            let used = used.map_or_else(|| "an unknown amount".to_owned(), |u| u.to_string());
            let when = at.map(|t| format!(", printed {}", t.show())).unwrap_or_default();
            let named = if *named { ": the PID named in the message" } else { "" };
            format!("{tool} lists {} (host pid {pid}) with {used}{when}{named}", shorten(process, 80))
        }
        Gpu::Unlisted { tool, used, listed } => format!(
            "{tool}: {used} in use − {listed} of the listed processes = {} used by a process that is not listed",
            used.saturating_sub(*listed)
        ),
        Gpu::HoldersLater => {
            "this output is from a different time than the failure; these processes were probably, but not \
            certainly, already running"
                .to_owned()
        }
        Gpu::WhichUnknown => {
            "the evidence does not show which of the node's GPUs the container used".to_owned()
        }
        Gpu::OnePool { card } => format!(
            "{card} has no VRAM of its own: CPU and GPU share one pool, so that what one takes the other lacks"
        ),
        Gpu::CoherentPools { card } => format!(
            "{card} has two pools, its own and the machine's. They are coherent: unless the driver manages the card's \
            memory itself (CDMM), the kernel sees it as a NUMA node and may put pages of any program there"
        ),
        Gpu::FreeLater { tool, free, total } => format!(
            "{tool} shows {free} of {} free, but it was taken at a different time, after the dead process \
            released its memory; it proves nothing about the failure",
            total.map_or_else(|| "the card".to_owned(), |t| t.to_string()),
        ),
        Gpu::Faulty { tool, fault: Fault::Uncorrected(n) } => {
            format!("{tool}: {} since the driver was loaded", counted(*n, "uncorrectable ECC error"))
        }
        Gpu::Faulty { tool, fault: Fault::RemapPending } => {
            format!("{tool}: rows that wait for a reset to be remapped")
        }
        Gpu::MaybeFaulty { tool, fault: Fault::Uncorrected(n) } => {
            format!("{tool}: {} since the driver was loaded", counted(*n, "uncorrected ECC error"))
        }
        Gpu::MaybeFaulty { tool, fault: Fault::RemapPending } => {
            format!("{tool}: rows will be remapped at the next reset")
        }
        Gpu::Faulty { tool, fault: Fault::Hot(c) } | Gpu::MaybeFaulty { tool, fault: Fault::Hot(c) } => {
            format!("{tool}: {c} °C")
        }
        Gpu::HeatOfAMoment => {
            "a temperature is of one moment; heat slows a GPU down, and ends a server only by way of a fault"
                .to_owned()
        }
        Gpu::FaultWithoutTime => {
            "the counter has no timestamp, and the evidence contains no Xid; the kernel log has its time"
                .to_owned()
        }
        Gpu::MaybeFaultWithoutTime => {
            "the counter has no timestamp and the evidence contains no Xid; check the kernel log".to_owned()
        }
        Gpu::MigRequested(resource) => format!("the pod requests {resource}"),
        Gpu::MigLabel { metric, profile } => {
            format!("the metric {metric} carries GPU_I_PROFILE=\"{profile}\"")
        }
        Gpu::MigProduct(product) => format!("the node has the label nvidia.com/gpu.product={product}"),
        Gpu::MigLine(line) => line.clone(),
        Gpu::MigOfThisSize { tool, size } => {
            format!("{tool} lists a MIG instance of {size}, the capacity named in the error")
        }
        Gpu::NoMig => "the evidence shows no MIG instance".to_owned(),
    }
}
