//! The container or the node ran out of host RAM.

mod limit;
mod measure;
mod node;
mod pools;

use super::check::Rest;
use super::{Action, Context, Stage, names, of_limit, own_kills, promql, rollout, signatures};
use dualplane_base::Class;
use dualplane_base::units::{Bytes, GIB, MIB, parse_k8s_memory};
use dualplane_core::change::Change;
use dualplane_core::evidence::{ContainerKind, Pod};
use dualplane_core::facts::{HostPool, OomRecord};
use dualplane_core::verdict::memory_limit;

/// Headroom over a computed need: page tables, allocator slack and what a 1 s sample misses. A rule of thumb, named as
/// one wherever it is used.
const HEADROOM: f64 = 1.10;

/// With headroom, rounded up: to whole GiB, small amounts to 64 MiB.
fn with_headroom(need: Bytes) -> Bytes {
    let step = if need < Bytes(4 * GIB) { 64 * MIB } else { GIB };
    need.scale(HEADROOM).round_up_to(step)
}

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let held = &cx.facts.host_pools;
    if cx.verdict.class == Class::HostNodeOom {
        node::node(cx, held, &mut out);
    } else {
        container(cx, held, &mut out);
    }
    verify(cx, &mut out);
    prevent(cx, &mut out);
    scale_up(cx, &mut out);
    avoid(cx, &mut out);
    out
}

fn record<'a>(cx: &Context<'a>) -> Option<&'a OomRecord> {
    cx.verdict.subject.kill_of(cx.facts)
}

fn container(cx: &Context<'_>, held: &[HostPool], out: &mut Vec<Action>) {
    let n = names(cx);
    let limit = memory_limit(cx.facts, &cx.verdict.subject);
    let sum = held.iter().fold(Bytes(0), |s, p| s.saturating_add(p.bytes));
    if killed_before_start(cx) && has_memory_volume(cx) {
        out.push(
            Action::new(
                Stage::StopTheBleeding,
                "Delete the pod to empty its Memory volumes: their pages \
            stay charged to the pod across restarts",
            )
            .run(format!("kubectl delete pod {} -n {}", n.pod, n.ns)),
        );
    }
    let Some(limit) = limit else {
        measure::measure(cx, out);
        return;
    };
    if sum > limit {
        for pool in held.iter().filter(|p| p.flag.is_some()) {
            pools::shrink(cx, pool, held, limit, out);
        }
        pools::keep(cx, held, sum, out);
        return;
    }
    for pool in held.iter().filter(|p| p.flag.is_some() && p.bytes.share_of(limit) > 0.3) {
        pools::shrink(cx, pool, held, limit, out);
    }
    if killed_before_start(cx) && has_memory_volume(cx) {
        measure::measure(cx, out);
        return;
    }
    if !rollout::lowered_the_limit(cx) {
        limit::advise(cx, limit, out);
    }
}

/// The runtime's own process was killed before it became the server: the cgroup was full when the container began.
fn killed_before_start(cx: &Context<'_>) -> bool {
    record(cx).is_some_and(OomRecord::before_start) || signatures(cx).any(|s| s == "kubelet.init_oom_killed")
}

fn has_memory_volume(cx: &Context<'_>) -> bool {
    let pod = cx.verdict.subject.pod_of(cx.bundle);
    pod.is_some_and(|p| p.volumes.iter().any(|v| v.memory_medium))
}

fn verify(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    let limit = memory_limit(cx.facts, &cx.verdict.subject);
    let init = cx.verdict.subject.container_kind == ContainerKind::Init;
    let statuses = if init { "initContainerStatuses" } else { "containerStatuses" };
    // A node that ran full killed a container that may have no limit, and get none.
    let sets_one = out.iter().any(|a| a.changes.iter().any(|c| matches!(c, Change::Resource(_))));
    let kept = match limit {
        Some(_) => ", oom_kill stays 0, and memory.peak stays below 90 % of the new limit",
        None if sets_one => ", oom_kill stays 0, and memory.peak stays below the new limit",
        None => ", and oom_kill stays 0",
    };
    out.push(
        Action::new(Stage::Verify, format!("After the change: no restart during loading and a traffic peak{kept}"))
            .run(format!("kubectl get pod {} -n {} -o jsonpath='{{range .status.{statuses}[*]}}{{.name}} {{.restartCount}} {{.lastState.terminated.reason}}{{\"\\n\"}}{{end}}'", n.pod, n.ns)),
    );
    // Nothing can be run in an init container that is done.
    if let Some(a) = out.last_mut().filter(|_| !init) {
        a.commands.push(n.exec(&own_kills()));
    }
}

fn prevent(cx: &Context<'_>, out: &mut Vec<Action>) {
    let pod = cx.verdict.subject.pod_of(cx.bundle);
    let unlimited = pod.is_some_and(Pod::whole) && memory_limit(cx.facts, &cx.verdict.subject).is_none();
    if cx.verdict.class == Class::HostNodeOom || unlimited {
        // There is no limit to divide by, or it is not what was hit: the node's RAM is.
        out.push(
            Action::new(
                Stage::Prevent,
                "Alert before the kill: less than 10 % of the node's RAM available for 2 minutes",
            )
            .run(promql("node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes < 0.1")),
        );
        return;
    }
    out.push(
        Action::new(Stage::Prevent, "Alert before the kill: working set without reclaimable cache above 90 % of the limit for 2 minutes")
            .run(promql(&format!("{} > 0.9", of_limit(&names(cx), false)))),
    );
}

/// A new replica is placed by its request, and takes its load peak: what is between them is counted nowhere while it scales up.
fn scale_up(cx: &Context<'_>, out: &mut Vec<Action>) {
    let Some(e) = &cx.budget.expected else { return };
    let peak = Bytes(e.host.plan.load_peak_bytes.expected);
    let requested = |c: &Change| {
        if let Change::Resource(r) = c { r.request.as_deref().and_then(parse_k8s_memory) } else { None }
    };
    let advised = out.iter().flat_map(|a| &a.changes).filter_map(requested).max();
    let Some(request) = advised.or(cx.verdict.subject.memory_request).filter(|r| *r < peak) else { return };
    // A request above the limit is refused.
    let limited = |c: &Change| {
        if let Change::Resource(r) = c { r.limit.as_deref().and_then(parse_k8s_memory) } else { None }
    };
    let limit = out.iter().flat_map(|a| &a.changes).filter_map(limited).max();
    if limit.or_else(|| memory_limit(cx.facts, &cx.verdict.subject)).is_some_and(|l| l < peak) {
        return;
    }
    let a = Action::new(
        Stage::Prevent,
        format!(
            "Request {} as well, the load peak: a new replica is placed by its request of {}, and nothing counts with the \
            other {} while it loads",
            peak.round_up_to(GIB).k8s(),
            request.k8s(),
            peak.saturating_sub(request)
        ),
    )
    .because(format!("load peak {peak} − request {} = {}", request.k8s(), peak.saturating_sub(request)));
    let node = cx.bundle.nodes.iter().find(|n| Some(n.name.as_str()) == cx.verdict.subject.node.as_deref());
    out.push(match node.and_then(|n| n.memory_allocatable) {
        Some(has) => a.because(format!(
            "by their requests {} of these replicas fit the node's {}, by their load peaks {}",
            has.0 / request.0.max(1),
            has.k8s(),
            has.0 / peak.0.max(1)
        )),
        None => a,
    });
}

fn avoid(cx: &Context<'_>, out: &mut Vec<Action>) {
    let own = cx.facts.engine.head();
    let flags = own.into_iter().flat_map(|d| [d.flags.share.first(), d.flags.length.first()]);
    let flags: Vec<&str> = flags.flatten().map(String::as_str).collect();
    let title = if flags.is_empty() {
        "Do not change the server's VRAM settings: host RAM ran out".to_owned()
    } else {
        format!(
            "Do not change {} for this: host RAM ran out, and VRAM settings do not change that",
            flags.join(" or ")
        )
    };
    out.push(Action::new(Stage::Avoid, title).rests(Rest::TwoPools));
    let shm =
        cx.bundle.pods.iter().any(|p| p.volumes.iter().any(|v| v.memory_medium && v.size_limit.is_none()));
    if shm {
        out.push(Action::new(
            Stage::Avoid,
            "Do not leave the Memory volume without a sizeLimit: its pages count towards this limit",
        ));
    }
}
