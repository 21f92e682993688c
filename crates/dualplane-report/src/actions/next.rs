//! Where memory is not the matter: what to do next, by the rule that decided.

use dualplane_base::units::Bytes;
use dualplane_core::facts::Hit;

use super::{Action, Context, Stage, names, on_node};

/// The next step; none where the class' own advice is one already.
pub(super) fn step(cx: &Context<'_>) -> Action {
    let n = names(cx);
    let events = format!(
        "kubectl get events -n {} --field-selector involvedObject.name={} --sort-by=.lastTimestamp",
        n.ns, n.pod
    );
    match cx.verdict.decided_by {
        "stays_ready" | "ended_in_order" | "stopped_in_order" | "orderly_stop" => Action::new(
            Stage::Verify,
            "There is nothing to change: it did not fail. If it is slow, compare its queue and latency with its traffic",
        )
        .run(format!("kubectl top pod {} -n {} --containers", n.pod, n.ns)),
        "lived_on" => Action::new(
            Stage::Verify,
            "There is nothing to change now: the server went on after it. If it comes back under the same traffic, collect \
            both planes at that moment",
        )
        .run(format!("kubectl top pod {} -n {} --containers", n.pod, n.ns)),
        "refused_request" => Action::new(
            Stage::Fix,
            "Let the client send less: the server refused the request by its own limits and goes on. Raise the limit only \
            where `dualplane plan` says that the KV cache holds it",
        ),
        "pod_deleted" | "disruption" | "container_stopped" | "terminated" => {
            Action::new(Stage::StopTheBleeding, "Find out who stopped it: a roll-out, a drain, an autoscaler, or a person")
                .run(events)
        }
        "segfault" | "kernel_saw_crash" => Action::new(
            Stage::Fix,
            "Report the crash to the makers of the library that the kernel names, with the version of the image; until then, \
            go back to the image that last worked",
        )
        .run(on_node(&n.node, "dmesg -T | grep -iE 'segfault|general protection' | tail")),
        "kubernetes_failure" | "runtime_could_not_start" => {
            let admission = cx.facts.object_hits.iter().find_map(|h| not_let_in(h, &n.node));
            admission
                .unwrap_or_else(|| Action::new(Stage::Fix, "Fix what Kubernetes reports of the pod, not its memory"))
                .run(format!("kubectl describe pod {} -n {}", n.pod, n.ns))
                .run(events)
        }
        _ => Action::new(
            Stage::Fix,
            "Fix what the first error names, then start the server again and see that it gets past this step",
        )
        .run(format!("kubectl logs {} -n {} -c {} --tail=100", n.pod, n.ns, n.container)),
    }
}

/// A pod that asks for more than its node has left. Nothing ran, so nothing ran out: what it asks for is the matter, or
/// where.
fn not_let_in(hit: &Hit, node: &str) -> Option<Action> {
    if !matches!(hit.id.as_str(), "kubelet.out_of_resource" | "kubelet.out_of_resource_word") {
        return None;
    }
    let resource = hit.word("resource")?;
    let action = Action::new(
        Stage::Fix,
        format!(
            "Request less {resource}, or let the scheduler choose a node that has it: the kubelet refuses what is more than is \
            left, and a pod that names its node, or comes back with a restarted kubelet, is not scheduled anew"
        ),
    );
    let amount = |n: f64| match resource.as_str() {
        "memory" | "ephemeral-storage" => Bytes(n as u64).to_string(),
        "cpu" => format!("{} CPUs", n / 1000.0),
        _ => n.to_string(),
    };
    let numbers = hit.number("requested").zip(hit.number("used")).zip(hit.number("capacity"));
    let told = match numbers {
        Some(((requested, used), capacity)) => action.because(format!(
            "it requests {} of {resource}; of {} the node's other pods hold {}, which leaves {}",
            amount(requested),
            amount(capacity),
            amount(used),
            amount((capacity - used).max(0.0))
        )),
        None => action.because("the status names the resource; its message tells how much of it"),
    };
    Some(told.run(format!("kubectl describe node {node} | sed -n '/Allocated resources/,$p'")))
}
