//! An engine without a GPU: its KV cache is host RAM of a size that a variable gives, and no share of a card moves it.

use crate::actions::pool_size::given;
use crate::actions::{Action, Context, Stage};
use dualplane_base::units::{Bytes, GIB};
use dualplane_engines::OnCpu;

/// The variable raised to the whole GiB that one longest request needs.
pub(super) fn raise(
    cx: &Context<'_>,
    on_cpu: &OnCpu,
    needed: Option<Bytes>,
    available: Option<Bytes>,
    out: &mut Vec<Action>,
) {
    let pool = &on_cpu.pool;
    let Some((need, have)) = needed.zip(available) else {
        out.push(Action::new(
            Stage::Fix,
            format!("Or raise {pool}, and the memory limit by as much: the KV cache is host RAM"),
        ));
        return;
    };
    let gib = need.0.div_ceil(GIB);
    let now = cx.value_of(pool);
    // The size that is asked for would do: something else holds the pool down, such as a number of blocks.
    if now.as_ref().and_then(|v| v.trim().parse::<u64>().ok()).is_some_and(|now| now >= gib) {
        return;
    }
    let from = now.as_ref().map(|v| format!(" (from {v})")).unwrap_or_default();
    let more = Bytes((gib * GIB).saturating_sub(have.0));
    let mut fix =
        Action::new(Stage::Fix, format!("Or set {pool} {gib}{from}, where {more} more of host RAM are free"))
            .because(format!("one request needs {need}, the pool has {have}; in whole GiB"));
    if let Some(limit) = cx.verdict.subject.memory_limit {
        fix = fix.because(format!("the pool counts against the container's limit of {limit}"));
    }
    if let Some(setting) = cx.variable(pool, gib.to_string()) {
        fix = fix.change(dualplane_core::change::Change::Setting(setting));
    }
    out.push(fix);
}

/// What does not move it.
pub(super) fn avoid(cx: &Context<'_>, on_cpu: &OnCpu) -> String {
    let sets = match given(cx) {
        Some(pool) => format!("{} gives it its size", pool.flag),
        None => format!("{} alone sets its size", on_cpu.pool),
    };
    format!(
        "Do not look for VRAM: the log says that this server runs on the CPU, so its KV cache is host RAM, and {sets}"
    )
}
