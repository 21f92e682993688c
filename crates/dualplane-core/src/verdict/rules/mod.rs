//! The rules of the verdict: [`TABLE`] is their precedence, and nothing else is.
//!
//! Each rule is asked, in this order. The first that holds decides; one that holds behind it has lost to it, and one that
//! does not hold says why. Rules of the stage [`Stage::FirstInCause`] hold for the first link of the causal chain
//! (`chain`), so that at most one of them holds. A rule is a file of this folder.

pub(super) mod failure;
pub(super) mod first;
mod judged;
mod life;
mod nothing;
pub(super) mod outside;
mod rule;
mod signal;
pub(super) mod symptoms;
#[cfg(test)]
pub(super) mod testing;
mod under_pressure;
pub(super) mod unexplained;

pub(super) use judged::{Judged, Unmet, decided, from_chain, quoted, unmet};
pub(super) use life::NAMELESS_KILL;
pub use rule::{Beats, Over, Rule, Ruled, Ruling, Stage};
pub use under_pressure::ID as UNDER_PRESSURE;

use super::Decided;
use super::case::Case;

/// Every rule, in the order in which they are asked.
pub const TABLE: &[Rule] = &[
    // A memory error or GPU fault that ended something: the first in cause.
    first::kernel_oom_kill::RULE,
    first::kubernetes_oom_event::RULE,
    first::oom_killed_status::RULE,
    first::cgroup_oom_kill::RULE,
    first::metrics_oom_kill::RULE,
    first::node_killer::RULE,
    first::start_refused::RULE,
    first::host_refusal::RULE,
    first::driver_line::RULE,
    first::memory_volume_full::RULE,
    first::xid::RULE,
    first::xid_behind_cleanup::RULE,
    first::gpu_fault_line::RULE,
    first::mig_slice_full::RULE,
    first::vram_neighbour::RULE,
    first::vram_neighbour_listed::RULE,
    first::vram_fragmented::RULE,
    first::vram_exhausted::RULE,
    first::vram_unsized::RULE,
    first::kv_capacity::RULE,
    first::engine_refusal::RULE,
    // Something outside the process ended it.
    outside::kubernetes_failure::RULE,
    outside::disruption::RULE,
    outside::pod_deleted::RULE,
    outside::container_stopped::RULE,
    outside::runtime_could_not_start::RULE,
    // How it ended names the cause.
    signal::bus_error::RULE,
    signal::orderly_stop::RULE,
    signal::kernel_saw_crash::RULE,
    // An error with which the server went on.
    symptoms::xid_gauge::RULE,
    symptoms::survived_error::RULE,
    symptoms::preemption_counter::RULE,
    symptoms::memory_at_limit::RULE,
    symptoms::fallback_failed::RULE,
    // Another failure than memory.
    failure::whose_record::RULE,
    failure::command_not_found::RULE,
    failure::known_failure::RULE,
    failure::traceback::RULE,
    failure::sglang_kills_itself::RULE,
    failure::probe_loop::RULE,
    // Something died, and nothing says why.
    unexplained::quoted_words::RULE,
    unexplained::terminated::RULE,
    unexplained::segfault::RULE,
    unexplained::killed::RULE,
    unexplained::ecc_counter::RULE,
    unexplained::exit_code::RULE,
    unexplained::restart_loop::RULE,
    unexplained::death_line::RULE,
    unexplained::failure_wrapper::RULE,
    unexplained::unknown_alarm::RULE,
    // Nothing ended, and memory is about to.
    under_pressure::RULE,
    // A life that went on, or ended in order.
    life::ended_in_order::RULE,
    life::nameless_kill::RULE,
    life::stays_ready::RULE,
    life::lived_on::RULE,
    life::stopped_in_order::RULE,
    // Nothing shows how it ended.
    nothing::no_status::RULE,
    nothing::snapshots::RULE,
    nothing::no_evidence::RULE,
    nothing::refused_request::RULE,
    nothing::end_not_shown::RULE,
];

/// The rule of this id.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    TABLE.iter().find(|r| r.id == id)
}

/// Asks every rule: what the first that holds decides, and how each of them went.
pub(super) fn decide(case: &Case<'_>) -> (Decided, Vec<Ruled>) {
    let mut won: Option<(&'static str, Decided)> = None;
    let mut trace = Vec::with_capacity(TABLE.len());
    for rule in TABLE {
        let ruling = match ((rule.judge)(case), &won) {
            (Ok(_), Some((winner, _))) => Ruling::LostTo(winner),
            (Ok(decided), None) => {
                won = Some((rule.id, decided));
                Ruling::Held
            }
            (Err(Unmet::LostTo(winner)), _) => Ruling::LostTo(winner),
            (Err(Unmet::NotMet(why)), _) => Ruling::NotMet(why.into_owned()),
        };
        trace.push(Ruled { rule: rule.id, ruling });
    }
    // The last rule of the table always holds.
    let (id, mut decided) =
        won.unwrap_or_else(|| (nothing::end_not_shown::RULE.id, nothing::end_not_shown::decide(case)));
    decided.by = id;
    (decided, trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_each_beaten_rule_stands_below() {
        let mut seen: Vec<&str> = Vec::new();
        for (i, rule) in TABLE.iter().enumerate() {
            assert!(!seen.contains(&rule.id), "{} twice", rule.id);
            seen.push(rule.id);
            assert!(!rule.classes.is_empty() && !rule.when.is_empty() && !rule.near_miss.is_empty());
            assert!(!rule.source.is_empty(), "{} has no source", rule.id);
            for b in rule.beats {
                assert!(!b.because.is_empty());
                let below = &TABLE[i + 1..];
                let found = match b.over {
                    Over::Stage(s) => below.iter().any(|r| r.stage == s) && s != rule.stage,
                    Over::Rule(id) => below.iter().any(|r| r.id == id),
                };
                assert!(found, "{}: {:?} does not stand below it", rule.id, b.over);
            }
        }
    }

    #[test]
    fn stages_stand_in_their_order() {
        assert!(TABLE.windows(2).all(|w| w[0].stage <= w[1].stage));
    }
}
