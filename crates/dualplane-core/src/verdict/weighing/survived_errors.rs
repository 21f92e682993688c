//! A verdict of "not memory" tells the memory errors that were survived before.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::server_runs::of_an_earlier_life;
use crate::verdict::{Class, Decided, Step};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "survived_errors",
    adds: "a step for each memory error that the server survived, together with the verdict not_memory",
    because: "readers of the log find these lines first and must see that they did not end the server",
    source: "own",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class != Class::NotMemory {
        return;
    }
    for c in case.candidates.iter().filter(|c| c.survived || of_an_earlier_life(c, case.facts)) {
        if !decided.sequence.iter().any(|s| s.class == c.class) {
            decided.sequence.push(Step {
                class: c.class,
                phase: c.phase,
                what: format!("{} (the server kept serving afterwards)", c.what),
                trigger: c.trigger(),
            });
        }
    }
}
