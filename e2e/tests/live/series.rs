//! Both planes over time, from a real Prometheus; and stores that are down, slow or no stores.

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use crate::harness::{manifest, run, unpack};

fn prometheus() -> String {
    std::env::var("E2E_PROMETHEUS").unwrap()
}

#[test]
fn the_working_set_before_the_death_is_in_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    run(&[
        "capture",
        "pod/healthy",
        "-n",
        "serving",
        "--prometheus",
        &prometheus(),
        "--out",
        &bundle.to_string_lossy(),
    ])
    .ok();
    let files = unpack(&bundle);
    let (_, host) = files.iter().find(|(n, _)| n == "prometheus/host.json").expect("series");
    let answer: serde_json::Value = serde_json::from_slice(host).unwrap();
    let series = answer["data"]["result"].as_array().unwrap();
    assert!(
        series.iter().any(|s| s["metric"]["__name__"] == "container_memory_working_set_bytes"),
        "{answer}"
    );
    assert!(series.iter().all(|s| s["metric"]["pod"] == "healthy"));
    let played = run(&["top", "--replay", &bundle.to_string_lossy(), "-o", "json"]).ok();
    let frame: serde_json::Value = serde_json::from_slice(&played.out).unwrap();
    let shown = frame["containers"].as_array().unwrap();
    // Its kubelet's cAdvisor finds no runtime at the usual socket and names no containers: the pod is what is shown.
    assert!(
        shown.iter().any(|c| c["name"] == "serving/healthy" && c["working_set"].is_u64()),
        "what a real Prometheus keeps is what is played: {frame}"
    );
}

#[test]
fn a_store_that_is_down_is_a_gap_and_costs_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    let down = ["--prometheus", "http://127.0.0.1:9", "--loki", "http://127.0.0.1:9"];
    let mut args = vec!["capture", "pod/pid1-oom", "-n", "serving", "--out"];
    let out = bundle.to_string_lossy().into_owned();
    args.push(&out);
    args.extend(down);
    let ran = run(&args).ok();
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    let manifest = manifest(&bundle);
    let gaps = manifest["gaps"].to_string();
    assert!(
        gaps.contains("cannot reach http://127.0.0.1:9") && gaps.contains("promtool query range"),
        "{gaps}"
    );
    assert!(gaps.contains("logcli query"), "{gaps}");
}

#[test]
fn a_store_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It accepts and says nothing.
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut head = [0; 1];
            let _ = stream.read(&mut head);
            held.push(stream);
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    let out = bundle.to_string_lossy().into_owned();
    let ran = run(&["capture", "pod/pid1-oom", "-n", "serving", "--out", &out, "--prometheus", &url]).ok();
    assert!(ran.took < Duration::from_secs(40), "{:?}", ran.took);
    let manifest = manifest(&bundle);
    assert!(manifest["gaps"].to_string().contains("timed out"), "{}", manifest["gaps"]);
    let logs =
        manifest["sources"].as_array().unwrap().iter().find(|s| s["name"] == "logs/vllm (previous)").unwrap();
    assert_eq!(logs["state"], "ok");
    assert!(logs["ms"].as_u64().unwrap() < 5000, "a slow store held the logs back: {logs}");
}

#[test]
fn what_is_no_url_is_said() {
    let ran = run(&["triage", "pod/pid1-oom", "-n", "serving", "--prometheus", "prom:9090"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("http://"), "{}", ran.err);
}
