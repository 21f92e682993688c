//! Host RAM: the plan's need against the pod's limit, request and volumes.

use dualplane_base::json::{list, str_at};
use dualplane_base::units::{Bytes, GIB, parse_k8s_memory};
use dualplane_plan::Verdict;
use dualplane_plan::host::HostReport;
use serde_json::Value;

use super::{Said, Server};
use crate::planned::Planned;

const LIMIT: &str = "/resources/limits/memory";

fn gib(bytes: u64) -> String {
    format!("{}Gi", bytes.div_ceil(GIB))
}

/// The host plane and the limit of a server whose model is known. An estimate is no proof.
fn need(s: &Server<'_>) -> Option<(std::sync::Arc<Planned>, HostReport, u64)> {
    let plan = s.plan.clone()?;
    let host = plan.host.clone()?;
    let estimated = plan.model.as_ref().is_none_or(|m| m.model.estimated.is_some());
    let Bytes(limit) = plan.line().host.pod.limit?;
    (!estimated).then_some((plan, host, limit))
}

fn model(plan: &Planned) -> &str {
    plan.model.as_ref().map_or("the model", |m| m.id.as_str())
}

/// The most that this plan finds plausible, as the limit that `plan` prints.
fn limit_fix(host: &HostReport) -> Said {
    let value = gib(host.limit_bytes);
    Said::new("", format!("set resources.limits.memory to {value}")).set(LIMIT, value)
}

pub(super) fn limit_below_plan(s: &Server<'_>) -> Option<Said> {
    let (plan, host, limit) = need(s)?;
    if host.verdict != Some(Verdict::Refused) {
        return None;
    }
    let low = host.plan.load_peak_bytes.max(host.plan.steady_bytes).low;
    let message = format!(
        "the memory limit of {} is below the {} that {} takes at least: the kernel kills the container",
        Bytes(limit),
        Bytes(low),
        model(&plan)
    );
    Some(Said { message, ..limit_fix(&host) })
}

pub(super) fn limit_within_plan(s: &Server<'_>) -> Option<Said> {
    let (plan, host, limit) = need(s)?;
    if host.verdict != Some(Verdict::Uncertain) {
        return None;
    }
    let need = host.plan.load_peak_bytes.max(host.plan.steady_bytes);
    let message = format!(
        "{} takes {} to {} of RAM, and the memory limit of {} lies between: it may be killed",
        model(&plan),
        Bytes(need.low),
        Bytes(need.high),
        Bytes(limit)
    );
    Some(Said { message, ..limit_fix(&host) })
}

/// Limits equal to requests, so that the node keeps so much and no more, and no room above what the plan finds plausible.
pub(super) fn limit_without_headroom(s: &Server<'_>) -> Option<Said> {
    let (plan, host, limit) = need(s)?;
    let request = plan.line().host.pod.request.map_or(limit, |Bytes(r)| r);
    if host.verdict != Some(Verdict::Fits) || request < limit || limit >= host.limit_bytes {
        return None;
    }
    let need = host.plan.load_peak_bytes.max(host.plan.steady_bytes);
    let message = format!(
        "request and limit are {}, and {} may take {}: {} are left for large requests, a longer queue, and what a newer \
         release takes",
        Bytes(limit),
        model(&plan),
        Bytes(need.high),
        Bytes(limit.saturating_sub(need.high))
    );
    Some(Said { message, ..limit_fix(&host) })
}

pub(super) fn request_below_load_peak(s: &Server<'_>) -> Option<Said> {
    let (plan, host, _) = need(s)?;
    let Bytes(request) = plan.line().host.pod.request?;
    let peak = host.plan.load_peak_bytes;
    if request >= peak.low {
        return None;
    }
    let value = gib(host.request_bytes);
    let message = format!(
        "the memory request of {} is below the {} that loading {} takes at least: a node that is full by its requests \
         runs out of memory while the server starts",
        Bytes(request),
        Bytes(peak.low),
        model(&plan)
    );
    let fix = format!("set resources.requests.memory to {value}");
    Some(Said::new(message, fix).set("/resources/requests/memory", value))
}

/// Pools that flags take from host RAM, in bytes, with their flags.
fn pools(plan: &Planned) -> Vec<(&'static str, u64)> {
    let l = &plan.line().launch;
    let ranks = plan.line().gpus_of_pod().max(1);
    let all = [
        ("--cpu-offload-gb", l.cpu_offload_bytes.saturating_mul(ranks)),
        ("--kv-offloading-size", l.kv_offload_bytes),
        ("LMCACHE_MAX_LOCAL_CPU_SIZE", plan.line().host.lmcache_bytes.unwrap_or(0).saturating_mul(ranks)),
        ("--hicache-size", plan.line().host.hicache_bytes.unwrap_or(0).saturating_mul(ranks)),
        ("--cache-ram", plan.line().host.prompt_cache_bytes.unwrap_or(0)),
    ];
    all.into_iter().filter(|(_, bytes)| *bytes > 0).collect()
}

fn sum(pools: &[(&str, u64)]) -> u64 {
    pools.iter().fold(0, |a, (_, b)| a.saturating_add(*b))
}

fn names(pools: &[(&str, u64)]) -> String {
    pools.iter().map(|(n, b)| format!("{n} ({})", Bytes(*b))).collect::<Vec<_>>().join(" and ")
}

pub(super) fn offload_beyond_limit(s: &Server<'_>) -> Option<Said> {
    let plan = s.plan.as_ref()?;
    let Bytes(limit) = plan.line().host.pod.limit?;
    let pools = pools(plan);
    let total = sum(&pools);
    if total < limit {
        return None;
    }
    // The processes beside the pools.
    let rest = plan.host.as_ref().map_or(4 * GIB, |h| h.stages.processes.high);
    let value = gib(total.saturating_add(rest).saturating_add(2 * GIB));
    let message = format!(
        "{} take {} of pinned RAM in all, and the memory limit is {}: the kernel kills the container",
        names(&pools),
        Bytes(total),
        Bytes(limit)
    );
    let fix = format!("set resources.limits.memory to {value}, or offload less");
    Some(Said::new(message, fix).set(LIMIT, value))
}

pub(super) fn offload_without_limit(s: &Server<'_>) -> Option<Said> {
    let plan = s.plan.as_ref()?;
    let pools = pools(plan);
    if pools.is_empty() || !plan.line().host.pod.known || plan.line().host.pod.limit.is_some() {
        return None;
    }
    let total = sum(&pools);
    let rest = plan.host.as_ref().map_or(4 * GIB, |h| h.stages.processes.high);
    let value = gib(total.saturating_add(rest).saturating_add(2 * GIB));
    let message = format!(
        "{} pin {} of RAM, and the container has no memory limit: where the node runs out, the kernel chooses the victim",
        names(&pools),
        Bytes(total)
    );
    let fix = format!("set resources.limits.memory and resources.requests.memory to {value}");
    Some(Said::new(message, fix).at("/resources"))
}

pub(super) fn shm_below_plan(s: &Server<'_>) -> Option<Said> {
    let plan = s.plan.as_ref()?;
    let host = plan.host.as_ref()?;
    let size = plan.line().host.pod.shm??;
    let need = host.plan.shm_bytes;
    if size.0 >= need.expected || plan.line().gpus_of_pod() < 2 {
        return None;
    }
    let value = gib(host.shm_size_bytes.max(GIB));
    let message = format!(
        "the volume on /dev/shm holds {}, and {} ranks share {} through it: they end with a bus error",
        size,
        plan.line().gpus_of_pod(),
        Bytes(need.expected)
    );
    Some(Said::new(message, format!("set its emptyDir.sizeLimit to {value}")).at("/volumeMounts"))
}

/// Volumes of medium Memory that the container mounts, in bytes.
fn memory_volumes(s: &Server<'_>) -> Vec<(String, u64)> {
    let volume = |name: &str| list(s.pod.spec, "/volumes").iter().find(|v| str_at(v, "/name") == name);
    list(s.c, "/volumeMounts")
        .iter()
        .filter_map(|m| {
            let v = volume(str_at(m, "/name"))?;
            let memory = str_at(v, "/emptyDir/medium") == "Memory";
            let size = v.pointer("/emptyDir/sizeLimit").map(dualplane_base::json::text_of)?;
            memory.then_some((str_at(m, "/mountPath").to_owned(), parse_k8s_memory(&size)?.0))
        })
        .collect()
}

pub(super) fn memory_volumes_beyond_limit(s: &Server<'_>) -> Option<Said> {
    let limit = s.c.pointer(LIMIT).map(dualplane_base::json::text_of)?;
    let Bytes(limit) = parse_k8s_memory(&limit)?;
    let volumes = memory_volumes(s);
    let total = volumes.iter().fold(0_u64, |a, (_, b)| a.saturating_add(*b));
    if total == 0 || total < limit {
        return None;
    }
    let which: Vec<String> = volumes.iter().map(|(p, b)| format!("{p} ({})", Bytes(*b))).collect();
    let need = s.plan.as_ref().and_then(|p| p.host.as_ref()).map_or(8 * GIB, |h| h.request_bytes);
    let value = gib(total.saturating_add(need));
    let message = format!(
        "files in {} count as the container's memory, up to {}, and its limit is {}: filling them kills the server",
        which.join(" and "),
        Bytes(total),
        Bytes(limit)
    );
    let fix = format!("set resources.limits.memory to {value}, or a smaller emptyDir.sizeLimit");
    Some(Said::new(message, fix).at(LIMIT))
}

/// Paths below which servers keep what they download.
const CACHES: [&str; 5] = ["/root/.cache", "/root/.cache/huggingface", "/data", "/models", "/model-cache"];

pub(super) fn cache_volume_below_weights(s: &Server<'_>) -> Option<Said> {
    let plan = s.plan.as_ref()?;
    let answer = plan.answer.as_ref()?;
    let gpu = &answer.plan.as_ref().ok()?.gpu;
    // A path is loaded from where it stands; a name is fetched.
    if plan.line().model.as_deref()?.starts_with(['/', '.']) {
        return None;
    }
    let all = gpu.weights_bytes.low.saturating_mul(plan.line().launch.tp.max(1));
    let home: Vec<String> = list(s.c, "/env")
        .iter()
        .filter(|e| matches!(str_at(e, "/name"), "HF_HOME" | "HF_HUB_CACHE" | "TRANSFORMERS_CACHE"))
        .map(|e| str_at(e, "/value").to_owned())
        .collect();
    let (name, size) = list(s.c, "/volumeMounts").iter().find_map(|m| {
        let path = str_at(m, "/mountPath").trim_end_matches('/');
        let cache =
            if home.is_empty() { CACHES.contains(&path) } else { home.iter().any(|h| h.starts_with(path)) };
        let v = list(s.pod.spec, "/volumes").iter().find(|v| str_at(v, "/name") == str_at(m, "/name"))?;
        let size = v.pointer("/emptyDir/sizeLimit").map(dualplane_base::json::text_of)?;
        (cache && !path.is_empty()).then_some((str_at(m, "/name").to_owned(), parse_k8s_memory(&size)?))
    })?;
    if size.0 >= all {
        return None;
    }
    let value = gib(all.saturating_mul(11) / 10);
    let message = format!(
        "the weights of {} are {}, and the volume {name} into which they are downloaded holds {size}: the pod is evicted",
        model(plan),
        Bytes(all)
    );
    Some(Said::new(message, format!("set emptyDir.sizeLimit of {name} to {value}")).at("/volumeMounts"))
}

/// A value as an amount of memory.
pub(super) fn amount(v: Option<&Value>) -> Option<Bytes> {
    parse_k8s_memory(&dualplane_base::json::text_of(v?))
}
