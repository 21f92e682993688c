//! Towers without anything of their own: blocks of one kind over patches, as CLIP, SigLIP, Idefics, Pixtral and BLIP-2 have them,
//! and the projectors that wrappers put behind them. Their shapes are vLLM's own (clip.py, siglip.py, idefics2_vision_model.py,
//! pixtral.py, blip.py).

use serde_json::Value;

use super::encoder::{Blocks, key, square};
use super::towers::deepest;
use crate::arith::{floor_div, mul};
use crate::model::keys::number;
use crate::model::{Encoder, Model};

/// Elements that ranks share, and elements that each holds.
pub(super) type Elements = (u64, u64);

/// A tower that is known, without what leads from it to the language model.
pub(super) fn tower(model: &Model, e: &Encoder) -> Option<Elements> {
    let h = e.hidden_size;
    let side = floor_div(key(&e.raw, "image_size", 224), key(&e.raw, "patch_size", 14).max(1));
    let places = mul([side, side]);
    let pixels = mul([3, square(&e.raw, "patch_size", 14)]);
    let layers = e.layers.min(deepest(model, e));
    // Those that hand on less than their last layer drop the norm behind it.
    let norm = if cuts_short(model) { 0 } else { 2 };
    let blocks = Blocks { layers, ..Blocks::plain(e) };
    // Vectors of the width: biases, norms, what stands for the whole picture.
    let (blocks, vectors) = match e.family.as_str() {
        "clip_vision_model" => (blocks, places + 2 + 2 + norm),
        "siglip_vision_model" => (blocks, places + 1 + norm),
        "idefics2" | "idefics3_vision" | "idefics3" | "smolvlm_vision" | "smolvlm" | "siglip"
        | "minicpmv4_6_vision" | "minicpmv4_7_vision" => {
            (blocks, places + 1 + if model.architecture.starts_with("Aria") { 0 } else { 2 })
        }
        // Idefics' tower without the norm behind it, and what parts the rows and the views of a picture.
        "phi4mm_image" => (blocks, places + 1 + 2),
        "blip_2_vision_model" => {
            let biased = e.raw.get("qkv_bias").and_then(Value::as_bool).unwrap_or(true);
            // The projection has a bias in any case.
            let less = if biased { 0 } else { 3 * h };
            let (cut, whole) = blocks.elements();
            let cut = cut.saturating_sub(mul([layers, less]));
            return Some((cut, whole.saturating_add(mul([pixels + places + 1 + 1 + 1 + 2, h]))));
        }
        "pixtral" => {
            let gated =
                Blocks { matrices: 3, attention_bias: false, mlp_bias: false, norms: 2 * h, ..blocks };
            (gated, 1)
        }
        _ => return None,
    };
    let (cut, whole) = blocks.elements();
    Some((cut, whole.saturating_add(mul([pixels.saturating_add(vectors), h]))))
}

/// Whether the wrapper takes the output of a layer before the norm behind all of them.
fn cuts_short(model: &Model) -> bool {
    let a = model.architecture.as_str();
    a.starts_with("Llava") || a.starts_with("Granite4Vision")
}

/// What leads from the tower to the language model; `None`: that of this wrapper is not known.
pub(super) fn projector(model: &Model, e: &Encoder) -> Option<Elements> {
    let (h, text) = (e.hidden_size, model.hidden_size);
    let of = |name: &str| model.config.get(name).and_then(number);
    let biased = model.config.get("multimodal_projector_bias").and_then(Value::as_bool).unwrap_or(true);
    let bias = |n: u64| if biased { n } else { 0 };
    // A way in and a way out, both as wide as the language model.
    let two = mul([text, text.saturating_add(h)]);
    Some(match model.architecture.as_str() {
        "LlavaForConditionalGeneration" => (two.saturating_add(bias(text)), bias(text)),
        // What ends a row of pictures is learned, too.
        "LlavaNextForConditionalGeneration" => (two.saturating_add(bias(text)), bias(text) + text),
        "LlavaNextVideoForConditionalGeneration" => (0, two.saturating_add(bias(2 * text))),
        "LlavaOnevisionForConditionalGeneration" => {
            (0, two.saturating_add(bias(2 * text)).saturating_add(text))
        }
        "PaliGemmaForConditionalGeneration" => {
            (0, mul([h.saturating_add(1), of("projection_dim").unwrap_or(text)]))
        }
        // Four patches as one, and a gated network behind them.
        "Cohere2VisionForConditionalGeneration" => {
            let factor = of("downsample_factor").unwrap_or(2);
            let width = of("alignment_intermediate_size").unwrap_or(36_864);
            let first = mul([width, mul([factor, factor, h]).saturating_add(1)]);
            (first.saturating_add(mul([floor_div(width, 2), text])), text)
        }
        // Neighbouring patches are merged by a linear before it.
        "Mistral3ForConditionalGeneration" => {
            let side = of("spatial_merge_size").unwrap_or(2);
            let biased = model.config.get("multimodal_projector_bias").and_then(Value::as_bool) == Some(true);
            let (cut, whole) = if biased { (text, text) } else { (0, 0) };
            (two.saturating_add(cut), mul([h, mul([side, side, h]).saturating_add(1)]).saturating_add(whole))
        }
        "Idefics3ForConditionalGeneration" | "SmolVLMForConditionalGeneration" => {
            let side = of("scale_factor").unwrap_or(2);
            (0, mul([side, side, h, text]))
        }
        // The Q-Former is counted with it (`towers`).
        "Blip2ForConditionalGeneration" => {
            let width = model.config.get("qformer_config").map_or(768, |q| key(q, "hidden_size", 768));
            (0, mul([of("num_query_tokens").unwrap_or(32), width]))
        }
        // One attention of learned questions to the tower, with tables of places in two dimensions, and of times in the latest
        // (layers/resampler.py).
        "MiniCPMV" => {
            let way_in = if h == text { 0 } else { mul([h, text]) };
            let times =
                if model.config.get("version").map(Value::to_string).is_some_and(|v| v.contains("4.5")) {
                    36_000
                } else {
                    0
                };
            let rows = of("query_num").unwrap_or(64).saturating_add(70 * 70).saturating_add(times);
            (0, way_in.saturating_add(mul([text, mul([5, text]).saturating_add(10).saturating_add(rows)])))
        }
        // Within the tower, attention in windows and four patches as one; behind it, four of those as one.
        "MiniCPMV4_6ForConditionalGeneration" | "MiniCPMV4_7ForConditionalGeneration" => {
            let inner = e.intermediate_size;
            let window = mul([h, mul([16, inner]).saturating_add(11)]);
            let narrow = mul([inner, mul([4, h]).saturating_add(4)]).saturating_add(h);
            let wide = mul([4, h]);
            let merger = mul([wide, wide.saturating_add(3).saturating_add(text)]).saturating_add(text);
            let whole = window.saturating_add(narrow).saturating_add(merger);
            (mul([h, mul([4, h]).saturating_add(3)]), whole)
        }
        "Phi4MMForCausalLM" => (0, two.saturating_add(2 * text)),
        // Learned questions to the tower: two projections one after the other for queries, keys and values (models/aria.py).
        "AriaForConditionalGeneration" => {
            let questions = of("max_value_projector_patch_to_query_dict").unwrap_or(256);
            let whole = mul([h, mul([8, h]).saturating_add(11).saturating_add(questions)]);
            (two, whole)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::model::{Model, ModelFiles};
    use crate::{Gpu, Launch};

    fn gib(config: &str, tp: u64) -> Result<f64, String> {
        let model =
            Model::read(&ModelFiles { config, ..ModelFiles::default() }).map_err(|e| e.to_string())?;
        let launch = Launch { trust_remote_code: true, tp, ..Launch::default() };
        let gpu = Gpu {
            name: "A100".into(),
            device_name: "NVIDIA A100-SXM4-80GB".into(),
            total_bytes: 80 << 30,
            capability: (8, 0),
            host_use: None,
        };
        let plan = crate::plan(&model, &launch, &gpu).map_err(|e| e.to_string())?;
        Ok(plan.gpu.weights_by_class.iter().map(|(_, b)| *b).sum::<u64>() as f64 / f64::from(1 << 30))
    }

    const MINICPM: &str = r#"{"architectures": ["MiniCPMV"], "model_type": "minicpmv", "version": 2.6, "hidden_size": 3584,
        "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 151666, "max_position_embeddings": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "query_num": 64, "vision_config": {"hidden_size": 1152, "image_size": 980, "intermediate_size": 4304,
        "model_type": "siglip", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}}"#;

    /// 8.10 billion parameters, as its authors count them, and tables of positions.
    #[test]
    fn the_version_of_a_wrapper_says_what_stands_behind_its_tower() {
        let whole = gib(MINICPM, 1).unwrap();
        assert!((whole / (8.1e9 * 2.0 / f64::from(1 << 30)) - 1.0).abs() < 0.005, "{whole}");
        // Version 4.5 keeps a table of 36,000 times as well.
        let later = gib(&MINICPM.replace("2.6", "4.5"), 1).unwrap();
        assert!(later - whole > 36_000.0 * 3584.0 * 2.0 / f64::from(1 << 30) * 0.9, "{whole} {later}");
    }

    #[test]
    fn what_ranks_share_of_a_tower_is_shared_evenly_or_the_start_ends() {
        assert!(gib(MINICPM, 4).unwrap() < gib(MINICPM, 2).unwrap());
        let odd = MINICPM.replace("4304", "4303");
        assert!(gib(&odd, 1).is_ok());
        assert!(gib(&odd, 2).unwrap_err().contains("cannot be split evenly"), "{:?}", gib(&odd, 2));
        // SGLang pads it (its own answer for Qwen2.5-VL on eight ranks).
        let e = crate::catalogue::find("Qwen/Qwen2.5-VL-3B-Instruct").unwrap();
        let config = e.config().to_owned();
        let model = Model::read(&ModelFiles { config: &config, ..ModelFiles::default() }).unwrap();
        let gpu = Gpu {
            name: "H100".into(),
            device_name: "NVIDIA H100 80GB HBM3".into(),
            total_bytes: 80 << 30,
            capability: (9, 0),
            host_use: None,
        };
        for (engine, starts) in [(crate::EngineKind::Sglang, true), (crate::EngineKind::Vllm, false)] {
            let version = engine.newest();
            let launch = Launch { engine, version, tp: 8, ..Launch::default() };
            assert_eq!(crate::plan(&model, &launch, &gpu).is_ok(), starts, "{engine}");
        }
    }
}
