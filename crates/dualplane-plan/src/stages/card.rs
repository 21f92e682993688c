//! VRAM of the tightest GPU at each stage, against the card and against what the engine asks for.

use super::lines::out_of_memory;
use super::{Fault, Peak, Step, pod};
use crate::engines::vllm::pool;
use crate::gpu::Gpu;
use crate::host::HostReport;
use crate::launch::{CommandLine, Launch};
use crate::outcome::{Plan, Verdict};
use crate::quantity::Quantity;
use crate::version::EngineKind;
use dualplane_base::Class;
use dualplane_base::units::{Bytes, GIB, MIB};

/// What a version that captures after sizing its pool takes for its graphs, from models of some billion parameters to large
/// ones, in MiB. A wide band of our own, not measured.
const GRAPHS_BESIDE: (u64, u64, u64) = (200, 600, 1500);

/// Use of the card, in bytes.
pub(super) struct Used {
    context: Quantity,
    /// The context where the engine's share does not hold it.
    outside: Quantity,
    weights: Quantity,
    repack: Quantity,
    rest: Quantity,
    activation: Quantity,
    pool: Quantity,
    /// Graphs that the share holds.
    graphs: Quantity,
    /// Graphs that come on top of it.
    beside: Quantity,
    /// The engine's share, where its pool is what is left of it: then the sum is exact whatever its parts are.
    share: Option<u64>,
    profiles: bool,
    captures: bool,
}

/// The context and the buffers of collectives, which the engine's share does not hold.
fn context(line: &CommandLine) -> Quantity {
    let l = &line.launch;
    // 0.3 to 0.6 GiB on one GPU; up to 2 GiB on eight, where the collectives are set up before the engine looks.
    let (low, high) = match l.tp.saturating_mul(l.pp) {
        0 | 1 => (280, 600),
        2 => (300, 900),
        3..=4 => (300, 1300),
        _ => (300, 2048),
    };
    Quantity::band(low * MIB, u64::midpoint(low, high) * MIB, high * MIB)
}

impl Used {
    pub(super) fn of(line: &CommandLine, plan: &Plan) -> Self {
        let l = &line.launch;
        let g = &plan.gpu;
        let vllm = l.engine == EngineKind::Vllm;
        let native = l.engine == EngineKind::LlamaCpp;
        let given = l.kv_cache_memory_bytes.is_some() || l.num_gpu_blocks_override.is_some();
        let eager = l.enforce_eager || l.cuda_graphs.mode.as_deref() == Some("NONE");
        let beside = if vllm && !eager && g.cuda_graph_bytes.high == 0 {
            Quantity::band(GRAPHS_BESIDE.0 * MIB, GRAPHS_BESIDE.1 * MIB, GRAPHS_BESIDE.2 * MIB)
        } else {
            Quantity::default()
        };
        // One layer's tensors stand twice while they are put into another layout.
        let layers = g.kv_cache.groups.iter().map(|g| g.layers).fold(0, u64::saturating_add).max(1);
        let layer = g.weights_bytes.expected / layers;
        let quantised = plan.resolved.quantization.is_some() && !native;
        let context = match l.engine {
            EngineKind::Vllm => context(line),
            // Their own terms hold it.
            _ => Quantity::default(),
        };
        Self {
            context,
            // Versions without the look count whatever is on the card within their share.
            outside: if pool::checks(l) { context } else { Quantity::default() },
            weights: g.weights_bytes,
            repack: if quantised { Quantity::band(0, layer / 4, layer) } else { Quantity::default() },
            rest: g.non_torch_bytes,
            activation: g.activation_bytes,
            pool: match l.num_gpu_blocks_override {
                Some(n) => Quantity::exact(n.saturating_mul(g.kv_cache.bytes_per_block)),
                None => g.kv_cache.available_bytes,
            },
            graphs: g.cuda_graph_bytes,
            beside,
            share: (vllm && !given).then_some(g.requested_bytes),
            profiles: !matches!(l.engine, EngineKind::Sglang | EngineKind::LlamaCpp),
            captures: !eager && !native,
        }
    }

    /// Whether this launch has the step.
    pub(super) fn has(&self, step: Step) -> bool {
        match step {
            Step::Repack => self.repack.high > 0,
            Step::Profile => self.profiles,
            Step::Graphs => self.captures,
            _ => true,
        }
    }

    /// Use at the peak of a step.
    pub(super) fn at(&self, step: Step) -> Quantity {
        let loaded = self.context + self.weights;
        // SGLang's activations are what its share leaves, whatever they come to.
        let activation = if self.profiles { self.activation } else { Quantity::default() };
        let share = self.share.filter(|_| self.pool.high > 0).map(Quantity::exact);
        match (step, share) {
            (Step::ProcessStart, _) => Quantity::default(),
            (Step::Context, _) => self.context,
            (Step::Load, _) => loaded,
            (Step::Repack, _) => loaded + self.repack,
            (Step::Profile, _) => loaded + self.rest + activation,
            (Step::KvCache, Some(s)) => self.outside + s.minus(self.activation + self.graphs),
            (Step::Graphs, Some(s)) => self.outside + s.minus(self.activation) + self.beside,
            (Step::WarmUp | Step::Traffic, Some(s)) => self.outside + s + self.beside,
            (Step::KvCache, None) => loaded + self.rest + self.pool,
            (Step::Graphs, None) => loaded + self.rest + self.pool + self.graphs + self.beside,
            (Step::WarmUp | Step::Traffic, None) => {
                loaded + self.rest + self.pool + self.graphs + self.beside + activation
            }
        }
    }
}

/// What stands beside the engine's VRAM in a pool that the card shares with its host: the pod's RAM, and the host's own use
/// where the free memory was not measured.
fn beside(line: &CommandLine, gpu: &Gpu, host: &HostReport, step: Step) -> Quantity {
    let Some(own) = gpu.host_use else { return Quantity::default() };
    let own = if line.launch.free_gpu_bytes.is_some() { Quantity::default() } else { own };
    own + pod::at(host, step)
}

/// Where the card is full, or the engine says no.
pub(super) fn faults(
    line: &CommandLine,
    gpu: &Gpu,
    plan: &Plan,
    used: &Used,
    host: &HostReport,
) -> Vec<Fault> {
    let l = &line.launch;
    let free = l.free_gpu_bytes.unwrap_or(gpu.total_bytes).min(gpu.total_bytes);
    let slice = gpu.name.contains(':');
    let out_of = if slice { Class::MigSliceTooSmall } else { Class::CudaOomLoad };
    let mut out = Vec::new();
    let mut peak = Peak::default();
    let measured = l.available_kv_bytes.is_some();
    let steps = [Step::Load, Step::Repack, Step::Profile, Step::KvCache, Step::Graphs, Step::WarmUp];
    let traffic = gpu.host_use.map(|_| Step::Traffic);
    for step in steps.into_iter().chain(traffic) {
        let other = beside(line, gpu, host, step);
        let need = used.at(step) + other;
        // A pool that was printed was allocated: what came before it held.
        if !used.has(step) || measured && step < Step::Graphs {
            continue;
        }
        let Some(verdict) = peak.reaches(need, free) else { continue };
        let shared = if gpu.host_use.is_some() {
            format!(
                ", with {} to {} of RAM in the same pool: the kernel may kill first",
                Bytes(other.low),
                Bytes(other.high)
            )
        } else {
            String::new()
        };
        let why = format!(
            "{} to {} are needed here{}{shared}, and {} GiB are {}",
            Bytes(need.low),
            Bytes(need.high),
            parts(step, used),
            two(free),
            if free < gpu.total_bytes { "free" } else { "all that the card has" }
        );
        let class = if free < gpu.total_bytes && need.low <= gpu.total_bytes {
            Class::GpuCapacityConflict
        } else {
            out_of
        };
        let text = plan
            .refusal
            .as_ref()
            .filter(|_| l.engine == EngineKind::LlamaCpp)
            .map_or_else(|| out_of_memory(line, gpu), |r| r.message.clone());
        out.push(Fault::new(step, class, verdict, text, why));
    }
    out.extend(start(line, gpu, plan, host));
    out.extend(engine(line, plan, out_of));
    out
}

fn parts(step: Step, used: &Used) -> String {
    let context = used.context.expected;
    match step {
        Step::Load | Step::Repack => {
            format!(" (weights {}, context {})", Bytes(used.weights.expected), Bytes(context))
        }
        Step::Profile => format!(
            " (weights {}, activations {}, context {})",
            Bytes(used.weights.expected),
            Bytes(used.activation.expected),
            Bytes(context)
        ),
        _ => format!(" (the engine's share, and a context of {} beside it)", Bytes(context)),
    }
}

fn two(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / GIB as f64)
}

/// vLLM looks at what is free once its own context is there: a share of 0.99 or 1.0 leaves no room for that.
/// In a pool that it shares with the host, what the processes and the host take is not free either.
fn start(line: &CommandLine, gpu: &Gpu, plan: &Plan, host: &HostReport) -> Option<Fault> {
    let l = &line.launch;
    if l.engine != EngineKind::Vllm || !pool::checks(l) || l.kv_cache_memory_bytes.is_some() {
        return None;
    }
    let utilisation =
        l.gpu_memory_utilization.unwrap_or_else(|| crate::repair::default_utilisation(l.version));
    let requested = plan.gpu.requested_bytes;
    let said = |free: u64| {
        let launch = Launch { free_gpu_bytes: Some(free), ..l.clone() };
        pool::check(&launch, gpu, requested, utilisation)?.refusal.map(|r| r.message)
    };
    let own = context(line) + beside(line, gpu, host, Step::Context);
    if let Some(free) = l.free_gpu_bytes {
        if let Some(text) = said(free) {
            let why = format!("{} are free, and the engine asks for {}", Bytes(free), Bytes(requested));
            return Some(Fault::new(Step::Context, Class::GpuCapacityConflict, Verdict::Refused, text, why));
        }
        if free.saturating_sub(own.high) >= requested {
            return None;
        }
    }
    let free = l.free_gpu_bytes.unwrap_or(gpu.total_bytes).min(gpu.total_bytes);
    let verdict = if free.saturating_sub(own.low) < requested {
        Verdict::Refused
    } else if free.saturating_sub(own.high) < requested {
        Verdict::Uncertain
    } else {
        return None;
    };
    let left = if verdict == Verdict::Refused { own.expected } else { own.high };
    let text = said(free.saturating_sub(left))?;
    let takes = if gpu.host_use.is_some() {
        "the host, the engine's processes and its context take"
    } else {
        "the engine's own context takes"
    };
    let why = format!(
        "--gpu-memory-utilization {utilisation:?} asks for {} of {}, and {takes} {} to {} before it looks; a display takes \
         more",
        Bytes(requested),
        Bytes(free),
        Bytes(own.low),
        Bytes(own.high)
    );
    Some(Fault::new(Step::Context, Class::GpuCapacityConflict, verdict, text, why))
}

/// The engine's own refusal, which comes when it sizes its pool.
pub(super) fn engine(line: &CommandLine, plan: &Plan, out_of: Class) -> Option<Fault> {
    if plan.verdict == Verdict::Fits {
        return None;
    }
    let message = plan.refusal.as_ref().map(|r| r.message.clone());
    // The look at the free memory is another stage.
    if message.as_ref().is_some_and(|m| m.starts_with("Free memory on device")) {
        return None;
    }
    let native = line.launch.engine == EngineKind::LlamaCpp;
    let class = if native { out_of } else { Class::KvCacheCapacity };
    let kv = &plan.gpu.kv_cache;
    let why = format!(
        "one request of {} tokens needs {}, and the pool is {} to {}",
        dualplane_base::units::thousands(kv.max_model_len),
        Bytes(kv.needed_bytes),
        Bytes(kv.available_bytes.low),
        Bytes(kv.available_bytes.high)
    );
    let line = message.unwrap_or_else(|| format!("the engine refuses at the lower bound of its pool: {why}"));
    Some(Fault::new(Step::KvCache, class, plan.verdict, line, why))
}
