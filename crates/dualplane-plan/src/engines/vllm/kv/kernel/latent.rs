//! Latent attention, which caches one row for all heads, whole or as far as an indexer selects (sparse).
//!
//! Source: vLLM 0.33.0 platforms/cuda.py `_get_backend_priorities`, and of each backend in v1/attention/backends/mla what its
//! `supported_...` lists and `supports_combination` say. `testdata/plan/kernels/latent.jsonl` holds what they answer for
//! cards, widths and caches.

use super::{in_16_bits, plain};
use crate::model::{Dtype, Mla};
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
    pub(in super::super) layer: Mla,
    /// Heads of one rank.
    pub(in super::super) heads: u64,
    /// `--block-size`.
    pub(in super::super) block: Option<u64>,
    /// `--attention-backend`.
    pub(in super::super) only: Option<&'static Kernel>,
}

impl Ask<'_> {
    /// Elements of a row of the cache.
    pub(in super::super) fn width(&self) -> u64 {
        self.layer.kv_lora_rank.saturating_add(self.layer.rope_dim)
    }

    /// Of DeepSeek's models, but for those of 320.
    fn usual(&self) -> bool {
        matches!(self.width(), 512 | 576)
    }

    /// Plain, or 8 bits with a wide fraction.
    fn is_plain_or_8_bits(&self) -> bool {
        plain(self.cache) || matches!(self.cache, "fp8" | "fp8_e4m3")
    }
}

/// A kernel.
#[derive(Debug)]
pub(in super::super) struct Kernel {
    pub(in super::super) name: &'static str,
    /// Tokens of the block that it prefers; it takes multiples.
    pub(in super::super) block: u64,
    takes: fn(&Ask<'_>) -> bool,
}

impl Kernel {
    fn takes(&self, ask: &Ask<'_>) -> bool {
        (self.takes)(ask) && ask.block.is_none_or(|n| n.is_multiple_of(self.block))
    }
}

const FLASH_ATTN: Kernel = Kernel {
    name: "FLASH_ATTN_MLA",
    block: 16,
    takes: |ask| ask.sm / 10 == 9 && ask.version >= Version(0, 20, 0) && common(ask) && plain(ask.cache),
};
const FLASHMLA: Kernel = Kernel {
    name: "FLASHMLA",
    block: 64,
    takes: |ask| ask.sm / 10 == 9 && common(ask) && ask.is_plain_or_8_bits(),
};
const FLASHINFER: Kernel = Kernel {
    name: "FLASHINFER_MLA",
    block: 32,
    takes: |ask| {
        ask.sm / 10 == 10
            && ask.version >= Version(0, 20, 0)
            && common(ask)
            && ask.is_plain_or_8_bits()
            && matches!(ask.layer.nope_dim, 64 | 128 | 192)
    },
};
/// Made for the one shape of DeepSeek R1.
const TOKENSPEED: Kernel = Kernel {
    name: "TOKENSPEED_MLA",
    block: 32,
    takes: |ask| {
        ask.sm / 10 == 10
            && common(ask)
            && matches!(ask.cache, "fp8" | "fp8_e4m3")
            && (ask.layer.nope_dim, ask.layer.rope_dim, ask.layer.v_dim) == (128, 64, 128)
    },
};
const CUTLASS: Kernel = Kernel {
    name: "CUTLASS_MLA",
    block: 128,
    takes: |ask| ask.sm / 10 == 10 && common(ask) && ask.is_plain_or_8_bits(),
};
const TRITON: Kernel =
    Kernel { name: "TRITON_MLA", block: 16, takes: |ask| in_16_bits(ask.dtype) && ask.is_plain_or_8_bits() };

const FLASH_ATTN_SPARSE: Kernel = Kernel {
    name: "FLASH_ATTN_MLA_SPARSE",
    block: 64,
    takes: |ask| ask.sm / 10 == 9 && in_16_bits(ask.dtype) && plain(ask.cache),
};
/// The fourth FlashAttention gathers in tiles of 128 rows.
const FLASH_ATTN_4_SPARSE: Kernel = Kernel {
    name: "FLASH_ATTN_MLA_SPARSE_FA4",
    block: 64,
    takes: |ask| {
        infer_sparse(ask)
            && ask.dtype == Dtype::Bfloat16
            && matches!(ask.cache, "auto" | "bfloat16")
            && (ask.layer.kv_lora_rank, ask.layer.rope_dim) == (512, 64)
            && ask.layer.indexer.is_some_and(|i| i.top_k.is_multiple_of(128))
            && matches!(ask.heads, 8 | 16 | 32 | 64 | 128)
    },
};
/// The 576 bytes of an entry are laid out for one width; the 8-bit layout has a name of its own.
const FLASHMLA_SPARSE: Kernel = Kernel {
    name: "FLASHMLA_SPARSE",
    block: 64,
    takes: |ask| {
        let (sm, rope) = (ask.sm / 10, ask.layer.rope_dim);
        let cache = matches!(ask.cache, "auto" | "bfloat16" | "fp8_ds_mla");
        let width = match ask.width() {
            576 => cache || ask.cache == "fp8",
            512 => cache && sm == 9 && rope == 0,
            _ => false,
        };
        matches!(sm, 9 | 10) && ask.dtype == Dtype::Bfloat16 && width
    },
};
const FLASHINFER_SPARSE: Kernel = Kernel { name: "FLASHINFER_MLA_SPARSE", block: 32, takes: infer_sparse };
const FLASHINFER_SPARSE_SM90: Kernel = Kernel {
    name: "FLASHINFER_MLA_SPARSE_SM90",
    block: 64,
    takes: |ask| {
        ask.sm / 10 == 9
            && ask.dtype == Dtype::Bfloat16
            && matches!(ask.cache, "auto" | "bfloat16" | "fp8" | "fp8_e4m3")
            && ask.layer.kv_lora_rank == 512
            && matches!(ask.layer.rope_dim, 0 | 64)
    },
};
const FLASHINFER_SPARSE_SM120: Kernel = Kernel {
    name: "FLASHINFER_MLA_SPARSE_SM120",
    block: 64,
    takes: |ask| {
        ask.sm / 10 == 12
            && ask.dtype == Dtype::Bfloat16
            && matches!(ask.cache, "auto" | "fp8" | "fp8_e4m3" | "fp8_ds_mla")
            && ask.usual()
            && ask.layer.indexer.is_some_and(|i| i.top_k == 2048)
    },
};

/// Whole rows, in vLLM's order on all cards.
const WHOLE: &[&Kernel] = &[&FLASHINFER, &TOKENSPEED, &CUTLASS, &FLASH_ATTN, &FLASHMLA, &TRITON];

/// The kernel of this name.
pub(in super::super) fn named(name: &str) -> Option<&'static Kernel> {
    const SPARSE: &[&Kernel] = &[
        &FLASH_ATTN_SPARSE,
        &FLASH_ATTN_4_SPARSE,
        &FLASHMLA_SPARSE,
        &FLASHINFER_SPARSE,
        &FLASHINFER_SPARSE_SM90,
        &FLASHINFER_SPARSE_SM120,
    ];
    WHOLE.iter().chain(SPARSE).copied().find(|k| k.name == name)
}

/// The kernel of such a layer: the one that is asked for, or the first that takes it.
pub(in super::super) fn of(ask: &Ask<'_>) -> Option<&'static Kernel> {
    let Some(only) = ask.only else { return order(ask).iter().copied().find(|k| k.takes(ask)) };
    let whole = WHOLE.iter().any(|k| k.name == only.name);
    (whole == ask.layer.indexer.is_none() && only.takes(ask)).then_some(only)
}

/// The order in which vLLM asks.
fn order(ask: &Ask<'_>) -> &'static [&'static Kernel] {
    match ask.sm / 10 {
        _ if ask.layer.indexer.is_none() => WHOLE,
        // FlashMLA pads few heads.
        10 if plain(ask.cache) && ask.heads > 16 => &[&FLASHMLA_SPARSE, &FLASHINFER_SPARSE],
        10 if plain(ask.cache) => &[&FLASH_ATTN_4_SPARSE, &FLASHINFER_SPARSE, &FLASHMLA_SPARSE],
        10 => &[&FLASHINFER_SPARSE, &FLASHMLA_SPARSE],
        9 if ask.width() == 512 => &[&FLASHINFER_SPARSE_SM90, &FLASH_ATTN_SPARSE, &FLASHMLA_SPARSE],
        9 => &[&FLASH_ATTN_SPARSE, &FLASHMLA_SPARSE, &FLASHINFER_SPARSE_SM90],
        _ => &[&FLASHINFER_SPARSE_SM120],
    }
}

/// What `MLACommonBackend` takes.
fn common(ask: &Ask<'_>) -> bool {
    in_16_bits(ask.dtype) && (ask.usual() || ask.width() == 320)
}

fn infer_sparse(ask: &Ask<'_>) -> bool {
    let shape = match ask.layer.rope_dim {
        0 => ask.layer.nope_dim == 256 && ask.layer.kv_lora_rank == 512,
        _ => matches!(ask.layer.nope_dim, 128 | 192),
    };
    ask.sm / 10 == 10 && in_16_bits(ask.dtype) && ask.is_plain_or_8_bits() && ask.usual() && shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Indexer;
    use serde_json::Value;

    /// What vLLM's own selector answers.
    const ANSWERS: &str = include_str!("../../../../../../../testdata/plan/kernels/latent.jsonl");

    /// Each choice of one of each list.
    fn product(row: &Value, keys: &[&str]) -> Vec<Vec<Value>> {
        let Some((first, rest)) = keys.split_first() else { return vec![Vec::new()] };
        let rest = product(row, rest);
        let of = |v: &Value| {
            rest.iter().map(|r| [std::slice::from_ref(v), r.as_slice()].concat()).collect::<Vec<_>>()
        };
        row[first].as_array().unwrap().iter().flat_map(of).collect()
    }

    #[test]
    fn each_card_width_and_cache_gets_the_kernels_of_the_engine_s_own_selector() {
        let keys = ["sm", "top_k", "lora", "rope", "nope", "heads", "cache", "dtype", "block"];
        let (mut asked, mut wrong) = (0, Vec::new());
        for row in ANSWERS.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
            for one in product(&row, &keys) {
                let [sm, top_k, lora, rope, nope, heads, cache, dtype, block] = one.as_slice() else {
                    unreachable!()
                };
                let number = |v: &Value| v.as_u64().unwrap();
                let indexer =
                    top_k.as_u64().map(|top_k| Indexer { heads: 64, head_dim: 128, top_k, own: true });
                let layer = Mla {
                    heads: number(heads),
                    q_lora_rank: 1536,
                    kv_lora_rank: number(lora),
                    nope_dim: number(nope),
                    rope_dim: number(rope),
                    v_dim: 128,
                    indexer,
                    output_gate: false,
                };
                let ask = Ask {
                    sm: u32::try_from(number(sm)).unwrap(),
                    version: Version(0, 33, 0),
                    dtype: Dtype::parse(dtype.as_str().unwrap()).unwrap(),
                    cache: cache.as_str().unwrap(),
                    layer,
                    heads: number(heads),
                    block: block.as_u64(),
                    only: None,
                };
                let takes = |k: &&&'static Kernel| of(&Ask { only: Some(**k), ..ask }).is_some();
                let all: Vec<&str> = order(&ask).iter().filter(takes).map(|k| k.name).collect();
                let first = of(&ask);
                let block = first.filter(|_| ask.block.is_none()).map_or(0, |k| k.block);
                let names: Vec<&str> =
                    row["kernels"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
                asked += 1;
                if all != names
                    || first.map(|k| k.name) != names.first().copied()
                    || block != number(&row["prefers"])
                {
                    wrong.push(format!(
                        "{ask:?}: {all:?} with {block}, not {names:?} with {}",
                        row["prefers"]
                    ));
                }
            }
        }
        let some = wrong.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} of {asked}, such as\n{some}", wrong.len());
        assert!(asked > 50_000, "{asked}");
    }
}
