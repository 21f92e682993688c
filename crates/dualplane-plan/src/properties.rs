//! What must hold for every plan: swept over shapes, ranks, lengths and memory.

use super::model::ModelFiles;
use super::{At, Gpu, Launch, MaxModelLen, Model, Plan, PlanError, Prepared, Verdict, plan};
use dualplane_base::units::GIB;

const DENSE: &str = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
    "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#;

const WINDOWS: &str = r#"{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 24,
    "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
    "vocab_size": 201088, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#;

const LATENT: &str = r#"{"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168,
    "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": 61, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
    "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "topk_method": "noaux_tc", "vocab_size": 129280,
    "max_position_embeddings": 163840, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}"#;

const HYBRID: &str = r#"{"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "num_hidden_layers": 48,
    "intermediate_size": 5120, "moe_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10,
    "shared_expert_intermediate_size": 512, "full_attention_interval": 4, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "partial_rotary_factor": 0.25, "vocab_size": 151936,
    "max_position_embeddings": 262144, "torch_dtype": "bfloat16"}"#;

const ALL: [&str; 4] = [DENSE, WINDOWS, LATENT, HYBRID];

fn model(config: &str) -> Model {
    Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap()
}

fn card(gib: u64) -> Gpu {
    Gpu {
        name: "H100".into(),
        device_name: "NVIDIA H100".into(),
        total_bytes: gib * GIB,
        capability: (9, 0),
        host_use: None,
    }
}

fn launch(tp: u64, len: u64) -> Launch {
    Launch { tp, max_model_len: MaxModelLen::Tokens(len), ..Launch::default() }
}

fn good(m: &Model, l: &Launch, g: &Gpu) -> Plan {
    plan(m, l, g).unwrap()
}

#[test]
fn parts_sum_to_the_whole() {
    for config in ALL {
        let m = model(config);
        for tp in [1, 2, 4, 8] {
            let p = good(&m, &launch(tp, 8192), &card(141));
            let weights: u64 =
                p.terms.iter().filter(|t| t.name.starts_with("weights.")).map(|t| t.quantity.expected).sum();
            assert_eq!(weights, p.gpu.weights_bytes.expected);
            let all: u64 = p.terms.iter().map(|t| t.quantity.expected).sum();
            let pool = p.gpu.kv_cache.available_bytes.expected;
            assert_eq!(pool, p.gpu.requested_bytes.saturating_sub(all));
            let q = p.gpu.kv_cache.available_bytes;
            assert!(q.low <= q.expected && q.expected <= q.high);
        }
    }
}

#[test]
fn more_memory_never_holds_less() {
    for config in ALL {
        let m = model(config);
        for tp in [1, 8] {
            let (mut blocks, mut fits) = (0, false);
            for gib in (16..1500).step_by(37) {
                let p = good(&m, &launch(tp, 32_768), &card(gib));
                assert!(p.gpu.kv_cache.blocks.expected >= blocks, "{gib} GiB");
                assert!(!fits || p.verdict == Verdict::Fits, "{gib} GiB");
                blocks = p.gpu.kv_cache.blocks.expected;
                fits = p.verdict == Verdict::Fits;
            }
            assert!(fits, "1.5 TB hold every one of these");
        }
    }
}

#[test]
fn longer_requests_never_need_less() {
    for config in ALL {
        let m = model(config);
        let mut needed = 0;
        for len in [1, 15, 16, 17, 500, 4096, 4097, 50_000, 131_072] {
            let p = good(&m, &launch(2, len), &card(141));
            assert!(p.gpu.kv_cache.needed_bytes >= needed, "{len} tokens");
            needed = p.gpu.kv_cache.needed_bytes;
        }
    }
}

#[test]
fn the_estimated_length_fits_and_one_more_does_not() {
    for config in ALL {
        let m = model(config);
        for mib in [300, 1000, 3000] {
            let pool = Some(mib << 20);
            let p = good(&m, &Launch { available_kv_bytes: pool, ..launch(1, 131_072) }, &card(80));
            let Some(len) = p.refusal.and_then(|r| r.estimated_max_len) else { continue };
            let fits = |len| {
                good(&m, &Launch { available_kv_bytes: pool, ..launch(1, len) }, &card(80)).verdict
                    == Verdict::Fits
            };
            assert!(fits(len), "{len} of {mib} MiB");
            assert!(!fits(len + 1), "{} of {mib} MiB", len + 1);
        }
    }
}

#[test]
fn more_ranks_never_hold_fewer_weights_in_all() {
    for config in ALL {
        let m = model(config);
        let total = |tp: u64| tp * good(&m, &launch(tp, 8192), &card(141)).gpu.weights_bytes.expected;
        for tp in [2, 4, 8] {
            // Rounding of the allocator differs by shape, by far less than this.
            assert!(total(tp) * 1002 >= total(1) * 1000, "{tp} ranks");
            assert!(total(tp) <= total(1) * tp);
        }
    }
}

#[test]
fn a_sweep_says_what_single_plans_say() {
    let card = card(141);
    for config in ALL {
        let m = model(config);
        let base = launch(4, 8192);
        let prepared = Prepared::new(&m, &base, &card).unwrap();
        for len in [1024, 8192, 131_072] {
            for seqs in [16, 1024] {
                for tokens in [2048, 16_384] {
                    let at = At {
                        max_model_len: len,
                        max_num_seqs: seqs,
                        max_num_batched_tokens: tokens,
                        gpu_memory_utilization: 0.8,
                    };
                    let single = Launch {
                        max_num_seqs: Some(seqs),
                        max_num_batched_tokens: Some(tokens),
                        gpu_memory_utilization: Some(0.8),
                        ..launch(4, len)
                    };
                    let (point, p) = (prepared.at(&m, &base, &card, &at), good(&m, &single, &card));
                    assert_eq!(point.available_bytes, p.gpu.kv_cache.available_bytes);
                    assert_eq!(point.tokens, p.gpu.kv_cache.tokens);
                    assert_eq!(point.verdict, p.verdict);
                }
            }
        }
    }
}

#[test]
fn contradictions_name_what_to_change() {
    let m = model(DENSE);
    let names = |l: Launch| match plan(&m, &l, &card(80)) {
        Err(PlanError::Contradiction { names, .. }) => names,
        other => panic!("{other:?}"),
    };
    assert_eq!(names(launch(3, 8192)), "--tensor-parallel-size");
    assert_eq!(names(launch(1, 200_000)), "--max-model-len");
    assert_eq!(names(Launch { expert_parallel: true, ..launch(1, 8192) }), "--enable-expert-parallel");
    assert_eq!(
        names(Launch { gpu_memory_utilization: Some(1.5), ..launch(1, 8192) }),
        "--gpu-memory-utilization"
    );
    assert_eq!(names(Launch { kv_cache_dtype: "fp7".into(), ..launch(1, 8192) }), "--kv-cache-dtype");
    assert_eq!(names(Launch { block_size: Some(24), ..launch(1, 8192) }), "--block-size");
}

#[test]
fn broken_configs_are_errors_and_never_a_panic() {
    let read = |config: &str| Model::read(&ModelFiles { config, ..ModelFiles::default() });
    for bad in ["", "[]", "{}", r#"{"architectures": []}"#, r#"{"architectures": ["Nobody"]}"#] {
        assert!(read(bad).is_err(), "{bad}");
    }
    let numbers =
        ["0", "1", "7", "-1", "1e308", "1099511627776", "18446744073709551615", "null", "\"x\"", "[]", "NaN"];
    for config in ALL {
        let keys: Vec<String> = config.split('"').filter(|k| k.contains('_')).map(str::to_owned).collect();
        for key in keys {
            for n in numbers {
                let Some(at) = config.find(&format!("\"{key}\":")) else { continue };
                let start = at + key.len() + 3;
                let end = start + config[start..].find([',', '}']).unwrap();
                let broken = format!("{}{n}{}", &config[..start], &config[end..]);
                if let Ok(m) = read(&broken) {
                    for tp in [1, 8] {
                        let _ = plan(&m, &Launch { tp, ..Launch::default() }, &card(80));
                    }
                }
            }
        }
    }
}
