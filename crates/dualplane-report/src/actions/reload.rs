//! Models that are loaded again beside their old copy: while both are there, the memory of two is needed.
//!
//! An engine's own messages tell it: ids that end in `.model_loading`, `.model_loaded` and `.model_unloaded`.

use super::{Action, Context, Stage};
use dualplane_base::Plane;
use dualplane_core::facts::Hit;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    if !matches!(cx.verdict.class.plane(), Plane::Host | Plane::Gpu) {
        return Vec::new();
    }
    let Some((model, again, times)) = churn(cx) else { return Vec::new() };
    let heads: Vec<_> = cx.advisors().collect();
    let says = heads.iter().flat_map(|d| &d.advice.reload).filter_map(|c| c.say.clone());
    let at = again
        .place
        .line
        .map_or(String::new(), |n| format!(", the last time in line {n} of {}", again.place.file));
    let told = format!(
        "{} was loaded again {} while a copy of it was there{at}",
        dualplane_base::text::name(&model),
        dualplane_base::text::counted(times, "time"),
    );
    says.map(|say| Action::new(Stage::Fix, say).because(told.clone())).collect()
}

/// The model that was loaded again while a copy of it was there, the last such load before the error, and how often.
fn churn<'a>(cx: &Context<'a>) -> Option<(String, &'a Hit, u64)> {
    let trigger = cx.verdict.trigger.as_ref()?;
    let before = |h: &&Hit| h.place.file == trigger.place.file && h.place.line <= trigger.place.line;
    let hits: Vec<&Hit> = cx.facts.hits.iter().filter(before).collect();
    let of = |end: &'static str, model: &str, from: Option<u64>, to: Option<u64>| {
        let same = |h: &&&Hit| {
            h.id.ends_with(end)
                && h.word("model").as_deref() == Some(model)
                && h.place.line > from
                && h.place.line < to
        };
        hits.iter().filter(same).count()
    };
    let again = |h: &&&Hit| {
        let Some(model) = h.word("model").filter(|_| h.id.ends_with(".model_loading")) else { return false };
        let (from, to) = (None, h.place.line);
        of(".model_loaded", &model, from, to) > of(".model_unloaded", &model, from, to)
    };
    let reloads: Vec<&&Hit> = hits.iter().filter(again).collect();
    let last = reloads.last()?;
    let model = last.word("model")?;
    let times = reloads.iter().filter(|h| h.word("model").as_deref() == Some(model.as_str())).count();
    Some((model, last, times as u64))
}
