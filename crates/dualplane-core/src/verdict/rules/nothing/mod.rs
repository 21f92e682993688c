//! Nothing failed, as far as the evidence goes; without any log or object that is no finding.

pub(super) mod no_evidence;
pub(super) mod no_status;
pub(super) mod nothing_failed;
pub(super) mod refused_request;
pub(super) mod snapshots;
pub(super) mod unknown_alarm;

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::verdict::case::Case;

/// Objects or metrics are at hand, which would tell of an end.
fn has_objects(case: &Case<'_>) -> bool {
    let b = case.bundle;
    !b.pods.is_empty() || !b.events.is_empty() || !b.metrics.is_empty()
}
