//! The engine's share of the card: what it is now, and how that is known.

use crate::actions::pool_size::given;
use crate::actions::{Action, Context, Stage};
use dualplane_plan::Version;
use dualplane_plan::repair::default_share;

/// What engines accept as a share; they refuse other values at start, so nothing is computed from them.
fn is_share(u: f64) -> bool {
    u > 0.0 && u <= 1.0
}

/// The engine's share of the card: flag, else as the log prints it, else the default of its version. `None` where another
/// setting gives the KV cache its size, so that the share moves nothing.
pub(in crate::actions) fn utilization(cx: &Context<'_>) -> Option<(f64, String)> {
    if given(cx).is_some() {
        return None;
    }
    let e = &cx.facts.engine;
    let head = e.head()?;
    let flag = head.flags.share.first()?;
    if e.lever(&head.flags.share).is_some() {
        // A value that is no share (a template's placeholder) is not the default either.
        let u = e.lever_number(&head.flags.share).filter(|u| is_share(*u))?;
        return Some((u, format!("{flag} {u} of the pod")));
    }
    let printed = cx.facts.hits.iter().rev().find_map(|h| h.number("utilization")).filter(|u| is_share(*u));
    if let Some(u) = printed {
        let name = head.printed.share_words.as_deref().unwrap_or("share");
        return Some((u, format!("{name} {u} as the log prints it")));
    }
    let version = e.version.as_deref().and_then(Version::parse);
    let u = default_share(head.plan.as_deref()?, version)?;
    let of = e
        .version
        .as_deref()
        .map_or("an unknown version; check it".to_owned(), |v| format!("{} {v}", head.name));
    Some((u, format!("default {u} of {of}")))
}

/// The flag of the share; none for an engine without one.
pub(in crate::actions) fn utilization_flag<'a>(cx: &Context<'a>) -> Option<&'a str> {
    cx.flag(|f| &f.share)
}

/// The share must be above what the weights take of it.
pub(super) fn above_weights(cx: &Context<'_>) -> Option<Action> {
    let (weights, (u, from)) = cx.weights().zip(utilization(cx))?;
    let flag = utilization_flag(cx)?;
    Some(
        Action::new(Stage::Fix, format!("Raise {flag} above {u}: weights take {weights} of it"))
            .because(from),
    )
}
