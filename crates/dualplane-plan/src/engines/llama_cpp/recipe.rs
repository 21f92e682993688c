//! Which type llama-quantize gives each tensor, for a model whose file is not at hand.

use super::ggml::GgmlType;
use super::gguf::Tensor;
use crate::arith::mul;
use crate::model::{Attention, FeedForward, Model, QkNorm};

/// A quantisation by its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recipe {
    /// As llama-quantize names it: `Q4_K_M`.
    pub(super) name: String,
    base: GgmlType,
    /// How far files of that name are off this recipe, below and above.
    pub(super) off: (f64, f64),
}

/// Files of one type throughout: what remains is the table of positions and metadata.
const PLAIN: (f64, f64) = (0.005, 0.01);
/// Published mixtures were made with and without an importance matrix, which moves a few layers.
const MIXED: (f64, f64) = (0.03, 0.05);
/// Publishers' own mixtures (`UD-`, `_XL`, `_L`): 10 % to either side.
const OWN: (f64, f64) = (0.10, 0.10);

impl Recipe {
    /// `Q4_K_M`, `q4_k_m`, `UD-Q4_K_XL`, `IQ4_XS`, `BF16`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let name = text.trim().to_ascii_uppercase().replace('-', "_");
        let (name, own) = match name.strip_prefix("UD_") {
            Some(rest) => (rest.to_owned(), true),
            None => (name, false),
        };
        let (name, own) = match name.strip_suffix("_XL") {
            Some(short) if short.ends_with("_K") => (format!("{short}_M"), true),
            _ => match name.strip_suffix("_L") {
                Some(short) if short.ends_with("_K") && short != "Q3_K" => (format!("{short}_M"), true),
                _ => (name, own),
            },
        };
        let bare = ["_S", "_M", "_L"].iter().find_map(|s| name.strip_suffix(s)).filter(|b| b.ends_with("_K"));
        let base = match (name.as_str(), bare) {
            ("MXFP4_MOE" | "MXFP4", _) => GgmlType::by_name("mxfp4")?,
            ("FP16", _) => GgmlType::by_name("f16")?,
            ("IQ3_M" | "IQ3_XS", _) => GgmlType::by_name("iq3_s")?,
            ("IQ2_M", _) => GgmlType::by_name("iq2_s")?,
            (_, Some(bare)) => GgmlType::by_name(bare)?,
            (whole, None) => GgmlType::by_name(whole)?,
        };
        let integer = base.name.starts_with('i') && !base.name.starts_with("iq");
        if integer || matches!(base.name, "f64" | "q8_1" | "q8_k") {
            return None;
        }
        let plain = base.block == 1 || base.name == "q8_0";
        let off = if own {
            OWN
        } else if plain {
            PLAIN
        } else {
            MIXED
        };
        Some(Self { name, base, off })
    }

    /// The tensors of a decoder with this recipe.
    pub(super) fn tensors(&self, model: &Model) -> Vec<Tensor> {
        let mut out = Vec::new();
        let f32 = GgmlType::by_id(0).unwrap_or(self.base);
        let mut add = |name: String, shape: [u64; 4], small: bool, il: usize| {
            let kind = if small { f32 } else { self.kind(&name, shape, il, model) };
            out.push(Tensor { name, shape, kind });
        };
        let h = model.hidden_size;
        add("token_embd.weight".into(), [h, model.vocab_size, 1, 1], false, 0);
        add("output_norm.weight".into(), [h, 1, 1, 1], true, 0);
        if !model.tied {
            add("output.weight".into(), [h, model.vocab_size, 1, 1], false, 0);
        }
        for (il, layer) in model.layers.iter().enumerate() {
            let mut put = |part: &str, shape: [u64; 3], small: bool| {
                let [a, b, c] = shape;
                if mul(shape) > 0 {
                    add(format!("blk.{il}.{part}"), [a, b, c, 1], small, il);
                }
            };
            put("norms", [h, layer.norms, 1], true);
            if let Attention::Gqa(a) = layer.attention {
                let (q, k, v) = (
                    mul([a.heads, a.head_dim]),
                    mul([a.kv_heads, a.head_dim]),
                    mul([a.kv_heads, a.v_head_dim]),
                );
                put("attn_q.weight", [h, q, 1], false);
                put("attn_k.weight", [h, k, 1], false);
                if !a.k_is_v {
                    put("attn_v.weight", [h, v, 1], false);
                }
                put("attn_output.weight", [mul([a.heads, a.v_head_dim]), h, 1], false);
                if a.qkv_bias {
                    put("attn_qkv.bias", [q.saturating_add(k).saturating_add(v), 1, 1], true);
                }
                put("attn_output.bias", [if a.o_bias { h } else { 0 }, 1, 1], true);
                put("attn_sinks.weight", [if a.sinks { a.heads } else { 0 }, 1, 1], true);
                match a.qk_norm {
                    QkNorm::None => {}
                    QkNorm::PerHead => put("attn_q_norm.weight", [a.head_dim, 2, 1], true),
                    QkNorm::Whole => put("attn_q_norm.weight", [q.saturating_add(k), 1, 1], true),
                }
            }
            let mut dense = |part: &str, width: u64, gated: bool| {
                put(&format!("ffn_up{part}.weight"), [h, width, 1], false);
                put(&format!("ffn_down{part}.weight"), [width, h, 1], false);
                if gated {
                    put(&format!("ffn_gate{part}.weight"), [h, width, 1], false);
                }
            };
            match layer.feed_forward {
                FeedForward::None => {}
                FeedForward::Dense { intermediate, gated, .. } => dense("", intermediate, gated),
                FeedForward::Moe(m) => {
                    dense("_shexp", m.shared_intermediate, true);
                    dense("", m.dense_beside, true);
                    put("ffn_gate_inp.weight", [h, m.experts, 1], true);
                    put("ffn_up_exps.weight", [h, m.intermediate, m.experts], false);
                    put("ffn_down_exps.weight", [m.intermediate, h, m.experts], false);
                    if m.gated {
                        put("ffn_gate_exps.weight", [h, m.intermediate, m.experts], false);
                    }
                    if m.bias {
                        put(
                            "ffn_exps.bias",
                            [mul([2, m.intermediate]).saturating_add(h), m.experts, 1],
                            true,
                        );
                    }
                    put("exp_probs_b.bias", [if m.router_correction { m.experts } else { 0 }, 1, 1], true);
                }
            }
        }
        out
    }

    /// The type of one tensor. Source: src/llama-quant.cpp `llama_tensor_get_type_impl`, `tensor_type_fallback`.
    fn kind(&self, name: &str, shape: [u64; 4], il: usize, model: &Model) -> GgmlType {
        let base = self.base;
        if base.block == 1 {
            return base;
        }
        let wanted = self.wanted(name, shape, il, model);
        let get = |n: &str| GgmlType::by_name(n).unwrap_or(base);
        if shape[0].is_multiple_of(wanted.block) {
            return wanted;
        }
        // Blocks of 256 that do not divide the row give way to blocks of 32, and those to 16 bits.
        let other = get(match wanted.name {
            "q2_k" | "q3_k" | "tq1_0" | "tq2_0" => "q4_0",
            "q4_k" => "q5_0",
            "q5_k" => "q5_1",
            "q6_k" => "q8_0",
            _ => "iq4_nl",
        });
        if shape[0].is_multiple_of(other.block) { other } else { get("f16") }
    }

    fn wanted(&self, name: &str, shape: [u64; 4], il: usize, model: &Model) -> GgmlType {
        let get = |n: &str| GgmlType::by_name(n).unwrap_or(self.base);
        let recipe = self.name.as_str();
        let n = model.layers.len();
        let early = il < n / 8;
        let more_bits = early || il >= 7 * n / 8 || (il - n / 8) % 3 == 2;
        let (experts, grouped) = model.layers.get(il).map_or((0, false), |l| {
            let experts = if let FeedForward::Moe(m) = l.feed_forward { m.experts } else { 0 };
            (experts, model.heads >= model.kv_heads.saturating_mul(4))
        });
        let part = name.strip_suffix(".weight").and_then(|p| p.rsplit('.').next()).unwrap_or(name);
        let small = recipe.starts_with("IQ1") || recipe.starts_with("IQ2");
        if part == "output" || part == "token_embd" && model.tied {
            return match recipe {
                "MXFP4_MOE" | "MXFP4" | "Q8_0" => get("q8_0"),
                _ if small || recipe == "IQ3_XXS" => get("q5_k"),
                _ => get("q6_k"),
            };
        }
        if self.base.name == "mxfp4" {
            return if shape[2] > 1 { self.base } else { get("q8_0") };
        }
        let changed = match part {
            "token_embd" => match recipe {
                "IQ2_XXS" | "IQ2_XS" | "IQ1_S" | "IQ1_M" => Some("q2_k"),
                "IQ2_S" | "IQ2_M" | "IQ3_XXS" => Some("iq3_s"),
                "TQ1_0" | "TQ2_0" => Some("q4_k"),
                _ => None,
            },
            "attn_v" => self.value_projection(il, n, model, experts, grouped, more_bits),
            "attn_k" if experts == 8 => Some(if small { "q4_k" } else { "q8_0" }),
            "attn_k" | "attn_q" => match recipe {
                "IQ3_XS" => Some("iq3_xxs"),
                "IQ3_XXS" => Some("iq2_s"),
                _ => None,
            },
            "attn_output" => match recipe {
                "IQ1_S" | "IQ1_M" => Some("iq2_xxs"),
                "IQ2_S" | "IQ2_M" | "IQ3_XXS" => Some("iq3_s"),
                _ if experts == 8 && !small => {
                    Some("q5_k").filter(|_| !recipe.starts_with(['Q']) || recipe < "Q5")
                }
                "Q2_K" => Some("q3_k"),
                "Q3_K_M" | "IQ3_M" => Some("q4_k"),
                "Q3_K_L" => Some("q5_k"),
                _ => None,
            },
            _ if part.starts_with("ffn_down") => match recipe {
                "Q4_K_M" | "Q5_K_M" if more_bits => Some("q6_k"),
                "Q2_K" => Some("q3_k"),
                "Q2_K_S" if early => Some("q4_k"),
                "Q3_K_M" => Some(if il < n / 16 { "q5_k" } else { "q4_k" }),
                "Q3_K_L" => Some("q5_k"),
                "IQ3_M" if early => Some("q4_k"),
                "IQ4_NL" | "IQ4_XS" | "Q4_K_S" if early => Some("q5_k"),
                "IQ2_S" | "IQ2_M" if early => Some("iq3_s"),
                _ if small && early => Some("q2_k"),
                _ => None,
            },
            _ => None,
        };
        changed.map_or(self.base, get)
    }

    fn value_projection(
        &self,
        il: usize,
        layers: usize,
        model: &Model,
        experts: u64,
        grouped: bool,
        more_bits: bool,
    ) -> Option<&'static str> {
        let small = self.name.starts_with("IQ1") || self.name.starts_with("IQ2");
        if experts == 8 && !small {
            return Some("q8_0");
        }
        let kind = match self.name.as_str() {
            _ if small => Some(match self.name.as_str() {
                _ if grouped || experts >= 4 => "q4_k",
                "IQ2_S" | "IQ2_M" => "iq3_s",
                _ => "q2_k",
            }),
            "Q2_K" => Some(if grouped { "q4_k" } else { "q3_k" }),
            "Q2_K_S" | "IQ3_XXS" | "IQ3_XS" | "IQ3_S" if grouped => Some("q4_k"),
            "IQ3_M" => Some("q4_k"),
            "Q3_K_M" => Some(if il < 2 { "q5_k" } else { "q4_k" }),
            "Q3_K_L" => Some("q5_k"),
            "IQ4_NL" | "IQ4_XS" if grouped => Some("q5_k"),
            "Q4_K_M" | "Q5_K_M" if more_bits => Some("q6_k"),
            "Q4_K_S" if il < 4 => Some("q5_k"),
            _ => None,
        };
        // 80 layers with eight query heads to a KV head: its values are small and get more bits.
        let llama_70b =
            layers == 80 && model.hidden_size == 8192 && model.heads == model.kv_heads.saturating_mul(8);
        match kind.unwrap_or(self.base.name) {
            "q3_k" | "q4_k" if llama_70b => Some("q5_k"),
            _ => kind,
        }
    }
}
