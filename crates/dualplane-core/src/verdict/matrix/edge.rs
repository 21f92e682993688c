//! Settings leave so little of the card that any further need fails.

use super::scene::{Scene, Stage};
use super::{FITTING, Row, STRONG};
use crate::verdict::Cited;
use crate::verdict::proof::Launch;

/// A share of the card from which on the rest is too little for activations and graphs.
const EDGE: f64 = 0.95;
/// A share that leaves a rest for them.
const WIDE: f64 = 0.85;
/// A request below this share of the card would have fitted with slightly smaller settings.
const LITTLE: f64 = 0.02;
/// One above this share is no matter of slightly smaller settings.
const MUCH: f64 = 0.1;
/// What the process itself must hold of the card, so that its settings are what leaves so little.
const MOSTLY_OWN: f64 = 0.9;

pub(super) fn row(s: &Scene) -> Row {
    let mut row = Row::new("settings at the edge: share of the card, length or concurrency leave no room");
    if let Some(share) = s.share {
        let rest = s.total.map(|t| t.saturating_sub(t.scale(share)));
        let cited = Cited::plain(Launch::Share { share, rest });
        match share {
            x if x >= EDGE => row.speaks(STRONG, cited),
            x if x <= WIDE => row.speaks_against(FITTING, cited),
            _ => {}
        }
    }
    if let (Some(requested), Some(total)) = (s.requested, s.total) {
        let cited = Cited::plain(Launch::Asked { requested, total });
        let own = s.own.is_some_and(|o| o.share_of(total) >= MOSTLY_OWN);
        match requested.share_of(total) {
            // While weights are loaded any request may be the first that does not fit.
            x if x <= LITTLE && own && s.phase != Stage::Loading => row.speaks(FITTING, cited),
            x if x >= MUCH => row.speaks_against(FITTING, cited),
            _ => {}
        }
    }
    row
}
