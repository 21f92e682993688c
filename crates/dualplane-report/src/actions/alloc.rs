//! A host allocation was refused without a kill: /dev/shm, pinned memory, the engine's own check, overcommit.

use serde_json::json;

use super::check::Rest;
use super::patch::{pod_patch, quantity};
use super::{Action, Context, Stage, names, on_node, own_cgroup, own_cgroup_and_stat, quotes, signatures};
use dualplane_base::units::{Bytes, GIB, MIB};
use dualplane_core::change::Change;
use dualplane_core::knowledge::HostMemory;
use dualplane_engines::Descriptor;

/// The container runtimes' default size of /dev/shm.
const DEFAULT_SHM: Bytes = Bytes(64 * MIB);

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let line = cx.verdict.trigger.as_ref().map(|t| t.text.as_str());
    let lines: Vec<&str> = line.into_iter().chain(quotes(cx)).collect();
    let said = |words: &[&str]| lines.iter().any(|l| words.iter().any(|w| l.contains(w)));
    let known = |kind: HostMemory| {
        signatures(cx).filter_map(|id| cx.knowledge.signature_of(id)).any(|s| s.host_memory == Some(kind))
    };
    let sigbus = cx.verdict.decided_by == "bus_error";
    let shm = sigbus
        || known(HostMemory::Shared)
        || said(&["shm", "shared memory", "Bus error", "SIGBUS", "signal 7"]);
    let pinned = known(HostMemory::Pinned)
        || said(&["pin", "invalid argument", "page table", "cudaHost", "host_malloc"]);
    if shm {
        shared_memory(cx, &mut out);
    } else if pinned {
        pinned_memory(cx, &mut out);
    } else {
        refused(cx, &mut out);
    }
    out.push(
        Action::new(
            Stage::Avoid,
            "Do not change VRAM flags for this: host memory ran out, even if \
    the message mentions CUDA",
        )
        .rests(Rest::TwoPools),
    );
    out
}

fn hit_memory(cx: &Context<'_>, groups: &[&str]) -> Option<Bytes> {
    let t = cx.verdict.trigger.as_ref()?;
    let hits = cx.facts.hits.iter().filter(|h| h.place == t.place);
    hits.flat_map(|h| groups.iter().filter_map(|g| h.memory(g))).find(|b| b.0 > 0)
}

fn shared_memory(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    let asked = hit_memory(cx, &["requested", "needed", "size"]);
    // One segment was refused; ranks and instances hold others. A GiB steps over the usual needs and costs nothing
    // until used, but it counts against the container's memory limit.
    let size = asked
        .map_or(Bytes(GIB), |a| DEFAULT_SHM.saturating_add(a.scale(2.0)).max(Bytes(GIB)).round_up_to(GIB));
    let why = asked.map_or_else(
        || {
            format!(
                "/dev/shm is {DEFAULT_SHM} unless a volume is mounted there; the evidence does not \
        show the required size: start with {} and measure",
                size.k8s()
            )
        },
        |a| {
            format!(
                "the default of {DEFAULT_SHM} had no room for another {a}; default + 2 × that, at \
        least 1 GiB, rounded up to whole GiB = {}",
                size.k8s()
            )
        },
    );
    out.push(
        Action::new(Stage::Fix, format!("Mount a Memory volume of {} at /dev/shm and raise the memory \
        limit by the same amount: its pages are charged to the container", size.k8s()))
            .because(why)
            .patch(&pod_patch(
                cx,
                json!({ "volumeMounts": [{ "name": "dshm", "mountPath": "/dev/shm" }] }),
                json!({ "volumes": [{ "name": "dshm", "emptyDir": { "medium": "Memory", "sizeLimit": quantity(size) } }] }),
            )),
    );
    out.push(
        Action::new(Stage::Verify, "At peak load, /dev/shm stays below 80 %").run(n.exec("df -h /dev/shm")),
    );
    out.push(Action::new(
        Stage::Avoid,
        "Do not look for a full disk: \"No space left on device\" refers to the tmpfs at /dev/shm",
    ));
}

/// The pool that an engine pins at its start, at half its size.
fn smaller_pool(cx: &Context<'_>, engine: &Descriptor) -> Option<Action> {
    let pool = engine.pinned_pool.as_ref()?;
    let own = std::slice::from_ref(&pool.flag);
    let (now, whose) = match cx.facts.engine.lever_number(own) {
        Some(bytes) => (bytes as u64, "the pod's flag"),
        None => (pool.default, "the default"),
    };
    let half = (now / 2).max(MIB);
    let a = Action::new(
        Stage::Fix,
        format!("Set {} {half}: {} asks for half as much pinned memory at its start", pool.flag, engine.name),
    )
    .because(format!(
        "{now} ({}, {whose}) ÷ 2 = {half}; what does not fit the pool is copied through pageable memory",
        Bytes(now)
    ));
    let change = Change::Setting(cx.named(&engine.id, own.to_vec(), Some(half.to_string()), None));
    (now > MIB).then(|| a.change(change))
}

fn pinned_memory(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    for p in &cx.facts.host_pools {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Shrink {} (now {}){}",
                    p.name,
                    p.bytes,
                    p.flag.as_ref().map(|f| format!(" with {f}")).unwrap_or_default()
                ),
            )
            .because(p.arithmetic.clone()),
        );
    }
    out.extend(cx.advisors().find_map(|d| smaller_pool(cx, d)));
    out.push(
        Action::new(
            Stage::Fix,
            "Pin less host memory: the driver could not allocate it. Pinned pages \
        must be resident, within the locked memory limit, and within the driver's page table limits",
        )
        .run(n.exec("sh -c 'ulimit -l; grep -E \"MemAvailable|Mlocked|Unevictable\" /proc/meminfo'"))
        .run(on_node(&n.node, "dmesg -T | grep -E 'NVRM|page table' | tail")),
    );
    out.push(
        Action::new(
            Stage::Verify,
            "The start-up log continues past the allocation of the host pool, \
    and shmem in memory.stat shows its size",
        )
        .run(n.exec(&own_cgroup_and_stat(
            "memory.current memory.usage_in_bytes",
            "shmem|unevictable|total_shmem|total_unevictable",
        ))),
    );
}

fn refused(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    let need = hit_memory(cx, &["needed", "requested", "desired"]);
    let have = hit_memory(cx, &["available", "free"]);
    match (need, have) {
        (Some(need), Some(have)) => out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Free or add {} of host RAM, or request less: {need} was \
            requested, {have} was available",
                    need.saturating_sub(have)
                ),
            )
            .because(format!("{need} − {have} = {}", need.saturating_sub(have))),
        ),
        (Some(need), None) => out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "An allocation of {need} of host \
        memory failed: lower the flag that requests it, or give the container that much \
        more"
                ),
            )
            .because("the evidence does not show how much was free"),
        ),
        _ => {}
    }
    out.push(
        Action::new(Stage::Fix, "Find the limit that was hit: the cgroup, overcommit, a ulimit, or the \
        node itself")
            .because("while the container is up: between two starts there is nothing to run these in")
            .run(n.exec(&own_cgroup("memory.max memory.limit_in_bytes memory.current memory.usage_in_bytes")))
            .run(n.exec("sh -c 'ulimit -v; cat /proc/sys/vm/overcommit_memory; grep -E \"^(MemTotal|MemAvailable|CommitLimit|Committed_AS):\" /proc/meminfo'")),
    );
    out.push(
        Action::new(
            Stage::Verify,
            "The same start gets past the failed step with at least a tenth of the limit free",
        )
        .run(n.exec(&own_cgroup("memory.current memory.usage_in_bytes"))),
    );
}
