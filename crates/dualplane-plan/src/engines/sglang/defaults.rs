//! What SGLang makes of flags that were left open: prompt chunks, graph sizes, and the static share of the memory.
//!
//! Sources: server_args.py of 0.4.6, 0.4.9, 0.5.2, 0.5.5, 0.5.9 and 0.5.16, arg_groups/memory_hook.py of 0.5.23. Releases
//! between them are taken to follow the older neighbour.

use super::images;
use crate::launch::{Launch, Speculation};
use crate::model::{Attention, Model};
use crate::quantity::Quantity;
use dualplane_base::Version;
use dualplane_base::units::MIB;

/// Releases whose source was read.
pub(crate) const READ: [Version; 7] = [
    Version(0, 4, 6),
    Version(0, 4, 9),
    Version(0, 5, 2),
    Version(0, 5, 5),
    Version(0, 5, 9),
    Version(0, 5, 16),
    Version(0, 5, 23),
];

/// The static share and what it follows from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Static {
    /// Share of what was free before the weights were loaded: least, expected, most.
    pub(crate) low: f64,
    pub(crate) expected: f64,
    pub(crate) high: f64,
    pub(crate) formula: String,
}

impl Static {
    fn exact(share: f64, formula: String) -> Self {
        Self { low: share, expected: share, high: share, formula }
    }
}

/// Tokens of a prompt that one step takes; `None`: prompts are not cut.
pub(crate) fn chunk(launch: &Launch, mib: u64) -> Option<u64> {
    if launch.sglang.whole_prompts {
        return None;
    }
    let small = if launch.version >= Version(0, 5, 23) { 4096 } else { 2048 };
    let middle = if launch.version >= Version(0, 5, 5) { 4096 } else { 8192 };
    let default = match mib / 1024 {
        _ if launch.version < Version(0, 4, 9) => {
            if mib < 25_000 {
                2048
            } else {
                8192
            }
        }
        0..20 => 2048,
        20..35 => small,
        35..60 => middle,
        60..160 => 8192,
        _ => 16_384,
    };
    Some(launch.max_num_batched_tokens.unwrap_or(default))
}

/// The same where attention is shared by data: each group takes its part.
pub(crate) fn chunk_of_group(launch: &Launch, mib: u64) -> Option<u64> {
    let groups = if launch.sglang.dp_attention { launch.dp.max(1) } else { 1 };
    chunk(launch, mib).map(|n| n / groups)
}

/// Largest batch whose decoding step is captured.
pub(crate) fn graph_batch(launch: &Launch, mib: u64) -> u64 {
    let few = launch.tp < 4;
    let newer = launch.version >= Version(0, 5, 23);
    let default = match (mib / 1024, few) {
        (0..20, _) => 8,
        (20..35, true) if newer => 48,
        (20..35, true) => 24,
        (20..35, false) if newer => 160,
        (20..35, false) => 80,
        (35..60, true) => 32,
        (35..60, false) => 160,
        (60..160, true) => 256,
        _ => 512,
    };
    let capped = launch.max_num_seqs.filter(|_| newer).map_or(default, |most| default.min(most));
    let sizes = launch.cuda_graphs.sizes.as_ref().and_then(|s| s.iter().copied().max());
    sizes.or(launch.cuda_graphs.max_size).unwrap_or(capped)
}

/// Sizes of prompts that are captured, up to `most` tokens.
fn prompt_sizes(most: u64) -> u64 {
    let steps = [(4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1024, 64), (1280, 4096, 256)];
    let fixed: u64 = steps
        .iter()
        .map(|(from, to, step)| if most < *from { 0 } else { (most.min(*to) - from) / step + 1 })
        .sum();
    fixed + if most < 4608 { 0 } else { (most - 4608) / 512 + 1 }
}

/// The static share of the memory: as given, or by the rule of the release.
pub(crate) fn share(model: &Model, launch: &Launch, mib: Quantity) -> Static {
    if let Some(given) = launch.gpu_memory_utilization {
        return Static::exact(given, format!("--mem-fraction-static {given}"));
    }
    if launch.version < Version(0, 4, 9) {
        return by_ranks(launch, mib.expected);
    }
    // The size that nvidia-smi prints is above the one that CUDA reports, by card and driver.
    let of = |mib: u64, prompts: bool| {
        let reserved = reserved(model, launch, mib, prompts);
        let share = ((mib as f64 - reserved) / mib as f64 * 1000.0).round_ties_even() / 1000.0;
        (share * images::factor(model, launch), reserved)
    };
    let (expected, reserved) = of(mib.expected, true);
    Static {
        low: of(mib.low, true).0,
        expected,
        // Before 0.5.23 whether prompts are captured depends on more than is followed here.
        high: of(mib.high, images::prompts_are_captured(model, launch).is_some()).0,
        formula: format!("({} - {reserved:.0}) / {} MiB", mib.expected, mib.expected),
    }
}

/// 0.4.8 and before.
fn by_ranks(launch: &Launch, mib: u64) -> Static {
    if mib > 81_920 {
        let share = (mib as f64 - 13.0 * 1024.0) / mib as f64;
        return Static::exact(share, format!("({mib} - 13312) / {mib} MiB"));
    }
    let share = match launch.tp {
        16.. => 0.79,
        8.. => 0.81,
        4.. => 0.85,
        2.. => 0.87,
        _ => 0.88,
    };
    Static::exact(share, format!("{share} for {} ranks", launch.tp))
}

/// MiB that are kept for activations, graphs and the rest.
fn reserved(model: &Model, launch: &Launch, mib: u64, prompts: bool) -> f64 {
    let ranks = launch.tp.saturating_mul(launch.pp) as f64;
    if launch.version < Version(0, 5, 5) {
        return reserved_by_size(launch, mib, ranks);
    }
    let f = &launch.sglang;
    let decode_only = f.disaggregation.as_deref() == Some("decode");
    let prefill_only = f.disaggregation.as_deref() == Some("prefill");
    let newer = launch.version >= Version(0, 5, 16);
    let batch = graph_batch(launch, mib);
    let tokens = if newer && decode_only {
        let ahead = launch.speculative.as_ref().map_or(1, |s| s.num_tokens.saturating_add(1));
        launch.max_num_seqs.unwrap_or(batch).saturating_mul(ahead)
    } else {
        chunk(launch, mib).unwrap_or(f.max_prefill_tokens.unwrap_or(16_384))
    };
    let mut sum = 512.0 + 1.5 * tokens.max(2048) as f64 + ranks / 8.0 * 1024.0;
    let no_decode = newer && (f.no_decode_graphs || launch.enforce_eager || prefill_only);
    if !no_decode {
        sum += 2.0 * batch as f64;
    }
    if f.dp_attention && !(newer && prefill_only) {
        let each = if batch > 300 { 4.5 } else { 3.0 };
        sum += each * batch as f64 * launch.dp as f64;
    }
    let captured = prompts && images::prompts_are_captured(model, launch) != Some(false);
    if newer && captured && !decode_only && !f.no_prefill_graphs && !launch.enforce_eager {
        sum += prompt_graphs(model, launch, mib) + if f.deepep { 1024.0 } else { 0.0 };
    }
    if mib > 60 * 1024 {
        sum = sum.max(10_240.0);
    }
    if newer {
        return sum + if f.deepep && !no_decode { 2048.0 } else { 0.0 };
    }
    sum + match launch.speculative.as_ref().map(|s| s.method) {
        Some(Speculation::DraftModel) => 6144.0,
        Some(Speculation::Ngram) | None => 0.0,
        Some(_) => 2048.0,
    }
}

fn prompt_graphs(model: &Model, launch: &Launch, mib: u64) -> f64 {
    if model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(_))) {
        return 1536.0;
    }
    let most = chunk(launch, mib).unwrap_or(0);
    let most = launch.sglang.max_total_tokens.map_or(most, |t| most.min(t));
    8.0 * prompt_sizes(most) as f64
}

/// 0.4.9 to 0.5.4.
fn reserved_by_size(launch: &Launch, mib: u64, ranks: f64) -> f64 {
    let gib = match mib / 1024 {
        0..35 => 2.8 + ranks / 10.0,
        35..90 => 9.5 + ranks / 2.0,
        90..160 => 12.0 + ranks / 2.0,
        _ => 32.0,
    };
    let drafter = match launch.speculative.as_ref().map(|s| s.method) {
        Some(Speculation::DraftModel) if launch.version >= Version(0, 5, 2) => 6.0,
        Some(_) => 2.0,
        None => 0.0,
    };
    (gib + drafter + if launch.sglang.dp_attention { 4.0 } else { 0.0 }) * 1024.0
}

/// MiB as nvidia-smi prints them: 0.4 to 0.8 GiB more than CUDA reports (H100 81,559 for 79.19 GiB, A100 81,920 for
/// 79.25, L4 23,034 for 22.03, RTX 4090 24,564 for 23.55, H200 143,771 for 139.80).
pub(crate) fn driver_mib(total_bytes: u64) -> Quantity {
    let cuda = total_bytes / MIB;
    Quantity {
        low: cuda.saturating_add(400),
        expected: cuda.saturating_add(500),
        high: cuda.saturating_add(800),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::sglang::tests::{QWEN3_8B, model};

    #[test]
    fn sizes_of_captured_prompts() {
        assert_eq!((prompt_sizes(4096), prompt_sizes(8192), prompt_sizes(3)), (50, 58, 0));
    }

    #[test]
    fn the_share_follows_the_release() {
        let m = model(QWEN3_8B);
        let of = |version, mib, tp| {
            let launch = Launch { version, tp, ..Launch::default() };
            share(&m, &launch, Quantity::exact(mib)).expected
        };
        // 512 + 12,288 + 128 + 512 + 464 = 13,904 of 81,920.
        assert_eq!(of(Version(0, 5, 23), 81_920, 1), 0.83);
        assert_eq!(of(Version(0, 5, 9), 81_920, 1), 0.836);
        assert_eq!(of(Version(0, 5, 2), 81_920, 1), 0.875);
        assert_eq!(of(Version(0, 4, 6), 24_564, 4), 0.85);
        assert_eq!(of(Version(0, 5, 23), 23_034, 1), 0.684);
    }
}
