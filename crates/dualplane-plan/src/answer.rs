//! The answer to a question about memory: both planes together, calibrated where a start-up was seen.

use super::calibrate::{Calibration, Measured};
use super::card::Placed;
use super::cli::CommandLine;
use super::engines::llama_cpp::{self, Gguf};
use super::engines::tgi;
use super::gpu::Gpu;
use super::host::{Checkpoint, HostInput, HostReport, host};
use super::model::{Model, QuantMethod};
use super::outcome::{Plan, PlanError, Verdict};
use super::quantity::{Plane, Quantity, Unknown};
use super::stages::{Stages, stages};
use super::version::EngineKind;
use dualplane_base::Version;
use dualplane_base::units::thousands;

/// A model with where its facts come from.
#[derive(Debug, Clone)]
pub struct Named {
    /// As it was asked for.
    pub id: String,
    /// Where the facts come from.
    pub source: String,
    /// The facts.
    pub model: Model,
    /// The header of its GGUF file, where one was given.
    pub gguf: Option<Gguf>,
    /// Its weight files, where they were seen.
    pub files: Checkpoint,
}

/// Both planes of one launch.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Model id or path.
    pub model: String,
    /// Where its facts come from.
    pub model_source: String,
    /// The launch.
    pub line: CommandLine,
    /// The card.
    pub gpu: Gpu,
    /// GPUs in all.
    pub gpus: u64,
    /// The GPU plane, or what is not supported.
    pub plan: Result<Plan, PlanError>,
    /// The host plane.
    pub host: HostReport,
    /// Both planes, stage by stage, and where the start ends if it does.
    pub stages: Stages,
    /// What is not known, of all parts.
    pub unknown: Vec<Unknown>,
    /// The residual that was applied.
    pub calibration: Option<Calibration>,
    /// A start-up beside its prediction, where one was given.
    pub measured: Vec<Measured>,
}

/// Answers.
///
/// # Errors
/// [`PlanError::Contradiction`] and [`PlanError::Unreadable`]; what is unsupported is part of the answer, because the
/// host plane may still be known.
pub fn answer(
    named: &Named,
    line: &CommandLine,
    placed: &Placed,
    calibration: Option<&Calibration>,
) -> Result<Answer, PlanError> {
    let gpu = &placed.gpu;
    let mut unknown = Vec::new();
    let mut applied = None;
    let model = &named.model;
    let loads_16_bit = line.launch.engine != EngineKind::LlamaCpp;
    if let (Some(method), None, true) = (&line.launch.quantization, &model.quantization, loads_16_bit) {
        unknown.push(Unknown {
            what: format!(
                "the load peak of --quantization {method}: the 16-bit weights of one layer (in older \
                versions, of the whole model) must fit first"
            ),
            settle: "start once, or use a checkpoint that is already quantised".into(),
        });
    }
    let plan = match gpu_plane(named, line, gpu) {
        Ok(plan) => {
            let plan = match calibration
                .filter(|_| line.launch.engine == EngineKind::Vllm)
                .map(|c| (c, c.unfit(&plan, &line.launch, gpu)))
            {
                Some((c, None)) => {
                    applied = Some(c.clone());
                    with_pool(model, line, gpu, c.pool(&plan), plan)?
                }
                Some((_, Some(why))) => {
                    unknown.push(Unknown {
                        what: format!("the calibration was not used: {why}"),
                        settle: "calibrate with a start-up of the same engine, GPU and model".into(),
                    });
                    plan
                }
                None => plan,
            };
            Ok(plan)
        }
        Err(e @ (PlanError::Unsupported { .. } | PlanError::Missing { .. })) => Err(e),
        Err(e) => return Err(e),
    };
    let host = host(HostInput {
        line,
        model: Some(&named.model),
        plan: plan.as_ref().ok(),
        files: named.files,
        cpu: gpu.is_cpu(),
    });
    // What the GPU plane found for the host plane stands there now.
    let plan = plan.map(|mut p| {
        p.terms.retain(|t| t.plane == Plane::Gpu);
        p
    });
    let calibrated = applied.is_some();
    let of_plan = plan.iter().flat_map(|p| p.unknown.iter().cloned());
    // The terms that a calibration settles are no longer open.
    unknown.splice(0..0, of_plan.filter(|u| !(calibrated && u.what.starts_with("activations"))));
    unknown.extend(model.named());
    unknown.extend(placed.unknown.iter().cloned());
    unknown.extend(host.unknown.iter().cloned());
    unknown.extend(of_line(line));
    unknown.extend(plugin(model, line));
    unknown.extend(newer(model, line, gpu, plan.as_ref().ok()));
    let stages = stages(line, gpu, plan.as_ref().ok(), &host);
    Ok(Answer {
        model: named.id.clone(),
        model_source: named.source.clone(),
        line: line.clone(),
        gpu: gpu.clone(),
        gpus: line.launch.gpus(),
        plan,
        host,
        stages,
        unknown,
        calibration: applied,
        measured: Vec::new(),
    })
}

fn gpu_plane(named: &Named, line: &CommandLine, gpu: &Gpu) -> Result<Plan, PlanError> {
    let model = &named.model;
    let gguf = named.gguf.is_some() || llama_cpp::names_gguf(&named.id);
    if gguf && line.launch.engine != EngineKind::LlamaCpp {
        let what =
            format!("GGUF files in {}; llama-server -hf and ollama run are planned", line.launch.engine);
        return Err(PlanError::unsupported(what));
    }
    match line.launch.engine {
        EngineKind::Vllm | EngineKind::Sglang | EngineKind::TensorrtLlm => {
            super::plan(model, &line.launch, gpu)
        }
        EngineKind::LlamaCpp => llama_cpp::plan(model, named.gguf.as_ref(), line, gpu),
        EngineKind::Tgi => tgi::plan(model, line, gpu),
    }
}

/// The plan with the pool as an interval: what the engine makes of each bound.
fn with_pool(
    model: &Model,
    line: &CommandLine,
    gpu: &Gpu,
    pool: Quantity,
    plan: Plan,
) -> Result<Plan, PlanError> {
    let cut = |bytes: u64| {
        let launch = super::Launch { available_kv_bytes: Some(bytes), ..line.launch.clone() };
        super::plan(model, &launch, gpu)
    };
    let (low, mid, high) = (cut(pool.low)?, cut(pool.expected)?, cut(pool.high)?);
    let verdict = match (low.verdict, high.verdict) {
        (Verdict::Fits, _) => Verdict::Fits,
        (_, Verdict::Refused) => Verdict::Refused,
        _ => Verdict::Uncertain,
    };
    let mut kv = mid.gpu.kv_cache.clone();
    let band =
        |f: fn(&Plan) -> Quantity| Quantity::band(f(&low).expected, f(&mid).expected, f(&high).expected);
    kv.available_bytes = pool;
    kv.blocks = band(|p| p.gpu.kv_cache.blocks);
    kv.tokens = band(|p| p.gpu.kv_cache.tokens);
    kv.max_concurrency_hundredths = band(|p| p.gpu.kv_cache.max_concurrency_hundredths);
    let gpu = super::GpuPlan { kv_cache: kv, ..plan.gpu };
    Ok(Plan { gpu, verdict, refusal: mid.refusal, ..plan })
}

/// Releases whose pools are compared to tell how far an unread one may be off.
const BEFORE: [Version; 3] = [Version(0, 28, 0), Version(0, 30, 0), Version(0, 32, 0)];

/// A release that is newer than the newest that was read: its formulas are taken from that one.
fn newer(model: &Model, line: &CommandLine, gpu: &Gpu, plan: Option<&Plan>) -> Option<Unknown> {
    let l = &line.launch;
    let newest = l.engine.newest();
    let named = matches!(l.engine, EngineKind::Vllm | EngineKind::Sglang | EngineKind::TensorrtLlm);
    if !named || !l.version_known || l.version <= newest {
        return None;
    }
    let tokens = plan.map_or(0, |p| p.gpu.kv_cache.tokens.expected);
    let off = (l.engine == EngineKind::Vllm && tokens > 0).then(|| {
        let of = |version| {
            let launch = super::Launch { version, ..l.clone() };
            super::plan(model, &launch, gpu).ok().map(|p| p.gpu.kv_cache.tokens.expected)
        };
        BEFORE.into_iter().filter_map(of).map(|t| t.abs_diff(tokens).saturating_mul(1000) / tokens).max()
    });
    let off = off.flatten().map_or_else(String::new, |permille| {
        format!(
            "; the pools of the last releases that were read differ by up to {}.{} %",
            permille / 10,
            permille % 10
        )
    });
    Some(Unknown {
        what: format!(
            "{} {}: the formulas of {newest}, the newest that was read, are used{off}",
            l.engine, l.version
        ),
        settle: "start once, then use --from-log with the log".into(),
    })
}

/// bitsandbytes left vLLM with 0.27.2 (pull request 43529): what remains is a plugin that the image must bring.
fn plugin(model: &Model, line: &CommandLine) -> Option<Unknown> {
    let l = &line.launch;
    let stored = model.quantization.as_ref().is_some_and(|q| q.method == QuantMethod::Bitsandbytes);
    let asked = l.quantization.as_deref() == Some("bitsandbytes");
    let gone = l.engine == EngineKind::Vllm && l.version > Version(0, 27, 1);
    (gone && (stored || asked)).then(|| Unknown {
        what: "whether the image has vllm-bnb-plugin: without it vLLM after 0.27.1 rejects bitsandbytes at start"
            .into(),
        settle: "pip show vllm-bnb-plugin in the image, or use vLLM 0.27.1".into(),
    })
}

fn of_line(line: &CommandLine) -> Vec<Unknown> {
    let mut out = Vec::new();
    if !line.unknown_flags.is_empty() {
        out.push(Unknown {
            what: format!("unknown flags, ignored: {}", line.unknown_flags.join(", ")),
            settle: "check whether they change memory".into(),
        });
    }
    if line.host.ray && line.host.nodes <= 1 && line.host.pod.gpus.is_none() && line.launch.gpus() > 8 {
        out.push(Unknown {
            what: format!(
                "on how many nodes Ray places the {} ranks; all are counted in one pod",
                line.launch.gpus()
            ),
            settle: "--nnodes, or a manifest with the GPUs of each pod".into(),
        });
    }
    if let (true, Some(quant)) = (line.llama_cpp.usual_quantization, &line.launch.quantization) {
        out.push(Unknown {
            what: format!("the quantisation; {quant} is taken, which is fetched where none is named"),
            settle: "name it behind the model, as in :Q8_0, or with --quant".into(),
        });
    }
    if !line.not_followed.is_empty() {
        out.push(Unknown {
            what: format!(
                "settings that change memory but have no formula: {}",
                line.not_followed.join(", ")
            ),
            settle: "start once, then use --from-log with the log".into(),
        });
    }
    out
}

impl Answer {
    /// GPUs of one pod: all of them, unless the launch is spread over nodes.
    #[must_use]
    pub fn gpus_of_pod(&self) -> u64 {
        self.line.gpus_of_pod()
    }

    /// Whether the server starts and serves, by both planes, as far as it is known.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.stages.verdict
    }

    /// What the engine's own arithmetic says, on a card and in a pod that hold everything around it.
    #[must_use]
    pub fn engine_verdict(&self) -> Verdict {
        self.plan.as_ref().map_or(Verdict::Uncertain, |p| p.verdict)
    }

    /// What would be printed at the expected values: by the engine, by torch, or by the kernel that kills.
    #[must_use]
    pub fn message(&self) -> String {
        if let Some(e) = self.stages.ending.as_ref().filter(|e| e.verdict == Verdict::Refused) {
            return e.line.clone();
        }
        let plan = match &self.plan {
            Ok(p) => p,
            Err(e) => return e.to_string(),
        };
        if let Some(r) = &plan.refusal {
            return r.message.clone();
        }
        if let Some(printed) = &plan.printed {
            return printed.clone();
        }
        let kv = &plan.gpu.kv_cache;
        let c = kv.max_concurrency_hundredths.expected;
        let tokens = format!(
            "{} KV cache size: {} tokens",
            if self.gpu.is_cpu() { "CPU" } else { "GPU" },
            thousands(kv.tokens.expected)
        );
        let requests = format!(
            "Maximum concurrency for {} tokens per request: {}.{:02}x",
            thousands(kv.max_model_len),
            c / 100,
            c % 100
        );
        // One line since 0.28.0, two before.
        let between = if self.line.launch.version >= Version(0, 28, 0) { ", " } else { "\n" };
        format!("{tokens}{between}{requests}")
    }
}
