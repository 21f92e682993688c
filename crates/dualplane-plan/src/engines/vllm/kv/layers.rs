//! From a model's layers to their caches on one rank.

use super::spec::{Kind, Spec};
use crate::arith::{ceil_div, floor_div, lcm, mul, round_up};
use crate::launch::{Backend, Launch, Speculation, is_quantised, kv_heads};
use crate::model::keys::number;
use crate::model::{Attention, CompressedMla, Dtype, Family, Gqa, Mamba2, Model, Reach};
use crate::outcome::PlanError;
use dualplane_base::Version;

/// The caches of one layer: most have one, some none, sparse and compressed ones several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayerSpec {
    /// Layer of the model, counted from 0.
    pub(crate) layer: u64,
    /// Its cache.
    pub(crate) spec: Spec,
}

/// What specs depend on besides the model.
pub(crate) struct Setting<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) sm: u32,
    /// Resolved KV dtype (`auto` is the model's).
    pub(crate) kv_dtype: &'a str,
    pub(crate) dtype: Dtype,
    pub(crate) backend: Backend,
    /// Whether states are checkpointed for prefix caching.
    pub(crate) align: bool,
    /// Tokens proposed ahead.
    pub(crate) ahead: u64,
    /// Longest request, in tokens.
    pub(crate) max_model_len: u64,
}

/// The caches of a rank, with the block size that the engine settles on.
pub(crate) fn specs(model: &Model, s: &Setting<'_>) -> Result<(Vec<LayerSpec>, u64), PlanError> {
    let own = Setting { kv_dtype: "auto", ..*s };
    let s = if model.traits.cache_dtype { s } else { &own };
    let asked = s.launch.block_size.unwrap_or(s.backend.preferred);
    if asked == 0 || !asked.is_multiple_of(s.backend.grain) {
        return Err(PlanError::contradiction(
            "--block-size",
            format!("{} takes multiples of {}", s.backend.name, s.backend.grain),
        ));
    }
    let state = largest_state(model, s);
    let (block, padded) = match state {
        Some(bytes) => hybrid_block(model, s, asked, bytes),
        None => (asked, 0),
    };
    let mut out = Vec::with_capacity(model.layers.len());
    for (index, layer) in model.layers.iter().enumerate() {
        let layer_index = index as u64;
        let mut add = |spec| out.push(LayerSpec { layer: layer_index, spec });
        match layer.attention {
            Attention::None => {}
            Attention::Gqa(g) if g.shares_kv => {}
            Attention::Gqa(g) => {
                if g.convolves > 0 {
                    add(convolution(&g, model, s));
                }
                add(per_head(&g, s, block));
            }
            Attention::Mla(m) => {
                if let Some(ix) = m.indexer.filter(|i| i.own) {
                    add(indexer(ix.head_dim, block));
                }
                add(latent(m.kv_lora_rank.saturating_add(m.rope_dim), m.indexer.is_some(), s, block));
            }
            Attention::Compressed(c) => compressed(&c, block, &mut add),
            Attention::Expanded(m) => add(per_head(&m.expanded(), s, block)),
            Attention::Mamba1(_)
            | Attention::Mamba2(_)
            | Attention::ShortConv(_)
            | Attention::GatedDelta(_)
            | Attention::Kda(_) => {
                let bytes = state_bytes(&layer.attention, model, s);
                if padded > 0 && bytes > padded {
                    return Err(PlanError::contradiction(
                        "config.json: mamba_headdim",
                        format!(
                            "AssertionError: page_size_padded >= page_size ({padded} bytes from it, {bytes} in a layer)"
                        ),
                    ));
                }
                add(Spec {
                    kind: Kind::State { blocks: state_blocks(&layer.attention, model, s) },
                    // Without checkpoints one block holds the state of the whole request.
                    block: if s.align { block } else { s.max_model_len },
                    page: bytes.max(padded),
                    stride: 1,
                    shape: [bytes, 0, 0, 0],
                });
            }
        }
    }
    for extra in 0..mtp_layers(model, s) {
        let layer = (model.layers.len() as u64).saturating_add(extra);
        mtp(model, s, block, &mut |spec| out.push(LayerSpec { layer, spec }));
    }
    // A separate drafter's caches have the model's dtype and blocks, and follow its last layer.
    if let Some(drafter) = crate::drafter::counted(model, s.launch) {
        for (index, layer) in drafter.layers.iter().enumerate() {
            if let Attention::Gqa(g) = layer.attention {
                let layer = (model.layers.len() as u64).saturating_add(index as u64);
                out.push(LayerSpec { layer, spec: per_head(&g, s, block) });
            }
        }
    }
    Ok((out, block))
}

/// Layers of the checkpoint's own drafter that get a cache.
fn mtp_layers(model: &Model, s: &Setting<'_>) -> u64 {
    match &s.launch.speculative {
        Some(spec) if spec.method == Speculation::Mtp => model.mtp_layers.min(64),
        _ => 0,
    }
}

/// One layer of multi-token prediction: the model's attention that sees everything (DeepSeek-V4: only its window).
fn mtp(model: &Model, s: &Setting<'_>, block: u64, add: &mut impl FnMut(Spec)) {
    let full = model.layers.iter().rev().map(|l| l.attention).find(|a| match a {
        Attention::Gqa(g) => g.reach == Reach::Full,
        Attention::Mla(_) | Attention::Compressed(_) => true,
        _ => false,
    });
    match full {
        Some(Attention::Gqa(g)) => add(per_head(&g, s, block)),
        Some(Attention::Mla(m)) => {
            // It always selects for itself.
            if let Some(ix) = m.indexer {
                add(indexer(ix.head_dim, block));
            }
            add(latent(m.kv_lora_rank.saturating_add(m.rope_dim), m.indexer.is_some(), s, block));
        }
        Some(Attention::Compressed(c)) => compressed(&CompressedMla { ratio: 0, ..c }, block, add),
        _ => {}
    }
}

/// Bytes of one element of the cache.
fn element(s: &Setting<'_>) -> u64 {
    if is_quantised(s.kv_dtype) { 1 } else { Dtype::parse(s.kv_dtype).unwrap_or(s.dtype).bytes() }
}

/// Bytes of one token of one head with `k` and `v` elements.
fn token_bytes(k: u64, v: u64, s: &Setting<'_>) -> u64 {
    match s.kv_dtype {
        "nvfp4" => floor_div(k, 2) + floor_div(k, 16) + floor_div(v, 2) + floor_div(v, 16),
        "fp8_per_token_head" | "int8_per_token_head" => k + v + 8,
        "int4_per_token_head" => (k + v) / 2 + 8,
        _ => mul([k.saturating_add(v), element(s)]),
    }
}

fn per_head(g: &Gqa, s: &Setting<'_>, block: u64) -> Spec {
    let heads = kv_heads(g.kv_heads, s.launch.tp);
    let kind = match g.reach {
        Reach::Full => Kind::Full,
        Reach::Sliding(window) => Kind::Sliding { window },
        Reach::Chunked(chunk) => Kind::Chunked { chunk },
        Reach::Encoder => Kind::Cross,
    };
    let block = if matches!(g.reach, Reach::Sliding(_)) { block.max(s.backend.windowed) } else { block };
    let page = mul([block, heads, token_bytes(g.head_dim, g.v_head_dim, s)]);
    Spec { kind, block, page, stride: 1, shape: [heads, g.head_dim, g.v_head_dim, element(s)] }
}

/// The last inputs of a layer's short convolutions over keys, values and what attention and feed-forward give: a window as long
/// as the kernel, in blocks of that, in the model's dtype, as wide as a power of two (vLLM models/inkling/nvidia/sconv_swa_attn.py).
fn convolution(g: &Gqa, model: &Model, s: &Setting<'_>) -> Spec {
    let heads = kv_heads(g.kv_heads, s.launch.tp);
    let streams = g.head_dim.saturating_add(floor_div(model.hidden_size, g.kv_heads.max(1)));
    let width = streams.saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX);
    let element = s.dtype.bytes();
    Spec {
        kind: Kind::Sliding { window: g.convolves },
        block: g.convolves,
        page: mul([g.convolves, heads, width, element]),
        stride: 1,
        shape: [heads, width, 0, element],
    }
}

fn latent(width: u64, sparse: bool, s: &Setting<'_>, block: u64) -> Spec {
    // FlashMLA's own layout of sparse FP8: 512 bytes, four scales of 4 bytes, 64 rotated elements in 16 bits.
    let packed = sparse
        && (s.backend.name == "FLASHMLA_SPARSE" && is_quantised(s.kv_dtype)
            || s.backend.name == "FLASHINFER_MLA_SPARSE_SM120");
    let bytes = if packed {
        656
    } else if s.launch.version < Version(0, 8, 0) {
        // vLLM 0.7 padded rows to a multiple of 128 elements.
        mul([round_up(width, 128), element(s)])
    } else {
        mul([width, element(s)])
    };
    Spec { kind: Kind::Mla, block, page: mul([block, bytes]), stride: 1, shape: [1, width, 0, bytes] }
}

/// One byte an element and a 32-bit scale per 128 (vLLM models/deepseek_v2.py `Indexer`).
fn indexer(head_dim: u64, block: u64) -> Spec {
    let bytes = head_dim.saturating_add(mul([floor_div(head_dim, 128), 4]));
    Spec { kind: Kind::Mla, block, page: mul([block, bytes]), stride: 1, shape: [1, bytes, 0, 1] }
}

/// Bytes that pages of DeepSeek-V4 are rounded up to.
const V4_ALIGN: u64 = 576;
/// Bytes of one packed entry: 448 + 128 + 8.
const V4_ENTRY: u64 = 584;

/// vLLM models/deepseek_v4: a window, and where the layer compresses, entries, a state, and for 4 a selector.
fn compressed(c: &CompressedMla, block: u64, add: &mut impl FnMut(Spec)) {
    let spec = |kind, block, bytes, width| Spec {
        kind,
        block,
        page: round_up(bytes, V4_ALIGN),
        stride: 1,
        shape: [1, width, 0, 1],
    };
    add(spec(Kind::SlidingMla { window: c.window }, 64, 64 * V4_ENTRY, c.head_dim));
    if c.ratio == 0 {
        return;
    }
    let entries = |bytes, width| spec(Kind::Mla, block, bytes, width);
    // Ratio 4 overlaps its groups of tokens, so its state is twice as wide and long.
    let (overlap, state_block) = if c.ratio == 4 { (2, 4) } else { (1, 8) };
    let window = overlap * c.ratio;
    let state = |head_dim: u64| {
        let width = mul([2, overlap, head_dim]);
        spec(Kind::SlidingMla { window }, state_block, mul([state_block, width, 4]), width)
    };
    if c.ratio == 4 {
        let bytes = c.indexer.head_dim.saturating_add(mul([floor_div(c.indexer.head_dim, 128), 4]));
        add(entries(mul([floor_div(block, c.ratio), bytes]), bytes));
        add(state(c.indexer.head_dim));
    }
    add(entries(mul([floor_div(block, c.ratio), V4_ENTRY]), mul([c.head_dim, c.ratio])));
    add(state(c.head_dim));
}

/// Bytes of a layer's state on one rank, 0 where it has none (vLLM layers/mamba/mamba_utils.py).
fn state_bytes(attention: &Attention, model: &Model, s: &Setting<'_>) -> u64 {
    let tp = s.launch.tp;
    let conv_bytes = s.dtype.bytes();
    let (conv, width, state, default) = match *attention {
        Attention::Mamba1(m) => (m.inner, m.conv, mul([floor_div(m.inner, tp), m.state]), s.dtype),
        Attention::ShortConv(c) => (c.width, c.conv, 0, s.dtype),
        Attention::Mamba2(m) => {
            // Groups are copied where there are more ranks than groups.
            let groups = if tp == 0 || m.groups.is_multiple_of(tp) { m.groups } else { tp.max(m.groups) };
            let conv = m.inner.saturating_add(mul([2, groups, m.state]));
            // vLLM models/config.py: only Nemotron-H asks for 32 bits by itself.
            let default = if model.family == Family::NemotronH { Dtype::Float32 } else { s.dtype };
            (conv, m.conv, mul([floor_div(m.heads, tp), m.head_dim, m.state]), default)
        }
        Attention::GatedDelta(g) => {
            let conv = mul([2, g.k_heads, g.k_dim]).saturating_add(mul([g.v_heads, g.v_dim]));
            (conv, g.conv, mul([floor_div(g.v_heads, tp), g.v_dim, g.k_dim]), s.dtype)
        }
        Attention::Kda(k) => {
            let conv = mul([3, k.heads, k.head_dim]);
            (conv, k.conv, mul([floor_div(k.heads, tp), k.head_dim, k.head_dim]), Dtype::Float32)
        }
        _ => return 0,
    };
    let declared = ["mamba_ssm_cache_dtype", "mamba_ssm_dtype"]
        .iter()
        .find_map(|k| model.text.get(k).and_then(serde_json::Value::as_str))
        .and_then(Dtype::parse);
    let asked = s.launch.mamba_ssm_cache_dtype.as_deref().filter(|d| *d != "auto").and_then(Dtype::parse);
    let state_dtype = match attention {
        Attention::Kda(_) => Dtype::Float32,
        _ => asked.or(declared).unwrap_or(default),
    };
    let conv_tokens = width.saturating_sub(1).saturating_add(s.ahead);
    mul([floor_div(conv, tp), conv_tokens, conv_bytes]).saturating_add(mul([state, state_dtype.bytes()]))
}

/// The largest state as the block is made for it: by the config's width of a head, also where the layers have another.
fn largest_state(model: &Model, s: &Setting<'_>) -> Option<u64> {
    let told = model.text.get("mamba_headdim").and_then(number).filter(|_| model.family == Family::Zamba);
    let as_told = |a| match (a, told) {
        (Attention::Mamba2(m), Some(head_dim)) => Attention::Mamba2(Mamba2 { head_dim, ..m }),
        _ => a,
    };
    model.layers.iter().map(|l| state_bytes(&as_told(l.attention), model, s)).max().filter(|b| *b > 0)
}

/// Tokens between the checkpoints that a kernel can export while it prefills; `None`: it cannot.
///
/// Source: vLLM 0.33.0 mamba_mixer2.py, gdn/qwen_gdn_linear_attn.py, mamba/kda_checkpoint.py.
fn checkpoint(attention: &Attention, model: &Model, s: &Setting<'_>) -> Option<u64> {
    match attention {
        _ if !model.traits.checkpoints => None,
        // Releases read: 0.30.0, 0.32.0, 0.33.0.
        Attention::Mamba2(_) => (s.launch.version >= Version(0, 32, 0)).then_some(1),
        _ if s.launch.version < Version(0, 33, 0) => None,
        Attention::GatedDelta(g) => match s.sm / 10 {
            9 => Some(64),
            10 | 12 if g.k_dim == 128 => Some(64),
            _ => None,
        },
        Attention::Kda(k) => (s.sm >= 90 && k.head_dim == 128 && k.bounded).then_some(16),
        _ => None,
    }
}

fn state_blocks(attention: &Attention, model: &Model, s: &Setting<'_>) -> u64 {
    if s.align { 2 + s.ahead + u64::from(checkpoint(attention, model, s).is_some()) } else { 1 + s.ahead }
}

/// vLLM platforms/interface.py `_align_hybrid_block_size`: the block whose attention page holds a state.
fn hybrid_block(model: &Model, s: &Setting<'_>, asked: u64, state: u64) -> (u64, u64) {
    let mla = model.layers.iter().find_map(|l| match l.attention {
        Attention::Mla(m) => Some(m.kv_lora_rank.saturating_add(m.rope_dim)),
        _ => None,
    });
    let per_head = model.layers.iter().find_map(|l| match l.attention {
        Attention::Gqa(g) => {
            // Blocks are aligned by the config's number, also where the layers have another.
            let heads = if model.family == Family::Zamba { model.kv_heads } else { g.kv_heads };
            Some(mul([kv_heads(heads, s.launch.tp), token_bytes(g.head_dim, g.v_head_dim, s)]))
        }
        _ => None,
    });
    let token = mla.map(|width| mul([width, element(s)])).or(per_head).unwrap_or(0);
    if token == 0 {
        return (asked, 0);
    }
    let mut grain = s.backend.grain.max(asked);
    if mla.is_some() {
        grain = grain.max(128);
    }
    if s.align {
        let states: Option<u64> = model
            .layers
            .iter()
            .filter(|l| state_bytes(&l.attention, model, s) > 0)
            .try_fold(1, |all, l| Some(lcm(all, checkpoint(&l.attention, model, s)?)));
        grain = lcm(grain, states.unwrap_or(1));
    }
    let block = mul([grain, ceil_div(state, mul([grain, token]))]);
    let block = round_up(block, s.backend.grain).max(asked);
    (block, mul([block, token]))
}
