//! Attention with keys and values for each head: what each kernel takes, and in which order vLLM asks them.
//!
//! Source: vLLM 0.33.0 platforms/cuda.py `_get_backend_priorities`, and of each backend in v1/attention/backends what its
//! `supports_...` functions say. `testdata/plan/kernels/heads.jsonl` holds what they answer for cards, heads and caches.

use super::{in_16_bits, plain};
use crate::launch::is_quantised;
use crate::model::Dtype;
use dualplane_base::Version;

/// What a layer wants of its kernel.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Ask<'a> {
    /// Compute capability, times ten.
    pub(in super::super) sm: u32,
    pub(in super::super) version: Version,
    /// Type of what the layer computes.
    pub(in super::super) dtype: Dtype,
    /// `--kv-cache-dtype`; `auto` is the layer's own.
    pub(in super::super) cache: &'a str,
    /// Elements of a head.
    pub(in super::super) width: u64,
    /// A learned sink for each head.
    pub(in super::super) sinks: bool,
    /// Attends to what an encoder made.
    pub(in super::super) crosses: bool,
    /// Tokens of one picture see each other in both directions.
    pub(in super::super) both_ways: bool,
    /// Writes blocks of tokens at once, which see each other in both directions (`use_non_causal`).
    pub(in super::super) non_causal: bool,
    /// `--block-size`.
    pub(in super::super) block: Option<u64>,
    /// `--attention-backend`; or the model's class asks for no other.
    pub(in super::super) only: Option<&'static Kernel>,
}

/// A kernel.
#[derive(Debug)]
pub(in super::super) struct Kernel {
    pub(in super::super) name: &'static str,
    takes: fn(&Ask<'_>) -> bool,
    /// Tokens of the block that it prefers; it takes multiples.
    block: fn(&Ask<'_>) -> u64,
}

impl Kernel {
    /// Tokens of the block that it prefers for such a layer; it takes multiples.
    pub(in super::super) fn block(&self, ask: &Ask<'_>) -> u64 {
        (self.block)(ask)
    }

    fn takes(&self, ask: &Ask<'_>) -> bool {
        (self.takes)(ask) && ask.block.is_none_or(|n| n.is_multiple_of(self.block(ask)))
    }
}

const FLASH: Kernel = Kernel { name: "FLASH_ATTN", takes: flash, block: flash_block };
const INFER: Kernel = Kernel { name: "FLASHINFER", takes: infer, block: |_| 16 };
const TRITON: Kernel = Kernel { name: "TRITON_ATTN", takes: triton, block: |_| 16 };
const FLEX: Kernel = Kernel { name: "FLEX_ATTENTION", takes: flex, block: |_| 16 };
/// Pictures go to Triton, all else to the other.
const TRITON_FLASH: Kernel = Kernel {
    name: "TRITON_FLASH_ATTN",
    takes: |ask| ask.sm / 10 == 9 && composed(ask) && flash(&Ask { both_ways: false, ..*ask }),
    block: flash_block,
};
const TRITON_INFER: Kernel = Kernel {
    name: "TRITON_FLASHINFER",
    takes: |ask| ask.sm / 10 == 10 && composed(ask) && infer(&Ask { both_ways: false, ..*ask }),
    block: |_| 64,
};

pub(in super::super) const TRITON_ATTN: &Kernel = &TRITON;

/// The kernel of this name.
pub(in super::super) fn named(name: &str) -> Option<&'static Kernel> {
    const ALL: &[&Kernel] = &[&FLASH, &INFER, &TRITON, &FLEX, &TRITON_FLASH, &TRITON_INFER];
    ALL.iter().copied().find(|k| k.name == name)
}

/// The kernel of such a layer: the one that is asked for, or the first that takes it.
pub(in super::super) fn of(ask: &Ask<'_>) -> Option<&'static Kernel> {
    match ask.only {
        Some(only) => only.takes(ask).then_some(only),
        None => order(ask).iter().copied().find(|k| k.takes(ask)),
    }
}

/// The order in which vLLM asks.
fn order(ask: &Ask<'_>) -> &'static [&'static Kernel] {
    match ask.sm / 10 {
        9 if ask.both_ways => &[&TRITON_FLASH, &FLASH, &INFER, &TRITON, &FLEX],
        10 if ask.both_ways && !ask.non_causal => &[&TRITON_INFER, &INFER, &FLASH, &TRITON, &FLEX],
        10 if !ask.non_causal => &[&INFER, &FLASH, &TRITON, &FLEX],
        _ => &[&FLASH, &INFER, &TRITON, &FLEX],
    }
}

/// FlashAttention is of three generations, and which of them serves a layer decides what it takes (`get_flash_attn_version`).
fn generation(ask: &Ask<'_>) -> u32 {
    match ask.sm / 10 {
        9 if ask.width > 256 || ask.non_causal => 4,
        9 => 3,
        // The kernel for heads of 256 knows none of these, and no wider head has room on the chip.
        10 if ask.width == 256 && (ask.sinks || ask.both_ways || is_quantised(ask.cache)) => 2,
        10 if ask.width <= 128 || ask.width == 256 => 4,
        _ => 2,
    }
}

fn flash(ask: &Ask<'_>) -> bool {
    let fourth = matches!(ask.sm / 10, 9 | 10);
    let generation = generation(ask);
    let cache = match ask.cache {
        cache if plain(cache) => true,
        "fp8" | "fp8_e4m3" => match ask.sm / 10 {
            9 => !ask.both_ways && (generation == 3 || ask.width == 512),
            10 => generation == 4,
            _ => false,
        },
        _ => false,
    };
    ask.sm >= 80
        && in_16_bits(ask.dtype)
        && ask.width.is_multiple_of(8)
        && (ask.width <= 256 || fourth && ask.width <= 512)
        && cache
        && (!ask.sinks || fourth)
        && (!ask.both_ways || generation == 4)
}

/// The fourth generation reads 8-bit pages of heads of 512 in tiles of 64 tokens, and heads of 256 on Blackwell in pages of 128;
/// sinks are not asked about here.
fn flash_block(ask: &Ask<'_>) -> u64 {
    match ask.sm / 10 {
        9 if ask.width == 512 && is_quantised(ask.cache) => 64,
        10 if ask.width == 256 && generation(&Ask { sinks: false, ..*ask }) == 4 => 128,
        _ => 16,
    }
}

fn infer(ask: &Ask<'_>) -> bool {
    // It is broken on Turing and not taken there since 0.32.0.
    let oldest = if ask.version >= Version(0, 32, 0) { 80 } else { 75 };
    let cache = match ask.cache {
        cache if plain(cache) => true,
        "fp8" | "fp8_e4m3" | "fp8_e5m2" => true,
        // Elsewhere it has no kernel for prompts that reads these heads or sinks.
        "nvfp4" => ask.sm / 10 == 10 || ask.width != 64 && !ask.sinks,
        _ => false,
    };
    ask.sm >= oldest
        && in_16_bits(ask.dtype)
        && matches!(ask.width, 64 | 128 | 256 | 512)
        && cache
        && (!ask.sinks || ask.sm >= 90)
        && !ask.crosses
        && !ask.both_ways
}

fn triton(ask: &Ask<'_>) -> bool {
    let cache = match ask.cache {
        cache if plain(cache) => true,
        "fp8" | "fp8_e4m3" | "fp8_e5m2" => true,
        cache => cache.ends_with("_per_token_head"),
    };
    ask.width >= 32 && cache
}

fn flex(ask: &Ask<'_>) -> bool {
    plain(ask.cache) && !ask.sinks && !ask.crosses
}

fn composed(ask: &Ask<'_>) -> bool {
    matches!(ask.width, 256 | 512) && !ask.sinks && !ask.crosses && !ask.non_causal && triton(ask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// What vLLM's own selector answers.
    const ANSWERS: &str = include_str!("../../../../../../../testdata/plan/kernels/heads.jsonl");

    fn numbers(of: &Value) -> Vec<u64> {
        of.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
    }

    fn texts(of: &Value) -> Vec<&str> {
        of.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect()
    }

    #[test]
    fn each_card_head_and_cache_gets_the_kernels_of_the_engine_s_own_selector() {
        let (mut asked, mut wrong) = (0, Vec::new());
        for row in ANSWERS.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
            let is = |key: &str| row[key].as_bool().unwrap();
            for (sm, cache) in numbers(&row["sm"])
                .into_iter()
                .flat_map(|sm| texts(&row["cache"]).into_iter().map(move |c| (sm, c)))
            {
                for kernels in row["kernels"].as_array().unwrap() {
                    let names = texts(&kernels[0]);
                    for width in numbers(&kernels[2]) {
                        let ask = Ask {
                            sm: u32::try_from(sm).unwrap(),
                            version: Version(0, 33, 0),
                            dtype: Dtype::parse(row["dtype"].as_str().unwrap()).unwrap(),
                            cache,
                            width,
                            sinks: is("sinks"),
                            crosses: is("crosses"),
                            both_ways: is("both_ways"),
                            non_causal: false,
                            block: row["block"].as_u64(),
                            only: None,
                        };
                        let takes = |k: &&&'static Kernel| of(&Ask { only: Some(**k), ..ask }).is_some();
                        let all: Vec<&str> = order(&ask).iter().filter(takes).map(|k| k.name).collect();
                        let first = of(&ask);
                        let block = first.filter(|_| ask.block.is_none()).map_or(0, |k| k.block(&ask));
                        asked += 1;
                        if all != names
                            || first.map(|k| k.name) != names.first().copied()
                            || block != kernels[1].as_u64().unwrap()
                        {
                            wrong.push(format!("{ask:?}: {all:?} with {block}, not {kernels}"));
                        }
                    }
                }
            }
        }
        let some = wrong.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} of {asked}, such as\n{some}", wrong.len());
        assert!(asked > 60_000, "{asked}");
    }
}
