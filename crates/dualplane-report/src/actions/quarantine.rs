//! A card with a fault or at its limit of temperature takes its node out of service, whatever ended the server.

use super::{Action, Context, Stage, names, on_node};
use dualplane_base::Class;
use dualplane_core::verdict::{faulty_card, hot_card};

pub(super) fn advise(cx: &Context<'_>) -> Option<Action> {
    // The class' own advice drains the node already.
    if cx.verdict.class == Class::XidHardware {
        return None;
    }
    let (card, why) = match (hot_card(cx.bundle), faulty_card(cx.bundle)) {
        (Some((_, g, celsius)), _) => (g, format!("{celsius} °C")),
        (None, Some((_, g))) => (g, "its counters show a fault of its memory".to_owned()),
        (None, None) => return None,
    };
    let n = names(cx);
    Some(
        Action::new(
            Stage::StopTheBleeding,
            format!(
                "Keep new pods off the node until GPU {} is checked",
                dualplane_base::text::name(&card.label())
            ),
        )
        .because(why)
        .because("where a second look confirms it: move its traffic to other replicas, drain the node, and tell the vendor")
        .run(format!("kubectl cordon {}", n.node))
        .run(on_node(&n.node, cx.facts.maker.faults())),
    )
}
