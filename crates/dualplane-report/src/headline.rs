//! The first words of a report: which plane, and what happened to it.

use super::Report;
use dualplane_base::{Class, Plane};
use dualplane_core::verdict::pressure::Bound;
use dualplane_core::verdict::rules::UNDER_PRESSURE;

/// Plane, badge and class as people read them first.
pub(super) struct Headline {
    pub(super) plane: Plane,
    pub(super) badge: String,
    pub(super) class: &'static str,
}

/// Nothing is unknown of a server that lives at its limit but whether it will die.
pub(super) fn headline(r: &Report) -> Headline {
    let v = &r.verdict;
    let bound = v.pressure.as_ref().filter(|_| v.decided_by == UNDER_PRESSURE).map(|p| p.bound);
    let (plane, badge, class) = match (bound, v.class) {
        (Some(Bound::Host), _) => (Plane::Host, "HOST PRESSURE".to_owned(), "no death"),
        (Some(Bound::Gpu), _) => (Plane::Gpu, "GPU PRESSURE".to_owned(), "no death"),
        (Some(Bound::Both), _) => (Plane::Host, "HOST AND GPU PRESSURE".to_owned(), "no death"),
        (_, Class::NotMemory) => (v.class.plane(), "NOT MEMORY".to_owned(), v.class.as_str()),
        (_, Class::Unknown) => (v.class.plane(), "UNKNOWN".to_owned(), v.class.as_str()),
        (_, class) => {
            (class.plane(), format!("{} PLANE", class.plane().as_str().to_uppercase()), class.as_str())
        }
    };
    Headline { plane, badge, class }
}
