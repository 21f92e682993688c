//! The limit of a container that was killed over it: what its launch needs by the plan, or the least that the kill proves.

use super::{HEADROOM, measure, with_headroom};
use crate::actions::{Action, Context, Stage, Workload, names, workload};
use crate::budget::suspects::{band, loading};
use dualplane_base::Phase;
use dualplane_base::order::Order as _;
use dualplane_base::time::span;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::ContainerKind;
use dualplane_core::verdict::Course;
use dualplane_plan::Quantity;

/// Terms of a plan that are told.
const TERMS: usize = 4;

/// What the limit should be, and how that is known.
struct Wanted {
    request: Bytes,
    limit: Bytes,
    title: String,
    because: Vec<String>,
    /// More may be needed than this.
    lower_bound: bool,
}

pub(super) fn advise(cx: &Context<'_>, limit: Bytes, out: &mut Vec<Action>) {
    let need = cx.budget.need(cx.verdict);
    let wanted = match need.filter(|n| n.high > limit.0) {
        Some(need) => of_plan(cx, limit, need),
        None => at_least(cx, limit, need),
    };
    let wanted = wanted.filter(|w| w.limit > limit);
    if let Some(w) = &wanted {
        out.push(action(cx, w));
    }
    if wanted.is_none_or(|w| w.lower_bound) {
        measure::measure(cx, out);
    }
}

/// The plan says that the launch needs more, or may.
fn of_plan(cx: &Context<'_>, limit: Bytes, need: Quantity) -> Option<Wanted> {
    let expected = cx.budget.expected.as_ref()?;
    let host = &expected.host;
    let (request, wanted) = (Bytes(host.request_bytes), Bytes(host.limit_bytes));
    let mut terms: Vec<_> = host.terms.iter().filter(|t| !t.name.starts_with("page_cache")).collect();
    terms.order_by_key(|t| std::cmp::Reverse(t.quantity.expected));
    let mut because = vec![format!(
        "computed from {}: {} at its peak, {} while it serves; the limit is {limit}",
        expected.launch.source,
        band(host.plan.load_peak_bytes),
        band(host.plan.steady_bytes),
    )];
    let named = terms.iter().take(TERMS).filter(|t| t.quantity.expected > 0);
    because.extend(named.map(|t| format!("{}: {} = {}", t.name, t.formula, band(t.quantity))));
    because.extend(host.arithmetic.iter().cloned());
    let title = format!(
        "Set the memory request to {} and the limit to {}: {} {}",
        request.k8s(),
        wanted.k8s(),
        if need.low > limit.0 { "this launch needs" } else { "this launch may need" },
        band(need)
    );
    Some(Wanted { request, limit: wanted, title, because, lower_bound: false })
}

/// The kill proves that the limit is too low, not by how much: the least that is worth trying.
fn at_least(cx: &Context<'_>, limit: Bytes, need: Option<Quantity>) -> Option<Wanted> {
    let held = cx.budget.held.as_ref()?;
    let base = need.map_or(Bytes(0), |n| Bytes(n.expected)).min(limit);
    let staged = held.shards.filter(|(done, all)| *done > 0 && done < all && loading(cx.verdict.phase));
    let mut because = Vec::new();
    if let Some(need) = need {
        because.push(format!(
            "the launch accounts for {}, so {} of the {limit} is something else: see the suspects",
            band(need),
            limit.saturating_sub(Bytes(need.expected))
        ));
    }
    let mut lower_bound = true;
    let least = match (staged, &held.course) {
        (Some((done, all)), _) => {
            lower_bound = false;
            let each = limit.saturating_sub(base).0 / done;
            let whole = base.saturating_add(Bytes(each.saturating_mul(all)));
            because.push(format!(
                "{limit} was full after {done} of {all} checkpoint files; if each file stays in RAM: {base} + {all} × \
                ({limit} − {base}) ÷ {done} = {whole}"
            ));
            whole
        }
        (None, Some(Course::Grew(g))) => {
            let day = Bytes(g.per_hour.0.saturating_mul(24));
            because.push(format!(
                "memory grew by {} an hour: a higher limit only buys time, {day} for each day",
                g.per_hour
            ));
            limit
        }
        (None, Some(Course::Jumped { last, .. })) => {
            because.push(format!("it rose from {last} to at least {limit} at once"));
            limit
        }
        (None, None) => {
            because.push(format!("it held {limit} when it was killed and asked for more"));
            limit
        }
    };
    if let (Some(ms), true) = (held.ran_ms, cx.verdict.phase == Phase::Traffic) {
        because.push(format!("it lasted {} with the limit of {limit}", span(ms)));
    }
    let wanted = with_headroom(least);
    because.push(format!("{least} × {HEADROOM} headroom, rounded up = {}", wanted.k8s()));
    let title = if lower_bound {
        format!(
            "{} the memory request and limit to at least {}: {limit} was not enough, and the evidence shows no upper bound",
            if need.is_some() { "As a stopgap, set" } else { "Set" },
            wanted.k8s()
        )
    } else {
        format!(
            "Set the memory request and limit to {}, which holds the whole checkpoint in RAM",
            wanted.k8s()
        )
    };
    Some(Wanted { request: wanted, limit: wanted, title, because, lower_bound })
}

fn action(cx: &Context<'_>, w: &Wanted) -> Action {
    let a = w.because.iter().fold(Action::new(Stage::Fix, w.title.clone()), |a, b| a.because(b.clone()));
    // More than the node has cannot be placed there.
    let node = cx.bundle.nodes.iter().find(|n| Some(n.name.as_str()) == cx.verdict.subject.node.as_deref());
    let a = match node.and_then(|n| n.memory_allocatable).filter(|has| *has < w.request) {
        Some(has) => {
            a.because(format!("the node has {} allocatable: the pod needs a larger node for this", has.k8s()))
        }
        None => a,
    };
    let a = a.memory(cx, Some(w.request), w.limit);
    let n = names(cx);
    match workload(cx) {
        // `kubectl set` reaches no init containers.
        Workload::Rolling(to) if cx.verdict.subject.container_kind == ContainerKind::Main => a.run(format!(
            "kubectl set resources {to} -n {} -c {} --requests=memory={} --limits=memory={}",
            n.ns,
            n.container,
            w.request.k8s(),
            w.limit.k8s()
        )),
        _ => a,
    }
}
