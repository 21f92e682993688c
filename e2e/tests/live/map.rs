//! Who runs where: a GPU of a real device plugin, a claimed one, and the way from a process to its pod.

use serde_json::Value;

use crate::harness::{kubectl, run};

fn map(args: &[&str]) -> Value {
    let mut all = vec!["map"];
    all.extend(args);
    all.extend(["-o", "json"]);
    run(&all).ok().json()
}

/// The GPU that the kubelet says it gave to the pod.
fn allocated(pod: &str) -> String {
    let path = "jsonpath={.status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].resourceID}";
    kubectl(&["get", "pod", pod, "-n", "serving", "-o", path])
}

#[test]
fn a_pod_leads_to_its_gpu_and_the_gpu_to_its_pod() {
    let gpu = allocated("gpu");
    assert!(gpu.starts_with("GPU-"), "{gpu}");
    let forth = map(&["pod/gpu", "-n", "serving"]).to_string();
    for link in
        [gpu.as_str(), "allocatedResourcesStatus of the pod", "gpu-node-1", "570.86.15", "Qwen/Qwen3-32B"]
    {
        assert!(forth.contains(link), "{link} is not in {forth}");
    }
    let back = map(&["--gpu", &gpu]).to_string();
    assert!(back.contains("\"gpu\"") && back.contains("serving"), "{back}");
    let prefix = map(&["--gpu", &gpu[..10]]).to_string();
    assert!(prefix.contains(&gpu), "{prefix}");
    let none = run(&["map", "--gpu", "GPU-ffffffff"]);
    assert_eq!(none.code, Some(4), "{}", none.err);
    assert!(none.err.contains("GPU-ffffffff"), "{}", none.err);
}

#[test]
fn a_node_shows_all_its_gpus_and_who_holds_them() {
    let node = map(&["--node", "gpu-node-1"]).to_string();
    assert!(node.contains(&allocated("gpu")), "{node}");
    // The other card is in use by no user named by any source.
    assert!(node.contains("GPU-9c1b0f7e-2d3a-4e5f-8a6b-7c8d9e0f1a2b"), "{node}");
    let none = run(&["map", "--node", "none-such"]);
    assert_ne!(none.code, Some(0));
    assert!(none.err.contains("none-such"), "{}", none.err);
}

#[test]
fn a_claimed_device_is_found_through_its_claim() {
    let claimed = map(&["pod/dra", "-n", "serving"]).to_string();
    assert!(
        claimed.contains("GPU-d7a10000-0000-4000-8000-000000000000") && claimed.contains("ResourceClaim"),
        "{claimed}"
    );
}

#[test]
fn a_running_engine_tells_its_model_and_version() {
    let engine = map(&["pod/healthy", "-n", "serving"]).to_string();
    assert!(engine.contains("engine's /v1/models on port 8000") && engine.contains("0.11.0"), "{engine}");
}

#[test]
fn a_process_of_this_node_leads_to_its_pod() {
    let uid = kubectl(&["get", "pod", "healthy", "-n", "serving", "-o", "jsonpath={.metadata.uid}"]);
    let pid = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|c| c.contains(&uid)))
        .expect("a process of the pod");
    let found = map(&["--pid", &pid.to_string()]).to_string();
    assert!(found.contains("healthy") && found.contains(&uid), "{found}");
}
