//! A card with a fault or at its limit of temperature takes its node out of service, whatever ended the server.

use super::{Action, Context, Stage, names, on_node};
use dualplane_base::Class;

pub(super) fn advise(cx: &Context<'_>) -> Option<Action> {
    // The class' own advice drains the node already.
    if cx.verdict.class == Class::XidHardware {
        return None;
    }
    let cards = || cx.bundle.gpus.iter().flat_map(|s| &s.gpus);
    let hot = cards().find_map(|g| Some((g, g.hot()?)));
    let faulty = cards().find(|g| g.is_faulty());
    let (card, why) = match (hot, faulty) {
        (Some((g, celsius)), _) => (g, format!("{celsius} °C")),
        (None, Some(g)) => (g, "its counters show a fault of its memory".to_owned()),
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
        .run(format!("kubectl cordon {}", n.node))
        .run(on_node(&n.node, cx.facts.maker.faults())),
    )
}
