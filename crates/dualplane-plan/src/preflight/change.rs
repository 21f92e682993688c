//! What would make a launch fit, each planned with the arithmetic of `plan` and `fit`.

use super::need::Ask;
use super::outcome::Change;
use crate::card::{Placed, place};
use crate::engines::vllm::pool::{checks, own};
use crate::fit::{Fitted, Template, Workload, alternatives, utilisation};
use crate::{EngineKind, Gpu, Launch, MaxModelLen, Verdict, plan};
use dualplane_base::gpu::{Gpu as Known, find};
use dualplane_base::order::Order as _;
use dualplane_base::units::Bytes;

/// Changes of each kind that are told.
const FEW: usize = 3;

/// Flags with which it starts on these cards, of which there are so many.
pub(super) fn flags(ask: &Ask<'_>, gpu: &Gpu, cards: u64) -> Vec<Change> {
    let launch = &ask.line.launch;
    if launch.engine != EngineKind::Vllm {
        return Vec::new();
    }
    let mut out = Vec::new();
    let enough = launch.tp.saturating_mul(launch.pp) <= cards;
    if enough {
        out.extend(share(ask, gpu));
        out.extend(shorter(ask, gpu));
    }
    let len = length(ask);
    let one = Workload { usual_tokens: len, longest_tokens: len, concurrency: 1, template: Template::Safe };
    // The share stays what it is, else a change would be two.
    let share =
        launch.gpu_memory_utilization.unwrap_or_else(|| crate::repair::default_utilisation(launch.version));
    let base = Launch { gpu_memory_utilization: Some(share), pp: 1, ..launch.clone() };
    let all = alternatives(&ask.named.model, &base, std::slice::from_ref(gpu), &one);
    let holds = all.iter().filter(|f| f.holds == Verdict::Fits);
    let some: Vec<Change> = holds.filter_map(|f| other(ask, gpu, f, cards, len)).collect();
    out.extend(some.into_iter().take(FEW));
    out
}

/// The length that was asked for, in tokens.
fn length(ask: &Ask<'_>) -> u64 {
    match ask.line.launch.max_model_len {
        MaxModelLen::Tokens(n) => n,
        MaxModelLen::Model | MaxModelLen::Fit => ask.named.model.max_model_len,
    }
}

fn starts(ask: &Ask<'_>, launch: &Launch, gpu: &Gpu) -> bool {
    let on_empty = Launch { free_gpu_bytes: Some(gpu.total_bytes), ..launch.clone() };
    plan(&ask.named.model, &on_empty, gpu).is_ok_and(|p| p.verdict == Verdict::Fits)
}

fn share(ask: &Ask<'_>, gpu: &Gpu) -> Option<Change> {
    let launch = &ask.line.launch;
    let most = utilisation(gpu, launch.tp.saturating_mul(launch.pp), Template::Safe);
    let more = Launch { gpu_memory_utilization: Some(most), ..launch.clone() };
    starts(ask, &more, gpu).then(|| Change {
        change: format!("--gpu-memory-utilization {most}"),
        because: "the largest share that leaves room for memory outside it, on a dedicated GPU".into(),
    })
}

/// The share with which it starts beside those that hold the card now.
pub(super) fn beside(ask: &Ask<'_>, gpu: &Gpu, free: u64) -> Option<Change> {
    let launch = &ask.line.launch;
    if !checks(launch) || launch.engine != EngineKind::Vllm {
        return None;
    }
    let room = free.saturating_sub(own(launch).1) as f64;
    let share = (room / gpu.total_bytes.max(1) as f64 * 100.0).floor() / 100.0;
    let less = Launch { gpu_memory_utilization: Some(share), free_gpu_bytes: Some(free), ..launch.clone() };
    let starts = plan(&ask.named.model, &less, gpu).is_ok_and(|p| p.verdict == Verdict::Fits);
    (share > 0.0 && starts).then(|| Change {
        change: format!("--gpu-memory-utilization {share}"),
        because: format!("fits the {} that are free now, with a smaller KV cache", Bytes(free)),
    })
}

/// The longest context that starts at the lower bound of the pool: the engine's own rule of `--max-model-len auto`.
fn shorter(ask: &Ask<'_>, gpu: &Gpu) -> Option<Change> {
    let launch = &ask.line.launch;
    let low = plan(&ask.named.model, launch, gpu).ok()?.gpu.kv_cache.available_bytes.low;
    let reach = Launch { available_kv_bytes: Some(low), max_model_len: MaxModelLen::Fit, ..launch.clone() };
    let len =
        plan(&ask.named.model, &reach, gpu).ok().filter(|p| p.refusal.is_none())?.gpu.kv_cache.max_model_len;
    let cut = Launch { max_model_len: MaxModelLen::Tokens(len), ..launch.clone() };
    (len > 0 && len < length(ask) && starts(ask, &cut, gpu)).then(|| Change {
        change: format!("--max-model-len {len}"),
        because: format!("the longest context that fits the smallest plausible KV cache of {}", Bytes(low)),
    })
}

/// What differs from the launch. Settings are searched for few requests at once; where the launch starts only so, that is
/// said too.
fn other(ask: &Ask<'_>, gpu: &Gpu, f: &Fitted, cards: u64, len: u64) -> Option<Change> {
    let launch = &ask.line.launch;
    let mut flags = Vec::new();
    let mut to = Launch { tp: f.tp, pp: 1, ..launch.clone() };
    if f.tp != launch.tp || launch.pp != 1 {
        flags.push(format!("--tensor-parallel-size {}", f.tp));
    }
    if launch.pp != 1 {
        flags.push("--pipeline-parallel-size 1".into());
    }
    if f.remark.contains("weights in fp8") && launch.quantization.is_none() {
        flags.push("--quantization fp8".into());
        to.quantization = Some("fp8".into());
    }
    if f.kv_cache_dtype == "fp8" && launch.kv_cache_dtype != "fp8" {
        flags.push("--kv-cache-dtype fp8".into());
        to.kv_cache_dtype = "fp8".into();
    }
    if flags.is_empty() || !starts(ask, &to, gpu) {
        flags.push(format!("--max-num-seqs {}", f.max_num_seqs));
        to.max_num_seqs = Some(f.max_num_seqs);
    }
    (f.gpus <= cards && starts(ask, &to, gpu)).then(|| Change {
        change: flags.join(" "),
        because: format!(
            "on {} × {}: weights {} per GPU; a request of {len} tokens fits the KV cache",
            f.gpus,
            f.gpu,
            Bytes(f.weights_bytes.expected)
        ),
    })
}

/// The smallest slice of the same card, or the card itself, on which one rank starts.
pub(super) fn slice(ask: &Ask<'_>, card: &str, now: u64, known: &[Known]) -> Option<Change> {
    let base = card.split_once(':').map_or(card, |(base, _)| base);
    let found = find(known, base)?;
    let launch = Launch { tp: 1, pp: 1, ..ask.line.launch.clone() };
    let mut sizes: Vec<Placed> = found
        .mig
        .iter()
        .map(|p| format!("{}:{}", found.id, p.profile))
        .chain([found.id.clone()])
        .filter_map(|name| place(known, Some(&name), None).ok())
        .collect();
    sizes.order_by_key(|p| p.gpu.total_bytes);
    let one = ask.line.launch.tp.saturating_mul(ask.line.launch.pp) > 1;
    sizes.into_iter().filter(|p| one || p.gpu.total_bytes > now).find(|p| starts(ask, &launch, &p.gpu)).map(
        |p| {
            let flags = if one { " with --tensor-parallel-size 1" } else { "" };
            Change {
                change: format!("{}{flags}", p.gpu.name),
                because: format!(
                    "the smallest profile of this GPU on which it starts, {}",
                    Bytes(p.gpu.total_bytes)
                ),
            }
        },
    )
}
