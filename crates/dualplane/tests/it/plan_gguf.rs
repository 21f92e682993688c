//! `dualplane plan` with GGUF files: read from disk, split, broken.

use serde_json::Value;

use crate::harness::{code, dir, run, stderr, stdout};

fn text(out: &mut Vec<u8>, s: &str) {
    out.extend((s.len() as u64).to_le_bytes());
    out.extend(s.as_bytes());
}

fn int(out: &mut Vec<u8>, key: &str, n: u32) {
    text(out, key);
    out.extend(4_u32.to_le_bytes());
    out.extend(n.to_le_bytes());
}

/// A small llama with tensors of layers `from..to` and a vocabulary that needs more than the first MiB.
fn gguf(from: u64, to: u64, split: Option<u32>) -> Vec<u8> {
    let mut keys = Vec::new();
    text(&mut keys, "general.architecture");
    keys.extend(8_u32.to_le_bytes());
    text(&mut keys, "llama");
    for (key, n) in [
        ("llama.block_count", 4),
        ("llama.context_length", 4096),
        ("llama.embedding_length", 1024),
        ("llama.feed_forward_length", 4096),
        ("llama.attention.head_count", 8),
        ("llama.attention.head_count_kv", 2),
        ("split.count", split.unwrap_or(1)),
    ] {
        int(&mut keys, key, n);
    }
    text(&mut keys, "tokenizer.ggml.tokens");
    keys.extend(9_u32.to_le_bytes());
    keys.extend(8_u32.to_le_bytes());
    keys.extend(100_000_u64.to_le_bytes());
    (0..100_000).for_each(|i| text(&mut keys, &format!("token{i}")));
    let mut tensors = Vec::new();
    let mut n = 0_u64;
    let mut add = |name: &str, shape: [u64; 2]| {
        text(&mut tensors, name);
        tensors.extend(2_u32.to_le_bytes());
        shape.iter().for_each(|d| tensors.extend(d.to_le_bytes()));
        // q8_0
        tensors.extend(8_u32.to_le_bytes());
        tensors.extend(0_u64.to_le_bytes());
        n += 1;
    };
    if from == 0 {
        add("token_embd.weight", [1024, 100_000]);
        add("output.weight", [1024, 100_000]);
    }
    for il in from..to {
        add(&format!("blk.{il}.attn_k.weight"), [1024, 256]);
        add(&format!("blk.{il}.ffn_up.weight"), [1024, 4096]);
    }
    let mut out = b"GGUF".to_vec();
    out.extend(3_u32.to_le_bytes());
    out.extend(n.to_le_bytes());
    out.extend(9_u64.to_le_bytes());
    out.extend(keys);
    out.extend(tensors);
    out
}

fn plan(path: &str) -> Value {
    let o = run(&[
        "plan",
        "--gpu",
        "L4",
        "-o",
        "json",
        "--",
        "llama-server",
        "-m",
        path,
        "-ngl",
        "99",
        "-np",
        "1",
    ]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    serde_json::from_slice(&o.stdout).unwrap()
}

#[test]
fn a_file_and_its_splits_say_every_tensor() {
    let d = dir(&[
        ("whole.gguf", &gguf(0, 4, None)),
        ("m-00001-of-00002.gguf", &gguf(0, 2, Some(2))),
        ("m-00002-of-00002.gguf", &gguf(2, 4, Some(2))),
    ]);
    let path = |name: &str| d.path().join(name).display().to_string();
    let v = plan(&path("whole.gguf"));
    // q8_0: 34 bytes for 32 elements; the embedding stays in RAM.
    let want = (100_000 + 4 * (256 + 4096)) * 1024 / 32 * 34_u64;
    assert_eq!(v["gpu"]["weights_bytes"]["expected"], want);
    assert_eq!(v["gpu"]["weights_bytes"]["low"], want);
    // 4 layers × 4096 cells × (256 + 256) × 2 bytes.
    assert_eq!(v["gpu"]["kv_cache"]["available_bytes"]["expected"], 4 * 4096 * 512 * 2);
    assert_eq!(v["verdict"], "fits");
    assert!(v["message"].as_str().unwrap().contains("offloaded 5/5 layers to GPU"));
    let split = plan(&path("m-00001-of-00002.gguf"));
    assert_eq!(split["gpu"]["weights_bytes"], v["gpu"]["weights_bytes"]);
}

#[test]
fn broken_files_are_errors_that_say_why() {
    let whole = gguf(0, 4, None);
    let mut hostile = whole.clone();
    hostile[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let d = dir(&[
        ("cut.gguf", &whole[..whole.len() / 2]),
        ("hostile.gguf", &hostile),
        ("alone-00001-of-00002.gguf", &gguf(0, 2, Some(2))),
    ]);
    for (name, why) in [
        ("cut.gguf", "does not end"),
        ("hostile.gguf", "exceed any known model"),
        ("alone-00001-of-00002.gguf", "00002-of-00002"),
    ] {
        let path = d.path().join(name).display().to_string();
        let o = run(&["plan", "--gpu", "L4", "--", "llama-server", "-m", &path]);
        assert!(code(&o) != 0 && o.stdout.is_empty(), "{name}: {}", stdout(&o));
        assert!(stderr(&o).contains(why), "{name}: {}", stderr(&o));
    }
}

#[test]
fn a_name_is_enough_where_the_model_is_known() {
    let o = run(&[
        "plan",
        "--gpu",
        "L4",
        "--",
        "llama-server",
        "-hf",
        "unsloth/Qwen3-8B-GGUF:Q4_K_M",
        "-c",
        "8192",
        "-ngl",
        "99",
    ]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert!(stdout(&o).contains("CUDA0 KV buffer size"), "{}", stdout(&o));
    // vLLM is asked for a GGUF file: said, not guessed.
    let d = dir(&[("m.gguf", &gguf(0, 4, None))]);
    let path = d.path().join("m.gguf").display().to_string();
    let o = run(&["plan", "--gpu", "L4", "--", "vllm", "serve", &path]);
    assert_eq!(code(&o), 6, "{}", stderr(&o));
}
