//! A step did not fit while the server served: room beside the pool, a smaller step, and serving again.

use super::counsel::counsel;
use super::share::utilization;
use super::step::smaller_step;
use crate::actions::pool_size::given;
use crate::actions::{Action, Context, Stage, Workload, ceil_hundredth, floor_hundredth, names, workload};
use dualplane_base::units::Bytes;
use dualplane_core::facts::vram::VramOom;

pub(super) fn runtime(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    // The share of an engine that is not known is not known either.
    let flag = cx.facts.engine.head().and_then(|d| d.flags.share.first());
    if let Some(pool) = given(cx) {
        out.extend(pool.lower(cx, oom));
    } else if let (Some(flag), Some((u, from)), Some((give, sum)), Some(total)) =
        (flag, utilization(cx), room_for_a_step(oom), oom.total)
    {
        let lower = floor_hundredth(u - give.share_of(total));
        // The share must hold the weights, and something of a KV pool beside them.
        let weights = cx.weights().map(|b| b.share_of(total));
        let least = weights.unwrap_or_default().max(0.05);
        let rest = format!("{u} ({from}) − {give} ÷ total {total} = {:.4}", u - give.share_of(total));
        out.push(if lower > least {
            Action::new(
                Stage::Fix,
                format!(
                    "Set {flag} {lower} (from {u}): this leaves the missing \
            {give} outside the KV cache"
                ),
            )
            .because(sum)
            .because(format!("{rest}, rounded down to {lower}"))
            .set(cx, flag, lower, Some(u.to_string()))
        } else {
            Action::new(
                Stage::Fix,
                format!(
                    "{flag} cannot free the missing {give}: make the step \
            smaller, or use a larger GPU or more GPUs"
                ),
            )
            .because(sum)
            .because(format!("{rest}: less than the weights and the KV cache need"))
        });
    } else if let (Some(flag), Some((give, sum)), Some(total)) = (flag, room_for_a_step(oom), oom.total) {
        let by = ceil_hundredth(give.share_of(total));
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Lower {flag} by {by}: this leaves the missing {give} outside the KV cache (the evidence does not show \
                    what it is now)"
                ),
            )
            .because(sum)
            .because(format!("{give} ÷ total {total} = {:.4}, rounded up to {by}", give.share_of(total))),
        );
    } else if let Some(flag) = flag {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Lower {flag} by the memory that the failed step was missing; \
            the evidence does not show that size or the current fraction"
                ),
            )
            .because(
                format!(
                    "measure: peak used memory in {} during the failing step, minus its idle value, divided by the \
                    total",
                    cx.facts.maker.tool()
                ),
            )
            .run(names(cx).exec(cx.facts.maker.watch())),
        );
    }
    counsel(cx, |a| &a.runtime, oom, out).unwrap_or_default();
    if !out.iter().any(|a| a.stage == Stage::Fix) {
        out.push(smaller_step(oom));
    }
    serve_again(cx, out);
}

/// What the pool must give up for a step of this size, and the sum. The same request again as margin: the next longer prompt
/// asks for more than this one.
pub(in crate::actions) fn room_for_a_step(oom: &VramOom) -> Option<(Bytes, String)> {
    let requested = oom.requested?;
    let free = oom.free.unwrap_or_default();
    let short = requested.saturating_sub(free);
    let give = short.saturating_add(requested);
    let sum = format!(
        "requested {requested} − free {free} = {short} short; + {requested} margin for the next larger step = {give}"
    );
    Some((give, sum))
}

/// The log is saved first: a restart may erase it.
fn serve_again(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "First save the logs: the kubelet keeps only one dead instance, and a restart or a new pod \
            replaces it",
        )
        .run(format!("kubectl logs -n {} {} -c {} --previous > previous.log", n.ns, n.pod, n.container))
        .run(format!("kubectl logs -n {} {} -c {} > current.log", n.ns, n.pod, n.container)),
    );
    out.push(Action::new(
        Stage::StopTheBleeding,
        "Limit the traffic that triggers it (longest prompts, largest batches) at the gateway or router \
        until the change is rolled out",
    ));
    let restart = "Only if the server no longer responds: restart it after saving the logs";
    out.push(match workload(cx) {
        Workload::Rolling(w) => Action::new(Stage::StopTheBleeding, restart)
            .run(format!("kubectl rollout restart {w} -n {}", n.ns)),
        Workload::Other(kind) => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. kubectl rollout restart does not support {kind}: use its controller's own \
            mechanism"),
        ),
        Workload::Bare => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. The pod has no controller that would recreate it: save its manifest and \
            apply it again"),
        ),
        Workload::Unknown => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. The evidence does not show the pod's owner"),
        )
        .run(format!("kubectl get pod {} -n {} -o jsonpath='{{.metadata.ownerReferences[*].kind}} {{.metadata.ownerReferences[*].name}}'", n.pod, n.ns)),
    });
}
