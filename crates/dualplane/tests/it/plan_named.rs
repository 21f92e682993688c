//! A model that is named as people name it: before the flags, with nothing else or with flags alone.

use crate::harness::{code, dir, run, stderr, stdout};

fn plan(args: &[&str]) -> String {
    let o = run(&[&["plan", "--gpu", "H100", "--engine-version", "0.33.0", "-o", "json"], args].concat());
    assert_eq!(code(&o), 0, "{args:?}: {}", stderr(&o));
    stdout(&o)
}

#[test]
fn a_name_is_a_name_wherever_it_stands() {
    let alone = plan(&["qwen3-14b"]);
    assert_eq!(alone, plan(&["--model", "qwen3-14b"]));
    assert_eq!(alone, plan(&["--", "vllm", "serve", "qwen3-14b"]));
    let flags = ["--max-model-len", "8192", "--kv-cache-dtype", "fp8"];
    let whole = plan(&[&["--", "vllm", "serve", "qwen3-14b"], &flags[..]].concat());
    assert_eq!(plan(&[&["qwen3-14b", "--"], &flags[..]].concat()), whole);
    assert_eq!(plan(&[&["--model", "qwen3-14b", "--"], &flags[..]].concat()), whole);
    assert_ne!(alone, whole);
}

#[test]
fn flags_alone_are_of_what_serves_the_model() {
    let o = run(&["plan", "Qwen/Qwen3-8B-GGUF:Q4_K_M", "--gpu", "H100", "--", "-c", "4096"]);
    assert!(stdout(&o).contains("llama.cpp"), "{}{}", stdout(&o), stderr(&o));
    // The flags are read: one that the engine lacks is told.
    let o = run(&["plan", "qwen3-14b", "--gpu", "H100", "--", "--max-model-length", "8192"]);
    assert!(code(&o) == 2 && stderr(&o).contains("--max-model-len"), "{}", stderr(&o));
}

#[test]
fn what_names_nothing_says_what_is_missing() {
    let o = run(&["plan", "--gpu", "H100", "--", "--max-model-len", "8192"]);
    assert!(stderr(&o).contains("give MODEL before `--`"), "{}", stderr(&o));
    let o = run(&["plan", "qwen3-14b", "--gpu", "H100", "--max-model-len", "8192"]);
    assert!(code(&o) == 2 && stderr(&o).contains("stand behind `--`"), "{}", stderr(&o));
    let o = run(&["plan", "qwen3-14b", "--model", "qwen3-8b"]);
    assert_eq!(code(&o), 2, "{}", stderr(&o));
    // A start is checked as it will be: a name alone is none.
    let o = run(&["preflight", "qwen3-14b"]);
    assert!(code(&o) == 2 && stderr(&o).contains("COMMAND"), "{}", stderr(&o));
}

#[test]
fn a_fit_needs_no_command_either() {
    let ask = |model: &[&str]| {
        let all = [
            "fit",
            "--gpu",
            "H100",
            "--input-tokens",
            "1000",
            "--output-tokens",
            "300",
            "--concurrency",
            "20",
        ];
        stdout(&run(&[&all[..], model].concat()))
    };
    assert_eq!(ask(&["qwen3-14b"]), ask(&["--", "vllm", "serve", "qwen3-14b"]));
}

#[test]
fn a_size_alone_is_answered_with_models_of_it_and_a_command_that_runs() {
    let o = run(&["plan", "14B", "--gpu", "H100"]);
    let said = stderr(&o);
    assert!(code(&o) == 3 && said.contains("of about that size: ") && said.contains("Qwen3-14B"), "{said}");
    let command = said.split("known: ").nth(1).and_then(|c| c.lines().next()).unwrap();
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert_eq!(words, ["plan", "--params", "14B"]);
    assert_eq!(code(&run(&words)), 0, "{command}");
    // It takes the engine's flags as a name does, and says what would start where it does not.
    let o = run(&["plan", "--params", "14B", "--gpu", "L4", "--", "--max-model-len", "8192"]);
    let said = stdout(&o);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert!(said.contains("--tensor-parallel-size 2: on 2 × L4") && !said.contains("0 to 0"), "{said}");
}

#[test]
fn what_an_override_lacks_ends_the_start_and_what_the_file_had_to_say_does_not() {
    let asked = |overrides: &str| {
        run(&["plan", "--gpu", "H100", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--hf-overrides", overrides])
    };
    // As vLLM 0.33.0's own code was asked.
    let o = asked(r#"{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}"#);
    assert!(code(&o) == 2 && stderr(&o).contains("original_max_position_embeddings"), "{}", stderr(&o));
    let whole = r#"{"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}"#;
    for good in [whole, r#"{"num_hidden_layers": 4}"#, r#"{"num_attention_heads": 24}"#] {
        let o = asked(good);
        assert_eq!(code(&o), 0, "{good}: {}", stderr(&o));
    }
}

/// Its weights are told: bge-m3 is published with 568 million parameters.
#[test]
fn a_model_that_reads_a_text_at_once_has_no_pool() {
    let config = r#"{"architectures": ["XLMRobertaModel"], "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "vocab_size": 250002, "max_position_embeddings": 8194, "torch_dtype": "float32"}"#;
    let d = dir(&[("config.json", config.as_bytes())]);
    let o = run(&["plan", "--gpu", "L4", "--", "vllm", "serve", d.path().to_str().unwrap()]);
    let said = format!("{}{}", stdout(&o), stderr(&o)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&o), 6, "{said}");
    assert!(
        said.contains("keeps no KV cache") && said.contains("1.04 GiB to 1.23 GiB") && !said.contains("FITS"),
        "{said}"
    );
}
