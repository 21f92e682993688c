//! Free VRAM in a printout proves nothing about the failure.

use super::Weighing;
use crate::evidence::gpu_model::Gpu;
use crate::verdict::case::Case;
use crate::verdict::gpus::{cards, place};
use crate::verdict::{Cited, Decided, Plane, Trigger};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "free_since",
    adds: "a note that free VRAM in tool output is from a different time",
    because: "the dead process has released its memory since",
    source: "nvidia-smi and similar tools; PyTorch's allocator message",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Gpu {
        return;
    }
    let oom = decided.trigger.as_ref().and_then(Trigger::vram);
    let free = |g: &Gpu| g.free.or_else(|| Some(g.total?.saturating_sub(g.used?)));
    let loose = cards(case.bundle)
        .into_iter()
        .find(|(_, g)| free(g).zip(oom.as_ref().and_then(|o| o.requested)).is_some_and(|(f, r)| f >= r));
    if let Some((s, g)) = loose {
        let text = format!(
            "{} shows {} of {} free, but it was taken at a different time, after the dead process \
            released its memory; it proves nothing about the failure",
            s.tool,
            free(g).unwrap_or_default(),
            g.total.map_or_else(|| "the card".to_owned(), |t| t.to_string()),
        );
        decided.against.push(Cited::at(text, &place(&s.file, g.line)));
    }
}
