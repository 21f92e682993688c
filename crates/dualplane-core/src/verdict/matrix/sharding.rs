//! The model is not split over the cards that the container has, or unevenly.

use super::scene::Scene;
use super::{FITTING, Row, STRONG};
use crate::verdict::Cited;
use crate::verdict::proof::Launch;

/// Cards of one launch that differ by this much of a card do not hold equal parts.
const UNEVEN: f64 = 0.3;

pub(super) fn row(s: &Scene) -> Row {
    let mut row = Row::new("a wrong split of the model over the GPUs");
    if let Some((ranks, gpus)) = ranks(s).filter(|(_, gpus)| *gpus > 1) {
        let cited = Cited::plain(Launch::Ranks { ranks, gpus });
        if ranks < gpus {
            row.speaks(STRONG, cited);
        } else {
            row.speaks_against(FITTING, cited);
        }
    }
    if let Some((most, least, at)) = &s.cards {
        let cited = Cited::at(Launch::Uneven { most: *most, least: *least }, at);
        if most - least >= UNEVEN {
            row.speaks(FITTING, cited);
        } else {
            row.speaks_against(FITTING, cited);
        }
    }
    row
}

/// Where settings are known and none splits the model, it runs on one.
fn ranks(s: &Scene) -> Option<(u64, u64)> {
    let ranks = s.ranks.or(s.settings.then_some(1))?;
    Some((ranks, s.gpus?))
}
