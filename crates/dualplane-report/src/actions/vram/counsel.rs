//! What the engine's head advises, with the numbers of the evidence.

use super::instances::instances;
use super::load::{layers, tensor_parallel};
use super::share::above_weights;
use super::step::step;
use crate::actions::check::Rest;
use crate::actions::{Action, Context, Stage};
use dualplane_core::change::Change;
use dualplane_core::facts::vram::VramOom;
use dualplane_engines::{Advice, Counsel, Descriptor, Lever};

/// What the engine's head advises; `None` where it says nothing of this.
pub(super) fn counsel(
    cx: &Context<'_>,
    of: impl Fn(&Advice) -> &[Counsel],
    oom: &VramOom,
    out: &mut Vec<Action>,
) -> Option<()> {
    let heads: Vec<_> = cx.advisors().collect();
    let of_head = |d: &&Descriptor| of(&d.advice).iter().any(|c| cx.concerns(c));
    let head = heads.into_iter().find(of_head)?;
    for c in of(&head.advice).iter().filter(|c| cx.concerns(c)) {
        let computed =
            (c.lever == Some(Lever::Instances)).then(|| instances(cx, head.instances.as_ref()?, oom));
        if let Some(action) = computed.flatten() {
            out.push(action);
            continue;
        }
        out.extend(c.say.as_ref().map(|text| {
            let a = Action::new(Stage::Fix, text.clone());
            if c.unquantised { a.rests(Rest::Unquantised) } else { a }
        }));
        match c.lever {
            Some(Lever::TensorParallel) => out.push(tensor_parallel(cx)),
            Some(Lever::Step) => out.extend(head.step.as_ref().map(|s| step(cx, s, c.or))),
            Some(Lever::Layers) => out.push(layers(cx, oom)),
            // Where the message names a share, that one is set already.
            Some(Lever::ShareAboveWeights) if sets_share(head, out) => {}
            Some(Lever::ShareAboveWeights) => out.extend(above_weights(cx)),
            Some(Lever::Instances) | None => {}
        }
    }
    Some(())
}

/// An action gives the engine's share of the card a value.
fn sets_share(head: &Descriptor, actions: &[Action]) -> bool {
    let settings = actions.iter().flat_map(|a| &a.changes).filter_map(|c| match c {
        Change::Setting(s) => Some(s),
        Change::Resource(_) => None,
    });
    settings.flat_map(|s| &s.names).any(|n| head.flags.share.contains(n))
}

/// What the engine's head advises where the pool cannot hold one request.
pub(in crate::actions) fn pool_start(cx: &Context<'_>, out: &mut Vec<Action>) {
    counsel(cx, |a| &a.pool_start, &VramOom::default(), out).unwrap_or_default();
}

/// What the engine's head advises where the pool cannot hold the traffic.
pub(in crate::actions) fn pool(cx: &Context<'_>, out: &mut Vec<Action>) -> Option<()> {
    counsel(cx, |a| &a.pool, &VramOom::default(), out)
}
