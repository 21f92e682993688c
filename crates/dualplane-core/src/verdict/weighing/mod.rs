//! What is weighed after a rule has decided: evidence for and against, doubt, and steps beside the verdict. No class is
//! changed here.
//!
//! [`WEIGHING`] is applied from top to bottom; citations stand in the report in this order. A rule is a file of this folder.

mod card_holders;
mod cgroup_memory;
mod close_recovery;
mod earlier_kill;
mod free_since;
mod host_series;
mod init_container_loads;
mod init_kill_overcome;
mod lived_with_pressure;
mod log_zone;
mod machine_memory;
mod named_processes;
mod other_kills;
mod pod_top;
mod rolled_out;
mod root_cut;
mod shared_pool;
mod survived_errors;
mod vram_series;

use super::Decided;
use super::case::Case;

/// A rule that adds to a verdict, or lowers its confidence.
#[derive(Debug, Clone, Copy)]
pub struct Weighing {
    /// Stable id, never reused.
    pub id: &'static str,
    /// What it adds or lowers, and when.
    pub adds: &'static str,
    /// Because of what.
    pub because: &'static str,
    /// Where the domain knowledge is from.
    pub source: &'static str,
    apply: fn(&Case<'_>, &mut Decided),
}

/// Every weighing rule, in the order in which they are applied.
pub const WEIGHING: &[Weighing] = &[
    earlier_kill::RULE,
    close_recovery::RULE,
    lived_with_pressure::RULE,
    init_container_loads::RULE,
    survived_errors::RULE,
    init_kill_overcome::RULE,
    other_kills::RULE,
    cgroup_memory::RULE,
    machine_memory::RULE,
    pod_top::RULE,
    host_series::RULE,
    vram_series::RULE,
    named_processes::RULE,
    card_holders::RULE,
    free_since::RULE,
    shared_pool::RULE,
    root_cut::RULE,
    rolled_out::RULE,
    log_zone::RULE,
];

/// Applies every rule; those that changed something, by id.
pub(super) fn weigh(case: &Case<'_>, decided: &mut Decided) -> Vec<&'static str> {
    let mut applied = Vec::new();
    for rule in WEIGHING {
        let before = state(decided);
        (rule.apply)(case, decided);
        if state(decided) != before {
            applied.push(rule.id);
        }
    }
    applied
}

/// What a weighing rule may change: it only adds to the lists.
fn state(d: &Decided) -> impl PartialEq + use<> {
    (d.phase, d.confidence, d.supports.len(), d.against.len(), d.sequence.len())
}
