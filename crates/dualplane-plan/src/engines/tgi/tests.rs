//! The warm-up's arithmetic, and what must hold for every plan.

use super::*;
use crate::cli;
use crate::model::ModelFiles;
use dualplane_base::units::GIB;

const LLAMA_8B: &str = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
    "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}"#;

const MISTRAL_7B: &str = r#"{"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
    "vocab_size": 32768, "max_position_embeddings": 32768, "torch_dtype": "bfloat16"}"#;

fn run(config: &str, args: &str, version: (u32, u32, u32), gib: f64) -> Plan {
    let mut line = cli::parse(&[format!("text-generation-launcher --model-id m {args}")], &[], None).unwrap();
    line.launch.version = Version(version.0, version.1, version.2);
    line.launch.version_known = true;
    let gpu = Gpu {
        name: "card".into(),
        device_name: "card".into(),
        total_bytes: (gib * GIB as f64) as u64,
        capability: (8, 6),
        host_use: None,
    };
    let model = Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap();
    plan(&model, &line, &gpu).unwrap()
}

#[test]
fn tokens_are_whole_blocks_and_a_share_of_the_card() {
    let p = run(LLAMA_8B, "--max-batch-prefill-tokens 4096", (3, 3, 7), 79.25);
    let kv = &p.gpu.kv_cache;
    // 32 layers, K and V of 8 heads of 128 in 16 bits: 128 KiB a token.
    assert_eq!((kv.block_size, kv.bytes_per_block), (1, 131_072));
    let used = p.gpu.weights_bytes + p.gpu.activation_bytes + p.gpu.non_torch_bytes + kv.available_bytes;
    let share = (p.gpu.total_bytes as f64 * 0.9) as u64;
    assert!(used.expected <= share && share - used.expected < 131_072);
    assert_eq!(p.printed.unwrap(), format!("Setting max batch total tokens to {}", kv.tokens.expected));
    let p = run(LLAMA_8B, "", (2, 0, 0), 79.25);
    assert_eq!(p.gpu.kv_cache.tokens.expected % 16, 0);
    assert!(p.gpu.kv_cache.available_bytes.low < p.gpu.kv_cache.available_bytes.high);
}

#[test]
fn a_printed_start_up_lies_in_the_band() {
    // Mistral-7B-Instruct-v0.3 with defaults printed 43,808 tokens on an instance with an A10G; the router's lines are
    // those of 2.0.
    let p = run(MISTRAL_7B, "", (2, 0, 0), 22.06);
    let tokens = p.gpu.kv_cache.tokens;
    assert!((tokens.low..=tokens.high).contains(&43_808), "{tokens:?}");
}

#[test]
fn the_two_refusals_read_as_printed() {
    let p = run(LLAMA_8B, "--cuda-memory-fraction 0.5", (3, 3, 7), 24.0);
    assert_eq!(p.verdict, Verdict::Refused);
    assert!(p.refusal.unwrap().message.starts_with("Not enough memory to handle 4096 prefill tokens."));
    let p = run(MISTRAL_7B, "--max-total-tokens 400000", (3, 3, 7), 24.0);
    assert!(p.refusal.unwrap().message.starts_with("`max_total_tokens` must be <= `max_batch_total_tokens`"));
}

#[test]
fn more_memory_never_holds_less_and_wrong_flags_are_named() {
    let mut last = 0;
    for gib in [20.0, 24.0, 48.0, 80.0, 141.0] {
        let tokens = run(LLAMA_8B, "", (3, 3, 7), gib).gpu.kv_cache.tokens.expected;
        assert!(tokens >= last);
        last = tokens;
    }
    let model = Model::read(&ModelFiles { config: LLAMA_8B, ..ModelFiles::default() }).unwrap();
    let gpu = Gpu {
        name: "c".into(),
        device_name: "c".into(),
        total_bytes: 24 * GIB,
        capability: (8, 6),
        host_use: None,
    };
    for (args, flag) in [
        ("--kv-cache-dtype fp8", "--kv-cache-dtype"),
        ("--cuda-memory-fraction 1.5", "--cuda-memory-fraction"),
        ("--max-input-tokens 4096 --max-total-tokens 4096", "--max-input-tokens"),
    ] {
        let line = cli::parse(&[format!("text-generation-launcher --model-id m {args}")], &[], None).unwrap();
        assert!(plan(&model, &line, &gpu).unwrap_err().to_string().contains(flag), "{args}");
    }
}
