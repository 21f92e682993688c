//! How a server that lives stands against its limits, as lines that people read.

use crate::actions::focus;
use dualplane_base::text::printable;
use dualplane_core::verdict::pressure::{Bound, Level, Pressure, Reading};

/// One line a reading.
pub(crate) fn readings(p: &Pressure) -> impl Iterator<Item = String> {
    p.readings.iter().map(reading)
}

/// Which plane binds, and what to look at in which order; `None` where neither does.
pub(crate) fn focus(p: &Pressure) -> Option<(&'static str, Vec<&'static str>)> {
    let plane = match p.bound {
        Bound::None => return None,
        Bound::Host => "bound by host RAM; look at, in this order:",
        Bound::Gpu => "bound by GPU memory; look at, in this order:",
        Bound::Both => "bound by host RAM and GPU memory; look at, in this order:",
    };
    Some((plane, focus::of(p)))
}

fn reading(r: &Reading) -> String {
    let level = match r.level {
        Level::Normal => "normal",
        Level::Near => "near the limit",
        Level::High => "under pressure",
    };
    let growth = r.growth.as_ref().map(|g| format!("; {}", g.sentence())).unwrap_or_default();
    let note = r.note.as_ref().map(|n| format!("; {n}")).unwrap_or_default();
    let line = r.place.line.map_or(String::new(), |l| format!(":{l}"));
    let time = r.stamp.map(|s| format!(", {}", s.show())).unwrap_or_default();
    printable(&format!("{}: {level}{growth}{note} [{}{line}{time}]", r.sentence(), r.place.file)).into_owned()
}
