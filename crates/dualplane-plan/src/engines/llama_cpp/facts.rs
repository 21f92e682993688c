//! What memory depends on, of a model that llama.cpp serves: its tensors, and what each layer caches.

use super::gguf::{Gguf, Tensor, Value};
use super::recipe;
use crate::arith::mul;
use crate::model::{Attention, Family, FeedForward, Model, Reach};
use crate::outcome::PlanError;
use crate::quantity::Unknown;

/// No model has more layers.
const MAX_LAYERS: u64 = 4096;

/// What one layer caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cached {
    /// Elements of a key row; 0: no keys.
    pub(super) k: u64,
    /// Elements of a value row; 0: none (latent attention keeps keys only).
    pub(super) v: u64,
    /// Looks back over a window only.
    pub(super) window: bool,
    /// Elements of a recurrent state, kept as 32-bit numbers for each sequence.
    pub(super) state: u64,
}

/// A model's facts.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) architecture: String,
    pub(super) hidden: u64,
    pub(super) vocab: u64,
    pub(super) context: u64,
    pub(super) heads: u64,
    /// Widest feed-forward that one token passes through.
    pub(super) feed_forward: u64,
    /// Window in tokens; 0: none.
    pub(super) window: u64,
    pub(super) layers: Vec<Cached>,
    pub(super) tensors: Vec<Tensor>,
    /// The tensors are of a recipe and not of a file: how far off it may be, below and above.
    pub(super) off: (f64, f64),
    pub(super) unknown: Vec<Unknown>,
}

/// Architectures whose layers look back over a window but for every n-th. Source: src/llama-model.cpp `set_swa_pattern`.
const WINDOWS: &[(&str, u64)] = &[
    ("gemma2", 2),
    ("gemma3", 6),
    ("gemma3n", 5),
    ("gpt-oss", 2),
    ("cohere2", 4),
    ("llama4", 4),
    ("exaone4", 4),
    ("olmo2", 4),
];

/// Architectures for which llama.cpp ignores a window that the file declares.
const WHOLE: &[&str] =
    &["llama", "mistral3", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "qwen2vl", "phi3", "starcoder2"];

/// Models whose windows llama.cpp follows, as config.json names them.
const WINDOWED_MODELS: &[&str] = &["Gemma2", "Gemma3", "GptOss", "Cohere2", "Exaone4", "Olmo3"];

fn unreadable(why: impl Into<String>) -> PlanError {
    PlanError::Unreadable { file: "GGUF header".into(), why: why.into() }
}

impl Facts {
    /// From the header of a file.
    pub(super) fn of_file(g: &Gguf) -> Result<Self, PlanError> {
        let arch =
            g.text("general.architecture").ok_or_else(|| unreadable("general.architecture is missing"))?;
        let key = |name: &str| format!("{arch}.{name}");
        let int = |name: &str| g.int(&key(name));
        let need = |name: &str| {
            int(name).filter(|n| *n > 0).ok_or_else(|| unreadable(format!("{} is missing", key(name))))
        };
        let blocks = need("block_count")?;
        if blocks > MAX_LAYERS {
            return Err(unreadable(format!("{blocks} layers exceed any known model")));
        }
        let drafts = int("nextn_predict_layers").unwrap_or(0).min(blocks.saturating_sub(1));
        let n = blocks - drafts;
        let hidden = need("embedding_length")?;
        let heads = per_layer(g, &key("attention.head_count"), n)
            .ok_or_else(|| unreadable("attention.head_count is missing"))?;
        let kv_heads = per_layer(g, &key("attention.head_count_kv"), n).unwrap_or_else(|| heads.clone());
        let most_heads = heads.iter().copied().max().unwrap_or(1).max(1);
        let length = |name: &str| int(name).unwrap_or(hidden / most_heads);
        let (k, v) = (length("attention.key_length"), length("attention.value_length"));
        let (k_window, v_window) =
            (int("attention.key_length_swa").unwrap_or(k), int("attention.value_length_swa").unwrap_or(v));
        let latent = int("attention.key_length_mla").is_some() && int("attention.value_length_mla").is_some();
        let mut unknown = Vec::new();
        let (window, windows) = windows(g, arch, n, &mut unknown);
        let own = n.saturating_sub(int("attention.shared_kv_layers").unwrap_or(0));
        let state = state(&int, hidden);
        let parts = parts(g, n);
        let layers = (0..n)
            .map(|il| {
                let at = usize::try_from(il).unwrap_or(usize::MAX);
                let Parts { keys, recurrent } = parts.get(at).copied().unwrap_or_default();
                let window = windows.get(at).copied().unwrap_or(false);
                let of = |row: u64| {
                    let heads = kv_heads.get(at).copied().unwrap_or(0);
                    if keys && il < own { mul([heads, row]) } else { 0 }
                };
                Cached {
                    k: of(if window { k_window } else { k }),
                    v: if latent { 0 } else { of(if window { v_window } else { v }) },
                    window,
                    state: if recurrent { state } else { 0 },
                }
            })
            .collect::<Vec<_>>();
        if layers.iter().all(|l| l.k == 0 && l.state == 0) {
            return Err(PlanError::unsupported(format!(
                "the cache layout of the GGUF architecture `{arch}`"
            )));
        }
        if drafts > 0 {
            unknown.push(Unknown {
                what: format!("{drafts} speculative (draft) layers, not counted"),
                settle: "start once and compare with the printed buffers".into(),
            });
        }
        let kept = |t: &&Tensor| layer_of(&t.name).is_none_or(|il| il < n);
        let vocab = match g.keys.get("tokenizer.ggml.tokens") {
            Some(Value::Count(n)) => Some(*n),
            _ => int("vocab_size"),
        };
        let embedding = g.tensors.iter().find(|t| t.name == "token_embd.weight");
        let used = int("expert_used_count").unwrap_or(0);
        Ok(Self {
            architecture: arch.to_owned(),
            hidden,
            vocab: vocab.or_else(|| embedding.map(|t| t.shape[1])).unwrap_or(0),
            context: int("context_length").unwrap_or(0),
            heads: most_heads,
            feed_forward: per_layer(g, &key("feed_forward_length"), n)
                .and_then(|f| f.into_iter().max())
                .unwrap_or(0)
                .max(mul([used, int("expert_feed_forward_length").unwrap_or(0)])),
            window,
            layers,
            tensors: g.tensors.iter().filter(kept).cloned().collect(),
            off: (0.0, 0.0),
            unknown,
        })
    }

    /// From a configuration and the name of a quantisation.
    pub(super) fn of_config(model: &Model, quant: &str) -> Result<Self, PlanError> {
        if !matches!(model.family, Family::Decoder | Family::Gemma | Family::GptOss) {
            return Err(PlanError::missing(
                format!(
                    "the tensors of {} in a GGUF file are not derived from its configuration",
                    model.architecture
                ),
                "give the path of the .gguf file",
            ));
        }
        let recipe = recipe::Recipe::parse(quant).ok_or_else(|| {
            PlanError::contradiction(
                "--quant",
                format!("`{quant}` is not a llama.cpp quantisation such as Q4_K_M"),
            )
        })?;
        let windowed = WINDOWED_MODELS.iter().any(|w| model.architecture.starts_with(w));
        let mut window = 0;
        let mut layers = Vec::new();
        let mut feed_forward = 0;
        for layer in &model.layers {
            let Attention::Gqa(a) = layer.attention else {
                return Err(PlanError::unsupported(
                    "layers other than standard attention, derived from a configuration",
                ));
            };
            let sliding = match a.reach {
                Reach::Sliding(w) | Reach::Chunked(w) if windowed => {
                    window = w;
                    true
                }
                _ => false,
            };
            let own = |row: u64| if a.shares_kv { 0 } else { mul([a.kv_heads, row]) };
            layers.push(Cached { k: own(a.head_dim), v: own(a.v_head_dim), window: sliding, state: 0 });
            feed_forward = feed_forward.max(match layer.feed_forward {
                FeedForward::None => 0,
                FeedForward::Dense { intermediate, .. } => intermediate,
                FeedForward::Moe(m) => mul([m.top_k, m.intermediate]).max(m.dense_beside),
            });
        }
        let mut unknown = vec![Unknown {
            what: format!(
                "the publisher's mix of tensor types for {}; assumed the recipe of llama-quantize, {:.0} \
                % less to {:.0} % more",
                recipe.name,
                recipe.off.0 * 100.0,
                recipe.off.1 * 100.0
            ),
            settle: "give the path of the .gguf file with -m or --model: its header lists every \
            tensor"
                .into(),
        }];
        if model.encoder.is_some() {
            unknown.push(Unknown {
                what: "the encoder, which is a separate file (--mmproj)".into(),
                settle: "add the size of that file to host RAM or VRAM, wherever it is loaded".into(),
            });
        }
        if model.mtp_layers > 0 {
            unknown.push(Unknown {
                what: "speculative (draft) layers, not counted".into(),
                settle: "give the path of the .gguf file".into(),
            });
        }
        Ok(Self {
            architecture: model.architecture.clone(),
            hidden: model.hidden_size,
            vocab: model.vocab_size,
            context: model.max_position,
            heads: model.heads,
            feed_forward,
            window,
            layers,
            tensors: recipe.tensors(model),
            off: recipe.off,
            unknown,
        })
    }
}

/// The layer of `blk.7.attn_q.weight`.
pub(super) fn layer_of(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

/// What a layer is made of, as far as caches depend on it.
#[derive(Clone, Copy, Default)]
struct Parts {
    keys: bool,
    recurrent: bool,
}

fn parts(g: &Gguf, layers: u64) -> Vec<Parts> {
    let mut out = vec![Parts::default(); usize::try_from(layers).unwrap_or(0)];
    let mut fused = vec![false; out.len()];
    for t in &g.tensors {
        let il = layer_of(&t.name).and_then(|il| usize::try_from(il).ok());
        let Some((il, layer)) = il.and_then(|il| Some((il, out.get_mut(il)?))) else { continue };
        let part = t.name.splitn(3, '.').nth(2).unwrap_or_default();
        layer.recurrent |= part.starts_with("ssm_") || part.starts_with("shortconv.");
        layer.keys |= part.starts_with("attn_k.") || part.starts_with("attn_kv");
        if let Some(f) = fused.get_mut(il) {
            *f |= part.starts_with("attn_qkv.");
        }
    }
    for (layer, fused) in out.iter_mut().zip(fused) {
        // Linear attention projects all three at once too, and caches no keys.
        layer.keys |= fused && !layer.recurrent;
    }
    out
}

/// A value for each layer: one for all, or an array.
fn per_layer(g: &Gguf, key: &str, n: u64) -> Option<Vec<u64>> {
    let n = usize::try_from(n).ok()?;
    match g.keys.get(key)? {
        Value::Int(one) => Some(vec![*one; n]),
        Value::Ints(all) if all.len() >= n => Some(all.iter().copied().take(n).collect()),
        _ => None,
    }
}

/// The window, and which layers have it.
fn windows(g: &Gguf, arch: &str, n: u64, unknown: &mut Vec<Unknown>) -> (u64, Vec<bool>) {
    let declared = g
        .int(&format!("{arch}.attention.sliding_window"))
        .or_else(|| g.int(&format!("{arch}.attention.chunk_size")))
        .filter(|w| *w > 0);
    let window = match (declared, arch) {
        (Some(w), _) => w,
        // Files of Llama 4 do not declare their chunk (src/llama-model.cpp).
        (None, "llama4") => 8192,
        (None, "gemma2") => 4096,
        (None, _) => return (0, Vec::new()),
    };
    let pattern_key = format!("{arch}.attention.sliding_window_pattern");
    if let Some(Value::Ints(each)) = g.keys.get(&pattern_key) {
        return (window, each.iter().map(|on| *on != 0).collect());
    }
    // Only EXAONE 4's large model has windows (src/models/exaone4.cpp).
    if arch == "exaone4" && n != 64 {
        return (0, Vec::new());
    }
    let every = g.int(&pattern_key).or_else(|| WINDOWS.iter().find(|(a, _)| *a == arch).map(|(_, n)| *n));
    match every.filter(|e| *e > 1) {
        Some(every) => (window, (0..n).map(|il| il % every < every - 1).collect()),
        None => {
            if !WHOLE.contains(&arch) {
                unknown.push(Unknown {
                    what: format!("which layers of `{arch}` use a sliding window; all are counted in full"),
                    settle: "compare with the printed KV buffer size".into(),
                });
            }
            (0, Vec::new())
        }
    }
}

/// Elements of a layer's recurrent state. Source: src/llama-hparams.cpp `n_embd_r`, `n_embd_s`.
fn state(int: &impl Fn(&str) -> Option<u64>, hidden: u64) -> u64 {
    if let Some(cached) = int("shortconv.l_cache") {
        return mul([cached.saturating_sub(1), hidden]);
    }
    let of = |name: &str| int(name).unwrap_or(0);
    let (inner, states) = (of("ssm.inner_size"), of("ssm.state_size"));
    let channels = inner.saturating_add(mul([2, of("ssm.group_count"), states]));
    mul([of("ssm.conv_kernel").saturating_sub(1), channels]).saturating_add(mul([inner, states]))
}
