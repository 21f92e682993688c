//! `dualplane rehearse`: requests against a plan, by the real binary.

use serde_json::{Value, json};

use crate::harness::{code, dir, root, run, stderr, stdout};

/// A plan whose pool is known, and 120 requests of 500 + 100 tokens, one every 20 ms: 80 of them are there at once.
const LAUNCH: [&str; 7] =
    ["--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "8192", "--max-num-seqs=64"];

fn trace() -> Vec<u8> {
    (0..120)
        .map(|i| format!("{{\"at\": {}, \"input\": 500, \"output\": 100}}\n", f64::from(i) * 0.02))
        .collect::<String>()
        .into_bytes()
}

fn rehearse(more: &[&str], command: &[&str]) -> std::process::Output {
    let d = dir(&[("trace.jsonl", &trace())]);
    let path = d.path().join("trace.jsonl");
    let mut args = vec!["rehearse", "--gpu", "H100-80GB", "--trace", path.to_str().unwrap()];
    args.extend(["--step-time", "base=0.02,token=0.00002"]);
    args.extend(more);
    args.extend(LAUNCH);
    args.extend(command);
    run(&args)
}

fn json_of(o: &std::process::Output) -> Value {
    assert_eq!(code(o), 0, "{}", stderr(o));
    serde_json::from_slice(&o.stdout).unwrap()
}

#[test]
fn an_ample_pool_holds_and_the_document_is_as_its_schema_says() {
    let v = json_of(&rehearse(&["-o", "json", "--with", "--max-num-seqs 8"], &[]));
    let schema = std::fs::read_to_string(root().join("docs/rehearsal.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&v).map(|e| format!("{e} at {}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let o = &v["launch"]["outcome"];
    assert_eq!((o["finished"].as_u64(), o["preemptions"].as_u64()), (Some(120), Some(0)), "{o}");
    assert_eq!(v["launch"]["settings"]["max_num_seqs"], 64);
    // Fewer at once: more wait, and less of the pool is held.
    let p = &v["proposals"][0];
    assert_eq!((&p["flags"], &p["settings"]["max_num_seqs"]), (&json!(["--max-num-seqs", "8"]), &json!(8)));
    assert_eq!(p["outcome"]["most_running"], 8);
    assert!(p["outcome"]["peak_blocks"].as_u64() < o["peak_blocks"].as_u64());
    assert!(p["outcome"]["longest_queue"].as_u64() > o["longest_queue"].as_u64());
}

/// A pool of 600 blocks of 16 tokens holds 15 such requests: with 64 at once some lose their blocks, with 15 none does.
#[test]
fn a_small_pool_preempts_and_fewer_sequences_would_have_held() {
    let small = ["--num-gpu-blocks-override", "601"];
    let v = json_of(&rehearse(&["-o", "json"], &small));
    let o = &v["launch"]["outcome"];
    assert_eq!((&v["launch"]["holds"], o["pool_blocks"].as_u64()), (&json!("no"), Some(600)));
    assert!(o["preemptions"].as_u64().unwrap() > 0 && o["peak_blocks"].as_u64().unwrap() > 590, "{o}");
    let most = v["limits"]["sequences"].as_u64().unwrap();
    assert!((15..=18).contains(&most), "{most}");
    let with = format!("--max-num-seqs {most}");
    let o = rehearse(&["--with", &with, "--exit-code", "--no-search"], &small);
    assert_eq!(code(&o), 32, "{}", stderr(&o));
    let text = stdout(&o);
    assert!(text.starts_with("PREEMPTS  Qwen/Qwen3-8B on H100-80GB"), "{text}");
    assert!(text.contains(&format!("With {with}")) && text.contains("no preemption"), "{text}");
    assert!(text.contains("100 % │") && text.contains("preempt │"), "{text}");
    let svg = stdout(&rehearse(&["-o", "svg", "--no-search"], &small));
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>") && svg.contains("600 blocks"));
}

#[test]
fn a_shape_is_drawn_by_its_seed() {
    let ask = |seed: &str| {
        let args = [
            "rehearse",
            "qwen3-14b",
            "--gpu",
            "H100-80GB",
            "--traffic",
            "chat",
            "--seconds",
            "20",
            "--no-search",
        ];
        json_of(&run(&[&args[..], &["--seed", seed, "-o", "json"]].concat()))
    };
    let (a, b, c) = (ask("1"), ask("1"), ask("2"));
    assert_eq!(a, b);
    assert_ne!(a["launch"]["outcome"], c["launch"]["outcome"]);
    assert_eq!(a["step_time"]["source"], "estimated");
    assert!(a["missing"][0].as_str().unwrap().contains("--step-time-from"));
}

/// A log with lines of requests tells the load; a launch that is given stands beside it.
#[test]
fn the_requests_before_a_death_are_those_of_its_log() {
    let log = root().join("testdata/profile/serving.log");
    let args =
        ["rehearse", "--gpu", "H100-80GB", "--incident", log.to_str().unwrap(), "--no-search", "-o", "json"];
    let v = json_of(&run(&[&args[..], &["--seconds", "60"], &LAUNCH].concat()));
    assert!(v["load"]["source"].as_str().unwrap().contains("bundle"), "{}", v["load"]);
    assert!(v["load"]["count"].as_u64().unwrap() > 0);
    // Nothing tells of requests: what would is said.
    let d = dir(&[("pod.log", b"INFO hello\n")]);
    let path = d.path().to_str().unwrap().to_owned();
    let o = run(&[&["rehearse", "--gpu", "H100-80GB", "--incident", &path], &LAUNCH[..]].concat());
    assert_eq!(code(&o), 4, "{}", stderr(&o));
    assert!(stderr(&o).contains("--shape FILE"), "{}", stderr(&o));
}

/// What triage computes is rehearsed without being asked for.
#[test]
fn the_fix_of_an_incident_is_rehearsed_by_itself() {
    let incident = root().join("testdata/incidents/live-matrix-kv");
    let load = ["--traffic", "chat", "--rate", "1", "--seconds", "30", "--no-search", "-o", "json"];
    let v =
        json_of(&run(
            &[&["rehearse", "--gpu", "L40S", "--incident", incident.to_str().unwrap()], &load[..]].concat()
        ));
    let fix = &v["proposals"][0];
    assert_eq!(fix["flags"], serde_json::json!(["--max-model-len", "47584"]), "{v:#}");
    assert!(fix["advice"].as_str().unwrap().starts_with("Set --max-model-len 47584"), "{fix:#}");
    // A fix that no flag makes is named.
    let missing = v["missing"].to_string();
    assert!(missing.contains("it is not rehearsed: Or find 10.19 GiB more VRAM"), "{missing}");
    // A cache that holds is no all-clear for the other plane.
    let killed = root().join("testdata/incidents/vllm-both-planes-to-the-kill");
    let v = json_of(&run(&[
        &["rehearse", "--gpu", "H100-80GB", "--incident", killed.to_str().unwrap()],
        &load[..],
    ]
    .concat()));
    assert!(v["missing"].to_string().contains("\"this death was of host RAM"), "{}", v["missing"]);
}

/// One headline says all: requests that never fit are no load that holds, and what the assumptions decide is uncertain.
#[test]
fn the_headline_is_honest() {
    let lines = "{\"at\": 0, \"input\": 500, \"output\": 10}\n{\"at\": 1, \"input\": 9000, \"output\": 10}\n";
    let d = dir(&[("t.jsonl", lines.as_bytes())]);
    let path = d.path().join("t.jsonl").to_string_lossy().into_owned();
    let of = |more: &[&str]| {
        let args = ["rehearse", "--gpu", "H100-80GB", "--trace", &path, "--no-search", "--exit-code"];
        let line =
            ["--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "8192", "--max-num-seqs", "64"];
        run(&[&args[..], more, &line].concat())
    };
    let o = of(&[]);
    assert!(stdout(&o).starts_with("REFUSES SOME  ") && code(&o) == 32, "{} {}", code(&o), stdout(&o));
    // What a step costs decides from when on the queue grows; near there, a tenth more or less decides.
    let lines: String = (0..400)
        .map(|i| format!("{{\"at\": {}, \"input\": 100, \"output\": 100}}\n", f64::from(i) * 0.2))
        .collect();
    std::fs::write(&path, lines).unwrap();
    for (base, word, exit, why) in [
        ("0.055", "HOLDS", 0, ""),
        ("0.06", "UNCERTAIN", 10, "as expected it holds; it falls behind if steps take 1.10 times as long"),
        ("0.075", "UNCERTAIN", 10, "as expected it falls behind; it holds if steps take 0.91 times as long"),
        ("0.1", "FALLS BEHIND", 32, ""),
    ] {
        let o = of(&["--step-time", &format!("base={base},request=0.001")]);
        let text = stdout(&o);
        assert!(
            text.starts_with(word) && text.contains(why) && code(&o) == exit,
            "{base} {} {text}",
            code(&o)
        );
    }
}

#[test]
fn what_cannot_be_rehearsed_says_why() {
    let says = |args: &[&str], exit: i32, what: &str| {
        let o = run(args);
        assert_eq!(code(&o), exit, "{args:?}: {}", stderr(&o));
        assert!(stderr(&o).contains(what), "{args:?}: {}", stderr(&o));
    };
    let gpu = ["rehearse", "--gpu", "H100-80GB"];
    let of = |more: &[&'static str]| [&gpu[..], more, &LAUNCH[..4]].concat();
    says(&of(&[]), 2, "of which requests?");
    says(&of(&["--traffic", "chatt"]), 2, "chat");
    says(&of(&["--traffic", "chat", "--rate", "0"]), 2, "above 0");
    says(&of(&["--traffic", "chat", "--with", "96"]), 2, "--max-num-seqs 96");
    says(&of(&["--traffic", "chat", "--with", "--swap-space 4"]), 2, "cannot be replaced");
    says(&of(&["--traffic", "chat", "--step-time", "base=fast"]), 2, "is no number");
    says(&of(&["--trace", "/nonexistent"]), 3, "/nonexistent");
    says(&["rehearse", "--traffic", "chat", "--", "vllm", "serve", "Qwen/Qwen3-8B"], 2, "--gpu");
    says(
        &[&gpu[..], &["--traffic", "chat", "--", "sglang", "serve", "--model-path", "Qwen/Qwen3-8B"]]
            .concat(),
        6,
        "SGLang",
    );
    let d = dir(&[("bad.jsonl", b"{\"at\": 0, \"input\": 5, \"output\": 1}\n{\"at\": 0}\n")]);
    let path = d.path().join("bad.jsonl");
    let args = [&gpu[..], &["--trace", path.to_str().unwrap()], &LAUNCH[..4]].concat();
    let o = run(&args);
    assert_eq!(code(&o), 2);
    assert!(stderr(&o).contains("line 2: missing field"), "{}", stderr(&o));
}

/// 4,096 cells: two prompts of 1,000 tokens fit with their answers of 1,000, four do not.
#[test]
fn slots_of_llama_cpp_share_a_cache_or_divide_it() {
    let d = dir(&[(
        "trace.jsonl",
        &(0..4).map(|_| "{\"at\": 0, \"input\": 1000, \"output\": 1000}\n").collect::<String>().into_bytes(),
    )]);
    let path = d.path().join("trace.jsonl");
    let of = |more: &[&str], with: &[&str]| {
        let mut args =
            vec!["rehearse", "--gpu", "L40S", "--trace", path.to_str().unwrap(), "--quant", "Q4_K_M"];
        args.extend(["--step-time", "base=0.02,token=0.00002"]);
        args.extend(more);
        args.extend(["--", "llama-server", "-m", "Qwen/Qwen3-8B", "-c", "4096"]);
        args.extend(with);
        run(&args)
    };
    let text = |with: &[&str]| {
        let o = of(&[], with);
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        stdout(&o)
    };
    let shared = text(&["--parallel", "4", "--kv-unified"]);
    assert!(shared.starts_with("BREAKS OFF") && shared.contains("4,096 of 4,096 cells held"), "{shared}");
    assert!(shared.contains("4 requests end with \"Context size has been exceeded\""), "{shared}");
    assert!(shared.contains("--parallel 2 with --kv-unified is the most"), "{shared}");
    let two = text(&["--parallel", "2", "--kv-unified"]);
    assert!(two.contains("3,998 of 4,096 cells held") && !two.contains("end with"), "{two}");
    let own = text(&["--parallel", "4"]);
    assert!(own.starts_with("CUTS SHORT") && own.contains("4 answers end early"), "{own}");
    let o = of(&["-o", "json"], &["--parallel", "8"]);
    let v = json_of(&o);
    assert_eq!(
        (v["launch"]["outcome"]["rejected"].as_u64(), &v["launch"]["settings"]["cells"]),
        (Some(4), &json!("own"))
    );
    let schema = std::fs::read_to_string(root().join("docs/rehearsal.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert!(validator.is_valid(&v), "{v}");
    let o = of(&["--with", "--max-num-seqs 8"], &[]);
    assert!(code(&o) == 2 && stderr(&o).contains("only flags of vLLM"), "{}", stderr(&o));
}

/// What is missing is named, and that dualplane knew nothing of it is not said.
#[test]
fn a_launch_that_says_too_little_is_told_what_to_say() {
    for command in ["rehearse", "plan"] {
        let mut args = vec![command, "--gpu", "L40S", "--model", "Qwen/Qwen3-8B"];
        if command == "rehearse" {
            args.extend(["--traffic", "chat"]);
        }
        args.extend(["--", "llama-server", "-m", "model.gguf", "-c", "4096"]);
        let o = run(&args);
        let said = format!("{}{}", stdout(&o), stderr(&o)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code(&o), 6, "{said}");
        assert!(said.contains("give the path of the .gguf file, or --quant Q4_K_M"), "{said}");
        assert!(!said.contains("not supported") && !said.contains("does not know"), "{said}");
        args.splice(5..5, ["--quant", "Q4_K_M"]);
        let o = run(&args);
        assert!([0, 1].contains(&code(&o)), "as told, it goes: {}", stderr(&o));
    }
}
