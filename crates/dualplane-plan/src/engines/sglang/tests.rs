//! Against what SGLang printed, and against the rules of its source.

use super::cells::Setting;
use super::*;
use crate::launch::SglangFlags;
use crate::model::ModelFiles;
use dualplane_base::units::GIB;

pub(super) const QWEN3_8B: &str = r#"{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 36,
    "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
    "tie_word_embeddings": false}"#;

pub(super) fn model(config: &str) -> Model {
    Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap()
}

fn card(gib: f64, capability: (u32, u32)) -> Gpu {
    Gpu {
        name: "card".into(),
        device_name: "card".into(),
        total_bytes: (gib * GIB as f64) as u64,
        capability,
        host_use: None,
    }
}

fn launch() -> Launch {
    Launch {
        engine: crate::EngineKind::Sglang,
        version: crate::NEWEST_SGLANG,
        version_known: true,
        ..Launch::default()
    }
}

#[test]
fn a_printed_pool_holds_one_token_more() {
    // A start-up printed 72,816 tokens for 10,737,303,552 bytes.
    let l = Launch { available_kv_bytes: Some(10_737_303_552), ..launch() };
    let p = plan(&model(QWEN3_8B), &l, &card(79.19, (9, 0))).unwrap();
    assert_eq!(p.gpu.kv_cache.tokens, Quantity::exact(72_816));
    assert!(p.printed.unwrap().starts_with(
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 72816, K size: 5.00 GB, V size: 5.00 GB\n"
    ));
}

#[test]
fn the_parts_sum_to_the_card() {
    let g = card(79.19, (9, 0));
    let p = plan(&model(QWEN3_8B), &launch(), &g).unwrap();
    let gpu = &p.gpu;
    let sum = gpu.weights_bytes.expected
        + gpu.activation_bytes.expected
        + gpu.non_torch_bytes.expected
        + gpu.kv_cache.available_bytes.expected;
    assert!(sum.abs_diff(g.total_bytes) < 16, "{sum} of {}", g.total_bytes);
    assert_eq!(p.verdict, Verdict::Fits);
    assert_eq!(p.resolved.max_num_seqs, 4096);
}

#[test]
fn weights_above_the_share_are_refused_with_the_least_that_works() {
    let l = Launch { gpu_memory_utilization: Some(0.3), ..launch() };
    let p = plan(&model(QWEN3_8B), &l, &card(23.55, (8, 9))).unwrap();
    assert_eq!(p.verdict, Verdict::Refused);
    let text = p.refusal.unwrap().message;
    assert!(text.starts_with(
        "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.3. Raise"
    ));
    let older = Launch { version: Version(0, 5, 9), ..l };
    let text = plan(&model(QWEN3_8B), &older, &card(23.55, (8, 9))).unwrap().refusal.unwrap().message;
    assert_eq!(
        text,
        "Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.3"
    );
}

#[test]
fn more_memory_and_fewer_bits_give_more_tokens() {
    let tokens = |l: &Launch, gib: f64| {
        plan(&model(QWEN3_8B), l, &card(gib, (9, 0))).unwrap().gpu.kv_cache.tokens.expected
    };
    let fixed = Launch { gpu_memory_utilization: Some(0.85), ..launch() };
    assert!(tokens(&fixed, 40.0) < tokens(&fixed, 80.0));
    let eight = Launch { kv_cache_dtype: "fp8_e4m3".into(), ..fixed.clone() };
    assert_eq!(tokens(&eight, 80.0) / 2, tokens(&fixed, 80.0));
    let capped = Launch {
        sglang: SglangFlags { max_total_tokens: Some(10_001), ..SglangFlags::default() },
        block_size: Some(64),
        ..fixed
    };
    assert_eq!(tokens(&capped, 80.0), 9984);
}

#[test]
fn windows_have_a_pool_of_their_own_where_the_engine_makes_one() {
    let config = include_str!("../../../../../testdata/plan/configs/openai--gpt-oss-20b_config.json");
    let m = model(config);
    let l = Launch { gpu_memory_utilization: Some(0.85), ..launch() };
    let p = plan(&m, &l, &card(79.19, (9, 0))).unwrap();
    // 12.8 GiB on disk and what kernels pad.
    assert!((12 * GIB..15 * GIB).contains(&p.gpu.weights_bytes.expected), "{:?}", p.gpu.weights_bytes);
    // 12 full layers and 0.8 x 12 of a window of 128: 2,048 B each.
    assert_eq!(p.gpu.kv_cache.bytes_per_block, 12 * 2048 + 19_660);
    let whole = Launch {
        sglang: SglangFlags { disable_hybrid_swa_memory: true, ..SglangFlags::default() },
        ..l.clone()
    };
    let q = plan(&m, &whole, &card(79.19, (9, 0))).unwrap();
    assert_eq!(q.gpu.kv_cache.bytes_per_block, 24 * 2048);
    let older = Launch { version: Version(0, 5, 9), ..l };
    assert!(matches!(plan(&m, &older, &card(79.19, (9, 0))), Err(PlanError::Unsupported { .. })));
}

#[test]
fn states_take_their_share_first() {
    let config = include_str!("../../../../../testdata/plan/configs/Qwen--Qwen3.5-35B-A3B_config.json");
    let l = Launch { gpu_memory_utilization: Some(0.85), tp: 2, ..launch() };
    let p = plan(&model(config), &l, &card(79.19, (9, 0))).unwrap();
    let states = p.terms.iter().find(|t| t.name == "kv.states").unwrap().quantity.expected as f64;
    let pool = p.gpu.kv_cache.available_bytes.expected as f64 - states;
    // 0.9 : 1, to within one state.
    assert!((states / pool - 0.9).abs() < 0.02, "{states} {pool}");
    assert!(p.resolved.max_num_seqs < 2048);
}

#[test]
fn attention_shared_by_data_keeps_heads_whole() {
    let config = include_str!("../../../../../testdata/plan/configs/deepseek-ai--DeepSeek-V3_config.json");
    let m = model(config);
    let l = Launch { tp: 8, ..launch() };
    let apart =
        Launch { dp: 8, sglang: SglangFlags { dp_attention: true, ..SglangFlags::default() }, ..l.clone() };
    let weights = |l: &Launch| plan(&m, l, &card(139.8, (9, 0))).unwrap().gpu.weights_bytes.expected;
    assert!(weights(&apart) > weights(&l) + 5 * GIB);
    assert_eq!((l.gpus(), apart.gpus()), (8, 8));
    let uneven = Launch { dp: 3, ..apart };
    assert!(matches!(plan(&m, &uneven, &card(139.8, (9, 0))), Err(PlanError::Contradiction { .. })));
}

fn printed_after_load(version: Version, tp: u64, share: Option<f64>, after: f64, weights: f64) -> pool::Cut {
    let launch = Launch { version, tp, gpu_memory_utilization: share, ..launch() };
    let m = model(QWEN2_32B);
    let setting = Setting { launch: &launch, gpu: &card(22.0, (8, 6)), attention_tp: tp, element: 2 };
    let cells = [cells::cells(&m, &setting, &[0; 64], 0).unwrap()];
    let pool = Pool {
        launch: &launch,
        cells: &cells,
        states: None,
        page: 1,
        context: 32_768,
        chunk: Some(8192),
        kv_dtype: "bfloat16",
    };
    let share = defaults::share(&m, &launch, Quantity::exact(22_528)).expected;
    let gib = |g: f64| g * GIB as f64;
    pool.cut(&Memory { before: gib(after + weights), after: gib(after), share, encoder: 0.0 })
}

const QWEN2_32B: &str = r#"{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 5120,
    "num_attention_heads": 40, "num_key_value_heads": 8, "num_hidden_layers": 64, "intermediate_size": 27648,
    "vocab_size": 152064, "max_position_embeddings": 32768, "torch_dtype": "bfloat16"}"#;

#[test]
fn the_pool_follows_from_what_was_free() {
    // A start-up on four ranks printed 6.09 GB free after 15.54 GB of weights, then 46,611 tokens: the share is the
    // 0.85 of that release.
    let cut = printed_after_load(Version(0, 4, 6), 4, None, 6.09, 15.54);
    assert!(cut.tokens.abs_diff(46_611) < 46, "{}", cut.tokens);
    // Another printed 12.25 GB after 125.65 GB and named 0.9113 as the least; its sizes have two decimals.
    let cut = printed_after_load(Version(0, 5, 23), 8, Some(0.88), 12.25, 125.65);
    let text = cut.refusal.unwrap().message;
    assert!(text.contains("above 0.912 (minimum viable = 1 - available/pre = 0.9112)"), "{text}");
}

#[test]
fn more_ranks_never_need_more_each() {
    let m = model(QWEN3_8B);
    let mut last = u64::MAX;
    for tp in [1, 2, 4, 8] {
        let p = plan(&m, &Launch { tp, ..launch() }, &card(79.19, (9, 0))).unwrap();
        let weights = p.gpu.weights_bytes.expected;
        assert!(weights < last && weights.saturating_mul(tp) >= 15 * GIB, "{tp}: {weights}");
        last = weights;
    }
}

#[test]
fn weights_are_those_of_the_shared_core_on_every_kept_configuration() {
    // Without workspaces nothing may be lost: experts that kernels repack are weights too.
    for config in [
        include_str!("../../../../../testdata/plan/configs/openai--gpt-oss-20b_config.json"),
        include_str!("../../../../../testdata/plan/configs/deepseek-ai--DeepSeek-V3_config.json"),
        include_str!("../../../../../testdata/plan/configs/Qwen--Qwen3-30B-A3B-FP8_config.json"),
        include_str!("../../../../../testdata/plan/configs/Qwen--Qwen3-VL-2B-Instruct_config.json"),
        include_str!(
            "../../../../../testdata/plan/configs/meta-llama--Llama-4-Scout-17B-16E-Instruct_config.json"
        ),
    ] {
        let m = model(config);
        let g = card(1500.0, (9, 0));
        let core = crate::plan(&m, &Launch { version_known: true, ..Launch::default() }, &g).unwrap();
        let own = plan(&m, &launch(), &g).unwrap();
        let (core, own) = (core.gpu.weights_bytes.expected as f64, own.gpu.weights_bytes.expected as f64);
        // Buffers of a step (3 % of the smallest model) and rotary tables of twice the width are what differs.
        assert!((own / core - 1.0).abs() < 0.04, "{}: {own} {core}", m.architecture);
    }
}
