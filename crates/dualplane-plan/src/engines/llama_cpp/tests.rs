//! Plans against what real start-ups of llama.cpp printed, and what must hold for every plan.

use super::gguf::tests::Writer;
use super::*;
use crate::cli;
use crate::model::ModelFiles;
use dualplane_base::units::GIB;

const GEMMA_3_1B: &str = r#"{"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 1152,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "num_hidden_layers": 26,
    "intermediate_size": 6912, "vocab_size": 262144, "sliding_window": 512, "sliding_window_pattern": 6,
    "max_position_embeddings": 32768, "rope_theta": 1000000, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}"#;

const QWEN_32B: &str = r#"{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 5120,
    "num_attention_heads": 40, "num_key_value_heads": 8, "num_hidden_layers": 64, "intermediate_size": 27648,
    "vocab_size": 152064, "max_position_embeddings": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}"#;

const QWEN_3B: &str = r#"{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 2, "num_hidden_layers": 36, "intermediate_size": 11008,
    "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}"#;

const MISTRAL_7B: &str = r#"{"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
    "vocab_size": 32000, "max_position_embeddings": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}"#;

const LLAMA_8B: &str = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
    "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}"#;

fn card(gib: u64) -> Gpu {
    Gpu {
        name: "card".into(),
        device_name: "card".into(),
        total_bytes: gib * GIB,
        capability: (8, 9),
        host_use: None,
    }
}

fn model(config: &str) -> Model {
    Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap()
}

fn run(config: &str, quant: &str, args: &str, gib: u64) -> Plan {
    let mut line = cli::parse(&[format!("llama-server {args}")], &[], None).unwrap();
    line.launch.quantization = Some(quant.into());
    plan(&model(config), None, &line, &card(gib)).unwrap()
}

/// Sizes behind `NAME what buffer size =`, as printed.
fn sizes(p: &Plan, what: &str) -> Vec<f64> {
    let text = p.printed.clone().unwrap();
    text.lines()
        .filter(|l| l.contains(&format!("{what} buffer size")))
        .map(|l| l.split('=').nth(1).unwrap().trim().trim_end_matches(" MiB").parse().unwrap())
        .collect()
}

#[track_caller]
fn near(got: &[f64], want: &[f64], share: f64) {
    assert_eq!(got.len(), want.len(), "{got:?} {want:?}");
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= w * share + 0.011, "{got:?} is not {want:?}");
    }
}

#[test]
fn llama_8b_q4_0_as_printed() {
    // Printed for a Llama-3.1-8B shape in Q4_0: CUDA0 4155.99, CPU_Mapped 281.81 MiB, 33/33 layers.
    let p = run(LLAMA_8B, "Q4_0", "-m x -c 8192 -np 1 -ngl 33 -fa on", 24);
    near(&sizes(&p, "model"), &[4155.99, 281.81], 0.0);
    near(&sizes(&p, "KV"), &[1024.0], 0.0);
    assert!(p.printed.unwrap().contains("offloaded 33/33 layers to GPU"));
}

#[test]
fn a_start_up_of_ollama_as_printed() {
    // Llama-3.1-8B-Instruct Q4_K_M, four slots in one cache, without flash attention (two logs).
    let p = run(LLAMA_8B, "Q4_K_M", "-m x -c 8192 -np 4 -kvu -ngl 33 -fa off", 24);
    near(&sizes(&p, "model"), &[4403.49, 281.81], 0.0);
    near(&sizes(&p, "KV"), &[1024.0], 0.0);
    near(&sizes(&p, "compute"), &[560.0], 0.0);
    let host = p.terms.iter().find(|t| t.name == "llama_cpp.compute_buffer").unwrap().quantity.expected;
    assert_eq!(host, 24 << 20);
}

#[test]
fn known_models_as_printed() {
    // gpt-oss-20b of ggml-org (three logs), Llama-3.1-70B's shape in Q4_K_M (two logs).
    for (id, quant, model, ram) in [
        ("openai/gpt-oss-20b", "MXFP4", 10_949.38, 586.82),
        ("meta-llama/Llama-3.1-70B-Instruct", "Q4_K_M", 39_979.48, 563.63),
    ] {
        let config = crate::catalogue::find(id).unwrap().config();
        let p = run(config, quant, "-m x -c 4096 -np 1 -ngl 99", 80);
        near(&sizes(&p, "model"), &[model, ram], 0.0);
    }
}

#[test]
fn layers_on_four_cards_as_printed() {
    // DeepSeek-R1-Distill-Qwen-32B Q4_K_M on four equal cards.
    let p = run(QWEN_32B, "Q4_K_M", "-m x -c 8192 -ngl 65 -ts 1,1,1,1 -np 1", 24);
    near(&sizes(&p, "model"), &[4844.72, 4366.53, 4366.53, 4930.57, 417.66], 0.001);
    assert_eq!(p.gpu.tightest_stage, 3);
}

#[test]
fn windows_and_half_of_the_layers_as_printed() {
    // gemma-3-1b Q4_K_M: -ngl 14 puts 13 layers and the output on the card; ubatch 64, no flash attention.
    let p = run(GEMMA_3_1B, "Q4_K_M", "-m x -c 1536 -ngl 14 -b 128 -ub 64 -fa off -np 1", 8);
    near(&sizes(&p, "model")[..1], &[535.31], 0.001);
    near(&sizes(&p, "compute"), &[64.28], 0.0);
    let kv = &p.gpu.kv_cache;
    // 3.00 MiB for two whole layers, 8.25 MiB for eleven with windows of 768 cells.
    assert_eq!(kv.available_bytes.expected, (300 + 825) * 1024 * 1024 / 100);
    assert_eq!(kv.groups[1].blocks_per_request, 768);
}

#[test]
fn compute_buffers_as_printed() {
    // With flash attention or small caches the logits decide; without, the scores of all heads.
    let qwen = run(QWEN_3B, "Q4_K_M", "-m x -c 4096 -ngl 99 -np 1 -fa off", 16);
    near(&sizes(&qwen, "compute"), &[300.75], 0.0);
    near(&sizes(&qwen, "KV"), &[144.0], 0.0);
    for (context, kv, compute) in [(2048, 256.0, 164.0), (32_768, 4096.0, 2144.0)] {
        let p = run(MISTRAL_7B, "Q4_K_M", &format!("-m x -c {context} -ngl 99 -np 1 -fa off"), 48);
        near(&sizes(&p, "KV"), &[kv], 0.0);
        near(&sizes(&p, "compute"), &[compute], 0.0);
    }
}

/// A hybrid of full and linear attention: Qwen3.6-27B's shapes, 16 of 64 layers with keys.
fn hybrid() -> Gguf {
    let mut w = Writer::default()
        .text("general.architecture", "qwen35")
        .int("qwen35.block_count", 64)
        .int("qwen35.context_length", 262_144)
        .int("qwen35.embedding_length", 5120)
        .int("qwen35.feed_forward_length", 17_408)
        .int("qwen35.attention.head_count", 24)
        .int("qwen35.attention.head_count_kv", 4)
        .int("qwen35.attention.key_length", 256)
        .int("qwen35.attention.value_length", 256)
        .int("qwen35.ssm.conv_kernel", 4)
        .int("qwen35.ssm.inner_size", 6144)
        .int("qwen35.ssm.state_size", 128)
        .int("qwen35.ssm.group_count", 16)
        .tensor("token_embd.weight", &[5120, 248_320], 12)
        .tensor("output.weight", &[5120, 248_320], 14);
    for il in 0..64 {
        let name = |part: &str| format!("blk.{il}.{part}.weight");
        w = if il % 4 == 3 {
            w.tensor(&name("attn_k"), &[5120, 1024], 12)
        } else {
            w.tensor(&name("attn_qkv"), &[5120, 10_240], 12).tensor(&name("ssm_out"), &[6144, 5120], 12)
        };
    }
    Gguf::read(&w.bytes()).unwrap()
}

#[test]
fn states_as_printed() {
    let g = hybrid();
    let line =
        cli::parse(&["llama-server -m x -c 131072 -ngl 99 -ctk q8_0 -ctv q8_0".into()], &[], None).unwrap();
    let p = plan(&g.model().unwrap(), Some(&g), &line, &card(48)).unwrap();
    near(&sizes(&p, "KV"), &[4352.0], 0.0);
    near(&sizes(&p, "RS"), &[598.5], 0.0);
    near(&sizes(&p, "compute"), &[495.0], 0.0);
    let output = p.terms.iter().find(|t| t.name == "llama_cpp.output_buffer").unwrap().quantity.expected;
    assert_eq!(output, 4 * 4 * 248_320);
}

#[test]
fn parts_sum_to_the_whole_and_more_is_never_less() {
    let total = |p: &Plan| p.gpu.requested_bytes;
    let mut last = 0;
    for context in [1024, 4096, 9000, 65_536] {
        let p = run(LLAMA_8B, "Q4_K_M", &format!("-m x -c {context} -ngl 99 -np 1"), 80);
        let gpu: u64 = p.terms.iter().filter(|t| t.plane == Plane::Gpu).map(|t| t.quantity.expected).sum();
        assert_eq!(gpu, total(&p));
        let classes: u64 = p.gpu.weights_by_class.iter().map(|(_, b)| b).sum();
        assert_eq!(classes, p.gpu.weights_bytes.expected);
        assert!(total(&p) > last);
        last = total(&p);
    }
    let mut last = 0;
    for layers in [0, 1, 10, 32, 33] {
        let p = run(LLAMA_8B, "Q4_K_M", &format!("-m x -c 4096 -ngl {layers} -np 1"), 80);
        assert!(p.gpu.weights_bytes.expected >= last);
        last = p.gpu.weights_bytes.expected;
        let ram = p.terms.iter().find(|t| t.name == "llama_cpp.model_buffer").unwrap();
        // What is on no card is in RAM.
        let all = 4403.49 + 281.81;
        let sum = (last + ram.quantity.expected) as f64 / 1_048_576.0;
        assert!((sum - all).abs() < 1.0, "{layers} layers: {sum}");
    }
}

#[test]
fn what_is_given_is_refused_and_what_is_open_is_fitted() {
    let given = run(LLAMA_8B, "F16", "-m x -c 32768 -ngl 99 -np 1", 12);
    assert_eq!(given.verdict, Verdict::Refused);
    assert!(given.refusal.unwrap().message.contains("cudaMalloc failed: out of memory"));
    let open = run(LLAMA_8B, "F16", "-m x", 12);
    assert_eq!(open.verdict, Verdict::Fits);
    assert!(open.unknown[0].what.contains("--fit"), "{:?}", open.unknown);
    assert!(open.gpu.requested_bytes + FIT_TARGET <= 12 * GIB);
    // A layer more would not have fitted.
    let more = run(LLAMA_8B, "F16", "-m x -c 4096 -ngl 26", 12);
    assert!(more.gpu.requested_bytes + FIT_TARGET > 12 * GIB);
    assert_eq!(run(LLAMA_8B, "F16", "-m x -fit off", 12).verdict, Verdict::Refused);
}

#[test]
fn what_is_not_known_is_said() {
    let line = |text: &str| cli::parse(&[text.into()], &[], None).unwrap();
    let m = model(LLAMA_8B);
    let err = |text: &str| plan(&m, None, &line(text), &card(24)).unwrap_err().to_string();
    assert!(err("llama-server -m x").contains("--quant"));
    assert!(err("llama-server -m x-Q4_K_M.gguf -sm row").contains("row"));
    assert!(err("llama-server -m x-Q4_K_M.gguf -ctk fp8").contains("--cache-type-k"));
    let mut wrong = line("llama-server -m x");
    wrong.launch.quantization = Some("Q9_K".into());
    assert!(plan(&m, None, &wrong, &card(24)).unwrap_err().to_string().contains("Q9_K"));
}
