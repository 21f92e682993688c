//! The answer to a question about memory: both planes together, calibrated where a start-up was seen.

use super::calibrate::{Calibration, Measured};
use super::card::Placed;
use super::cli::CommandLine;
use super::engines::llama_cpp::{self, Gguf};
use super::engines::tgi;
use super::gpu::Gpu;
use super::host::{Checkpoint, HostInput, HostReport, host};
use super::model::Model;
use super::outcome::{Plan, PlanError, Verdict};
use super::quantity::{Plane, Quantity, Unknown};
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
        Err(e @ PlanError::Unsupported { .. }) => Err(e),
        Err(e) => return Err(e),
    };
    let host =
        host(HostInput { line, model: Some(&named.model), plan: plan.as_ref().ok(), files: named.files });
    // What the GPU plane found for the host plane stands there now.
    let plan = plan.map(|mut p| {
        p.terms.retain(|t| t.plane == Plane::Gpu);
        p
    });
    let calibrated = applied.is_some();
    let of_plan = plan.iter().flat_map(|p| p.unknown.iter().cloned());
    // The terms that a calibration settles are no longer open.
    unknown.splice(0..0, of_plan.filter(|u| !(calibrated && u.what.starts_with("activations"))));
    unknown.extend(placed.unknown.iter().cloned());
    unknown.extend(host.unknown.iter().cloned());
    unknown.extend(of_line(line));
    Ok(Answer {
        model: named.id.clone(),
        model_source: named.source.clone(),
        line: line.clone(),
        gpu: gpu.clone(),
        gpus: line.launch.gpus(),
        plan,
        host,
        unknown,
        calibration: applied,
        measured: Vec::new(),
    })
}

fn gpu_plane(named: &Named, line: &CommandLine, gpu: &Gpu) -> Result<Plan, PlanError> {
    let model = &named.model;
    if named.gguf.is_some() && line.launch.engine != EngineKind::LlamaCpp {
        return Err(PlanError::unsupported(format!("GGUF files in {}", line.launch.engine)));
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

fn of_line(line: &CommandLine) -> Vec<Unknown> {
    let mut out = Vec::new();
    if !line.unknown_flags.is_empty() {
        out.push(Unknown {
            what: format!("unknown flags, ignored: {}", line.unknown_flags.join(", ")),
            settle: "check whether they change memory".into(),
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
    /// Whether the engine starts, as far as it is known.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.plan.as_ref().map_or(Verdict::Uncertain, |p| p.verdict)
    }

    /// What the engine would print at the expected values.
    #[must_use]
    pub fn message(&self) -> String {
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
        let tokens = format!("GPU KV cache size: {} tokens", thousands(kv.tokens.expected));
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
