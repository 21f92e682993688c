//! What a bundle shows and its report does not hold: both planes over time and the first error in its log. It is made once,
//! when a bundle is judged; another version makes it anew from the bundle.

mod excerpt;
mod planes;

pub use excerpt::{Excerpt, Kind, Row};
pub use planes::{Mark, MarkKind, Planes, Stretch};

use dualplane_core::knowledge::Knowledge;
use dualplane_report::Report;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// Both planes on one clock; absent where no series was kept.
    pub planes: Option<Planes>,
    /// The first error in its log; absent where the proof is not a line of a log.
    pub log: Option<Excerpt>,
}

impl Scene {
    /// Of a report with its evidence. Secrets and texts of users are masked in the lines.
    #[must_use]
    pub fn of(report: &Report, knowledge: &Knowledge) -> Self {
        Self { planes: planes::of(report), log: excerpt::of(report, knowledge) }
    }
}
