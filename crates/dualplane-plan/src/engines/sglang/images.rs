//! What an encoder in front of the model changes in SGLang's own settings.

use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::{Attention, Encoder, Model};
use dualplane_base::Version;
use dualplane_base::units::GIB;

/// Served as text unless asked otherwise (`mm_disabled_models` of configs/model_config.py).
const TEXT_ONLY: &[&str] = &[
    "Gemma3ForConditionalGeneration",
    "Llama4ForConditionalGeneration",
    "Step3VLForConditionalGeneration",
    "InklingForConditionalGeneration",
];

/// Whose prompts are captured all the same (`multimodal_breakable_cuda_graph_supported_model_archs` of 0.5.23).
const CAPTURED: &[&str] = &[
    "Cohere2VisionForConditionalGeneration",
    "Glm5NextForConditionalGeneration",
    "InternS2MobiusForConditionalGeneration",
    "KimiK25ForConditionalGeneration",
    "KimiK3ForConditionalGeneration",
    "MiniMaxM3SparseForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration",
    "MuseGlimmerForConditionalGeneration",
    "MuseSparkForConditionalGeneration",
    "PaddleOCRVLForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    "Qwen4ExpForConditionalGeneration",
];

/// Whether the engine takes images or sound with this model.
pub(super) fn taken(model: &Model) -> bool {
    (model.encoder.is_some() || model.sound.is_some()) && !TEXT_ONLY.contains(&model.architecture.as_str())
}

/// Part of the static share that is left beside an encoder: its size is guessed from two keys of its configuration, with the
/// first CLIP's where a tower names them otherwise (arg_groups/memory_hook.py `adjust_mem_fraction_for_vlm`).
pub(super) fn factor(model: &Model, launch: &Launch) -> f64 {
    let apart = launch.language_model_only || launch.sglang.disaggregation.as_deref() == Some("decode");
    if apart || !taken(model) {
        return 1.0;
    }
    if launch.version < Version(0, 5, 2) {
        return 0.9;
    }
    let Some(Encoder { raw, .. }) = &model.encoder else { return 1.0 };
    // Kimi's tower has the same two under names of its own.
    let of = |keys: [&str; 2], default: u64| {
        let found = keys.iter().find_map(|k| raw.get(k)).and_then(serde_json::Value::as_u64);
        found.unwrap_or(default) as f64
    };
    let layers = of(["num_hidden_layers", "vt_num_hidden_layers"], 24);
    let width = of(["hidden_size", "vt_hidden_size"], 1024);
    let size = layers * width.powi(2) / (24.0 * 1024.0 * 1024.0);
    0.95 * (1.0 - 0.1 * (size - 1.0)).clamp(0.8, 1.05)
}

/// MiB that images take after the pool is sized: their embeddings (`SGLANG_VLM_CACHE_SIZE_MB`), or on large Hopper cards the
/// buffers through which Qwen3-VL is handed them (`SGLANG_MM_FEATURE_CACHE_MB`, model_overrides/qwen3_vl.py).
pub(super) fn kept_mib(model: &Model, launch: &Launch, gpu: &Gpu) -> u64 {
    if !taken(model) || launch.language_model_only || launch.version < Version(0, 5, 23) {
        return 0;
    }
    let large = gpu.capability == (9, 0) && gpu.total_bytes >= 60 * GIB;
    match launch.max_num_seqs {
        _ if !(large && model.architecture.starts_with("Qwen3VL")) => 100,
        Some(400..) => 3 * 1024,
        _ => 1024,
    }
}

/// Whether steps of prompts are captured (arg_groups/cuda_graph_hook.py of 0.5.23); `None`: older rules, not followed.
pub(super) fn prompts_are_captured(model: &Model, launch: &Launch) -> Option<bool> {
    if launch.version < Version(0, 5, 23) {
        return None;
    }
    let kept_out = |a: &Attention| matches!(a, Attention::Kda(_) | Attention::Compressed(_));
    let captured = launch.pp == 1
        && !model.layers.iter().any(|l| kept_out(&l.attention))
        && (!taken(model) || CAPTURED.contains(&model.architecture.as_str()));
    Some(captured)
}
