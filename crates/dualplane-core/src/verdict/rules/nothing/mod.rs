//! Nothing shows how it ended or that it went on: no finding, with what is missing.

pub(super) mod end_not_shown;
pub(super) mod no_evidence;
pub(super) mod no_status;
pub(super) mod refused_request;
pub(super) mod snapshots;

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::verdict::case::Case;

/// Objects or metrics are at hand, which would tell of an end.
fn has_objects(case: &Case<'_>) -> bool {
    let b = case.bundle;
    !b.pods.is_empty() || !b.events.is_empty() || !b.metrics.is_empty()
}
