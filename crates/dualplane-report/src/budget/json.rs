//! The budget as `dualplane.verdict/v2` tells it. Amounts are bytes.

use super::{Budget, Suspect};
use dualplane_base::units::Bytes;
use dualplane_plan::{EngineKind, Plan, Quantity};
use serde::Serialize;

/// What the launch should take, and what it held.
#[derive(Debug, Serialize)]
pub(crate) struct BudgetV2<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<ExpectedV2<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<HeldV2>,
    suspects: Vec<SuspectV2<'a>>,
}

#[derive(Debug, Serialize)]
struct ExpectedV2<'a> {
    engine: EngineKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    model_known: bool,
    source: &'static str,
    host: HostV2,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<GpuV2>,
}

#[derive(Debug, Serialize)]
struct HostV2 {
    load_peak_bytes: Quantity,
    steady_bytes: Quantity,
    request_bytes: u64,
    limit_bytes: u64,
}

#[derive(Debug, Serialize)]
struct GpuV2 {
    weights_bytes: Quantity,
    kv_cache_bytes: Quantity,
    kv_cache_tokens: Quantity,
    request_bytes: u64,
    max_model_len: u64,
}

#[derive(Debug, Serialize)]
struct HeldV2 {
    limit_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    anon_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shmem_bytes: Option<Bytes>,
    whole_cgroup: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ran_seconds: Option<i64>,
}

#[derive(Debug, Serialize)]
struct SuspectV2<'a> {
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Bytes>,
    because: &'a [String],
}

/// `None` where nothing is known of either.
pub(crate) fn of(b: &Budget) -> Option<BudgetV2<'_>> {
    let expected = b.expected.as_ref().map(|e| {
        let launch = &e.launch.line.launch;
        ExpectedV2 {
            engine: launch.engine,
            engine_version: launch.version_known.then(|| launch.version.to_string()),
            model: e.launch.line.model.as_deref(),
            model_known: e.launch.model.is_some(),
            source: e.launch.source,
            host: HostV2 {
                load_peak_bytes: e.host.plan.load_peak_bytes,
                steady_bytes: e.host.plan.steady_bytes,
                request_bytes: e.host.request_bytes,
                limit_bytes: e.host.limit_bytes,
            },
            gpu: e.gpu.as_ref().map(gpu),
        }
    });
    let held = b.held.as_ref().map(|h| HeldV2 {
        limit_bytes: h.limit.0,
        anon_bytes: h.anon,
        shmem_bytes: h.shmem,
        whole_cgroup: h.whole,
        ran_seconds: h.ran_ms.map(|ms| ms / 1000),
    });
    let suspects = b.suspects.iter().map(|Suspect { what, bytes, because, .. }| SuspectV2 {
        what,
        bytes: *bytes,
        because,
    });
    (expected.is_some() || held.is_some()).then(|| BudgetV2 { expected, held, suspects: suspects.collect() })
}

fn gpu(plan: &Plan) -> GpuV2 {
    let kv = &plan.gpu.kv_cache;
    GpuV2 {
        weights_bytes: plan.gpu.weights_bytes,
        kv_cache_bytes: kv.available_bytes,
        kv_cache_tokens: kv.tokens,
        request_bytes: kv.needed_bytes,
        max_model_len: kv.max_model_len,
    }
}
