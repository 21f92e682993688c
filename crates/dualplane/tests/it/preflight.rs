//! `dualplane preflight` with played GPUs: outcomes, codes, waiting, holders, a real memory limit, bad input.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{code, dir, dualplane, root, stderr, stdout};

const MIB: u64 = 1 << 20;

/// H100s of which so many MiB are in use by these pids, as a table of one step.
fn table(cards: &[(u64, &[(u32, u64)])]) -> Value {
    let devices: Vec<Value> = (0..cards.len())
        .map(|i| {
            json!({"uuid": format!("GPU-{i}{i}{i}{i}"), "index": i, "name": "NVIDIA H100 80GB HBM3", "capability": [9, 0]})
        })
        .collect();
    json!({"driver": {"version": "570.133.20", "cuda": [12, 8]}, "devices": devices, "steps": [step(0, cards)]})
}

fn step(at_ms: u64, cards: &[(u64, &[(u32, u64)])]) -> Value {
    let readings: Vec<Value> = cards
        .iter()
        .enumerate()
        .map(|(i, (used, _))| {
            json!({"device": i, "total": 81_559 * MIB, "reserved": 479 * MIB, "used": used * MIB,
                   "free": (81_080 - used) * MIB})
        })
        .collect();
    let processes: Vec<Value> = cards
        .iter()
        .enumerate()
        .flat_map(|(i, (_, p))| {
            p.iter().map(move |(pid, used)| json!({"device": i, "pid": pid, "used": used * MIB}))
        })
        .collect();
    json!({"at_ms": at_ms, "readings": readings, "processes": processes})
}

struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    /// Plays a table; `/proc` of its host holds one process and no other.
    fn new(table: &Value) -> Self {
        let id = "a".repeat(64);
        let group = format!(
            "0::/kubepods.slice/kubepods-pod9ebd9238_4ea3_417e_975f_99e0d23c5718.slice/cri-containerd-{id}.scope\n"
        );
        let stat = "4711 (VLLM::EngineCor) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n";
        let dir = dir(&[
            ("gpus.json", table.to_string().as_bytes()),
            ("proc/1/stat", b"1 (systemd) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n"),
            ("proc/4711/stat", stat.as_bytes()),
            ("proc/meminfo", b"MemTotal: 134217728 kB\nMemAvailable: 125829120 kB\n"),
            ("proc/4711/comm", b"VLLM::EngineCor\n"),
            ("proc/4711/cgroup", group.as_bytes()),
        ]);
        Self { dir }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut c = dualplane();
        c.arg("preflight").arg("--gpu-table").arg(self.dir.path().join("gpus.json"));
        // What limits this test itself is no part of it.
        c.env("DUALPLANE_MEMORY_LIMIT", "64Gi");
        c.arg("--host-proc").arg(self.dir.path().join("proc")).args(args);
        c
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> (i32, Value) {
        let mut all = vec!["-o", "json"];
        all.extend(args);
        let o = self.run(&all);
        (code(&o), serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&o))))
    }
}

const SMALL: &[&str] = &["--engine-version", "0.11.0", "--", "vllm", "serve", "Qwen/Qwen3-0.6B"];

#[test]
fn each_outcome_has_its_code() {
    let idle = table(&[(4, &[])]);
    let held = table(&[(40_004, &[(4711, 40_000)])]);
    let silent = json!({"devices": [], "gap": "Driver/library version mismatch"});
    let large = &["--", "vllm", "serve", "meta-llama/Llama-3.1-70B-Instruct"][..];
    let nobody = &["--", "vllm", "serve", "nobody/unheard-of"][..];
    for (table, args, want, word) in [
        (&idle, SMALL, 0, "go"),
        (&held, SMALL, 11, "wait"),
        (&idle, large, 12, "cannot_fit"),
        (&idle, nobody, 13, "unknown"),
        (&silent, SMALL, 13, "unknown"),
        (&idle, &[][..], 0, "go"),
        (&held, &[], 11, "wait"),
        (&silent, &[], 13, "unknown"),
    ] {
        let (code, v) = Machine::new(table).json(args);
        assert_eq!((code, v["outcome"].as_str()), (want, Some(word)), "{args:?}: {v:#}");
    }
    let mut allowed = vec!["--allow-unknown"];
    allowed.extend(SMALL);
    assert_eq!(Machine::new(&silent).json(&allowed).0, 0);
}

#[test]
fn a_model_of_ones_own_and_the_rule_that_decides() {
    let config = root().join("testdata/plan/configs/Qwen--Qwen3-0.6B_config.json");
    let config = config.to_str().unwrap();
    let m = Machine::new(&table(&[(40_004, &[(4711, 40_000)])]));
    let at = |version: &str, share: &str| {
        let args =
            ["--engine-version", version, "--", "vllm", "serve", config, "--gpu-memory-utilization", share];
        m.json(&args)
    };
    let (code, v) = at("0.11.0", "0.9");
    assert_eq!(code, 11);
    assert!(v["launch"]["rule"].as_str().unwrap().contains("request_memory"), "{v:#}");
    assert!(v["gpus"][0]["message"].as_str().unwrap().starts_with("Free memory on device ("), "{v:#}");
    // What the report advises is a go.
    let change = v["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|c| c["change"].as_str()?.strip_prefix("--gpu-memory-utilization "));
    assert_eq!(at("0.11.0", change.unwrap()).0, 0, "{v:#}");
    let (code, v) = at("0.8.5", "0.9");
    assert_eq!(code, 0, "this version subtracts what others hold: {v:#}");
}

#[test]
fn holders_have_a_name_an_age_and_a_pod_or_are_orphans() {
    let m = Machine::new(&table(&[(62_000, &[(4711, 30_000), (4712, 20_000)])]));
    let (code, v) = m.json(SMALL);
    assert_eq!(code, 11);
    let gpu = &v["gpus"][0];
    let of = |i: usize, key: &str| gpu["holders"][i][key].clone();
    assert_eq!(
        (of(0, "pid"), of(0, "name"), of(0, "state"), of(0, "orphan")),
        (json!(4711), json!("VLLM::EngineCor"), json!("runs"), json!(false))
    );
    assert_eq!(of(0, "pod_uid"), "9ebd9238-4ea3-417e-975f-99e0d23c5718");
    assert!(of(0, "age_seconds").as_u64().is_some());
    assert_eq!((of(1, "state"), of(1, "orphan")), (json!("gone"), json!(true)));
    assert_eq!(gpu["unexplained"], json!({"bytes": 12_000 * MIB, "kind": "orphan"}));
    assert_eq!(v["pid_namespace"], "host");
    let text = stdout(&m.run(SMALL));
    for want in [
        "WAIT  Qwen/Qwen3-0.6B on 1 GPU",
        "pid 4711, started",
        "pod UID 9ebd9238",
        "an orphaned context",
        "--gpu-reset -i 0",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    // A folder that is no /proc shows nothing, and nobody is called an orphan for it.
    let empty = tempfile::tempdir().unwrap();
    let table = m.dir.path().join("gpus.json");
    let o = dualplane()
        .args([
            "preflight",
            "-o",
            "json",
            "--gpu-table",
            table.to_str().unwrap(),
            "--host-proc",
            empty.path().to_str().unwrap(),
        ])
        .output()
        .unwrap();
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert!(
        v["gpus"][0]["holders"]
            .as_array()
            .unwrap()
            .iter()
            .all(|h| h["state"] == "not_visible" && h["orphan"] == false)
    );
    assert_eq!(v["gpus"][0]["unexplained"]["kind"], "unsure");
}

#[test]
fn waiting_ends_when_the_holder_does() {
    let mut t = table(&[(40_000, &[(4711, 40_000)])]);
    t["steps"].as_array_mut().unwrap().push(step(300, &[(4, &[])]));
    let m = Machine::new(&t);
    let mut args = vec!["--wait", "30s"];
    args.extend(SMALL);
    let o = m.run(&args);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    assert_eq!(stderr(&o).matches("waiting: ").count(), 1, "{}", stderr(&o));
    assert!(stderr(&o).contains("pid 4711"), "{}", stderr(&o));
    // Who never goes is waited for to the end, and what can never fit is not.
    let m = Machine::new(&table(&[(40_000, &[(4711, 40_000)])]));
    let mut args = vec!["--wait", "200ms"];
    args.extend(SMALL);
    assert_eq!(code(&m.run(&args)), 11);
    let o = m.run(&["--wait", "24h", "--", "vllm", "serve", "Qwen/Qwen3-0.6B", "-tp", "8"]);
    assert_eq!(code(&o), 12, "{}", stdout(&o));
}

#[test]
fn gpus_are_chosen_by_flag_and_by_environment() {
    let m = Machine::new(&table(&[(40_000, &[(4711, 40_000)]), (4, &[]), (4, &[])]));
    let with = |name: &str, value: &str, args: &[&str]| {
        code(&m.command(args).env(name, value).args(SMALL).output().unwrap())
    };
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "1", &[]), 0);
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "GPU-2222", &[]), 0);
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "0", &[]), 11);
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "0", &["--gpus", "2"]), 0);
    assert_eq!(with("NVIDIA_VISIBLE_DEVICES", "GPU-1111", &[]), 0);
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "-1", &[]), 12);
    let (_, v) = m.json(SMALL);
    let change = v["changes"][0]["change"].as_str().unwrap();
    assert_eq!(change, "CUDA_VISIBLE_DEVICES=GPU-1111");
}

#[test]
fn the_limit_of_the_server_is_told_or_unknown() {
    let m = Machine::new(&table(&[(4, &[])]));
    let pod = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let run = |env: &[(&str, &str)], args: &[&str]| {
        let mut all = vec!["-o", "json"];
        all.extend(args);
        all.extend(SMALL);
        let o =
            m.command(&all).env_remove("DUALPLANE_MEMORY_LIMIT").envs(env.iter().copied()).output().unwrap();
        let v: Value = serde_json::from_slice(&o.stdout).unwrap_or(Value::Null);
        (code(&o), v["host"]["limit_source"].as_str().map(str::to_owned), stderr(&o))
    };
    let source = |s: &str| Some(s.to_owned());
    assert_eq!(run(&[pod], &[]), (13, None, String::new()));
    assert_eq!(run(&[pod], &["--memory-limit", "64Gi"]), (0, source("--memory-limit"), String::new()));
    let told = ("DUALPLANE_MEMORY_LIMIT", "68719476736");
    assert_eq!(run(&[pod, told], &[]), (0, source("DUALPLANE_MEMORY_LIMIT"), String::new()));
    assert_eq!(run(&[pod, told], &["--memory-limit", "1Gi"]), (12, source("--memory-limit"), String::new()));
    for bad in ["64 elephants", "64", "-1", "0", "NaN", ""] {
        let (code, _, why) = run(&[], &[&format!("--memory-limit={bad}")]);
        assert!(code == 2 && why.contains("64Gi"), "{bad}: {code} {why}");
    }
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: s\n    image: vllm/vllm-openai:v0.11.0\n    args: [--model, Qwen/Qwen3-0.6B]\n    resources: {limits: {nvidia.com/gpu: 1, memory: 1Gi}}\n";
    let d = dir(&[("pod.yaml", manifest.as_bytes())]);
    let path = d.path().join("pod.yaml");
    let args = ["-o", "json", "--manifest", path.to_str().unwrap()];
    let o = m.command(&args).env_remove("DUALPLANE_MEMORY_LIMIT").output().unwrap();
    let (code, v): (i32, Value) = (code(&o), serde_json::from_slice(&o.stdout).unwrap());
    assert_eq!((code, v["host"]["limit_source"].as_str()), (12, Some("the manifest")), "{v:#}");
    assert!(v["changes"][0]["change"].as_str().unwrap().starts_with("resources.limits.memory: "), "{v:#}");
}

/// A group of our own with a limit, v1 or v2; `None` where none can be made.
fn group(limit: u64) -> Option<std::path::PathBuf> {
    let name = format!("dualplane-preflight-{}", std::process::id());
    let v1 = Path::new("/sys/fs/cgroup/memory");
    let (path, file) = if v1.is_dir() {
        (v1.join(name), "memory.limit_in_bytes")
    } else {
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
        (Path::new("/sys/fs/cgroup").join(name), "memory.max")
    };
    fs::create_dir(&path).ok()?;
    if fs::write(path.join(file), limit.to_string()).is_err() {
        let _ = fs::remove_dir(&path);
        return None;
    }
    Some(path)
}

#[test]
fn the_own_cgroup_limits_where_nobody_tells() {
    let Some(path) = group(1 << 30) else {
        eprintln!("no memory cgroup can be made here; skipped");
        return;
    };
    let m = Machine::new(&table(&[(4, &[])]));
    let inside = m
        .command(&["-o", "json"])
        .args(SMALL)
        .get_args()
        .map(|a| a.to_str().unwrap().to_owned())
        .collect::<Vec<_>>();
    let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", path.display());
    let o = Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_dualplane")])
        .args(&inside)
        .env_clear()
        .output()
        .unwrap();
    let _ = fs::remove_dir(&path);
    let v: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&o)));
    assert_eq!((code(&o), v["host"]["limit_bytes"].as_u64()), (12, Some(1 << 30)), "{v:#}");
    assert_eq!(v["host"]["limit_source"], "the own cgroup");
}

#[test]
fn bad_input_is_an_error_and_hostile_input_does_no_harm() {
    let d = dir(&[
        ("text", b"not json"),
        ("list", b"[]"),
        ("odd", br#"{"devices": [], "steps": [{"readings": [{"device": 9}]}]}"#),
    ]);
    for (file, want, why) in
        [("text", 2, "--gpu-table"), ("list", 2, "--gpu-table"), ("odd", 2, "device 9"), ("none", 3, "none")]
    {
        let path = d.path().join(file);
        let o = dualplane().args(["preflight", "--gpu-table", path.to_str().unwrap()]).output().unwrap();
        assert!(code(&o) == want && stderr(&o).contains(why), "{file}: {}", stderr(&o));
        assert!(o.stdout.is_empty());
    }
    let m = Machine::new(&table(&[(4, &[])]));
    for (args, why) in [
        (&["--wait", "soon"][..], "--wait"),
        (&["--", "vllm", "serve", "Qwen/Qwen3-8B", "-tp", "3"], "--tensor-parallel-size"),
        (&["--model", "Qwen/Qwen3-8B"], "COMMAND"),
        (&["--gpu", "L5", "--", "vllm", "serve", "Qwen/Qwen3-8B"], "--gpu"),
    ] {
        let o = m.run(args);
        assert!(code(&o) == 2 && stderr(&o).contains(why), "{args:?}: {}", stderr(&o));
    }
    let evil = "\u{1b}]0;owned\u{7}\u{202e}GPU";
    let mut t = table(&[(4, &[]), (4, &[(u32::MAX, 1)])]);
    t["devices"][0]["name"] = json!(evil.repeat(500));
    t["devices"][1]["uuid"] = json!(evil);
    t["devices"][1]["card"] = json!(77);
    t["steps"][0]["readings"][1] =
        json!({"device": 1, "total": u64::MAX, "used": u64::MAX, "free": u64::MAX, "reserved": u64::MAX});
    t["driver"]["version"] = json!(evil);
    let m = Machine::new(&t);
    for args in [SMALL, &[], &["--gpus", "GPU-\u{1b}[31m"], &["-v"], &["-o", "json"]] {
        let o = m.run(args);
        assert!(code(&o) != 1 && code(&o) != 101, "{args:?}: {}", stderr(&o));
        let text = format!("{}{}", stdout(&o), stderr(&o));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
    }
}

#[test]
fn checks_follow_the_published_schema() {
    let text = fs::read_to_string(root().join("docs/preflight.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let tables = [
        table(&[(4, &[])]),
        table(&[(62_000, &[(4711, 30_000), (4712, 20_000)]), (9, &[])]),
        json!({"devices": [], "gap": "no"}),
        json!({"devices": [{"uuid": "GPU-1", "mig": true}, {"uuid": "MIG-2", "name": "1g.10gb", "card": 0}], "steps": []}),
    ];
    let mut seen = 0;
    for t in &tables {
        let m = Machine::new(t);
        for args in [
            &[][..],
            SMALL,
            &["--memory-limit", "1Gi", "--", "vllm", "serve", "Qwen/Qwen3-8B", "-tp", "2"],
            &["--", "vllm", "serve", "x/y"],
        ] {
            let (_, v) = m.json(args);
            let errors: Vec<String> =
                validator.iter_errors(&v).map(|e| format!("{e} at {}", e.instance_path)).collect();
            assert!(errors.is_empty(), "{errors:#?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 16);
    assert!(!validator.is_valid(&json!({"schema": "dualplane.preflight/v1"})));
}

/// Every option of `preflight` that `plan` has not stands in its manual.
#[test]
fn every_option_is_documented() {
    let doc = fs::read_to_string(root().join("docs/preflight.md")).unwrap();
    let help = stdout(&dualplane().args(["preflight", "--help"]).output().unwrap());
    let words = help.lines().filter(|l| l.trim_start().starts_with('-')).filter_map(|l| {
        l.split_whitespace().find(|w| w.starts_with("--")).map(|w| w.trim_end_matches(',').to_owned())
    });
    let options: Vec<String> =
        words.filter(|o| !["--help", "--color", "--verbose", "--output"].contains(&o.as_str())).collect();
    assert!(options.len() > 12, "{options:?}");
    for o in options {
        assert!(doc.contains(&o), "docs/preflight.md does not name {o}");
    }
}
