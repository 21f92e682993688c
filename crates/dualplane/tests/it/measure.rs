//! `measure` as a user runs it, where no server is: errors that say what to do, before anything is measured.

use crate::harness::{code, dir, run, stderr};

#[test]
fn what_cannot_be_measured_is_told_at_once() {
    let of = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let o = run(&[&["measure"][..], &words].concat());
        (code(&o), stderr(&o))
    };
    let (c, e) = of("--target http://127.0.0.1:1 --traffic chat");
    assert!(c == 3 && e.contains("/v1/models") && e.contains("--model"), "{c} {e}");
    let (c, e) = of("--target https://x --traffic chat");
    assert!(c == 2 && e.contains("port-forward"), "{c} {e}");
    let (c, e) = of("--target http://127.0.0.1:1 --model m");
    assert!(c == 2 && e.contains("--traffic"), "{c} {e}");
    let (c, e) = of("--target http://127.0.0.1:1 --traffic chat --slo ttft=fast");
    assert!(c == 2 && e.contains("50ms"), "{c} {e}");
    let (c, e) = of("--target http://127.0.0.1:1 --traffic chat --out report.pdf");
    assert!(c == 2 && e.contains(".html"), "{c} {e}");
    assert_eq!(of("--traffic chat").0, 2);
}

#[test]
#[cfg(target_os = "linux")]
fn the_results_of_a_load_tool_become_a_report() {
    let results = br#"{"date":"x","model_id":"m","num_prompts":50,"duration":10.0,"completed":48,"request_throughput":4.8,"mean_ttft_ms":50.0,"median_ttft_ms":40.0,"p99_ttft_ms":90.0}"#;
    let folder = dir(&[("made.json", results)]);
    let (from, to) = (folder.path().join("made.json"), folder.path().join("result.json"));
    let report = folder.path().join("report.json");
    let words = [
        "measure",
        "--out",
        report.to_str().unwrap(),
        "-o",
        "html",
        "--",
        "cp",
        from.to_str().unwrap(),
        to.to_str().unwrap(),
    ];
    let o = run(&words);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let page = String::from_utf8(o.stdout).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("vllm bench serve"), "{page}");
    let text = std::fs::read_to_string(&report).unwrap();
    let m = dualplane_gate::document::read(&text).unwrap();
    assert_eq!((m.tool.load_tool.as_deref(), m.runs[0].measured_seconds), (Some("vllm bench serve"), 10.0));
}
