//! What would start where the launch as asked does not, or may not: each way changes as little as it can, and was planned.

use serde::Serialize;

use crate::answer::{Answer, Named, answer};
use crate::card::Placed;
use crate::launch::CommandLine;
use crate::outcome::Verdict;
use crate::pasteable::pasteable;
use crate::quantity::Plane;
use crate::version::EngineKind;
use dualplane_base::units::{Bytes, GIB, thousands};

/// Ranks that are tried on the same card: what a machine has.
const RANKS: [u64; 3] = [2, 4, 8];

/// Requests that use a quarter of the context are usual, where nothing is stated: a context shorter than that is another service.
pub(crate) const USUAL_PART: u64 = 4;

/// One way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Way {
    /// Stable word: `settings`, `more_gpus`, `memory_limit`.
    pub name: &'static str,
    /// Flags to add to the command, which overrule those that it has.
    pub flags: Vec<String>,
    /// What it gives.
    pub text: String,
}

/// The ways, of which each starts at every plausible value of the uncertain terms.
#[must_use]
pub fn ways(named: &Named, line: &CommandLine, placed: &Placed, a: &Answer) -> Vec<Way> {
    let ending = match &a.stages.ending {
        Some(e) if a.verdict() != Verdict::Fits => e,
        _ => return Vec::new(),
    };
    let mut out = Vec::new();
    if ending.plane == Plane::Host {
        out.extend(memory(named, line, placed, a));
        return out;
    }
    out.extend(settings(named, line, placed));
    out.extend(ranks(named, line, placed, length(a)));
    out
}

/// The longest request that an answer is about, in tokens.
fn length(a: &Answer) -> u64 {
    a.plan.as_ref().map_or(0, |p| p.gpu.kv_cache.max_model_len)
}

/// How many tokens, and requests of full length, an answer has.
fn gives(a: &Answer) -> String {
    let Ok(plan) = &a.plan else { return String::new() };
    let kv = &plan.gpu.kv_cache;
    let c = kv.max_concurrency_hundredths.low;
    format!(
        "{} tokens of KV cache, {}.{:02} requests of {} tokens at once",
        thousands(kv.tokens.low),
        c / 100,
        c % 100,
        thousands(kv.max_model_len)
    )
}

/// A shorter context or another share.
fn settings(named: &Named, line: &CommandLine, placed: &Placed) -> Option<Way> {
    let found = pasteable(named, line, placed, None).ok().filter(|p| !p.flags.is_empty())?;
    let flags = spelt(&found.flags).collect();
    Some(Way { name: "settings", flags, text: format!("at least {}", gives(&found.answer)) })
}

/// More of the same card: as few as hold a shorter context that is still of use, and as few as hold the one that was asked.
fn ranks(named: &Named, line: &CommandLine, placed: &Placed, asked: u64) -> Vec<Way> {
    let flag = match line.launch.engine {
        EngineKind::Vllm => "--tensor-parallel-size",
        EngineKind::Sglang => "--tp-size",
        EngineKind::TensorrtLlm => "--tp_size",
        _ => return Vec::new(),
    };
    // Slices of a card have no links between them.
    if placed.gpu.name.contains(':') || line.launch.pp > 1 || line.launch.dp > 1 {
        return Vec::new();
    }
    let mut out: Vec<Way> = Vec::new();
    for n in RANKS.into_iter().filter(|n| *n > line.launch.tp) {
        let mut more = line.clone();
        more.launch.tp = n;
        more.host.pod.gpus = None;
        let Ok(found) = pasteable(named, &more, placed, None) else { continue };
        let whole = found.flags.iter().all(|(flag, _)| *flag != "--max-model-len");
        let of_use = length(&found.answer).saturating_mul(USUAL_PART) >= asked;
        if !whole && (!out.is_empty() || !of_use) {
            continue;
        }
        let flags = std::iter::once(format!("{flag} {n}")).chain(spelt(&found.flags)).collect();
        let text = format!("on {n} × {}: at least {}", placed.gpu.name, gives(&found.answer));
        out.push(Way { name: "more_gpus", flags, text });
        if whole {
            break;
        }
    }
    out
}

fn spelt(flags: &[(&'static str, String)]) -> impl Iterator<Item = String> {
    flags.iter().map(|(flag, value)| format!("{flag} {value}"))
}

/// A limit of the pod that holds.
fn memory(named: &Named, line: &CommandLine, placed: &Placed, a: &Answer) -> Option<Way> {
    let asked = line.host.pod.limit?;
    let mut more = line.clone();
    more.host.pod.limit = Some(Bytes(a.host.limit_bytes));
    let holds = answer(named, &more, placed, None).ok().filter(|a| a.verdict() == Verdict::Fits)?;
    Some(Way {
        name: "memory_limit",
        flags: Vec::new(),
        text: format!(
            "limits.memory {}Gi instead of {asked}: at its peak the pod needs up to {}",
            a.host.limit_bytes / GIB,
            Bytes(holds.host.plan.load_peak_bytes.high.max(holds.host.plan.steady_bytes.high))
        ),
    })
}
