//! A model that was loaded again beside its old copy: what keeps the two apart.

use super::{Action, Context, Stage};
use dualplane_base::Plane;
use dualplane_core::verdict::churn;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    if !matches!(cx.verdict.class.plane(), Plane::Host | Plane::Gpu) {
        return Vec::new();
    }
    let Some(churn) = cx.verdict.trigger.as_ref().and_then(|t| churn(cx.facts, t)) else { return Vec::new() };
    let heads: Vec<_> = cx.advisors().collect();
    let says = heads.iter().flat_map(|d| &d.advice.reload).filter_map(|c| c.say.clone());
    let at = &churn.last.place;
    let at = at.line.map_or(String::new(), |n| format!(", the last time in line {n} of {}", at.file));
    let told = format!("{}{at}", churn.sentence());
    says.map(|say| Action::new(Stage::Fix, say).because(told.clone())).collect()
}
