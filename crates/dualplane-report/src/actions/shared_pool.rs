//! Machines whose CPU and GPU share one pool of memory: what helps is to use less of it, by whichever side.

use super::{Action, Context, Stage};
use dualplane_base::{Class, Plane};
use dualplane_core::facts::Pools;

/// The card whose pool is the machine's, where that bears on the incident. What a GPU takes is not charged to a cgroup: the
/// limit of a container is of its host side alone.
pub(super) fn one<'a>(cx: &Context<'a>) -> Option<&'a str> {
    let one = cx.facts.pools.as_ref().filter(|p| p.pools == Pools::One);
    one.filter(|_| cx.verdict.class != Class::HostOomKilled).map(|p| p.card.as_str())
}

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let Some(card) = one(cx) else { return Vec::new() };
    let title = match (cx.verdict.class.plane(), cx.flag(|f| &f.share)) {
        (Plane::Gpu, _) => format!(
            "Free memory of the machine for the GPU: {card} takes it from the same pool. Stop what else runs there, and \
            turn off what this server keeps on the host: CPU offload, swap space, pinned and prefix caches in RAM"
        ),
        (Plane::Host, Some(share)) => format!(
            "Lower {share} so that the machine keeps RAM: on {card} what the engine reserves for the GPU is taken from it"
        ),
        (Plane::Host, None) => format!(
            "Load less on the GPU, too: on {card} weights and caches of the GPU are taken from the machine's RAM"
        ),
        _ => return Vec::new(),
    };
    vec![
        Action::new(Stage::Fix, title),
        Action::new(
            Stage::Avoid,
            format!(
                "Do not move weights or caches between GPU and CPU for this: on {card} both are in one pool"
            ),
        ),
    ]
}
