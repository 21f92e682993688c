//! The container or the node ran out of host RAM.

use serde_json::{Value, json};

use super::patch::{container_patch, quantity};
use super::{Action, Context, Stage, Workload, names, on_node, promql, signatures, workload};
use dualplane_base::units::{Bytes, GIB};
use dualplane_base::{Class, Phase};
use dualplane_core::evidence::ContainerKind;
use dualplane_core::evidence::metrics::last_before;
use dualplane_core::facts::{HostPool, OomRecord, host_pools, prompt_cache_in_use};
use dualplane_core::verdict::memory_limit;

/// Headroom over a computed need: page tables, allocator slack and what a 1 s sample misses. A rule of thumb, named as
/// one wherever it is used.
const HEADROOM: f64 = 1.10;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let pools = host_pools(cx.bundle, cx.facts);
    if cx.verdict.class == Class::HostNodeOom {
        node(cx, &pools, &mut out);
    } else {
        container(cx, &pools, &mut out);
    }
    verify(cx, &mut out);
    prevent(cx, &mut out);
    avoid(cx, &mut out);
    out
}

fn record<'a>(cx: &Context<'a>) -> Option<&'a OomRecord> {
    cx.verdict.subject.kill_of(cx.facts)
}

fn container(cx: &Context<'_>, pools: &[HostPool], out: &mut Vec<Action>) {
    let n = names(cx);
    let limit = memory_limit(cx.facts, &cx.verdict.subject);
    let sum = pools.iter().fold(Bytes(0), |s, p| s.saturating_add(p.bytes));
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
        measure(cx, out);
        return;
    };
    if sum > limit {
        for pool in pools.iter().filter(|p| p.flag.is_some()) {
            shrink(cx, pool, pools, limit, out);
        }
        keep_pools(cx, pools, sum, out);
        return;
    }
    for pool in pools.iter().filter(|p| p.flag.is_some() && p.bytes.share_of(limit) > 0.3) {
        shrink(cx, pool, pools, limit, out);
    }
    measure(cx, out);
}

/// The runtime's own process was killed before it became the server: the cgroup was full when the container began.
fn killed_before_start(cx: &Context<'_>) -> bool {
    record(cx).is_some_and(OomRecord::before_start) || signatures(cx).any(|s| s == "kubelet.init_oom_killed")
}

fn has_memory_volume(cx: &Context<'_>) -> bool {
    let pod = cx.verdict.subject.pod_of(cx.bundle);
    pod.is_some_and(|p| p.volumes.iter().any(|v| v.memory_medium))
}

/// The limit that holds all pools and the rest of the server.
fn keep_pools(cx: &Context<'_>, pools: &[HostPool], sum: Bytes, out: &mut Vec<Action>) {
    let n = names(cx);
    match base_use(cx, pools) {
        Some((base, how)) => {
            let all = sum.saturating_add(base);
            let need = all.scale(HEADROOM).round_up_to(GIB);
            let q = need.k8s();
            let a =
                Action::new(Stage::Fix, format!("Or keep the pools and set the memory request and limit to {q}"))
                    .because(format!("pools {sum} + everything else {base} ({how}) = {all}; × {HEADROOM} headroom, rounded up to whole GiB = {q}"))
                    .patch(&resources_patch(cx, need));
            out.push(match workload(cx) {
                Workload::Rolling(w) => a.run(format!("kubectl set resources {w} -n {} -c {} --requests=memory={q} --limits=memory={q}", n.ns, n.container)),
                _ => a,
            });
        }
        None => out.push(
            Action::new(Stage::Fix, format!("Or keep the pools and set the memory request and limit to ({sum} + the server's use without them) × {HEADROOM}"))
                .because("the evidence does not show the server's use without its pools; measure it as \
                above"),
        ),
    }
}

/// Host memory beside the pools at the death, and how it is known; `None` where the evidence does not carry it.
fn base_use(cx: &Context<'_>, pools: &[HostPool]) -> Option<(Bytes, String)> {
    let end = cx.verdict.subject.death.as_ref().and_then(|d| d.finished);
    let metric = |name: &str| {
        let named = cx.bundle.metrics.iter().filter(|s| s.name == name);
        last_before(named, end).map(|s| Bytes::from_f64(s.value))
    };
    // A prompt cache lies in the heap: what the working set held beside it is the rest of the server.
    if let (Some(working_set), Some(cache)) =
        (metric("container_memory_working_set_bytes"), prompt_cache_in_use(cx.facts))
    {
        let rest = working_set.saturating_sub(cache);
        return Some((rest, format!("working set {working_set} − prompt cache in use {cache}")));
    }
    // Pinned pools count as shmem, so that anonymous memory is what the processes hold beside them.
    let pinned = pools.iter().all(|p| !p.bound);
    if let Some(rss) = metric("container_memory_rss").filter(|_| pinned) {
        return Some((rss, "container_memory_rss, which excludes pinned memory".to_owned()));
    }
    let oom = record(cx).filter(|_| pinned)?;
    // The cgroup's own statistics at the kill, where the kernel printed them (v2 `anon`, v1 `total_rss`).
    if let Some((key, anon)) = oom.stat.iter().find(|(k, _)| k == "anon" || k == "total_rss") {
        return Some((*anon, format!("{key} of the cgroup at the kill; pinned memory counts as shmem")));
    }
    let anon: u64 = oom.victims.iter().filter_map(|v| v.anon).map(|b| b.0).sum();
    let victims = oom.victims.len() as u64;
    let each = anon.checked_div(victims).filter(|e| *e > 0)?;
    let ranks = pools.iter().map(|p| p.ranks).max().unwrap_or(1).max(1);
    Some((
        Bytes(each.saturating_mul(ranks)),
        format!("anon-rss {} of a killed process × {ranks} processes", Bytes(each)),
    ))
}

/// The largest size of one pool that fits beside the others.
fn shrink(cx: &Context<'_>, pool: &HostPool, all: &[HostPool], limit: Bytes, out: &mut Vec<Action>) {
    let Some(flag) = &pool.flag else { return };
    let rest = all
        .iter()
        .filter(|p| p.name != pool.name && !p.bound)
        .fold(Bytes(0), |s, p| s.saturating_add(p.bytes));
    let ceiling = limit.scale(1.0 / HEADROOM).saturating_sub(rest);
    let base = base_use(cx, all);
    let room = base.as_ref().map_or(ceiling, |(b, _)| ceiling.saturating_sub(*b));
    let each = Bytes(room.0 / pool.ranks.max(1));
    let (value, unit) = (each.0 / pool.unit.max(1), &pool.unit_words);
    let others = if rest.0 > 0 { format!(" − other pools {rest}") } else { String::new() };
    let by_rank = if pool.ranks > 1 { format!("; ÷ {} ranks = {each}", pool.ranks) } else { String::new() };
    let now = format!("now: {}", pool.arithmetic);
    if value == 0 {
        out.push(
            Action::new(
                Stage::Fix,
                format!("Disable {}: the limit of {limit} leaves no room for it", pool.name),
            )
            .because(now)
            .because(format!("limit {limit} ÷ {HEADROOM} headroom{others} leaves {room}")),
        );
        return;
    }
    let n = names(cx);
    out.push(match base {
        Some((b, how)) => Action::new(
            Stage::Fix,
            format!("Set {flag} {value} ({unit}), so that {} fits the limit of {limit}", pool.name),
        )
        .because(now)
        .because(format!(
            "limit {limit} ÷ {HEADROOM} headroom{others} − everything else {b} ({how}) = {room}{by_rank}"
        )),
        None => Action::new(
            Stage::Fix,
            format!(
                "Set {flag} to {value} ({unit}) minus what the server \
        uses without {}",
                pool.name
            ),
        )
        .because(now)
        .because(format!(
            "limit {limit} ÷ {HEADROOM} headroom{others} = {room}{by_rank}; the evidence \
            does not show the server's other memory use: measure it idle, right after a start"
        ))
        .run(n.exec("cat /sys/fs/cgroup/memory.current")),
    });
}

fn measure(cx: &Context<'_>, out: &mut Vec<Action>) {
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

fn resources_patch(cx: &Context<'_>, need: Bytes) -> Value {
    let memory = json!({ "memory": quantity(need) });
    container_patch(cx, json!({ "resources": { "requests": memory, "limits": memory } }))
}

fn node(cx: &Context<'_>, pools: &[HostPool], out: &mut Vec<Action>) {
    let n = names(cx);
    let s = &cx.verdict.subject;
    let used = record(cx)
        .and_then(|o| o.victims.first())
        .map(|v| (v.anon.unwrap_or_default().saturating_add(v.shmem.unwrap_or_default()), v.comm.clone()));
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
            .run(format!("kubectl top pod -A --sort-by=memory --field-selector spec.nodeName={}", n.node))
            .run(format!("kubectl get node {} -o jsonpath='{{.status.capacity.memory}} {{.status.allocatable.memory}}'", n.node)),
        );
    } else if let Some((used, comm)) = &used {
        let mut a = Action::new(
            Stage::Fix,
            format!(
                "Set the memory request (and limit) to the process's actual use, {}, so that the \
            scheduler accounts for it",
                used.scale(HEADROOM).round_up_to(GIB).k8s()
            ),
        )
        .because(format!(
            "{comm} used anon + shmem = {used} when it was killed; × {HEADROOM} headroom, \
        rounded up to whole GiB"
        ));
        if let Some(request) = s.memory_request {
            a = a.because(format!(
                "the request is {}: the scheduler did not account for {}",
                request.k8s(),
                used.saturating_sub(request)
            ));
        }
        out.push(a.patch(&resources_patch(cx, used.scale(HEADROOM).round_up_to(GIB))));
    } else if let Some(usage) = eviction_usage(cx) {
        let need = usage.scale(HEADROOM).round_up_to(GIB);
        let request = s.memory_request.map_or_else(|| "unset".to_owned(), |r| r.k8s());
        out.push(
            Action::new(Stage::Fix, format!("Set the memory request and limit to {}, so that the scheduler places it where it fits", need.k8s()))
                .because(format!("the kubelet measured {usage} at the eviction, request {request}; × {HEADROOM} headroom, rounded up to whole GiB"))
                .patch(&resources_patch(cx, need)),
        );
    }
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
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "Reduce the load on the node: list its pods and move those without a request",
        )
        .run(format!("kubectl cordon {}", n.node))
        .run(format!("kubectl describe node {} | sed -n '/Allocated resources/,$p'", n.node))
        .run(format!("kubectl top pod -A --sort-by=memory --field-selector spec.nodeName={}", n.node)),
    );
}

/// `Container server was using 117900024Ki` in an eviction message.
fn eviction_usage(cx: &Context<'_>) -> Option<Bytes> {
    let pods = cx.bundle.pods.iter().filter_map(|p| p.message.as_deref());
    let messages = pods.chain(cx.bundle.events.iter().map(|e| e.message.as_str()));
    messages
        .filter_map(|m| m.split_once(" was using ").map(|(_, r)| r.split(',').next().unwrap_or(r)))
        .find_map(dualplane_base::units::parse_k8s_memory)
}

fn verify(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    let limit = memory_limit(cx.facts, &cx.verdict.subject);
    let init = cx.verdict.subject.container_kind == ContainerKind::Init;
    let statuses = if init { "initContainerStatuses" } else { "containerStatuses" };
    let below = limit.map_or_else(|| "the new limit".to_owned(), |_| "90 % of the new limit".to_owned());
    out.push(
        Action::new(Stage::Verify, format!("After the change: no restart during loading and a traffic \
        peak, oom_kill stays 0, and memory.peak stays below {below}"))
            .run(format!("kubectl get pod {} -n {} -o jsonpath='{{range .status.{statuses}[*]}}{{.name}} {{.restartCount}} {{.lastState.terminated.reason}}{{\"\\n\"}}{{end}}'", n.pod, n.ns)),
    );
    // Nothing can be run in an init container that is done.
    if let Some(a) = out.last_mut().filter(|_| !init) {
        a.commands.push(n.exec("sh -c 'cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory.peak'"));
    }
}

fn prevent(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    out.push(
        Action::new(Stage::Prevent, "Alert before the kill: working set without reclaimable cache above 90 % of the limit for 2 minutes")
            .run(promql(&format!(
                "container_memory_working_set_bytes{{namespace=\"{0}\",container=\"{1}\"}} / on(namespace,pod,container) kube_pod_container_resource_limits{{resource=\"memory\",namespace=\"{0}\",container=\"{1}\"}} > 0.9",
                n.ns, n.container
            ))),
    );
}

fn avoid(cx: &Context<'_>, out: &mut Vec<Action>) {
    let flags: Vec<&str> = [cx.flag(|f| &f.share), cx.flag(|f| &f.length)].into_iter().flatten().collect();
    let title = if flags.is_empty() {
        "Do not change the server's VRAM settings: host RAM ran out".to_owned()
    } else {
        format!(
            "Do not change {} for this: host RAM ran out, and VRAM settings do not change that",
            flags.join(" or ")
        )
    };
    out.push(Action::new(Stage::Avoid, title));
    let shm =
        cx.bundle.pods.iter().any(|p| p.volumes.iter().any(|v| v.memory_medium && v.size_limit.is_none()));
    if shm {
        out.push(Action::new(
            Stage::Avoid,
            "Do not leave the Memory volume without a sizeLimit: its pages count towards this limit",
        ));
    }
}
