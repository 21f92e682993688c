//! VRAM: the plan against the card or slice that the manifest names, and ranks against the GPUs of the pod.

use dualplane_base::text::counted;
use dualplane_base::units::{Bytes, thousands};
use dualplane_plan::{EngineKind, MaxModelLen, PlanError, Plane, Verdict, pasteable};

use super::{Said, Server};

pub(super) fn settings_rejected(s: &Server<'_>) -> Option<Said> {
    let e = s.plan.as_ref()?.contradiction.as_ref()?;
    let PlanError::Contradiction { names, why } = e else { return None };
    Some(
        Said::new(format!("the engine refuses to start: {names}: {why}"), format!("change {names}"))
            .at("/args"),
    )
}

/// The end of a start that fails on the card for certain.
fn refused(s: &Server<'_>) -> Option<Said> {
    let planned = s.plan.as_ref()?;
    let answer = planned.answer.as_ref()?;
    let plan = answer.plan.as_ref().ok().filter(|p| !p.estimated)?;
    let e = answer.stages.ending.as_ref()?;
    if e.verdict != Verdict::Refused || e.plane != Plane::Gpu {
        return None;
    }
    // Weights that exceed the card do so in every version; all else the version decides.
    let beyond = plan.gpu.weights_bytes.low > answer.gpu.total_bytes;
    if !planned.line().launch.version_known && !beyond {
        return None;
    }
    let named = planned.model.as_ref()?;
    let message = format!("{} on {}: {}", named.id, answer.gpu.name, e.why);
    let placed = dualplane_plan::card::Placed { gpu: answer.gpu.clone(), unknown: Vec::new() };
    let near = pasteable(named, planned.line(), &placed, None).ok().filter(|p| !p.changed.is_empty());
    let fix = match &near {
        // As it is pasted, without the commas that people read.
        Some(p) if !p.flags.is_empty() => {
            let flags: Vec<String> = p.flags.iter().map(|(flag, value)| format!("{flag} {value}")).collect();
            format!("set {}", flags.join(", "))
        }
        Some(p) => format!("set {}", p.changed.join(", ")),
        None => {
            // Whole cards until the weights and a tenth of each card for the rest fit.
            let all = plan.gpu.weights_bytes.low.saturating_mul(planned.line().launch.tp.max(1));
            let room = (answer.gpu.total_bytes / 10).saturating_mul(8).max(1);
            let ranks = all.div_ceil(room).max(planned.line().launch.tp + 1).next_power_of_two();
            format!(
                "its weights are {}: use --tensor-parallel-size {ranks} on {}, a larger card, or a quantised checkpoint; \
                 `dualplane plan {}` lists the cards that hold it",
                Bytes(all),
                counted(ranks, "GPU"),
                named.id
            )
        }
    };
    let flags = near.map(|p| p.flags).unwrap_or_default();
    Some(Said::new(message, fix).flags(s.c, &flags))
}

pub(super) fn card_too_small(s: &Server<'_>) -> Option<Said> {
    if s.plan.as_ref()?.workload.mig.is_some() {
        return None;
    }
    Some(refused(s)?.at("/args"))
}

pub(super) fn mig_too_small(s: &Server<'_>) -> Option<Said> {
    s.plan.as_ref()?.workload.mig.as_ref()?;
    Some(refused(s)?.at("/resources/limits"))
}

/// GPUs that one pod holds, where nothing joins pods.
fn alone(s: &Server<'_>) -> Option<(u64, u64)> {
    let planned = s.plan.as_ref()?;
    let line = planned.line();
    let l = &line.launch;
    let joined = planned.workload.grouped || line.host.ray || line.host.several_nodes || line.host.nodes > 1;
    let group = ["LeaderWorkerSet", "RayCluster", "RayService", "LLMInferenceService"];
    let known = matches!(l.engine, EngineKind::Vllm | EngineKind::Sglang);
    if joined || !known || group.contains(&s.object.kind.as_str()) || planned.contradiction.is_some() {
        return None;
    }
    Some((l.gpus(), line.host.pod_gpus()?))
}

pub(super) fn ranks_beyond_gpus(s: &Server<'_>) -> Option<Said> {
    let (_, have) = alone(s)?;
    let l = &s.plan.as_ref()?.line().launch;
    let world = l.tp.saturating_mul(l.pp);
    if world <= have {
        return None;
    }
    let message = format!(
        "--tensor-parallel-size {} × --pipeline-parallel-size {} are {world} ranks, and the pod has {}: the engine refuses \
         to start",
        l.tp,
        l.pp,
        counted(have, "GPU")
    );
    Some(Said::new(message, format!("ask for {world} GPUs, or use {have} ranks")).at("/resources/limits"))
}

pub(super) fn gpus_unused(s: &Server<'_>) -> Option<Said> {
    let (used, have) = alone(s)?;
    // A wrapper may start several servers; the plan reads the first. Stages of vLLM-Omni have cards of their own.
    let stages = crate::server::haystack(s.c).contains("--omni");
    if stages
        || used >= have
        || dualplane_base::json::list(s.pod.spec, "/containers").len() > 1
        || scripted(s)
    {
        return None;
    }
    let message = format!(
        "the pod holds {}, and the engine uses {used}: the others stay idle, and the model has only the memory of {used}",
        counted(have, "GPU")
    );
    let fix = format!("add --tensor-parallel-size {have}, or ask for {}", counted(used, "GPU"));
    Some(Said::new(message, fix).at("/resources/limits"))
}

fn scripted(s: &Server<'_>) -> bool {
    let first =
        dualplane_base::json::list(s.c, "/command").first().and_then(|c| c.as_str()).unwrap_or_default();
    matches!(dualplane_engines::command_line::base(first), "sh" | "bash" | "ash" | "dash")
}

/// Requests of the maximum length that a pool should hold beside short ones.
const TOGETHER: u64 = 200;
/// Lengths below this are what chats have.
const LONG: u64 = 32_768;

pub(super) fn long_and_short(s: &Server<'_>) -> Option<Said> {
    let planned = s.plan.as_ref()?;
    let kv = &planned.answer.as_ref()?.plan.as_ref().ok().filter(|p| !p.estimated)?.gpu.kv_cache;
    let MaxModelLen::Tokens(asked) = planned.line().launch.max_model_len else { return None };
    let seqs = planned.line().launch.max_num_seqs?;
    let most = kv.max_concurrency_hundredths.high;
    if asked < LONG || seqs < 32 || most == 0 || most >= TOGETHER {
        return None;
    }
    let message = format!(
        "one request of {} tokens takes {} % of the KV cache, and {seqs} requests share it: short requests wait or are \
         preempted behind a long one",
        thousands(asked),
        10_000 / most.max(1)
    );
    let fix = format!(
        "serve requests above {} tokens from a pool of their own, and set --max-model-len {} here",
        thousands(asked / 4),
        asked / 4
    );
    Some(Said::new(message, fix).at("/args"))
}
