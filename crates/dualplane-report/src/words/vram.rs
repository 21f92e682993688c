//! Words for the sizes of a VRAM error.

use dualplane_core::verdict::proof::{Enough, Vram};

pub(super) fn sentence(proof: &Vram) -> String {
    match proof {
        Vram::NoSizes => {
            "the message contains no sizes, so another process or fragmentation cannot be ruled out".to_owned()
        }
        Vram::UnknownPhase => {
            "the log does not show whether the server was loading or serving".to_owned()
        }
        Vram::Fraction(allowed) => format!("a memory fraction limits the process to {allowed}"),
        Vram::Others { total, free, own, others, requested } => format!(
            "total {total} − free {free} − this process {own} = {others} used by other processes; this process \
            requested {requested}"
        ),
        Vram::HeldByOthers { others, total } => format!("other processes use {others} of {total}"),
        Vram::FullOfTensors { idle, requested, allocated, total } => format!(
            "reserved but unallocated {idle} would cover the requested {requested}, but tensors fill {:.1} % of \
            the device: a lack of capacity, not fragmentation",
            allocated.share_of(*total) * 100.0
        ),
        Vram::Holes { reserved, graphs, idle, enough, requested, allocated, total } => {
            let graphs = match graphs.0 {
                0 => String::new(),
                _ => format!(" − {graphs} of CUDA graphs = {idle}"),
            };
            let enough = match enough {
                Enough::Alone => "≥".to_owned(),
                Enough::WithFree(free) => format!("+ free {free} ≥"),
            };
            format!(
                "reserved but unallocated {reserved}{graphs} {enough} requested {requested}; tensors use \
                {allocated} of {total} ({:.1} %)",
                allocated.share_of(*total) * 100.0
            )
        }
        Vram::IdleAndRequested { idle, requested, allocated, total } => format!(
            "reserved but unallocated {idle} versus requested {requested}; tensors use {:.1} % of the GPU",
            allocated.share_of(*total) * 100.0
        ),
        Vram::Ledger { device, reserved, allocated, fragments } => {
            let idle = reserved.saturating_sub(*allocated);
            let held = fragments.map_or(String::new(), |f| format!(", including {f} in fragments of used blocks"));
            format!(
                "memory_summary of device {device}: reserved {reserved} − allocated {allocated} = {idle} idle{held}"
            )
        }
        Vram::LedgerLater => {
            "the summary was printed after the failure and no longer includes tensors that the exception released"
                .to_owned()
        }
        Vram::BeforeProfile { initial, own } => format!(
            "{initial} in use before the profile run − {own} of this process = {}",
            initial.saturating_sub(*own)
        ),
        Vram::NotFreeAtStart { budget, share, total, free } => format!(
            "the GPU has {budget} / {share} = {total}; {total} − {free} free at the start = {}",
            total.saturating_sub(*free)
        ),
        Vram::OutsideTorch { outside, total, own } => format!(
            "{outside} outside PyTorch's allocator is {:.0} % of the GPU; a CUDA context and NCCL of one process \
            take about {own}",
            outside.share_of(*total) * 100.0
        ),
    }
}
