//! Anonymous memory of the processes that an engine starts.

use super::{Cx, Part, When};
use crate::quantity::Quantity;
use crate::version::EngineKind;
use dualplane_base::units::MIB;

/// Measured at 3.1 GB anonymous for a tensor-parallel worker (vllm#57469) and 4 GB RSS for a whole single-GPU pod
/// (vllm#3035); 2 to 4.5 GiB were seen. MiB.
const WORKER: (u64, u64, u64) = (2048, 3072, 4608);
/// Estimates between those two measurements. MiB.
const CORE: (u64, u64, u64) = (512, 819, 1229);
const API: (u64, u64, u64) = (717, 1229, 1843);
/// The CPU build, which loads no CUDA libraries: anonymous memory of its processes (testdata/plan/cpu.jsonl). MiB.
const CPU_SERVER: (u64, u64, u64) = (500, 555, 620);
const CPU_CORE: (u64, u64, u64) = (470, 521, 590);
const CPU_WORKER: (u64, u64, u64) = (500, 570, 700);
/// A compiled server without Python.
const NATIVE: (u64, u64, u64) = (100, 300, 1024);

const SOURCE: &str =
    "measured: vllm#57469, vllm#3035, pytorch#70416; the split between processes is an estimate";

pub(super) fn parts(cx: &mut Cx<'_>) -> Vec<Part> {
    let launch = &cx.input.line.launch;
    let ranks = cx.ranks;
    let dp = launch.dp.max(1);
    let mut out = Vec::new();
    let mut add = |name: &str, n: u64, each: (u64, u64, u64)| {
        if n > 0 {
            let quantity = Quantity::band(each.0 * MIB, each.1 * MIB, each.2 * MIB) * n;
            let formula = format!("{n} × {} MiB ({} to {})", each.1, each.0, each.2);
            out.push(Part::new(name, When::Always, quantity, formula, SOURCE));
        }
    };
    match launch.engine {
        // The engine core has a process of its own there, whatever the ranks.
        EngineKind::Vllm if cx.input.cpu => {
            add("process.api_servers", launch.api_servers.clamp(1, 1024), CPU_SERVER);
            add("process.engine_cores", dp.min(1024), CPU_CORE);
            add("process.workers", ranks, CPU_WORKER);
        }
        EngineKind::Vllm => {
            add("process.api_servers", launch.api_servers.clamp(1, 1024), API);
            // On one GPU the worker lives in the engine core's process.
            add(
                "process.engine_cores",
                if launch.tp.saturating_mul(launch.pp) > 1 { dp.min(1024) } else { 0 },
                CORE,
            );
            add("process.workers", ranks, WORKER);
        }
        EngineKind::Sglang => {
            add("process.tokenizer", 1, API);
            add("process.schedulers", ranks, WORKER);
            add("process.detokenizer", 1, CORE);
        }
        EngineKind::Tgi => {
            add("process.router", 1, NATIVE);
            add("process.shards", ranks, WORKER);
        }
        EngineKind::TensorrtLlm => {
            add("process.server", 1, API);
            add("process.workers", ranks, WORKER);
        }
        EngineKind::LlamaCpp => add("process.server", 1, NATIVE),
    }
    out
}
