//! 5,000 pods on fake nodes, of which some died as in real incidents.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::run;

/// Incidents whose class rests on files that no cluster serves (a kernel log, `nvidia-smi`, a ledger of the allocator), and
/// what is left without them; and those that never died, which are none of the failed.
const WITHOUT: &[(&str, Option<&str>)] = &[
    ("forms-memory-summary-fragmentation", Some("cuda_oom_runtime")),
    // The fleet's kubelet stamps lines with the time of the request, so that they may lie after the death.
    ("vllm-gpu-capacity-conflict-a015", Some("unknown")),
    ("llama-cpp-host-node-oom-b053", Some("unknown")),
    ("comfyui-cuda-oom-runtime", None),
    ("ollama-mig-slice-too-small-c055", None),
    ("real-k8s-healthy", None),
    ("live-kill-without-a-name", None),
    ("live-scheduled-after-all", None),
    ("job-ended-in-order", None),
    ("live-busy-saturated", None),
    ("live-busy-overloaded", None),
    ("live-busy-throttled", None),
    ("live-busy-late-untold", None),
    ("live-busy-queue-untold", None),
    ("pressure-both-planes", None),
    ("pressure-host-rising", None),
    ("pressure-host-vram-moderate", None),
    ("pressure-page-cache-harmless", None),
    ("pressure-vllm-preallocated-healthy", None),
    ("pressure-vram-saturated", None),
];

/// What is true of each sick pod; `None` where the fleet is not up.
pub fn wanted() -> Option<Value> {
    let file = std::env::var("E2E_FLEET").unwrap();
    let Ok(text) = std::fs::read_to_string(&file) else {
        // `e2e/run` brings the fleet up; a cluster for trying things out may do without.
        assert!(std::env::var_os("E2E_REQUIRE_FLEET").is_none(), "{file} is missing");
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

/// The class that one of them must have, by what a cluster serves; `is`: the one that it has.
pub fn class<'w>(want: &'w Value, is: &str) -> &'w str {
    let without = WITHOUT.iter().find(|w| want["incident"] == w.0).map(|w| w.1.unwrap_or("no report"));
    without.filter(|w| *w == is).unwrap_or(want["class"].as_str().unwrap())
}

#[test]
fn of_thousands_of_pods_those_in_trouble_get_their_verdict() {
    let Some(wanted) = wanted() else { return };
    let ran = run(&["triage", "-A", "--failed", "-o", "json"]).ok();
    let report = ran.json();
    let items = report["items"].as_array().expect("several verdicts");
    let got: BTreeMap<String, &Value> = items
        .iter()
        .map(|i| {
            (
                format!(
                    "{}/{}",
                    i["subject"]["namespace"].as_str().unwrap_or("?"),
                    i["subject"]["pod"].as_str().unwrap_or("?")
                ),
                i,
            )
        })
        .collect();
    let mut wrong = Vec::new();
    let wanted = wanted.as_object().unwrap();
    for (pod, want) in wanted {
        let is = got.get(pod).map_or("no report", |r| r["verdict"]["class"].as_str().unwrap());
        let class = class(want, is);
        if is != class {
            wrong.push(format!(
                "{pod}: wanted {class}, got {is}: {}",
                got.get(pod).map(|r| r["verdict"]["summary"].to_string()).unwrap_or_default()
            ));
        }
    }
    eprintln!("{} pods in trouble judged in {:?}", wanted.len(), ran.took);
    assert!(wanted.len() >= 40);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), wanted.len(), wrong.join("\n"));
}
