//! vLLM's CPU back end: weights and cache stand in the host's RAM, nothing is profiled on a card and nothing captured.

use std::borrow::Cow;

use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::quantity::{Plane, Quantity, Term};
use dualplane_base::units::MIB;

/// What a worker's process holds besides weights and cache, as the engine counts it: libraries that are mapped count too.
/// MiB; measured on 0.32.0 (testdata/plan/cpu.jsonl).
const WORKER_RSS: (u64, u64, u64) = (850, 970, 1150);

/// The launch as the platform changes it (vLLM platforms/cpu.py `check_and_update_config`).
pub(super) fn launch<'a>(launch: &'a Launch, gpu: &Gpu) -> Cow<'a, Launch> {
    if !gpu.is_cpu() {
        return Cow::Borrowed(launch);
    }
    let kv_cache_memory_bytes = launch.cpu_kv_cache_bytes.or(launch.kv_cache_memory_bytes);
    Cow::Owned(Launch {
        async_scheduling: Some(false),
        enforce_eager: true,
        kv_cache_memory_bytes,
        ..launch.clone()
    })
}

/// What is subtracted besides the weights: the process as it stands (vLLM v1/worker/cpu_worker.py
/// `determine_available_memory`), and nothing for a step or for graphs.
pub(super) fn terms() -> [Term; 3] {
    let term = |name: &str, quantity, formula: &str| Term {
        name: name.into(),
        plane: Plane::Gpu,
        quantity,
        formula: formula.into(),
        source: "vLLM v1/worker/cpu_worker.py determine_available_memory; measured on 0.32.0".into(),
    };
    let (low, mid, high) = WORKER_RSS;
    [
        term("activation", Quantity::default(), "not subtracted on the CPU"),
        term("cuda_graphs", Quantity::default(), "none on the CPU"),
        term(
            "non_torch",
            Quantity::band(low * MIB, mid * MIB, high * MIB),
            "resident size of the worker's process without weights",
        ),
    ]
}
