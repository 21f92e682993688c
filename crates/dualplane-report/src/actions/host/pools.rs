//! Pools of host memory that the launch asks for: what fits the limit, or the limit that holds them.

use super::{HEADROOM, record};
use crate::actions::{Action, Context, Stage, Workload, names, own_cgroup, workload};
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::evidence::metrics::last_before;
use dualplane_core::facts::{HostPool, prompt_cache_in_use};

/// The limit that holds all pools and the rest of the server.
pub(super) fn keep(cx: &Context<'_>, pools: &[HostPool], sum: Bytes, out: &mut Vec<Action>) {
    let n = names(cx);
    match base_use(cx, pools) {
        Some((base, how)) => {
            let all = sum.saturating_add(base);
            let need = all.scale(HEADROOM).round_up_to(GIB);
            let q = need.k8s();
            let a =
                Action::new(Stage::Fix, format!("Or keep the pools and set the memory request and limit to {q}"))
                    .because(format!("pools {sum} + everything else {base} ({how}) = {all}; × {HEADROOM} headroom, rounded up to whole GiB = {q}"))
                    .memory(cx, Some(need), need);
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
pub(super) fn shrink(
    cx: &Context<'_>,
    pool: &HostPool,
    all: &[HostPool],
    limit: Bytes,
    out: &mut Vec<Action>,
) {
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
        // A server on the CPU keeps its KV cache in host RAM, and does not serve without one.
        let engines = cx.knowledge.engines();
        if engines.iter().filter_map(|e| e.on_cpu.as_ref()).any(|c| c.pool == *flag) {
            return;
        }
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
    // As it is set it fits beside all that is known: something else grew, and the same size again would change nothing.
    if base.is_some() && value.saturating_mul(pool.unit).saturating_mul(pool.ranks.max(1)) >= pool.bytes.0 {
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
        ))
        .set(cx, flag, value, None),
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
        .run(n.exec(&own_cgroup("memory.current memory.usage_in_bytes"))),
    });
}
