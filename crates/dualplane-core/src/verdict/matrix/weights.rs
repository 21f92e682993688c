//! The weights are too large for the card, or are loaded in more bits than it has room for.

use super::scene::{Scene, Stage};
use super::{FITTING, Row, STRONG, WEAK};
use crate::verdict::Cited;
use crate::verdict::proof::Launch;

/// Beside so much of weights little is left for a cache and for a step.
const LARGE: f64 = 0.7;
/// Weights that take less are not what fills a card.
const SMALL: f64 = 0.4;

pub(super) fn row(s: &Scene) -> Row {
    let mut row = Row::new("weights that are too large for the card, or not quantised");
    let share = s.weights_share();
    if let (Some(share), Some((weights, at)), Some(total)) = (share, &s.weights, s.total) {
        let cited = Cited::at(Launch::Weights { weights: *weights, total }, at);
        match share {
            x if x >= LARGE => row.speaks(STRONG, cited),
            x if x < SMALL => row.speaks_against(STRONG, cited),
            _ => {}
        }
    }
    match &s.shards {
        Some((done, all, at)) if done < all && s.phase == Stage::Loading => {
            row.speaks(STRONG, Cited::at(Launch::Shards { done: *done, all: *all }, at));
        }
        _ => {}
    }
    match s.phase {
        Stage::Loading => row.speaks(FITTING, Cited::plain(Launch::NeverServed)),
        Stage::Serving => row.speaks_against(FITTING, Cited::plain(Launch::Served)),
        Stage::Sizing | Stage::Unknown => {}
    }
    match &s.quantised {
        Some((name, value)) => {
            let how = Launch::Quantised { name: name.clone(), value: value.clone() };
            row.speaks_against(WEAK, Cited::plain(how));
        }
        None if s.settings && share.is_none_or(|x| x >= SMALL) => {
            row.speaks(WEAK, Cited::plain(Launch::NotQuantised));
        }
        None => {}
    }
    row
}
