//! `dualplane plan`: from a command, a manifest or a log to both planes.

use serde_json::Value;

use crate::harness::{code, dir, root, run, stderr, stdout};

const GIB: u64 = 1 << 30;

fn plan(args: &[&str]) -> Value {
    let mut all = vec!["plan", "-o", "json"];
    all.extend(args);
    let o = run(&all);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    serde_json::from_slice(&o.stdout).unwrap()
}

fn expected(v: &Value, pointer: &str) -> u64 {
    v.pointer(pointer).and_then(|q| q["expected"].as_u64()).unwrap_or_else(|| panic!("no {pointer}"))
}

#[test]
fn the_gpu_plane_sums_to_what_the_engine_may_take() {
    let v =
        plan(&["--gpu", "H100-80GB", "--engine-version", "0.11.0", "--", "vllm", "serve", "Qwen/Qwen3-8B"]);
    let parts: u64 = ["weights_bytes", "activation_bytes", "cuda_graph_bytes", "non_torch_bytes"]
        .iter()
        .map(|p| expected(&v, &format!("/gpu/{p}")))
        .sum();
    let pool = expected(&v, "/gpu/kv_cache/available_bytes");
    assert_eq!(parts + pool, expected(&v, "/gpu/requested_bytes"));
    assert_eq!(v["verdict"], "fits");
    // 36 layers, 8 heads of 128, K and V, 16 bits.
    let bytes = expected(&v, "/gpu/kv_cache/blocks") * 16 * 36 * 8 * 128 * 2 * 2;
    assert!(pool - bytes < 16 * 36 * 8 * 128 * 2 * 2);
    // Fixture 3 of the same card and version gives 5.56 GiB of activations for this vocabulary.
    assert!(expected(&v, "/gpu/activation_bytes").abs_diff(5_970_000_000) < 100_000_000);
}

#[test]
fn the_printed_pool_makes_everything_after_it_exact() {
    // Llama-3.1-8B printed 3.51x of 131,072 tokens at 56.21 GiB.
    let v = plan(&[
        "--gpu",
        "A100-80GB",
        "--available-kv",
        "56.21GiB",
        "--",
        "vllm",
        "serve",
        "meta-llama/Llama-3.1-8B-Instruct",
    ]);
    assert_eq!(v["gpu"]["kv_cache"]["max_concurrency"]["expected"], 3.51);
    let tokens = expected(&v, "/gpu/kv_cache/tokens");
    assert!(tokens.abs_diff(460_496) <= 48, "{tokens}");
    assert_eq!(v["gpu"]["kv_cache"]["tokens"]["low"], v["gpu"]["kv_cache"]["tokens"]["high"]);
}

#[test]
fn a_refusal_reads_as_the_engine_prints_it() {
    let o = run(&[
        "plan",
        "--gpu",
        "l4",
        "--exit-code",
        "--",
        "vllm",
        "serve",
        "meta-llama/Llama-3.1-8B-Instruct",
    ]);
    assert_eq!(code(&o), 32);
    let text = stdout(&o);
    assert!(text.starts_with("REFUSED"), "{text}");
    assert!(text.contains("the estimated maximum model length is"), "{text}");
}

#[test]
fn what_the_engine_rejects_names_the_flag() {
    for (args, name) in [
        (vec!["--gpu", "L4", "--", "vllm", "serve", "Qwen/Qwen3-8B", "-tp", "3"], "--tensor-parallel-size"),
        (
            vec!["--gpu", "L4", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "x"],
            "--max-model-len",
        ),
        (vec!["--gpu", "T4", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--dtype", "bfloat16"], "--dtype"),
        (vec!["--gpu", "L5", "--", "vllm", "serve", "Qwen/Qwen3-8B"], "--gpu"),
        (vec!["--emit", "flags", "--", "vllm", "serve", "Qwen/Qwen3-8B"], "--gpu"),
        (
            vec!["--gpu", "L4", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-num-seqs", "162.6"],
            "--max-num-seqs",
        ),
        (vec!["--gpu", "2xL4", "--", "vllm", "serve", "Qwen/Qwen3-8B", "-tp", "4"], "2xL4 has 2 GPUs"),
        (
            vec!["--gpu", "L4", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-modle-len", "8"],
            "--max-model-len",
        ),
        (vec!["--gpu", "L4", "--traffic", "chats", "--model", "qwen3-8b"], "batch"),
        (vec!["--gpu", "L4", "--params", "14"], "--params"),
        (
            vec!["--gpu", "L4", "--engine-version", "new", "--", "vllm", "serve", "Qwen/Qwen3-8B"],
            "--engine-version",
        ),
        (vec!["--gpu", "L4"], "COMMAND"),
        (
            vec![
                "--gpu",
                "H100",
                "--",
                "vllm",
                "serve",
                "qwen3-8b",
                "--enable-lora",
                "--max-lora-rank",
                "65",
            ],
            "none of 1, 8",
        ),
        (
            vec!["--gpu", "H100", "--", "CUDA_VISIBLE_DEVICES=0,1 vllm serve qwen3-8b -tp 4"],
            "World size (4) is larger than the number of available GPUs (2)",
        ),
        (vec!["--gpu", "H100", "--", "vllm", "serve", "--model"], "names a model"),
    ] {
        let mut all = vec!["plan"];
        all.extend(args);
        let o = run(&all);
        assert_eq!(code(&o), 2, "{all:?}");
        assert!(stderr(&o).contains(name), "{all:?}: {}", stderr(&o));
        assert!(o.stdout.is_empty());
    }
}

#[test]
fn what_is_not_supported_is_said_with_a_code_of_its_own() {
    let o = run(&["plan", "--gpu", "H100-80GB", "-o", "json", "--", "llama-server", "-m", "Qwen/Qwen3-8B"]);
    assert_eq!(code(&o), 6);
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert!(v["gpu"].is_null() && v["unsupported"].as_str().unwrap().contains("--quant"));
    assert_eq!(v["verdict"], "uncertain");
    assert!(expected(&v, "/host/steady_bytes") > 8 * GIB, "the prompt cache of 8 GiB is counted");
    let o = run(&["plan", "--gpu", "Gaudi-3", "--", "vllm", "serve", "Qwen/Qwen3-8B"]);
    assert_eq!(code(&o), 6);
    let o = run(&["plan", "--gpu", "L4", "--", "vllm", "serve", "nobody/unheard-of"]);
    assert_eq!(code(&o), 3);
    assert!(stderr(&o).contains("--online"), "{}", stderr(&o));
}

#[test]
fn a_model_of_ones_own_from_its_folder() {
    let config = r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 4096, "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
        "frobnication": 3}"#;
    let d = dir(&[
        ("config.json", config.as_bytes()),
        ("model.safetensors", &[0; 1000]),
        ("bad/config.json", b"{"),
        ("odd/config.json", b"{\"architectures\":[\"X\"]}"),
    ]);
    let path = |name: &str| d.path().join(name).to_str().unwrap().to_owned();
    let v = plan(&["--gpu", "L4", "--", "vllm", "serve", &path("")]);
    assert_eq!(expected(&v, "/host/page_cache_bytes"), 1000);
    assert!(v["unknown"].to_string().contains("frobnication"), "{}", v["unknown"]);
    // The command's path is in the container: the model may stand elsewhere.
    let w = plan(&["--gpu", "L4", "--model", &path("config.json"), "--", "vllm", "serve", "/models/mine"]);
    assert_eq!(w["gpu"]["weights_bytes"], v["gpu"]["weights_bytes"]);
    // An architecture that no table has is estimated by its sizes; without them there is nothing to go by.
    for (folder, want) in [("bad", 3), ("odd", 6), ("none.json", 3)] {
        let o = run(&["plan", "--gpu", "L4", "--", "vllm", "serve", &path(folder)]);
        assert_eq!(code(&o), want, "{folder}: {}", stderr(&o));
    }
}

const MANIFEST: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: serving}
spec:
  template:
    spec:
      containers:
      - name: server
        image: vllm/vllm-openai:v0.11.2
        command: [vllm, serve, meta-llama/Llama-3.1-70B-Instruct]
        args: ["--tensor-parallel-size=4", "--max-model-len", "32k"]
        resources: {limits: {memory: 8Gi, nvidia.com/gpu: "4"}}
"#;

#[test]
fn a_manifest_gives_version_memory_and_volumes() {
    let d = dir(&[("deploy.yaml", MANIFEST.as_bytes())]);
    let file = d.path().join("deploy.yaml");
    let file = file.to_str().unwrap();
    let v = plan(&["--gpu", "A100-80GB", "--manifest", file]);
    assert_eq!(v["engine"]["version"], "0.11.2");
    assert_eq!(v["gpus"], 4);
    assert_eq!(v["host"]["verdict"], "refused", "8 GiB hold no four workers");
    let findings = v["host"]["findings"].to_string();
    assert!(findings.contains("/dev/shm") && findings.contains("8.00 GiB"), "{findings}");
    let o = run(&["plan", "--gpu", "A100-80GB", "--manifest", file, "--emit", "resources"]);
    let yaml = stdout(&o);
    assert!(yaml.contains("medium: Memory") && yaml.contains("nvidia.com/gpu: 4"), "{yaml}");
    let o = run(&["plan", "--gpu", "A100-80GB", "--manifest", file, "--emit", "flags"]);
    assert!(stdout(&o).contains("--max-model-len=32000\n"), "{}", stdout(&o));
}

const LOG: &str = "INFO 10-27 09:43:05 [api_server.py:1839] vLLM API server version 0.11.0\n\
    INFO 10-27 09:43:05 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-0.6B', 'gpu_memory_utilization': 0.9}\n\
    INFO 10-27 09:44:05 [gpu_model_runner.py:4216] Model loading took 1.12 GiB memory and 4.3 seconds\n\
    INFO 10-27 09:44:15 [gpu_worker.py:298] Available KV cache memory: 64.10 GiB\n\
    INFO 10-27 09:44:15 [kv_cache_utils.py:1087] GPU KV cache size: 600,112 tokens\n";

#[test]
fn a_start_up_calibrates_the_next_question() {
    let d = dir(&[("start.log", LOG.as_bytes())]);
    let log = d.path().join("start.log");
    for name in ["residual.toml", "residual.json"] {
        let file = d.path().join(name);
        let file = file.to_str().unwrap();
        let v = plan(&["--gpu", "H100-80GB", "--from-log", log.to_str().unwrap(), "--calibration", file]);
        let measured: Vec<&str> =
            v["measured"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
        assert_eq!(measured, ["weights", "kv_cache.available", "kv_cache.tokens"]);
        let pool = (64.10 * GIB as f64) as u64;
        assert_eq!(expected(&v, "/gpu/kv_cache/available_bytes"), pool);
        // A what-if of the same server: a shorter length moves no memory.
        let ask = ["--gpu", "H100-80GB", "--calibration", file, "--engine-version", "0.11.0", "--"];
        let mut short = ask.to_vec();
        short.extend([
            "vllm",
            "serve",
            "Qwen/Qwen3-0.6B",
            "--gpu-memory-utilization",
            "0.9",
            "--max-model-len",
            "8192",
        ]);
        let w = plan(&short);
        assert!(expected(&w, "/gpu/kv_cache/available_bytes").abs_diff(pool) < GIB / 50);
        // Another model is another residual.
        let mut other = ask.to_vec();
        other.extend(["vllm", "serve", "openai/gpt-oss-20b"]);
        let o = plan(&other);
        assert!(o["calibration"].is_null());
        assert!(o["unknown"].to_string().contains("the calibration was not used"), "{}", o["unknown"]);
    }
}

#[test]
fn every_output_follows_from_one_answer_and_is_safe_to_show() {
    let hostile = "Qwen3-8B";
    let d = dir(&[("\u{1b}[31m<b>.json", include_bytes!("../../../../testdata/plan/llama.json"))]);
    let path = d.path().join("\u{1b}[31m<b>.json");
    for format in ["text", "json", "yaml", "markdown", "svg"] {
        for model in [hostile, path.to_str().unwrap()] {
            let o = run(&[
                "plan",
                "--allow-unknown-flags",
                "--gpu",
                "L40S",
                "-o",
                format,
                "--",
                "vllm",
                "serve",
                model,
                "--frob",
            ]);
            assert_eq!(code(&o), 0, "{format}: {}", stderr(&o));
            let text = stdout(&o);
            assert!(!text.contains('\u{1b}'), "{format}");
            if format == "svg" {
                assert!(text.starts_with("<svg") && !text.contains("<b>"));
            }
        }
    }
}

/// Answers requests of one client each with a status and a body, by the end of the path.
fn serve(files: &'static [(&'static str, &'static str)]) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().unwrap_or_default();
            let allowed = lines
                .take_while(|l| !l.is_empty())
                .any(|l| l.eq_ignore_ascii_case("authorization: bearer secret"));
            let body = files.iter().find(|(name, _)| path.contains(&format!("/{name} ")));
            let (status, body) = match body {
                _ if !allowed => ("401 Unauthorized", ""),
                Some((_, text)) => ("200 OK", *text),
                None => ("404 Not Found", ""),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

#[test]
fn a_configuration_is_fetched_only_when_asked_for() {
    let endpoint = serve(&[("config.json", include_str!("../../../../testdata/plan/llama.json"))]);
    let ask = |id: &str, token: Option<&str>, online: bool| {
        let mut c = crate::harness::dualplane();
        c.env("HF_ENDPOINT", &endpoint);
        if let Some(t) = token {
            c.env("HF_TOKEN", t);
        }
        c.args(["plan", "--gpu", "L4", "-o", "json"]);
        if online {
            c.arg("--online");
        }
        c.args(["--", "vllm", "serve", id]).output().unwrap()
    };
    let o = ask("someone/private", Some("secret"), true);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert!(v["model"]["source"].as_str().unwrap().ends_with("/someone/private/resolve/main/config.json"));
    assert_eq!(code(&ask("someone/private", Some("secret"), false)), 3);
    let refused = ask("someone/private", None, true);
    assert_eq!(code(&refused), 3);
    assert!(stderr(&refused).contains("HF_TOKEN"), "{}", stderr(&refused));
    assert_eq!(code(&ask("../../etc", Some("secret"), true)), 3);
}

#[test]
fn a_workload_finds_settings_that_hold_when_they_are_planned() {
    let ask = ["--input-tokens", "p50=1000,p99=8000", "--output-tokens", "500", "--concurrency", "16"];
    let mut args = vec!["fit", "-o", "json", "--gpu", "H100-80GB"];
    args.extend(ask);
    args.extend(["--", "vllm", "serve", "Qwen/Qwen3-8B"]);
    let o = run(&args);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    let schema = std::fs::read_to_string(root().join("docs/fit.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&v).map(|e| format!("{e} at {}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let here = &v["here"];
    assert_eq!(here["holds"], "fits");
    let seqs = here["max_num_seqs"].as_u64().unwrap();
    let share = here["gpu_memory_utilization"].to_string();
    let p = plan(&[
        "--gpu",
        "H100-80GB",
        "--",
        "vllm",
        "serve",
        "Qwen/Qwen3-8B",
        "--max-model-len",
        "8500",
        "--max-num-seqs",
        &seqs.to_string(),
        "--gpu-memory-utilization",
        &share,
    ]);
    assert!(p["gpu"]["kv_cache"]["max_concurrency"]["low"].as_f64().unwrap() >= seqs as f64);
    let all = v["alternatives"].as_array().unwrap();
    let rented: Vec<u64> =
        all.iter().filter(|a| a["holds"] == "fits").map(|a| a["rented_bytes"].as_u64().unwrap()).collect();
    assert!(rented.len() > 5 && rented.is_sorted());
    for (flag, value) in [
        ("--input-tokens", "p50=9,p99=1"),
        ("--input-tokens", "x"),
        ("--output-tokens", "p42=1"),
        ("--concurrency", "0"),
    ] {
        let mut bad: Vec<&str> = args.clone();
        let at = bad.iter().position(|a| *a == flag).unwrap();
        bad[at + 1] = value;
        let o = run(&bad);
        assert_eq!(code(&o), 2, "{flag} {value}");
        assert!(stderr(&o).contains(flag), "{}", stderr(&o));
    }
}

/// A manifest whose limit kills has no verdict above it that says otherwise, in any form.
#[test]
fn both_planes_are_one_verdict() {
    let d = dir(&[(
        "pod.yaml",
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: server\n    image: vllm/vllm-openai:v0.11.0\n    args: [--model, Qwen/Qwen3-8B]\n    resources: {limits: {memory: 2Gi, nvidia.com/gpu: 1}}\n",
    )]);
    let path = d.path().join("pod.yaml");
    let args = ["--gpu", "H100", "--manifest", path.to_str().unwrap()];
    let v = plan(&args);
    assert_eq!((v["verdict"].as_str(), v["host"]["verdict"].as_str()), (Some("refused"), Some("refused")));
    assert_eq!(v["ending"]["class"], "host_oom_killed");
    assert!(v["message"].as_str().unwrap().contains("Killed process"), "{v}");
    let o = run(&[&["plan", "--exit-code"][..], &args].concat());
    assert_eq!(code(&o), 20);
    assert!(stdout(&o).starts_with("REFUSED") && !stdout(&o).contains("FITS"), "{}", stdout(&o));
    // What is pasted instead sets a limit that holds.
    let o = run(&[&["plan", "--emit", "manifest"][..], &args].concat());
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let again = dir(&[("deploy.yaml", stdout(&o).as_bytes())]);
    let file = again.path().join("deploy.yaml");
    assert_eq!(plan(&["--manifest", file.to_str().unwrap()])["verdict"], "fits", "{}", stdout(&o));
    let o = run(&["plan", "--gpu", "L4", "--emit", "flags", "--", "vllm", "serve", "llama3.1:70b"]);
    assert_eq!((code(&o), stdout(&o).as_str()), (6, ""), "{}", stderr(&o));
    assert!(stderr(&o).contains("cuda_oom_load"), "{}", stderr(&o));
}

/// Without a GPU, the cards that hold a model, by any name, and what prices make of them.
#[test]
fn cards_that_hold_a_model() {
    let prices = dir(&[("prices.toml", b"H100 = 2.0\n\"p4de.24xlarge\" = 8.0\n")]);
    let file = prices.path().join("prices.toml");
    let o = run(&["plan", "-o", "json", "--model", "qwen2.5-72b", "--prices", file.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    let first = &v["hold"][0];
    assert_eq!((first["gpu"].as_str(), first["price"].as_f64()), (Some("A100-80GB"), Some(4.0)), "{first}");
    assert!(v["never"].to_string().contains("T4"));
    for (list, word) in [
        (&["--list-models", "phi"][..], "microsoft/phi-4"),
        (&["--list-gpus"], "p4d.24xlarge = 8 x"),
        (&["--list-gpus", "P4D.24"], "A100-40GB"),
        (&["--list-engines"], "vLLM"),
        (&["--list-engines", "llama"], "llama-server"),
    ] {
        let o = run(&[&["plan"][..], list].concat());
        assert!(code(&o) == 0 && stdout(&o).contains(word), "{list:?}: {}", stdout(&o));
    }
    let o = run(&["plan", "--list-gpus", "h100"]);
    assert!(!stdout(&o).contains("A100") && stdout(&o).contains("p5.48xlarge"), "{}", stdout(&o));
    for (list, pattern, near) in [("--list-gpus", "h1000", "H100"), ("--list-engines", "vlm", "vLLM")] {
        let o = run(&["plan", list, pattern]);
        assert_eq!(code(&o), 2);
        assert!(stderr(&o).contains(near), "{}", stderr(&o));
    }
    let o = run(&["plan", "--gpu", "L4", "--model", "Qwen3-15B"]);
    assert_eq!(code(&o), 3);
    assert!(stderr(&o).contains("Qwen/Qwen3-14B"), "{}", stderr(&o));
}

#[test]
fn plans_follow_the_published_schema() {
    let text = std::fs::read_to_string(root().join("docs/plan.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut seen = 0;
    // Siblings of one base are alike: a third of the catalogue has every shape.
    for entry in dualplane_plan::catalogue::CATALOGUE.iter().step_by(3) {
        for extra in [&["-tp", "8"][..], &["--kv-cache-dtype", "fp8", "--max-model-len", "8192"]] {
            let mut args = vec!["plan", "-o", "json", "--gpu", "B200", "--", "vllm", "serve", entry.id];
            args.extend(extra);
            let o = run(&args);
            if code(&o) == 2 {
                continue;
            }
            let v: Value = serde_json::from_slice(&o.stdout).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&v).map(|e| format!("{} at {}", e, e.instance_path)).collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", entry.id);
            seen += usize::from(code(&o) == 0);
        }
    }
    assert!(seen >= 100, "only {seen} plans were made");
    assert!(!validator.is_valid(&serde_json::json!({"schema": "dualplane.plan/v1"})));
}

#[test]
fn sglang_divides_the_card_by_its_static_share() {
    let command = ["--", "python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"];
    let base = ["--gpu", "H100-80GB", "--engine-version", "0.5.23"];
    let v = plan(&[&base[..], &command[..], &["--mem-fraction-static", "0.85"]].concat());
    let parts: u64 = ["weights_bytes", "activation_bytes", "cuda_graph_bytes", "non_torch_bytes"]
        .iter()
        .map(|p| expected(&v, &format!("/gpu/{p}")))
        .sum();
    let pool = expected(&v, "/gpu/kv_cache/available_bytes");
    assert!((parts + pool).abs_diff(expected(&v, "/gpu/total_bytes")) < 16);
    let tokens = expected(&v, "/gpu/kv_cache/tokens");
    assert_eq!(tokens, pool / 147_456);
    let message = v["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("max_total_num_tokens={tokens}, chunked_prefill_size=8192")),
        "{message}"
    );
    // The share of the release leaves less than a given 0.85.
    let own = plan(&[&base[..], &command[..]].concat());
    assert!(expected(&own, "/gpu/kv_cache/tokens") < tokens);
    let refused = plan(&[&base[..], &command[..], &["--mem-fraction-static", "0.15"]].concat());
    assert_eq!(refused["verdict"], "refused");
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("Loaded weights leave no GPU memory for the KV cache"), "{message}");
}

#[test]
fn tensorrt_llm_takes_a_share_of_what_is_left() {
    let at = |fraction| {
        let v = plan(&[
            "--gpu",
            "H100-80GB",
            "--",
            "trtllm-serve",
            "Qwen/Qwen3-8B",
            "--kv_cache_free_gpu_memory_fraction",
            fraction,
        ]);
        assert_eq!(v["verdict"], "fits");
        expected(&v, "/gpu/kv_cache/available_bytes")
    };
    assert!((at("0.9") / 9).abs_diff(at("0.5") / 5) < 16);
}

#[test]
fn a_card_that_is_taken_refuses_the_start() {
    let card = ["--gpu-memory", "23.56GiB", "--gpu", "RTX-3090", "--engine-version", "0.21.0"];
    let ask = |free: &str| {
        let mut args = card.to_vec();
        args.extend([
            "--free-gpu-memory",
            free,
            "--",
            "vllm",
            "serve",
            "Qwen/Qwen3-0.6B",
            "--max-model-len",
            "4096",
        ]);
        plan(&args)
    };
    let v = ask("12.18GiB");
    assert_eq!(v["verdict"], "refused");
    let message = v["message"].as_str().unwrap();
    assert!(
        message.starts_with("Free memory on device cuda:0 (12.18/23.56 GiB) on startup is less than desired"),
        "{message}"
    );
    assert_eq!(ask("23.5GiB")["verdict"], "fits");
    let near = ask("22.1GiB");
    assert_eq!(ask("21.8GiB")["ending"]["class"], "gpu_capacity_conflict");
    assert_eq!(near["verdict"], "uncertain");
    assert!(near["unknown"].to_string().contains("before it checks"), "{near}");
}

#[test]
fn a_drafter_is_counted_where_its_files_are_known() {
    let ask = |config: &str| {
        plan(&["--gpu", "H100-80GB", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--speculative-config", config])
    };
    let known = ask(r#"{"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 3}"#);
    let other = ask(r#"{"method": "draft_model", "model": "/models/mine", "num_speculative_tokens": 3}"#);
    let more = expected(&known, "/gpu/weights_bytes") - expected(&other, "/gpu/weights_bytes");
    // 0.6 billion parameters with an embedding that is also the head, 16 bits.
    assert!((1_190_000_000..1_300_000_000).contains(&more), "{more}");
    assert!(other["unknown"].to_string().contains("drafter"), "{other}");
    assert!(!known["unknown"].to_string().contains("drafter"), "{known}");
}

#[test]
fn triage_advises_what_a_plan_computes() {
    // vLLM 0.8 names no estimate: the length and the missing bytes come from the arithmetic of plans.
    let log = "INFO 05-05 09:43:05 [api_server.py:1043] vLLM API server version 0.8.5\n\
        INFO 05-05 09:43:05 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 40960}\n\
        INFO 05-05 09:44:11 [gpu_worker.py:298] Available KV cache memory: 4.00 GiB\n\
        ERROR 05-05 09:44:12 [core.py:396] ValueError: To serve at least one request with the models's max seq len \
        (40960), (5.62 GiB KV cache is needed, which is larger than the available KV cache memory (4.00 GiB). Try \
        increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n";
    let incident = dir(&[("previous.log", log.as_bytes())]);
    let o = run(&["triage", "-o", "json", incident.path().to_str().unwrap()]);
    let planned = plan(&[
        "--gpu",
        "H100-80GB",
        "--engine-version",
        "0.8.5",
        "--available-kv",
        "4.00GiB",
        "--",
        "vllm",
        "serve",
        "Qwen/Qwen3-8B",
        "--max-model-len",
        "40960",
    ]);
    assert_eq!(planned["verdict"], "refused");
    let len = planned["estimated_max_model_len"].as_u64().unwrap();
    assert!(len.abs_diff(4 * GIB / 147_456) < 16, "{len}");
    assert!(stdout(&o).contains(&format!("Set --max-model-len {len} (from 40,960)")), "{}", stdout(&o));
}
