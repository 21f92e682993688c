//! The first memory error or GPU fault in cause: one rule for each way of knowing it.
//!
//! The candidates come from `candidates/`, each with the id of its rule; `chain` puts those that ended something into
//! causal order. A rule of this folder holds where its candidate is the first of them.

pub(in crate::verdict) mod cgroup_oom_kill;
pub(in crate::verdict) mod driver_line;
pub(in crate::verdict) mod engine_refusal;
pub(in crate::verdict) mod gpu_fault_line;
pub(in crate::verdict) mod host_refusal;
pub(in crate::verdict) mod kernel_oom_kill;
pub(in crate::verdict) mod kubernetes_oom_event;
pub(in crate::verdict) mod kv_capacity;
pub(in crate::verdict) mod memory_volume_full;
pub(in crate::verdict) mod metrics_oom_kill;
pub(in crate::verdict) mod mig_slice_full;
pub(in crate::verdict) mod node_killer;
pub(in crate::verdict) mod oom_killed_status;
pub(in crate::verdict) mod start_refused;
pub(in crate::verdict) mod vram_exhausted;
pub(in crate::verdict) mod vram_fragmented;
pub(in crate::verdict) mod vram_neighbour;
pub(in crate::verdict) mod vram_neighbour_listed;
pub(in crate::verdict) mod vram_unsized;
pub(in crate::verdict) mod xid;
pub(in crate::verdict) mod xid_behind_cleanup;

use super::{Beats, Judged, Rule, Stage, Unmet, from_chain, unmet};
use crate::verdict::Class;
use crate::verdict::candidates::Weight;
use crate::verdict::case::Case;

/// A memory error that ended something goes before everything else.
const BEATS: &[Beats] = &[
    Beats::stage(
        Stage::Outside,
        "failed probes, deletions and restarts are consequences of the memory error",
    ),
    Beats::stage(Stage::Signal, "the error is more specific than the resulting signal"),
    Beats::stage(Stage::Symptom, "an error that the server survived did not end it"),
    Beats::stage(Stage::Failure, "other errors at the same time are consequences"),
    Beats::stage(Stage::Unexplained, "the end is explained"),
    Beats::stage(Stage::Pressure, "memory ran out already"),
    Beats::stage(Stage::Life, "something failed after the server was up"),
    Beats::stage(Stage::Nothing, "something failed"),
];

const fn first(
    id: &'static str,
    classes: &'static [Class],
    when: &'static str,
    near_miss: &'static str,
    source: &'static str,
    judge: fn(&Case<'_>) -> Judged,
) -> Rule {
    Rule { id, stage: Stage::FirstInCause, classes, when, near_miss, beats: BEATS, source, judge }
}

/// Holds where the first link of the chain is this rule's.
fn judge(case: &Case<'_>, id: &'static str, absent: &'static str) -> Judged {
    let first = case.chain.split_first().filter(|(first, _)| first.rule == id);
    if let Some((first, rest)) = first {
        return Ok(from_chain(first, rest));
    }
    let Some(strongest) = case.candidates.iter().filter(|c| c.rule == id).min_by_key(|c| c.weight) else {
        return Err(unmet(absent));
    };
    match (strongest.weight, case.chain.first()) {
        (Weight::Fatal, Some(first)) => Err(Unmet::LostTo(first.rule)),
        (Weight::Fatal, None) if strongest.untied => {
            Err(unmet("nothing ties it to this pod, and the log explains its own end"))
        }
        (Weight::Fatal, None) => Err(unmet(
            "it belongs to an earlier run of the server, which continued \
        after it",
        )),
        (Weight::Degraded, _) => Err(unmet("the server continued after it")),
        (Weight::Suspect, _) => Err(unmet("the engine has a fallback for it")),
    }
}
