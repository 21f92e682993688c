//! What vLLM's CPU back end keeps in RAM because there is no card: weights and the KV cache of each rank.

use super::{Cx, Part, When};
use crate::quantity::Quantity;
use dualplane_base::units::MIB;

const SOURCE: &str =
    "vLLM v1/worker/cpu_worker.py, cpu_model_runner.py; measured on 0.32.0 (testdata/plan/cpu.jsonl)";

/// GCC's compiler on a function that PyTorch's inductor wrote, with the headers of its vectors (measured: 498 MiB). MiB.
const COMPILER: u64 = 500;

/// What PyTorch's compiler keeps in a rank's process: its own modules, traces and code (measured: 247 MiB).
const COMPILED: Quantity = Quantity { low: 150 * MIB, expected: 250 * MIB, high: 400 * MIB };

/// Share by which the C library's heap exceeds the tensors it holds.
const HEAP: f64 = 0.03;

pub(super) fn parts(cx: &Cx<'_>) -> Vec<Part> {
    let (true, Some(plan)) = (cx.input.cpu, cx.input.plan) else { return Vec::new() };
    let ranks = cx.ranks;
    let weights = plan.gpu.weights_bytes;
    let kv = &plan.gpu.kv_cache;
    let pool = kv.blocks.map(|b| b.saturating_mul(kv.bytes_per_block));
    let mut out = vec![
        Part::new(
            "cpu.weights",
            When::Always,
            Quantity::within(weights.expected, HEAP) * ranks,
            format!("{} B × {ranks} ranks", weights.expected),
            SOURCE,
        ),
        // Filled with zeros when it is allocated, so all of it is resident before the first request.
        Part::new(
            "cpu.kv_cache",
            When::Always,
            pool * ranks,
            format!("{} blocks × {} B × {ranks} ranks", kv.blocks.expected, kv.bytes_per_block),
            SOURCE,
        ),
    ];
    let launch = &cx.input.line.launch;
    if !launch.enforce_eager {
        // The whole model is compiled before the pool is allocated.
        out.push(Part::new(
            "cpu.compiler",
            When::BeforePools,
            Quantity::within(COMPILER * MIB, 0.1) * ranks,
            format!("{COMPILER} MiB × {ranks} ranks, before the pool"),
            SOURCE,
        ));
        out.push(Part::new(
            "cpu.compiled",
            When::Always,
            COMPILED * ranks,
            format!("{} MiB × {ranks} ranks", COMPILED.expected / MIB),
            SOURCE,
        ));
    } else if cx.input.model.is_some_and(|m| m.traits.compiles) {
        // Few models mark functions for themselves. These are compiled with the first step, beside the filled pool.
        out.push(Part::new(
            "cpu.compiler",
            When::Load,
            Quantity::within(COMPILER * MIB, 0.1) * ranks,
            format!("{COMPILER} MiB × {ranks} ranks, while they warm up"),
            SOURCE,
        ));
    }
    out
}
