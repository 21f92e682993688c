//! Measuring what the evidence does not show: the last resort, on a copy without the limit.

use super::HEADROOM;
use crate::actions::{Action, Context, Stage, names, on_node};
use dualplane_base::Phase;
use dualplane_core::evidence::ContainerKind;
use dualplane_core::verdict::memory_limit;

pub(super) fn measure(cx: &Context<'_>, out: &mut Vec<Action>) {
    let limit = memory_limit(cx.facts, &cx.verdict.subject);
    let known = limit.map_or_else(
        || "the evidence does not show the limit".to_owned(),
        |l| format!("it needed at least {l} when it was killed; the evidence does not show how much more"),
    );
    let phase = match cx.verdict.phase {
        Phase::Load | Phase::Profile => "during one complete start-up",
        _ => "during one traffic peak",
    };
    out.push(
        Action::new(Stage::Fix, format!("Measure the peak {phase} on a copy of the pod without a limit (or with the node's allocatable as limit), then set request and limit to that peak × {HEADROOM}"))
            .because(known)
            .run(copy_without_limit(cx))
            .run(read_copy(cx)),
    );
}

/// Name of the copy that is measured. A pod's name has at most 253 characters.
fn copy_name(pod: &str) -> String {
    let head: String = pod.chars().take(240).collect();
    format!("{}-measure", head.trim_end_matches(['-', '.']))
}

/// Makes a copy of the pod without the container's memory limit. It has no labels, so that no controller adopts it and no
/// service sends it traffic, and no node, so that the scheduler finds it a GPU.
fn copy_without_limit(cx: &Context<'_>) -> String {
    let n = names(cx);
    format!(
        "kubectl get pod {} -n {} -o json | jq 'del(.status, .spec.nodeName, .metadata) * {{metadata: {{name: \"{}\", namespace: \"{}\"}}}} | del((.spec.containers[], .spec.initContainers[]?) | select(.name == \"{}\") | .resources.limits.memory)' | kubectl create -f -",
        n.pod,
        n.ns,
        copy_name(&n.pod),
        n.ns,
        n.container
    )
}

/// Reads the peak of the copy. An init container is gone when it is done: the pod's own cgroup keeps the peak.
fn read_copy(cx: &Context<'_>) -> String {
    let n = names(cx);
    let copy = copy_name(&n.pod);
    if cx.verdict.subject.container_kind == ContainerKind::Init {
        let uid = format!("$(kubectl get pod {copy} -n {} -o jsonpath={{.metadata.uid}} | tr - _)", n.ns);
        let node = format!("$(kubectl get pod {copy} -n {} -o jsonpath={{.spec.nodeName}})", n.ns);
        return on_node(
            &node,
            &format!("find /sys/fs/cgroup -path \"*pod{uid}.slice/memory.peak\" -exec cat {{}} +"),
        );
    }
    format!(
        "kubectl exec -n {} {copy} -c {} -- sh -c 'cat /sys/fs/cgroup/memory.peak; grep -E \"^(anon|file|shmem|kernel) \" /sys/fs/cgroup/memory.stat'",
        n.ns, n.container
    )
}
