//! Enough was free, in pieces.

use crate::actions::check::{Rest, against};
use crate::actions::{Action, Context, Stage};
use dualplane_base::Phase;
use dualplane_base::units::MIB;
use dualplane_core::change::Change;
use dualplane_core::facts::Maker;
use dualplane_core::facts::vram::VramOom;

pub(super) fn fragmentation(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let idle = oom.reserved_unallocated().unwrap_or_default();
    let requested = oom.requested.unwrap_or_default();
    let conf = "PYTORCH_CUDA_ALLOC_CONF";
    // Its other options stay.
    let others = cx.value_of(conf).unwrap_or_default();
    let others = others.split(',').filter(|o| !o.is_empty() && !o.starts_with("expandable_segments"));
    let value = others.chain(["expandable_segments:True"]).collect::<Vec<_>>().join(",");
    let grow = cx.variable(conf, value).map(Change::Setting);
    let enough = format!(
        "{idle} reserved but unallocated ≥ {requested} requested: it would have been enough in one piece"
    );
    // Where the trigger is cut, the allocator's own table told.
    let sized = |a: Action| {
        if oom.reserved_unallocated().is_none() {
            return a;
        }
        a.because(enough.clone()).rests(Rest::OnePiece { idle, requested })
    };
    let growing = Action::new(
        Stage::Fix,
        "Let the allocator grow its segments: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    )
    .rests(Rest::GrowsSegments);
    let growing = sized(growing)
        .because("PyTorch 2.9.1 ignores the new name PYTORCH_ALLOC_CONF for this option; use the old name");
    out.push(grow.into_iter().fold(growing, Action::change));
    if against(cx, Rest::GrowsSegments).is_some() {
        split_less(cx, oom, sized, out);
    }
    // One that does not get through its start was new.
    if !matches!(cx.verdict.phase, Phase::Load | Phase::Profile) {
        out.push(Action::new(
            Stage::StopTheBleeding,
            "Restart the server: a new allocator is not fragmented; \
    the time to the next failure shows how fast fragmentation grows",
        ));
    }
    out.push(Action::new(
        Stage::Prevent,
        "Use few request sizes (bucketed lengths, fixed batch sizes) if the engine allows it",
    ));
}

/// Where segments cannot grow: blocks of the size that failed are kept whole.
fn split_less(cx: &Context<'_>, oom: &VramOom, sized: impl Fn(Action) -> Action, out: &mut Vec<Action>) {
    let Some(requested) = oom.requested else { return };
    let npu = cx.facts.maker == Maker::Ascend;
    let conf = if npu { "PYTORCH_NPU_ALLOC_CONF" } else { "PYTORCH_CUDA_ALLOC_CONF" };
    if npu {
        let title = format!("Let the allocator grow its segments: {conf}=expandable_segments:True");
        let change = cx.variable(conf, "expandable_segments:True".to_owned()).map(Change::Setting);
        out.push(change.into_iter().fold(sized(Action::new(Stage::Fix, title)), Action::change));
        return;
    }
    let mib = (requested.0 / MIB).max(21);
    let value = format!("max_split_size_mb:{mib}");
    let change = cx.variable(conf, value.clone()).map(Change::Setting);
    let a = Action::new(Stage::Fix, format!("Keep large blocks whole: {conf}={value}"))
        .because(format!(
            "{requested} requested = {mib} MiB: larger cached blocks are then not cut for smaller requests"
        ))
        .because("this PyTorch is older than 2.1 and rejects expandable_segments");
    out.push(change.into_iter().fold(sized(a), Action::change));
}
