//! Rows of the paged cache, and the lines about it.
//!
//! Source: TensorRT-LLM _torch/pyexecutor/resource_manager.py `get_cache_size_per_token`.

use super::super::Shapes;
use crate::arith::{ceil_div, mul};
use crate::launch::Launch;
use crate::model::{Attention, Dtype, Model, Reach};
use crate::outcome::PlanError;
use dualplane_base::units::GIB;

/// What a token takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) dtype: String,
    /// Bytes per token over the layers of each pipeline stage.
    pub(crate) per_token: Vec<u64>,
    pub(crate) layers: u64,
    pub(crate) latent: bool,
}

pub(crate) fn rows(model: &Model, launch: &Launch, shapes: &Shapes) -> Result<Rows, PlanError> {
    let (dtype, element) = dtype(model, launch, shapes.dtype)?;
    let stages = usize::try_from(launch.pp).unwrap_or(1).clamp(1, 4096);
    let mut out = Rows { dtype, per_token: vec![0; stages], layers: 0, latent: false };
    let mut windows = false;
    let mut whole = false;
    for (layer, stage) in model.layers.iter().zip(&shapes.stage_of) {
        let bytes = match layer.attention {
            Attention::None => continue,
            Attention::Gqa(g) if g.shares_kv => {
                return Err(unsupported("layers that share keys and values"));
            }
            Attention::Gqa(g) => {
                windows |= g.reach != Reach::Full;
                whole |= g.reach == Reach::Full;
                // Heads are copied where there are more ranks.
                mul([ceil_div(g.kv_heads, launch.tp), g.head_dim.saturating_add(g.v_head_dim), element])
            }
            Attention::Mla(m) if m.indexer.is_none() => {
                out.latent = true;
                mul([m.kv_lora_rank.saturating_add(m.rope_dim), element])
            }
            Attention::Mla(_) => return Err(unsupported("sparse latent attention")),
            Attention::Compressed(_) => return Err(unsupported("a window and a compressed past")),
            _ => {
                return Err(unsupported("states of hybrids"));
            }
        };
        out.layers += 1;
        if let Some(sum) = usize::try_from(*stage).ok().and_then(|s| out.per_token.get_mut(s)) {
            *sum = sum.saturating_add(bytes);
        }
    }
    // Newer releases give each window a pool of its own, older ones only where the configuration names the windows.
    if windows && whole {
        return Err(unsupported("layers of several windows"));
    }
    Ok(out)
}

fn unsupported(what: &str) -> PlanError {
    PlanError::unsupported(format!("TensorRT-LLM's pools for {what}"))
}

fn dtype(model: &Model, launch: &Launch, served: Dtype) -> Result<(String, u64), PlanError> {
    let modelopt = model.quantization.as_ref().is_some_and(|q| q.method.as_str().starts_with("modelopt"));
    match launch.kv_cache_dtype.as_str() {
        "auto" if modelopt && model.declared_kv_dtype.as_deref().is_some_and(|d| d.starts_with("fp8")) => {
            Ok(("fp8".into(), 1))
        }
        "auto" => Ok((served.as_str().into(), served.bytes())),
        "fp8" | "int8" => Ok((launch.kv_cache_dtype.clone(), 1)),
        given => match Dtype::parse(given) {
            Some(d) => Ok((d.as_str().into(), d.bytes())),
            None if given == "nvfp4" => Err(PlanError::unsupported("a cache of nvfp4 in TensorRT-LLM")),
            None => Err(PlanError::contradiction("--kv_cache_dtype", format!("unknown dtype {given}"))),
        },
    }
}

/// The lines of a start.
pub(crate) fn lines(tokens: u64, per_token: u64, block: u64) -> String {
    let gib = tokens.saturating_mul(per_token) as f64 / GIB as f64;
    format!(
        "[TensorRT-LLM][INFO] Number of tokens per block: {block}.\n[TensorRT-LLM][INFO] [MemUsageChange] Allocated {gib:.2} \
         GiB for max tokens in paged KV cache ({tokens})."
    )
}
