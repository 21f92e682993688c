//! Tokens of a page: what is asked, unless the attention backend wants others.
//!
//! Source: SGLang 0.5.23 arg_groups/overrides.py `_mla_backend_page_constraints`, `_fa4_page_constraint`, and the backends that
//! arg_groups/model_overrides and `get_default_attn_backend` choose on Blackwell; elsewhere none that is chosen asks for more.

use super::code::CODE;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::{Attention, Model};

pub(super) fn page(model: &Model, launch: &Launch, gpu: &Gpu) -> u64 {
    let asked = launch.block_size.unwrap_or(1).max(1);
    let sparse = model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(m) if m.indexer.is_some()));
    let blackwell = gpu.capability.0 == 10;
    let backend = launch.attention_backend.as_deref();
    match backend.or_else(|| blackwell.then(|| on_blackwell(model))) {
        _ if sparse && backend.is_none() => 64,
        Some("flashmla") => 64,
        Some("trtllm_mla" | "cutedsl_mla") if ![32, 64].contains(&asked) => 64,
        Some("trtllm_mha") if ![16, 32, 64, 128].contains(&asked) => 64,
        Some("fa4") if blackwell && !latent(model) => 128,
        _ => asked,
    }
}

fn latent(model: &Model) -> bool {
    model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(_)))
}

fn on_blackwell(model: &Model) -> &'static str {
    let of = |names: &[&str]| names.contains(&model.architecture.as_str());
    let uneven = |a: &Attention| matches!(a, Attention::Gqa(g) if g.head_dim != g.v_head_dim);
    if latent(model) {
        if of(CODE.trtllm_mla) { "trtllm_mla" } else { "flashinfer" }
    } else if of(CODE.triton_on_blackwell) {
        "triton"
    } else if model.layers.iter().any(|l| uneven(&l.attention)) {
        "fa4"
    } else {
        "trtllm_mha"
    }
}
