//! `dualplane.preflight/v1`. Documented in `docs/preflight.md` and `docs/preflight.schema.json`.

use serde::Serialize;

use crate::preflight::{
    Asked, Change, Finding, GpuRow, Held, Life, MemoryLimit, Outcome, Pids, Preflight, Unexplained,
};
use crate::{EngineKind, Quantity, Unknown, Verdict};
use dualplane_base::units::Bytes;

/// Schema id.
pub const PREFLIGHT: &str = "dualplane.preflight/v1";

#[derive(Serialize)]
struct PreflightV1<'a> {
    schema: &'static str,
    outcome: Outcome,
    summary: String,
    launch: Option<LaunchV1<'a>>,
    gpus: Vec<GpuV1<'a>>,
    gpus_chosen_by: &'a str,
    driver: DriverV1<'a>,
    pid_namespace: Option<&'static str>,
    host: HostV1<'a>,
    findings: &'a [Finding],
    changes: &'a [Change],
    unknown: &'a [Unknown],
}

#[derive(Serialize)]
struct LaunchV1<'a> {
    model: &'a str,
    model_source: &'a str,
    engine: EngineV1,
    gpus: u64,
    rule: &'a str,
}

#[derive(Serialize)]
struct EngineV1 {
    name: EngineKind,
    version: Option<String>,
    version_known: bool,
}

#[derive(Serialize)]
struct DriverV1<'a> {
    version: Option<&'a str>,
    cuda: Option<String>,
}

#[derive(Serialize)]
struct GpuV1<'a> {
    index: u32,
    uuid: &'a str,
    name: &'a str,
    card: Option<&'a str>,
    mig: bool,
    taken: bool,
    total_bytes: Option<Bytes>,
    free_bytes: Option<Bytes>,
    used_bytes: Option<Bytes>,
    need_bytes: Option<Quantity>,
    empty: Option<Verdict>,
    now: Option<Verdict>,
    message: Option<&'a str>,
    outcome: Outcome,
    holders: Vec<HolderV1<'a>>,
    unexplained: Option<Unexplained>,
}

#[derive(Serialize)]
struct HolderV1<'a> {
    pid: u32,
    name: Option<&'a str>,
    state: &'static str,
    orphan: bool,
    used_bytes: Option<Bytes>,
    age_seconds: Option<u64>,
    namespace: Option<&'a str>,
    pod: Option<&'a str>,
    container: Option<&'a str>,
    pod_uid: Option<&'a str>,
    container_id: Option<&'a str>,
}

#[derive(Serialize)]
struct HostV1<'a> {
    need_bytes: Option<Quantity>,
    limit_bytes: Option<Bytes>,
    limit_source: Option<&'a str>,
    held_bytes: Option<Bytes>,
    own_limit_bytes: Option<Bytes>,
    machine_total_bytes: Option<Bytes>,
    machine_available_bytes: Option<Bytes>,
    shm_need_bytes: Option<Quantity>,
    shm_size_bytes: Option<Bytes>,
    shm_used_bytes: Option<Bytes>,
    shm_source: &'a str,
}

fn of(p: &Preflight) -> PreflightV1<'_> {
    PreflightV1 {
        schema: PREFLIGHT,
        outcome: p.outcome,
        summary: p.summary(),
        launch: p.asked.as_ref().map(launch),
        gpus: p.gpus.iter().map(gpu).collect(),
        gpus_chosen_by: &p.chosen_by,
        driver: DriverV1 {
            version: p.driver.version.as_deref(),
            cuda: p.driver.cuda.map(|(a, b)| format!("{a}.{b}")),
        },
        pid_namespace: match p.pids {
            Pids::Host => Some("host"),
            Pids::Own => Some("own"),
            Pids::Unknown => None,
        },
        host: host(p),
        findings: &p.findings,
        changes: &p.changes,
        unknown: &p.unknown,
    }
}

fn launch(a: &Asked) -> LaunchV1<'_> {
    LaunchV1 {
        model: &a.model,
        model_source: &a.model_source,
        engine: EngineV1 {
            name: a.engine,
            version: (a.version_known || matches!(a.engine, EngineKind::Vllm | EngineKind::Sglang))
                .then(|| a.version.to_string()),
            version_known: a.version_known,
        },
        gpus: a.gpus,
        rule: &a.rule,
    }
}

fn gpu(r: &GpuRow) -> GpuV1<'_> {
    GpuV1 {
        index: r.index,
        uuid: &r.uuid,
        name: &r.name,
        card: r.card.as_deref(),
        mig: r.mig,
        taken: r.taken,
        total_bytes: r.total,
        free_bytes: r.free,
        used_bytes: r.used,
        need_bytes: r.need,
        empty: r.empty,
        now: r.now,
        message: r.message.as_deref(),
        outcome: r.outcome,
        holders: r.holders.iter().map(holder).collect(),
        unexplained: r.unexplained,
    }
}

fn holder(h: &Held) -> HolderV1<'_> {
    let names = h.holder.names.as_ref();
    HolderV1 {
        pid: h.holder.pid,
        name: h.holder.comm.as_deref(),
        state: match h.holder.life {
            Life::Runs => "runs",
            Life::Ended => "ended",
            Life::Gone => "gone",
            Life::NotVisible => "not_visible",
        },
        orphan: h.orphan,
        used_bytes: h.holder.used,
        age_seconds: h.holder.age_seconds,
        namespace: names.map(|n| n.namespace.as_str()),
        pod: names.map(|n| n.pod.as_str()),
        container: names.map(|n| n.container.as_str()),
        pod_uid: h.holder.pod_uid.as_deref(),
        container_id: h.holder.container_id.as_deref(),
    }
}

fn host(p: &Preflight) -> HostV1<'_> {
    let h = &p.host;
    let (limit, source, held, own) = match &h.limit {
        MemoryLimit::At { bytes, source, held } => (Some(*bytes), Some(source.as_str()), Some(*held), None),
        MemoryLimit::Unlimited { source } => (None, Some(source.as_str()), None, None),
        MemoryLimit::Untold { own } => (None, None, None, *own),
    };
    HostV1 {
        need_bytes: h.need,
        limit_bytes: limit,
        limit_source: source,
        held_bytes: held,
        own_limit_bytes: own,
        machine_total_bytes: h.machine_total,
        machine_available_bytes: h.machine_available,
        shm_need_bytes: h.shm_need,
        shm_size_bytes: h.shm.map(|s| s.size),
        shm_used_bytes: h.shm.map(|s| s.used),
        shm_source: &h.shm_source,
    }
}

/// JSON with controls and overrides of direction as `\uXXXX`.
///
/// # Errors
/// Not on any check: the structures hold nothing that JSON cannot.
pub fn json(p: &Preflight) -> Result<String, serde_json::Error> {
    dualplane_base::json::pretty(&of(p))
}
