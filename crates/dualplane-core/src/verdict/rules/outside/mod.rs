//! Ends that came from outside the process: probes, evictions, deletion, a runtime that could not start it.

pub(super) mod container_stopped;
pub(super) mod disruption;
pub(super) mod kubernetes_failure;
pub(super) mod pod_deleted;
pub(in crate::verdict) mod runtime_could_not_start;

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::verdict::case::Case;

/// What is known to have ended it needs no guess from the log.
const BEATS: &[Beats] = &[SIGNAL, SYMPTOM, FAILURE, UNEXPLAINED, LIFE, NOTHING];

const SIGNAL: Beats = Beats::stage(Stage::Signal, "the sender of the signal is known");
const SYMPTOM: Beats =
    Beats::stage(Stage::Symptom, "the server continued after the symptom and was ended by something else");
const FAILURE: Beats =
    Beats::stage(Stage::Failure, "an error in the log around a requested stop is a consequence of the stop");
const UNEXPLAINED: Beats = Beats::stage(Stage::Unexplained, "the end is explained");
const LIFE: Beats = Beats::stage(Stage::Life, "the end is explained");
const NOTHING: Beats = Beats::stage(Stage::Nothing, "the end is explained");

/// SIGKILL, SIGTERM or SIGINT (also as Python reports them), a clean end, or an end that nobody saw: what comes of being
/// stopped. Any other code the program chose itself.
fn can_be_stopped(case: &Case<'_>) -> bool {
    case.exit_code().is_none_or(|code| matches!(code, 137 | 143 | 0 | 2 | 130 | 255))
}

/// The end fits a stop that the kubelet was asked for: SIGTERM, then SIGKILL after the grace period; or the log is known to
/// have survived its one error, and the end is clean.
fn fits_a_stop(case: &Case<'_>) -> bool {
    case.death().is_none_or(|d| matches!(d.exit_code, Some(137 | 143)) || case.survived() && d.clean())
}
