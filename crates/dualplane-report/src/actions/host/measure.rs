//! Measuring what the evidence does not show: the last resort, on a copy without the limit.

use super::HEADROOM;
use crate::actions::{Action, Context, Stage, names, own_cgroup_and_stat};
use dualplane_base::Phase;
use dualplane_core::evidence::ContainerKind;
use dualplane_core::verdict::memory_limit;

pub(super) fn measure(cx: &Context<'_>, out: &mut Vec<Action>) {
    let limit = memory_limit(cx.facts, &cx.verdict.subject);
    let n = names(cx);
    if limit.is_some()
        && cx.verdict.phase == Phase::Traffic
        && cx.verdict.subject.container_kind == ContainerKind::Main
    {
        // A copy has no traffic; the pod itself has, once it lives.
        out.push(
            Action::new(
                Stage::Fix,
                format!("With that limit, read the peak after one traffic peak, then set request and limit to it × {HEADROOM}"),
            )
            .run(n.exec(&read_peak())),
        );
        return;
    }
    let known = limit.map_or_else(
        || "the evidence does not show the limit".to_owned(),
        |l| format!("it needed at least {l} when it was killed; the evidence does not show how much more"),
    );
    let idle = match cx.verdict.phase {
        Phase::Load | Phase::Profile => "a start-up needs no traffic",
        _ => "the copy gets no traffic: send it the requests of a peak yourself",
    };
    out.push(
        Action::new(Stage::Fix, format!("Or measure the peak once on a copy of the pod without a limit, then set request and limit to that peak × {HEADROOM}"))
            .because(known)
            .because(format!("no service sends anything to the copy; {idle}"))
            .run(copy_without_limit(cx))
            .run(read_copy(cx)),
    );
}

/// Prints the peak and what the memory consists of.
fn read_peak() -> String {
    own_cgroup_and_stat(
        "memory.peak memory.max_usage_in_bytes",
        "anon|file|shmem|kernel|total_rss|total_cache|total_shmem",
    )
}

/// Name of the copy that is measured. A pod's name has at most 253 characters.
fn copy_name(pod: &str) -> String {
    let head: String = pod.chars().take(240).collect();
    format!("{}-measure", head.trim_end_matches(['-', '.']))
}

/// Makes a copy of the pod without the memory limits of the container and of the pod. It has no labels, so that no controller adopts it and no
/// service sends it traffic, and no node, so that the scheduler finds it a GPU.
fn copy_without_limit(cx: &Context<'_>) -> String {
    let n = names(cx);
    format!(
        "kubectl get pod {} -n {} -o json | jq 'del(.status, .spec.nodeName, .metadata) * {{metadata: {{name: \"{}\", namespace: \"{}\"}}}} | del(.spec.resources.limits.memory, ((.spec.containers[], .spec.initContainers[]?) | select(.name == \"{}\") | .resources.limits.memory))' | kubectl create -f -",
        n.pod,
        n.ns,
        copy_name(&n.pod),
        n.ns,
        n.container
    )
}

/// Reads the peak of the copy. An init container is gone when it is done: the pod's own cgroup keeps the peak, and the
/// kubelet tells it (the line without a container's name) for either version of cgroups.
fn read_copy(cx: &Context<'_>) -> String {
    let n = names(cx);
    let copy = copy_name(&n.pod);
    if cx.verdict.subject.container_kind == ContainerKind::Init {
        let node = format!("$(kubectl get pod {copy} -n {} -o jsonpath='{{.spec.nodeName}}')", n.ns);
        return format!(
            "kubectl get --raw /api/v1/nodes/{node}/proxy/metrics/cadvisor | grep 'container_memory_max_usage_bytes{{.*pod=\"{copy}\"'"
        );
    }
    format!("kubectl exec -n {} {copy} -c {} -- {}", n.ns, n.container, read_peak())
}
