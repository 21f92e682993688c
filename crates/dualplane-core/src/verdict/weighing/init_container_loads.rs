//! An init container runs before anything serves.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::{Decided, Phase, deaths};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "init_container_loads",
    adds: "the phase load, if the dead container is an init container and the phase is unknown",
    because: "an init container runs before anything serves",
    source: "Kubernetes init containers",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.phase == Phase::Unknown && deaths::in_init_container(case.bundle, &case.subject) {
        decided.phase = Phase::Load;
    }
}
