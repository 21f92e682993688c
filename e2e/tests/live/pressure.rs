//! A server that lives at its limit is a finding with its plane, and a healthy one is none; a workload leads to its pods.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{nothing_failed, run};

/// Exit code of a server that lives with host RAM at its limit.
const HOST_PRESSURE: i32 = 14;
/// The kubelet sums up a container's memory every ten seconds.
const FIRST_READING: Duration = Duration::from_secs(45);

fn triage(target: &str) -> (Option<i32>, Value) {
    let ran = run(&["triage", target, "-n", "serving", "-o", "json", "--exit-code"]);
    (ran.code, ran.json())
}

#[test]
fn a_pod_that_lives_at_its_limit_is_pressure_on_its_plane() {
    let began = Instant::now();
    let (code, report) = loop {
        let (code, report) = triage("deploy/near-limit");
        if code == Some(HOST_PRESSURE) || began.elapsed() > FIRST_READING {
            break (code, report);
        }
        std::thread::sleep(Duration::from_secs(2));
    };
    assert_eq!(code, Some(HOST_PRESSURE), "{report:#}");
    let verdict = &report["verdict"];
    assert_eq!((&verdict["class"], &verdict["decided_by"]), (&"unknown".into(), &"under_pressure".into()));
    let pressure = &report["pressure"];
    assert_eq!(pressure["bound_by"], "host", "{pressure:#}");
    let reading = pressure["readings"].as_array().unwrap().iter().find(|r| r["plane"] == "host").unwrap();
    let share = reading["share"].as_f64().unwrap();
    assert!((0.93..=0.99).contains(&share), "{reading:#}");
    assert_eq!(reading["level"], "high", "{reading:#}");
    assert!(report["trigger"].is_null(), "nothing ended");
    let text = run(&["triage", "deploy/near-limit", "-n", "serving"]).ok();
    assert!(text.text().contains("HOST PRESSURE"), "{}", text.text());
    // The pod by its name tells the same.
    let pod = report["subject"]["pod"].as_str().unwrap();
    assert_eq!(triage(&format!("pod/{pod}")).0, Some(HOST_PRESSURE));
}

#[test]
fn a_healthy_pod_is_no_pressure() {
    let (code, report) = triage("pod/healthy");
    assert!(nothing_failed(&report), "{report:#}");
    assert!(![14, 15, 16].map(Some).contains(&code), "{code:?}");
}
