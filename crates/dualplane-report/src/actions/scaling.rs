//! Who makes more pods of a launch that fails, and who keeps a node from being drained.

use super::{Action, Context, Stage, Workload, names, workload};
use dualplane_base::Plane;
use dualplane_core::evidence::Autoscaler;
use dualplane_core::verdict::Names;

/// Holds the autoscaler of the workload: each further replica of the same launch fails the same way.
pub(super) fn hold(cx: &Context<'_>) -> Option<Action> {
    if !matches!(cx.verdict.class.plane(), Plane::Host | Plane::Gpu) {
        return None;
    }
    let (a, of) = own(cx)?;
    let n = names(cx);
    let now = a.replicas.map_or_else(String::new, |r| format!(" at {r} of at most {} replicas", a.max));
    let title = format!(
        "Hold the autoscaler {}{now} until the fix is rolled out: each further replica of this launch fails the same way",
        dualplane_base::text::name(&a.name)
    );
    let action = Action::new(Stage::StopTheBleeding, title)
        .because(format!("it scales {of} by {}", dualplane_base::text::name(&a.metrics)));
    // KEDA writes its autoscaler anew: it is held by its own object.
    if let Some(object) = a.name.strip_prefix("keda-hpa-") {
        let object = Names::safe(Some(object), "SCALEDOBJECT");
        return Some(
            action
                .because("KEDA made it and reverts a change of it; the ScaledObject is held instead")
                .because("afterwards the same command with autoscaling.keda.sh/paused- lets it scale again")
                .run(format!(
                    "kubectl annotate scaledobject {object} -n {} --overwrite autoscaling.keda.sh/paused=true",
                    n.ns
                )),
        );
    }
    Some(
        action
            .because("afterwards the same command with \"Max\" lets it scale up again")
            .run(format!(
                "kubectl patch hpa {} -n {} --type=merge -p '{{\"spec\":{{\"behavior\":{{\"scaleUp\":{{\"selectPolicy\":\"Disabled\"}}}}}}}}'",
                Names::safe(Some(&a.name), "NAME"),
                n.ns
            )),
    )
}

/// The autoscaler of the workload, and what it scales.
fn own<'a>(cx: &Context<'a>) -> Option<(&'a Autoscaler, String)> {
    let Workload::Rolling(of) = workload(cx) else { return None };
    let ns = cx.verdict.subject.namespace.as_deref();
    let scales = |a: &&Autoscaler| {
        let target = format!("{}/{}", a.target.0.to_ascii_lowercase(), a.target.1);
        target == of && a.namespace.as_deref().zip(ns).is_none_or(|(a, b)| a == b)
    };
    cx.bundle.autoscalers.iter().find(scales).map(|a| (a, of))
}

/// CPU and host memory say nothing of a server whose work is on a card.
pub(super) fn figure(cx: &Context<'_>) -> Option<Action> {
    let (a, of) = own(cx).filter(|(a, _)| a.follows_the_host_alone())?;
    let metrics = cx.engine().and_then(|d| d.metrics.as_ref()).map(|m| m.names()).unwrap_or_default();
    let by = match metrics {
        [Some(kv), _, Some(waiting), _] => format!("{waiting} and {kv}"),
        _ => "its queue and the use of its KV cache".to_owned(),
    };
    Some(Action::new(Stage::Prevent, format!("Scale {of} by {by}, not by figures of the host")).because(
        format!(
            "{} follows {}: they do not tell when a GPU server is full",
            dualplane_base::text::name(&a.name),
            dualplane_base::text::name(&a.metrics)
        ),
    ))
}

/// Where only an autoscaler or a budget is at hand: what finds the pods that it is about, and judges them.
pub(super) fn pods(cx: &Context<'_>) -> Option<String> {
    if cx.verdict.decided_by != "no_evidence" {
        return None;
    }
    let scaler = cx.bundle.autoscalers.first();
    let budget = cx.bundle.disruption_budgets.first();
    let ns = scaler.map(|a| &a.namespace).or(budget.map(|b| &b.namespace))?.as_deref();
    let ns = Names::safe(ns, "NAMESPACE");
    Some(match scaler.filter(|a| ["Deployment", "StatefulSet"].contains(&a.target.0.as_str())) {
        Some(a) => {
            let kind = a.target.0.to_ascii_lowercase();
            format!("dualplane triage {kind}/{} -n {ns}", Names::safe(Some(&a.target.1), "NAME"))
        }
        None => format!("dualplane triage -n {ns}"),
    })
}

/// Budgets that let nobody be evicted: a drain waits for them.
pub(super) fn blocked(cx: &Context<'_>) -> Option<Action> {
    let ns = cx.verdict.subject.namespace.as_deref();
    let full = |b: &&dualplane_core::evidence::DisruptionBudget| {
        b.allowed == 0 && b.namespace.as_deref().zip(ns).is_none_or(|(a, b)| a == b)
    };
    let b = cx.bundle.disruption_budgets.iter().find(full)?;
    Some(
        Action::new(
            Stage::StopTheBleeding,
            format!(
                "Before the drain, start a replica elsewhere: the budget {} allows no disruption, and the drain waits for it",
                dualplane_base::text::name(&b.name)
            ),
        )
        .run(format!("kubectl get pdb {} -n {}", Names::safe(Some(&b.name), "NAME"), names(cx).ns)),
    )
}
