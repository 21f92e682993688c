//! Failures that are not memory, by what stands in a log or in the events of earlier runs.

pub(super) mod command_not_found;
pub(super) mod known_failure;
pub(super) mod probe_loop;
pub(super) mod sglang_kills_itself;
pub(super) mod traceback;
pub(super) mod whose_record;

use super::{Beats, Judged, Rule, Stage, decided, quoted, unmet};
use crate::facts::{Facts, Hit};
use crate::knowledge::Mark;
use crate::verdict::Decided;
use crate::verdict::case::Case;

const BEATS: &[Beats] = &[
    Beats::stage(Stage::Unexplained, "the end is explained"),
    Beats::stage(Stage::Life, "something failed after the server was up"),
    Beats::stage(Stage::Nothing, "something failed"),
];

/// The verdict on the log alone, where it ends with another failure than memory, behind which nothing else may stand.
pub(in crate::verdict) fn explains(case: &Case<'_>) -> Option<Decided> {
    known_failure::judge(case).or_else(|_| traceback::judge(case)).ok().filter(|d| d.against.is_empty())
}

/// A process that died, and whose end this line tells. SIGABRT (-6, 134) is what a process sends itself; its reason stands
/// elsewhere, also where this line prints first.
fn death(facts: &Facts) -> Option<&Hit> {
    facts.hits.iter().find(|h| h.mark == Mark::Death && !aborted(h))
}

fn aborted(hit: &Hit) -> bool {
    ["code", "status", "signal"]
        .iter()
        .any(|g| hit.number(g).is_some_and(|n| n == -6.0 || n == 134.0 || n == 6.0))
}
