//! A card with a fault or at its limit of temperature takes its node out of service, whatever ended the server.

use super::{Action, Context, Stage, names, on_node};
use dualplane_base::Class;
use dualplane_core::verdict::{faulty_card, heat};

/// `others` are the actions that the class advises.
pub(super) fn advise(cx: &Context<'_>, others: &[Action]) -> Option<Action> {
    // The class' own advice takes the node out for its card already; a node that is short of RAM is taken out for that.
    if cx.verdict.class == Class::XidHardware
        && others.iter().flat_map(|a| &a.commands).any(|c| c.starts_with("kubectl cordon "))
    {
        return None;
    }
    let (card, why) = match heat::hottest(cx.bundle, cx.verdict.subject.node.as_deref()) {
        Some(heat) => (heat.gpu, format!("{} °C", heat.celsius)),
        None => (faulty_card(cx.bundle)?.1.label(), "its counters show a fault of its memory".to_owned()),
    };
    let n = names(cx);
    Some(
        Action::new(
            Stage::StopTheBleeding,
            format!("Keep new pods off the node until GPU {} is checked", dualplane_base::text::name(&card)),
        )
        .because(why)
        .because("where a second look confirms it: move its traffic to other replicas, drain the node, and tell the vendor")
        .run(format!("kubectl cordon {}", n.node))
        .run(on_node(&n.node, cx.facts.maker.faults())),
    )
}
