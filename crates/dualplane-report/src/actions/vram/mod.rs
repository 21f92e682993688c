//! VRAM ran out: at load, while serving, by fragmentation or because of a neighbour.

mod conflict;
mod counsel;
mod fragmentation;
mod instances;
mod load;
mod runtime;
mod share;
mod step;

pub(super) use counsel::{pool, pool_start};
pub(super) use runtime::room_for_a_step;
pub(super) use share::{utilization, utilization_flag};

use super::check::Rest;
use super::pool_size::given;
use super::{Action, Context, Stage, names};
use conflict::conflict;
use dualplane_base::Class;
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::facts::vram::VramOom;
use dualplane_core::verdict::Trigger;
use fragmentation::fragmentation;
use load::load;
use runtime::runtime;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let oom = cx.verdict.trigger.as_ref().and_then(Trigger::vram).unwrap_or_default();
    match cx.verdict.class {
        Class::CudaOomLoad => load(cx, &oom, &mut out),
        Class::CudaOomRuntime => runtime(cx, &oom, &mut out),
        Class::Fragmentation => fragmentation(cx, &oom, &mut out),
        _ => conflict(cx, &oom, &mut out),
    }
    verify(cx, &oom, &mut out);
    avoid(cx, &mut out);
    out
}

fn verify(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let n = names(cx);
    // At load the failed request may be all weights; while serving it is the step that must fit next time.
    let most = if cx.verdict.class == Class::CudaOomLoad { Bytes(GIB) } else { Bytes(u64::MAX) };
    let margin = oom.requested.map_or(Bytes(GIB), |r| r.max(Bytes(GIB / 4)).min(most));
    out.push(
        Action::new(
            Stage::Verify,
            format!(
                "After the change: start-up completes, and at peak traffic at \
        least {margin} stays free on the GPU"
            ),
        )
        .run(n.exec(cx.facts.maker.memory())),
    );
}

fn avoid(cx: &Context<'_>, out: &mut Vec<Action>) {
    out.push(Action::new(
        Stage::Avoid,
        "Do not raise the container's memory limit for this: resources.limits.memory is host RAM, and VRAM ran out",
    ).rests(Rest::TwoPools));
    if cx.verdict.class == Class::CudaOomLoad {
        out.push(
            Action::new(
                Stage::Avoid,
                "Do not lower the KV cache share to make room for weights: the weights did not fit on the \
            whole GPU",
            )
            .rests(Rest::WeightsFailed)
            .rests(Rest::KeepsShare),
        );
    }
    let share = cx.facts.engine.head().and_then(|d| d.flags.share.first());
    let pool = given(cx).map(|p| p.flag);
    if let Some(flag) =
        pool.or(share.map(String::as_str)).filter(|_| cx.verdict.class == Class::CudaOomRuntime)
    {
        out.push(Action::new(
            Stage::Avoid,
            format!("Do not raise {flag}: this takes away the memory that the failing step needs"),
        ));
    }
    if cx.verdict.class == Class::GpuCapacityConflict {
        out.push(
            Action::new(
                Stage::Avoid,
                "Do not quantise or re-shard the model for this: it fits, but the GPU is in use",
            )
            .rests(Rest::FitsAlone),
        );
    }
}
