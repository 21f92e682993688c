//! vLLM's CPU back end: weights and cache stand in the host's RAM, nothing is profiled on a card and nothing captured.

use std::borrow::Cow;

use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::{Attention, Model};
use crate::quantity::{Plane, Quantity, Term};
use dualplane_base::units::MIB;

/// What a worker's process holds besides weights and cache, as the engine counts it: libraries that are mapped count too.
/// MiB; measured on 0.32.0 (testdata/plan/cpu.jsonl).
const WORKER_RSS: (u64, u64, u64) = (850, 970, 1150);

/// The launch as the platform changes it (vLLM platforms/cpu.py `check_and_update_config`).
///
/// Where the processor has AVX-512 BF16, as servers of today do, states are kept in 32 bits; only the kernels of gated delta
/// networks take 16 where the flag asks for them. Older processors keep what the model says: their states are smaller, so that
/// more tokens fit than planned.
pub(super) fn launch<'a>(launch: &'a Launch, model: &Model, gpu: &Gpu) -> Cow<'a, Launch> {
    if !gpu.is_cpu() {
        return Cow::Borrowed(launch);
    }
    let kv_cache_memory_bytes = launch.cpu_kv_cache_bytes.or(launch.kv_cache_memory_bytes);
    let asked = launch.mamba_ssm_cache_dtype.as_deref().filter(|d| matches!(*d, "float16" | "bfloat16"));
    let narrow = model.layers.iter().any(|l| matches!(l.attention, Attention::GatedDelta(_)));
    let states = asked.filter(|_| narrow).unwrap_or("float32");
    Cow::Owned(Launch {
        async_scheduling: Some(false),
        enforce_eager: true,
        mamba_ssm_cache_dtype: Some(states.to_owned()),
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
