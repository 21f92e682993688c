//! `gate` and `tune`: reports against policies, and a search that a shell line measures.

use serde_json::Value;

use crate::harness::{code, dir, root, run, stderr, stdout};
use crate::schema::follows;

fn at(name: &str) -> String {
    root().join("testdata/measure").join(name).to_string_lossy().into_owned()
}

fn gate(candidate: &str, more: &[&str]) -> std::process::Output {
    let (policy, candidate) = (at("gate.toml"), at(candidate));
    run(&[&["gate", "--policy", &policy, "--candidate", &candidate], more].concat())
}

#[test]
fn a_release_passes_fails_or_is_not_shown() {
    let base = at("baseline.json");
    let o = gate("clean.json", &["--baseline", &base]);
    assert_eq!(code(&o), 0, "{}{}", stdout(&o), stderr(&o));
    let o = gate("more-ram.json", &["--baseline", &base, "-o", "json"]);
    assert_eq!(code(&o), 50, "{}", stdout(&o));
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    follows(&v, "gate");
    let of = |outcome: &str| -> Vec<&str> {
        let checks = v["checks"].as_array().unwrap().iter().filter(|c| c["outcome"] == outcome);
        checks.map(|c| c["id"].as_str().unwrap()).collect()
    };
    assert_eq!(of("fail"), ["regression.host_peak"]);
    // Another model's baseline is no baseline, and no baseline is no pass.
    let text = std::fs::read_to_string(&base).unwrap().replace("example/chat-8b", "example/other");
    let d = dir(&[("other.json", text.as_bytes()), ("empty/x", b"")]);
    let other = d.path().join("other.json").to_string_lossy().into_owned();
    let o = gate("clean.json", &["--baseline", &other]);
    assert!(code(&o) == 51 && stdout(&o).contains("model differs"), "{}", stdout(&o));
    let o = gate("clean.json", &[]);
    assert!(code(&o) == 51 && stdout(&o).contains("no baseline was given"), "{}", stdout(&o));
    for format in ["markdown", "junit", "sarif"] {
        let o = gate("more-ram.json", &["--baseline", &base, "-o", format]);
        assert!(code(&o) == 50 && stdout(&o).contains("regression.host"), "{format}: {}", stdout(&o));
    }
}

#[test]
fn the_policy_that_init_prints_is_one() {
    let init = run(&["gate", "--init"]);
    let d = dir(&[
        ("gate.toml", stdout(&init).as_bytes()),
        ("bad.toml", b"schema = \"dualplane.gate-policy/v1\"\n[headroom]\nhsot = 1\n"),
        ("v9.toml", b"schema = \"dualplane.gate-policy/v9\"\n"),
        ("x.json", b"{}"),
    ]);
    let of = |name: &str| d.path().join(name).to_string_lossy().into_owned();
    let (clean, base) = (at("clean.json"), at("baseline.json"));
    let o = run(&["gate", "--policy", &of("gate.toml"), "--candidate", &clean, "--baseline", &base]);
    assert_eq!(code(&o), 0, "{}{}", stdout(&o), stderr(&o));
    for (policy, report, says) in [
        (of("bad.toml"), clean.clone(), "hsot"),
        (of("v9.toml"), clean.clone(), "update dualplane"),
        (of("gate.toml"), of("x.json"), "no report of `dualplane measure`"),
        (of("gate.toml"), of("missing.json"), "cannot read"),
    ] {
        let o = run(&["gate", "--policy", &policy, "--candidate", &report]);
        assert!(code(&o) == 3 && stderr(&o).contains(says), "{says}: {} {}", code(&o), stderr(&o));
    }
}

/// A made-up server: goodput rises with requests at a time until 24.
pub(crate) const MEASURE: &str = r#"
n=$(printf %s "$SERVER" | sed -n 's/.*--max-num-seqs \([0-9]*\).*/\1/p'); n=${n:-256}
[ "$n" -gt 32 ] && n=32
w=$((32 - n))
g=$((n > 24 ? 24 : n))
printf '{"schema":"dualplane.measure/v1","tool":{"name":"t","version":"1"},"subject":{"engine":"vllm"},"hardware":{"gpus":[],"cpus":2},"slo":{"ttft_seconds":1},
"runs":[{"name":"1","load":{"mode":"closed"},"measured_seconds":60,"use":{"cpu_cores":1.9},"kv":{"high_water_share":0.1,"preemptions":0},
"queue":{"waiting_peak":%d,"waiting_mean":%d,"running_peak":%d,"running_mean":%d},"requests":{"sent":100,"succeeded":100,"good":100},
"throughput":{"good_requests_per_second":%d}}]}' $w $w $n $n $g
"#;

#[test]
fn a_search_is_logged_resumed_and_stops_at_no_gain() {
    let d = dir(&[]);
    let log = d.path().join("tune.json").to_string_lossy().into_owned();
    let search = |steps: &str, measure: &str| {
        run(&[
            "tune",
            "--run",
            "--log",
            &log,
            "--steps",
            steps,
            "--measure",
            measure,
            "-o",
            "json",
            "--",
            "vllm",
            "serve",
            "m",
            "--max-num-seqs",
            "2",
        ])
    };
    // Measuring breaks at the second step: the first is kept.
    let broken = format!("case \"$SERVER\" in *'seqs 2') ;; *) exit 127 ;; esac\n{MEASURE}");
    let o = search("8", &broken);
    assert!(code(&o) == 2 && stderr(&o).contains("could not run it"), "{}", stderr(&o));
    let o = search("8", MEASURE);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    follows(&v, "tune");
    let steps = v["steps"].as_array().unwrap();
    assert!(steps.len() >= 2 && steps.len() <= 9, "{v:#}");
    let best = steps.iter().rfind(|s| s["decision"] == "keep").unwrap();
    assert!(best["numbers"]["goodput"].as_f64().unwrap() >= 0.9 * 24.0, "{v:#}");
    assert!(v["stopped"].is_string());
    let o = run(&["tune", "--log", &log]);
    assert!(stdout(&o).contains("step 1") && stdout(&o).contains("stopped"), "{}", stdout(&o));
    let o = run(&["tune", "--run", "--log", &log, "--measure", "true", "--", "vllm", "serve", "other"]);
    assert!(code(&o) == 3 && stderr(&o).contains("another command line"), "{}", stderr(&o));
}

#[test]
fn one_report_names_a_branch_and_a_move() {
    let o = run(&["tune", &at("few-at-a-time.json"), "-o", "json"]);
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    follows(&v, "tune");
    assert_eq!(
        (v["finding"]["branch"].as_str(), v["proposal"]["lever"].as_str()),
        (Some("batching"), Some("in_flight_batching"))
    );
    assert_eq!(v["proposal"]["flag"], "--max-num-seqs");
}

/// A move of a model and a card that are known is planned and rehearsed; what is not known is said.
#[test]
fn a_move_is_planned_and_rehearsed() {
    let o = run(&["tune", &at("few-at-a-time.json"), "-o", "json"]);
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert!(v["proposal"]["computed"][0].as_str().unwrap().starts_with("not planned: "), "{v:#}");
    let text = std::fs::read_to_string(at("few-at-a-time.json")).unwrap();
    let d = dir(&[("known.json", text.replace("example/chat-8b", "Qwen/Qwen3-8B").as_bytes())]);
    let path = d.path().join("known.json").to_string_lossy().into_owned();
    let o = run(&["tune", &path, "--traffic", "chat", "--rate", "2", "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    follows(&v, "tune");
    let computed = &v["proposal"]["computed"];
    assert!(computed[0].as_str().unwrap().starts_with("plan: a KV cache of "), "{computed:#}");
    assert!(computed[1].as_str().unwrap().starts_with("rehearsed: the KV cache at most "), "{computed:#}");
    assert_eq!(
        (v["proposal"]["engine"].as_str(), &v["proposal"]["names"][0]),
        (Some("vllm"), &"--max-num-seqs".into())
    );
}

#[test]
fn how_a_step_is_measured_must_be_said() {
    let d = dir(&[]);
    let log = d.path().join("t.json").to_string_lossy().into_owned();
    let of = |more: &[&str]| {
        run(&[&["tune", "--run", "--log", &log], more, &["--", "vllm", "serve", "m"]].concat())
    };
    for (more, says) in [
        (&[][..], "--target URL, or --measure LINE"),
        (&["--target", "http://127.0.0.1:9", "--load", "--trafic chat"], "see above"),
        (&["--target", "http://x", "--measure", "true"], "cannot be used with"),
    ] {
        let o = of(more);
        assert!(code(&o) == 2 && stderr(&o).contains(says), "{more:?}: {} {}", code(&o), stderr(&o));
    }
}

/// A report that counts twice would be more runs than were measured, or differ from nothing.
#[test]
fn a_report_counts_once() {
    let (policy, clean, base) = (at("gate.toml"), at("clean.json"), at("baseline.json"));
    let again = root().join("testdata/../testdata/measure/clean.json").to_string_lossy().into_owned();
    for (candidate, baseline, says) in [
        (vec![clean.as_str(), again.as_str()], base.as_str(), "is given twice"),
        (vec![clean.as_str()], again.as_str(), "is in --candidate too"),
    ] {
        let args =
            [&["gate", "--policy", &policy, "--baseline", baseline, "--candidate"][..], &candidate].concat();
        let o = run(&args);
        assert!(code(&o) == 2 && stderr(&o).contains(says), "{} {}", code(&o), stderr(&o));
    }
    let folder = at("");
    let o = run(&["gate", "--policy", &folder, "--candidate", &clean]);
    assert!(code(&o) == 3 && stderr(&o).contains("it is a directory"), "{}", stderr(&o));
}
