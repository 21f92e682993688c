//! Against what TensorRT-LLM printed.

use super::*;
use crate::EngineKind;
use crate::model::ModelFiles;
use dualplane_base::units::GIB;

const TINY: &str = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
    "num_attention_heads": 32, "num_key_value_heads": 4, "num_hidden_layers": 22, "intermediate_size": 5632,
    "vocab_size": 32000, "max_position_embeddings": 2048, "torch_dtype": "bfloat16"}"#;

fn model(config: &str) -> Model {
    Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap()
}

fn card(gib: f64) -> Gpu {
    Gpu {
        name: "card".into(),
        device_name: "card".into(),
        total_bytes: (gib * GIB as f64) as u64,
        capability: (9, 0),
        host_use: None,
    }
}

fn launch() -> Launch {
    Launch { engine: EngineKind::TensorrtLlm, ..Launch::default() }
}

#[test]
fn a_printed_pool_is_whole_blocks() {
    // A start-up printed 78.30 GiB for 3,731,744 tokens.
    let l = Launch { available_kv_bytes: Some((78.30 * GIB as f64) as u64), ..launch() };
    let p = plan(&model(TINY), &l, &card(93.1)).unwrap();
    assert!(p.gpu.kv_cache.tokens.expected.abs_diff(3_731_744) < 400, "{:?}", p.gpu.kv_cache.tokens);
    assert_eq!(p.gpu.kv_cache.bytes_per_block, 22_528 * 32);
    let text = p.printed.unwrap();
    assert!(text.contains("Allocated 78.30 GiB for max tokens in paged KV cache (3731"), "{text}");
}

#[test]
fn the_share_is_of_what_is_left() {
    let at = |share| {
        let l = Launch { gpu_memory_utilization: Some(share), ..launch() };
        plan(&model(TINY), &l, &card(79.19)).unwrap().gpu
    };
    let (all, half) = (at(1.0), at(0.5));
    assert_eq!(all.kv_cache.available_bytes.expected / 2, half.kv_cache.available_bytes.expected);
    let parts = all.weights_bytes.expected
        + all.activation_bytes.expected
        + all.non_torch_bytes.expected
        + all.kv_cache.available_bytes.expected;
    assert_eq!(parts, all.total_bytes);
    let wrong = Launch { gpu_memory_utilization: Some(1.5), ..launch() };
    assert!(matches!(plan(&model(TINY), &wrong, &card(79.19)), Err(PlanError::Contradiction { .. })));
}

#[test]
fn nothing_left_is_refused() {
    let p = plan(&model(TINY), &launch(), &card(1.5)).unwrap();
    assert_eq!(p.verdict, Verdict::Refused);
    assert!(p.printed.is_none() && p.refusal.is_some());
}

#[test]
fn pools_that_are_not_known_are_said() {
    let config = include_str!("../../../../../testdata/plan/configs/openai--gpt-oss-20b_config.json");
    assert!(matches!(plan(&model(config), &launch(), &card(79.19)), Err(PlanError::Unsupported { .. })));
}
