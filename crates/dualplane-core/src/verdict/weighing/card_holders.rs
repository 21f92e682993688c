//! Who holds the card, where others do and the message names no pid.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::gpus::{TOLD, holds, on_card, own_card, place};
use crate::verdict::{Cited, Class, Decided, Trigger};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "card_holders",
    adds: "the processes listed on the pod's GPU, if other processes use it and the message names none",
    because: "the output is from a different time, but names the processes to check",
    source: "nvidia-smi and similar tools; PyTorch's allocator message",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let oom = decided.trigger.as_ref().and_then(Trigger::vram);
    let unnamed = oom.is_none_or(|o| o.processes.is_empty());
    if decided.class != Class::GpuCapacityConflict || !unnamed {
        return;
    }
    let card = own_card(case.bundle).map(|(_, g)| on_card(case.bundle, g)).unwrap_or_default();
    for (s, p) in card.into_iter().filter(|(_, p)| p.used.is_some()).take(TOLD) {
        let at = place(&s.file, p.line);
        if !decided.supports.iter().any(|c| c.place.as_ref() == Some(&at)) {
            decided.supports.push(Cited::at(holds(s, p), &at));
        }
    }
}
