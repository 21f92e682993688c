//! `dualplane.plan/v1`. Documented in `docs/plan.md` and `docs/plan.schema.json`.

use serde::Serialize;

use crate::edges::{Cost, Edge, Edges, Template};
use crate::host::HostReport;
use crate::stages::{Ending, Stage};
use crate::traffic::{Demand, Traffic};
use crate::ways::Way;
use crate::{
    Answer, Calibration, EngineKind, GpuPlan, KvGroup, KvPlan, Measured, Quantity, Resolved, Term, Unknown,
    Verdict,
};

/// Schema id.
pub const PLAN: &str = "dualplane.plan/v1";

#[derive(Serialize)]
struct PlanV1<'a> {
    schema: &'static str,
    verdict: Verdict,
    message: String,
    ending: Option<&'a Ending>,
    stages: &'a [Stage],
    estimated_max_model_len: Option<u64>,
    model: ModelV1<'a>,
    engine: EngineV1,
    gpus: u64,
    resolved: Option<&'a Resolved>,
    gpu: Option<GpuV1<'a>>,
    host: HostV1<'a>,
    cost: Option<Cost>,
    edges: &'a [Edge],
    templates: &'a [Template],
    ways: &'a [Way],
    traffic: Option<TrafficV1<'a>>,
    pods: PodsV1,
    terms: Vec<&'a Term>,
    unknown: &'a [Unknown],
    unknown_flags: &'a [String],
    unsupported: Option<String>,
    calibration: Option<&'a Calibration>,
    measured: &'a [Measured],
}

/// What was stated of requests, and what they need.
#[derive(Serialize)]
struct TrafficV1<'a> {
    stated: &'a Traffic,
    demand: Demand,
}

/// Pods that the launch takes; the figures of `host` are of one.
#[derive(Serialize)]
struct PodsV1 {
    count: u64,
    gpus_each: u64,
}

#[derive(Serialize)]
struct ModelV1<'a> {
    id: &'a str,
    source: &'a str,
}

#[derive(Serialize)]
struct EngineV1 {
    name: EngineKind,
    version: Option<String>,
    version_known: bool,
}

#[derive(Serialize)]
struct GpuV1<'a> {
    name: &'a str,
    capability: String,
    total_bytes: Quantity,
    requested_bytes: Quantity,
    weights_bytes: Quantity,
    weights_by_class: serde_json::Map<String, serde_json::Value>,
    activation_bytes: Quantity,
    cuda_graph_bytes: Quantity,
    non_torch_bytes: Quantity,
    kv_cache: KvV1<'a>,
    tightest_stage: u64,
}

#[derive(Serialize)]
struct KvV1<'a> {
    available_bytes: Quantity,
    blocks: Quantity,
    tokens: Quantity,
    max_concurrency: Ratio,
    bytes_per_block: u64,
    block_size: u64,
    needed_bytes: u64,
    max_model_len: u64,
    padding_layers: u64,
    groups: &'a [KvGroup],
}

/// Requests at once, with two decimals as the engine prints them.
#[derive(Serialize)]
struct Ratio {
    low: f64,
    expected: f64,
    high: f64,
}

#[derive(Serialize)]
struct HostV1<'a> {
    load_peak_bytes: Quantity,
    steady_bytes: Quantity,
    shm_bytes: Quantity,
    page_cache_bytes: Quantity,
    request_bytes: u64,
    limit_bytes: u64,
    shm_size_bytes: u64,
    arithmetic: &'a [String],
    verdict: Option<Verdict>,
    findings: &'a [String],
}

fn of<'a>(a: &'a Answer, e: &'a Edges) -> PlanV1<'a> {
    let plan = a.plan.as_ref().ok();
    let l = &a.line.launch;
    PlanV1 {
        schema: PLAN,
        verdict: a.verdict(),
        message: a.message(),
        ending: a.stages.ending.as_ref(),
        stages: &a.stages.list,
        estimated_max_model_len: plan.and_then(|p| p.refusal.as_ref()?.estimated_max_len),
        model: ModelV1 { id: &a.model, source: &a.model_source },
        engine: EngineV1 {
            name: l.engine,
            version: (l.version_known || matches!(l.engine, EngineKind::Vllm | EngineKind::Sglang))
                .then(|| l.version.to_string()),
            version_known: l.version_known,
        },
        gpus: a.gpus,
        resolved: plan.map(|p| &p.resolved),
        gpu: plan.map(|p| gpu(a, &p.gpu)),
        host: host(&a.host),
        cost: e.cost,
        edges: &e.list,
        templates: &e.templates,
        ways: &e.ways,
        traffic: e.traffic.as_ref().map(|(stated, demand)| TrafficV1 { stated, demand: *demand }),
        pods: PodsV1 { count: a.line.pods(), gpus_each: a.gpus_of_pod() },
        terms: plan.iter().flat_map(|p| &p.terms).chain(&a.host.terms).collect(),
        unknown: &a.unknown,
        unknown_flags: &a.line.unknown_flags,
        unsupported: a.plan.as_ref().err().map(ToString::to_string),
        calibration: a.calibration.as_ref(),
        measured: &a.measured,
    }
}

fn gpu<'a>(a: &'a Answer, g: &'a GpuPlan) -> GpuV1<'a> {
    GpuV1 {
        name: &a.gpu.name,
        capability: format!("{}.{}", a.gpu.capability.0, a.gpu.capability.1),
        total_bytes: Quantity::exact(g.total_bytes),
        requested_bytes: Quantity::exact(g.requested_bytes),
        weights_bytes: g.weights_bytes,
        weights_by_class: g
            .weights_by_class
            .iter()
            .map(|(c, b)| (c.as_str().to_owned(), (*b).into()))
            .collect(),
        activation_bytes: g.activation_bytes,
        cuda_graph_bytes: g.cuda_graph_bytes,
        non_torch_bytes: g.non_torch_bytes,
        kv_cache: cache(&g.kv_cache),
        tightest_stage: g.tightest_stage,
    }
}

fn cache(k: &KvPlan) -> KvV1<'_> {
    let c = k.max_concurrency_hundredths;
    let times = |hundredths: u64| hundredths as f64 / 100.0;
    KvV1 {
        available_bytes: k.available_bytes,
        blocks: k.blocks,
        tokens: k.tokens,
        max_concurrency: Ratio { low: times(c.low), expected: times(c.expected), high: times(c.high) },
        bytes_per_block: k.bytes_per_block,
        block_size: k.block_size,
        needed_bytes: k.needed_bytes,
        max_model_len: k.max_model_len,
        padding_layers: k.padding_layers,
        groups: &k.groups,
    }
}

fn host(h: &HostReport) -> HostV1<'_> {
    HostV1 {
        load_peak_bytes: h.plan.load_peak_bytes,
        steady_bytes: h.plan.steady_bytes,
        shm_bytes: h.plan.shm_bytes,
        page_cache_bytes: h.plan.page_cache_bytes,
        request_bytes: h.request_bytes,
        limit_bytes: h.limit_bytes,
        shm_size_bytes: h.shm_size_bytes,
        arithmetic: &h.arithmetic,
        verdict: h.verdict,
        findings: &h.findings,
    }
}

/// JSON with controls and overrides of direction as `\uXXXX`, so that a terminal shows no more than is there.
///
/// # Errors
/// Not on any answer: the structures hold nothing that JSON cannot.
pub fn json(a: &Answer, e: &Edges) -> Result<String, serde_json::Error> {
    dualplane_base::json::pretty(&of(a, e))
}

/// The same as YAML.
///
/// # Errors
/// As [`json`].
pub fn yaml(a: &Answer, e: &Edges) -> Result<String, serde_json::Error> {
    Ok(dualplane_base::yaml::yaml(&serde_json::to_value(of(a, e))?))
}
