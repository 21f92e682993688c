//! What may be pasted: an answer that holds at the lower bound, with as little changed as possible, or why there is none.

use crate::answer::{Answer, Named, answer};
use crate::calibrate::Calibration;
use crate::card::Placed;
use crate::launch::{CommandLine, MaxModelLen, PodAsk};
use crate::outcome::{PlanError, Verdict};
use crate::stages::Step;
use crate::version::EngineKind;
use dualplane_base::units::thousands;

/// Shares that are tried where the given one leaves too little around it.
const SHARES: [f64; 5] = [0.95, 0.92, 0.9, 0.88, 0.85];

/// An answer to paste from, with what was changed of what was asked.
#[derive(Debug, Clone)]
pub struct Pasteable {
    /// It holds at every plausible value.
    pub answer: Answer,
    /// In words.
    pub changed: Vec<String>,
    /// The same as flags with their values.
    pub flags: Vec<(&'static str, String)>,
}

/// Finds it.
///
/// # Errors
/// As [`answer`]; [`PlanError::Unsupported`] with the reason where nothing near to what was asked holds.
pub fn pasteable(
    named: &Named,
    line: &CommandLine,
    placed: &Placed,
    calibration: Option<&Calibration>,
) -> Result<Pasteable, PlanError> {
    let mut line = line.clone();
    // What is pasted sets the memory and the volume of its own.
    let pod = &line.host.pod;
    line.host.pod =
        PodAsk { gpus: pod.gpus, memory_volumes: pod.memory_volumes.clone(), ..PodAsk::default() };
    let first = answer(named, &line, placed, calibration)?;
    let plan = first.plan.as_ref().map_err(Clone::clone)?;
    if first.verdict() == Verdict::Fits {
        return Ok(Pasteable { answer: first, changed: Vec::new(), flags: Vec::new() });
    }
    let (mut changed, mut flags) = (Vec::new(), Vec::new());
    let step = first.stages.ending.as_ref().map(|e| e.step);
    if line.launch.engine == EngineKind::Vllm && step != Some(Step::Load) {
        let asked = plan.gpu.requested_bytes as f64 / plan.gpu.total_bytes.max(1) as f64;
        if matches!(step, Some(Step::Context | Step::Graphs | Step::WarmUp))
            && line.launch.kv_cache_memory_bytes.is_none()
        {
            for share in SHARES.into_iter().filter(|s| *s < asked) {
                line.launch.gpu_memory_utilization = Some(share);
                let a = answer(named, &line, placed, calibration)?;
                if !matches!(
                    a.stages.ending.as_ref().map(|e| e.step),
                    Some(Step::Context | Step::Graphs | Step::WarmUp)
                ) {
                    changed.push(format!("--gpu-memory-utilization {share} instead of {asked:.3}"));
                    flags.push(("--gpu-memory-utilization", share.to_string()));
                    break;
                }
            }
        }
        let mut a = answer(named, &line, placed, calibration)?;
        if let (Ok(p), Verdict::Uncertain | Verdict::Refused) = (&a.plan, a.verdict()) {
            // As many tokens as the least plausible pool holds.
            let mut shorter = line.clone();
            shorter.launch.max_model_len = MaxModelLen::Fit;
            shorter.launch.available_kv_bytes = Some(p.gpu.kv_cache.available_bytes.low);
            let fit = answer(named, &shorter, placed, None)?;
            if let Some(len) =
                fit.plan.ok().filter(|p| p.refusal.is_none()).map(|p| p.gpu.kv_cache.max_model_len)
            {
                let before = p.gpu.kv_cache.max_model_len;
                line.launch.max_model_len = MaxModelLen::Tokens(len);
                a = answer(named, &line, placed, calibration)?;
                changed.push(format!("--max-model-len {} instead of {}", thousands(len), thousands(before)));
                flags.push(("--max-model-len", len.to_string()));
            }
        }
        if a.verdict() == Verdict::Fits {
            return Ok(Pasteable { answer: a, changed, flags });
        }
    }
    let why = first.stages.ending.as_ref().map_or_else(
        || "it is not known whether it starts".to_owned(),
        |e| format!("it would end at {} as {}: {}", e.step.as_str(), e.class, e.why),
    );
    Err(PlanError::unsupported(format!("nothing to paste: {why}")))
}
