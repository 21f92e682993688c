//! What schedules the pod adds to it: a card that others use, probes that kill it while it starts, an autoscaler that
//! follows the wrong figure.

use super::scene::Scene;
use super::{FITTING, Row, STRONG, WEAK};
use crate::units::{Bytes, GIB};
use crate::verdict::proof::{Launch, Proof};
use crate::verdict::{Cited, Class};

/// What a driver, a display or a monitor holds of a card.
const USUAL: Bytes = Bytes(GIB);
/// A process that holds so much of its card does not suffer from others.
const ALONE: f64 = 0.9;

pub(super) fn row(s: &Scene) -> Row {
    let mut row = Row::new("scheduling: others on the card, probes, or the figure that scales it");
    if let (Some(others), Some(total)) = (s.others, s.total)
        && others > USUAL
    {
        row.speaks(STRONG, Cited::plain(Launch::Others { others, total }));
    } else if let (Some(own), Some(total)) = (s.own, s.total)
        && own.share_of(total) >= ALONE
    {
        row.speaks_against(FITTING, Cited::plain(Launch::Own { own, total }));
    }
    if s.class == Some(Class::GpuCapacityConflict)
        && s.others.is_none()
        && let Some(t) = &s.line
    {
        let text = crate::text::shorten(t.text.trim(), 200).into_owned();
        row.speaks(STRONG, Cited::at(Proof::Line { signature: t.signature.clone(), text }, &t.place));
    }
    if let Some((message, at)) = &s.probe {
        row.speaks(FITTING, Cited::quote(message.clone(), at));
    }
    if let Some((name, metrics)) = &s.scaler {
        // It does not take the memory, but brings more of the same launch, or none when they are needed.
        row.speaks(
            if row.supports.is_empty() { FITTING } else { WEAK },
            Cited::plain(Launch::ScalesBy { name: name.clone(), metrics: metrics.clone() }),
        );
    }
    row
}
