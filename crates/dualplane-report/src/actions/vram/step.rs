//! A step that is smaller: what is in proportion to its tokens shrinks with it.

use crate::actions::{Action, Context, Stage};
use dualplane_core::facts::vram::VramOom;
use dualplane_engines::Step;

/// Without an engine that is known no setting has a name, but the sizes tell how much smaller a step must be.
pub(super) fn smaller_step(oom: &VramOom) -> Action {
    let a = Action::new(
        Stage::Fix,
        "Make the failing step smaller: fewer or shorter inputs in a batch; half of either asks for about half",
    );
    match (oom.requested, oom.free) {
        (Some(requested), Some(free)) if requested > free => a.because(format!(
            "requested {requested} − free {free} = {} short",
            requested.saturating_sub(free)
        )),
        _ => a,
    }
}

pub(super) fn step(cx: &Context<'_>, step: &Step, or: bool) -> Action {
    let given = cx.facts.engine.lever_number(&step.flags).map(|n| (n, step.flag_words.as_str()));
    let printed = || cx.printed(&step.printed).map(|n| (n, step.printed_words.as_str()));
    let (now, from) = given.or_else(printed).unzip();
    let flag = step.flags.first().map_or("", String::as_str);
    let a = halve(if or { "Or " } else { "" }, flag, &step.moves, now, from.unwrap_or_default());
    match now.and_then(half) {
        Some(half) => a.set(cx, flag, half, now.map(|n| n.to_string())),
        None => a,
    }
}

/// Half of a number of tokens. A number below two has none.
fn half(now: f64) -> Option<u64> {
    (now >= 2.0).then_some((now / 2.0) as u64)
}

/// What is in proportion to a number of tokens halves with it.
fn halve(or: &str, flag: &str, effect: &str, now: Option<f64>, from: &str) -> Action {
    let verb = if or.is_empty() { ["Set", "Halve"] } else { ["set", "halve"] };
    let [set, halve] = verb;
    match now.and_then(|n| Some((n, half(n)?))) {
        Some((n, half)) => {
            let from = if from.is_empty() { String::new() } else { format!(" ({from})") };
            Action::new(Stage::Fix, format!("{or}{set} {flag} {}: this halves {effect}", half))
                .because(format!("currently {n}{from}; the memory is proportional to the tokens per step"))
        }
        None => Action::new(
            Stage::Fix,
            format!(
                "{or}{halve} {flag}: {effect} is proportional to it (the evidence does not show its \
            value)"
            ),
        ),
    }
}
