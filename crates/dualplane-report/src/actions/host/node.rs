//! The node ran out: requests that the scheduler can count with, and room made now.

use super::{HEADROOM, record, with_headroom};
use crate::actions::check::{Rest, node_memory};
use crate::actions::{Action, Context, Stage, names, systemd};
use dualplane_base::units::Bytes;
use dualplane_core::facts::HostPool;

pub(super) fn node(cx: &Context<'_>, pools: &[HostPool], out: &mut Vec<Action>) {
    let n = names(cx);
    let s = &cx.verdict.subject;
    let used = record(cx)
        .and_then(|o| o.victims.first())
        .map(|v| (v.anon.unwrap_or_default().saturating_add(v.shmem.unwrap_or_default()), v.comm.clone()));
    if let Some(unit) = systemd::unit(cx) {
        out.push(of_unit(cx, unit, used.map(|(u, _)| u)));
        return;
    }
    let measured = used.as_ref().map(|(u, _)| *u).or_else(|| eviction_usage(cx));
    if let (Some(measured), Some(request)) = (measured, s.memory_request)
        && request >= measured
    {
        out.push(
            Action::new(
                Stage::Fix,
                "The request already covers its use: find pods on the node that exceed their request or \
                have none, and give them a request (or reserve more for the system)",
            )
            .because(format!("it used {measured} and requested {}: the scheduler accounted for all of \
            it", request.k8s()))
            .run(pods_by_memory(&n.node))
            .run(format!("kubectl get node {} -o jsonpath='{{.status.capacity.memory}} {{.status.allocatable.memory}}'", n.node)),
        );
    } else if let Some((used, comm)) = &used {
        let want = with_headroom(*used);
        let (limit, both, stays) = limit_beside(cx, want);
        larger_node(*used, want, out, cx);
        let mut a = Action::new(
            Stage::Fix,
            format!(
                "Set the memory request{both} to the process's actual use, {}, so that the scheduler accounts for it{stays}",
                want.k8s()
            ),
        )
        .because(format!(
            "{comm} used anon + shmem = {used} when it was killed; × {HEADROOM} headroom, rounded up"
        ));
        if let Some(request) = s.memory_request {
            a = a.because(format!(
                "the request is {}: the scheduler did not account for {}",
                request.k8s(),
                used.saturating_sub(request)
            ));
        }
        out.push(a.rests(Rest::NodeHolds(want)).memory(cx, Some(want), limit));
    } else if let Some(usage) = eviction_usage(cx) {
        let need = with_headroom(usage);
        let request = s.memory_request.map_or_else(|| "unset".to_owned(), |r| r.k8s());
        let (limit, both, stays) = limit_beside(cx, need);
        let both = both.replace(['(', ')'], "");
        larger_node(usage, need, out, cx);
        out.push(
            Action::new(Stage::Fix, format!("Set the memory request{both} to at least {}, so that the scheduler places it where it fits{stays}", need.k8s()))
                .because(format!("the kubelet measured {usage} at the eviction, request {request}; × {HEADROOM} headroom, rounded up"))
                .because("a lower bound: it was ended before it had all that it asks for")
                .rests(Rest::NodeHolds(need))
                .memory(cx, Some(need), limit),
        );
    }
    monitor(cx, out);
    for pool in pools {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Include {} ({}) in the request: it is host RAM that the node must provide",
                    pool.name, pool.bytes
                ),
            )
            .because(pool.arithmetic.clone()),
        );
    }
    if !out.iter().any(|a| a.stage == Stage::Fix) {
        out.push(
            Action::new(
                Stage::Fix,
                "Give each pod of the node a memory request of what it uses, the largest without one first: the scheduler counts \
                requests, and nothing else keeps it from filling the node",
            )
            .because("the evidence does not show how much this one used"),
        );
    }
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "Reduce the load on the node: list its pods and move those without a request",
        )
        .run(format!("kubectl cordon {}", n.node))
        .run(format!("kubectl describe node {} | sed -n '/Allocated resources/,$p'", n.node))
        .run(pods_by_memory(&n.node)),
    );
}

/// A service without Kubernetes: nobody counts what it asks for, and a limit of its own is what keeps it from taking the
/// machine with it.
fn of_unit(cx: &Context<'_>, unit: &str, at_kill: Option<Bytes>) -> Action {
    let action = Action::new(
        Stage::Fix,
        format!(
            "Let {unit} use less than the machine has (a smaller or more quantised model, less offload to RAM), and give it \
            a limit below that, so that it ends alone and says so"
        ),
    )
    .run(format!("systemctl show {unit} -p MemoryCurrent -p MemoryPeak -p MemoryMax"))
    .run("free -h");
    let peaks = cx.facts.hits.iter().filter(|h| h.id == "host.systemd_memory_peak" && h.text.contains(unit));
    match (peaks.filter_map(|h| h.memory("usage")).max(), at_kill) {
        (Some(peak), _) => action.because(format!("it used {peak} at its peak")),
        (None, Some(used)) => action.because(format!("it held {used} when it was killed")),
        (None, None) => action,
    }
}

/// What it needs is more than its node has: the checker keeps this one or the request.
fn larger_node(used: Bytes, need: Bytes, out: &mut Vec<Action>, cx: &Context<'_>) {
    let Some(has) = node_memory(cx) else { return };
    out.push(
        Action::new(
            Stage::Fix,
            format!("Run it on a node with at least {} of RAM for it, or let it use less", need.k8s()),
        )
        .because(format!("it used {used} on a node with {has}; × {HEADROOM} headroom, rounded up"))
        .rests(Rest::NodeLacks(need)),
    );
}

/// The limit beside a request, and the words for both: one that is higher already is not lowered.
fn limit_beside(cx: &Context<'_>, request: Bytes) -> (Bytes, &'static str, String) {
    match cx.verdict.subject.memory_limit.filter(|l| *l > request) {
        Some(limit) => (limit, "", format!("; the limit of {} stays", limit.k8s())),
        None => (request, " (and limit)", String::new()),
    }
}

/// The working sets of the node's pods, the largest first, as its kubelet measures them: `kubectl top` cannot select by node.
fn pods_by_memory(node: &str) -> String {
    format!(
        "kubectl get --raw /api/v1/nodes/{node}/proxy/stats/summary | jq -r '.pods[] | [.memory.workingSetBytes, .podRef.namespace + \"/\" + .podRef.name] | @tsv' | sort -rn | head"
    )
}

/// `Container server was using 117900024Ki` in an eviction message.
fn eviction_usage(cx: &Context<'_>) -> Option<Bytes> {
    let pods = cx.bundle.pods.iter().filter_map(|p| p.message.as_deref());
    let messages = pods.chain(cx.bundle.events.iter().map(|e| e.message.as_str()));
    messages
        .filter_map(|m| m.split_once(" was using ").map(|(_, r)| r.split(',').next().unwrap_or(r)))
        .find_map(dualplane_base::units::parse_k8s_memory)
}

/// A monitor in user space killed at a share of the node's RAM: how much is too much by its own figures.
fn monitor(cx: &Context<'_>, out: &mut Vec<Action>) {
    let hit = cx.facts.hits.iter().rev().find(|h| {
        h.class == Some(dualplane_base::Class::HostNodeOom)
            && h.memory("usage").is_some()
            && h.memory("total").is_some()
    });
    let Some((hit, usage, total)) = hit.and_then(|h| Some((h, h.memory("usage")?, h.memory("total")?)))
    else {
        return;
    };
    // As a share of the total, or in bytes.
    let threshold = hit
        .memory("threshold")
        .or_else(|| hit.number("threshold").filter(|t| *t <= 1.0).map(|t| total.scale(t)))
        .filter(|t| *t < total);
    let Some(threshold) = threshold else { return };
    // What it asks for: below the threshold, with a tenth of it to grow into.
    let target = threshold.scale(1.0 / HEADROOM);
    out.push(
        Action::new(
            Stage::Fix,
            format!(
                "Take {} off the node: fewer replicas or workers on it, or a memory request for each, so that they spread",
                usage.saturating_sub(target)
            ),
        )
        .because(format!(
            "{usage} in use of {total}; killed above {threshold}; {threshold} ÷ {HEADROOM} headroom = {target}"
        )),
    );
}
