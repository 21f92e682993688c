//! Both planes over time, where the verdict is of the GPU plane.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::series::{at, fullest, peak, place, say, vram};
use crate::verdict::{Cited, Decided, Plane};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "vram_series",
    adds: "VRAM at the moment of the error, and that the working set stayed below its limit",
    because: "it shows which of the two was full at the end",
    source: "DCGM DCGM_FI_DEV_FB_USED; cAdvisor container_memory_working_set_bytes",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Gpu {
        return;
    }
    let (bundle, subject) = (case.bundle, &case.subject);
    let moment = decided.trigger.as_ref().and_then(|t| t.stamp);
    let cards = vram(bundle, subject, moment.filter(|m| m.has_year()));
    let Some(v) = fullest(&cards) else { return };
    let mut text = format!(
        "VRAM of GPU {} was at {:.1} % ({} of {}){}",
        v.gpu,
        v.share() * 100.0,
        v.used,
        v.total,
        at(v.sample)
    );
    if let Some(h) = peak(bundle, subject, case.facts, "container_memory_working_set_bytes") {
        text.push_str(&format!(
            ", and the container's working set never exceeded {:.0} % of its limit {}",
            h.share * 100.0,
            h.limit
        ));
    }
    say(decided, Cited::at(text, &place(v.sample)));
}
