//! What a roll-out before the death changed, as far as it bears on the class.

use super::Weighing;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::causes::bearing_changes;
use crate::verdict::{Cited, Decided};

/// Changes of one roll-out that are told.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "rolled_out",
    adds: "fields changed by the last rollout that can cause a failure of this class",
    because: "recent changes are the first thing people ask about",
    source: "Kubernetes ReplicaSets and ControllerRevisions",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    for (r, changes) in bearing_changes(case.bundle, decided.class, &case.subject) {
        let place = Place { file: r.file.clone(), line: None };
        for c in changes.into_iter().take(TOLD) {
            let text = format!("revision {} changed {} ({})", r.to, c.field, c.how());
            decided.supports.push(Cited::at(text, &place));
        }
    }
}
