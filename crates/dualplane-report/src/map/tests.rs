//! Maps of composed clusters: each way in which devices are handed out, and sources that contradict each other.

use serde_json::{Value, json};

use super::{Answer, Asked, Exporter, Input, Map, Question, assemble};
use dualplane_core::evidence::metrics;

const A: &str = "GPU-aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "GPU-bbbbbbbb-0000-4000-8000-000000000002";
const MIG: &str = "MIG-cccccccc-0000-4000-8000-000000000003";

/// A pod whose one container asks for a resource and was given devices.
fn pod(name: &str, resource: &str, ids: &[&str]) -> Value {
    let given: Vec<Value> = ids.iter().map(|id| json!({"resourceID": id, "health": "Healthy"})).collect();
    let told = if ids.is_empty() { json!([]) } else { json!([{"name": resource, "resources": given}]) };
    json!({
        "metadata": {"namespace": "s", "name": name, "uid": format!("uid-{name}"), "labels": {"app": "llm"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "vllm/vllm-openai:v0.11.0",
            "command": ["vllm", "serve", "Qwen/Qwen3-32B"], "resources": {"limits": {resource: "1"}}}]},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "c", "state": {"running": {}}, "allocatedResourcesStatus": told}]}})
}

fn exporter(lines: &[&str]) -> Exporter {
    let (samples, _) = metrics::parse(&lines.join("\n"), "dcgm");
    Exporter { node: "n".into(), samples }
}

fn row(uuid: &str, more: &str, value: u32) -> String {
    format!(
        "DCGM_FI_DEV_FB_USED{{gpu=\"0\",UUID=\"{uuid}\",device=\"nvidia0\",modelName=\"NVIDIA H100 80GB HBM3\"{more}}} {value}"
    )
}

fn of_pods(input: &Input) -> Map {
    assemble(input, &Asked::Pods("pod/p".into())).unwrap()
}

fn devices(map: &Map) -> Vec<&str> {
    map.pods[0].containers[0].devices.iter().map(String::as_str).collect()
}

#[test]
fn the_kubelet_and_the_exporter_agree() {
    let rows = [row(A, ",pod=\"p\",namespace=\"s\",container=\"c\"", 1000), row(B, "", 5)];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let input = Input {
        pods: vec![pod("p", "nvidia.com/gpu", &[A])],
        exporters: vec![exporter(&rows)],
        nodes: vec![json!({"metadata": {"name": "n"}})],
        services: vec![json!({"metadata": {"namespace": "s", "name": "llm"},
            "spec": {"selector": {"app": "llm"}, "ports": [{"port": 80, "targetPort": 8000}]}})],
        ..Input::default()
    };
    let map = of_pods(&input);
    assert_eq!(devices(&map), [A]);
    assert_eq!(map.devices[0].holders[0].links.len(), 2);
    assert_eq!(map.pods[0].services[0].value, "service/llm:80 → 8000");
    assert!(map.contradictions.is_empty(), "{:?}", map.contradictions);
    assert_eq!(map.gaps.len(), 1, "only the driver is unknown: {:?}", map.gaps);
}

#[test]
fn contradictions_are_shown_with_both_sides() {
    let rows = [
        row(B, ",pod=\"p\",namespace=\"s\",container=\"c\"", 1000),
        row(A, ",pod=\"q\",namespace=\"s\",container=\"c\"", 1),
    ];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let mut pod = pod("p", "nvidia.com/gpu", &[A]);
    pod["spec"]["containers"][0]["env"] = json!([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]);
    let question = Question { container: "c".into(), port: 8000, path: "v1/models" };
    let body = json!({"data": [{"id": "meta/Llama-3", "owned_by": "vllm"}]}).to_string();
    let node =
        json!({"metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}});
    let input = Input {
        pods: vec![pod],
        exporters: vec![exporter(&rows)],
        nodes: vec![node],
        answers: vec![Answer { namespace: "s".into(), pod: "p".into(), question, body }],
        ..Input::default()
    };
    let map = of_pods(&input);
    let what: Vec<&str> = map.contradictions.iter().map(|c| c.what.as_str()).collect();
    let holder = format!("holder of {A}");
    for wanted in ["devices of container c of pod s/p", &holder, "model of container c of pod s/p"] {
        assert!(what.contains(&wanted), "{wanted} in {what:?}");
    }
    assert!(what.iter().any(|w| w.starts_with("card of GPU-")), "{what:?}");
    assert_eq!(devices(&map), [A, B]);
    let text = crate::map::report::text(
        &map,
        dualplane_base::style::Style { width: 100, ..Default::default() },
        false,
    );
    assert!(text.contains("✗ devices of container c") && text.contains("nvidia-smi -L"), "{text}");
}

#[test]
fn replicas_are_one_card_with_all_its_holders() {
    let node = json!({"metadata": {"name": "n", "labels": {"nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"}}});
    let line = row(A, ",pod=\"q\",namespace=\"s\",container=\"c\"", 9000);
    let input = Input {
        pods: vec![pod("p", "nvidia.com/gpu.shared", &[&format!("{A}::0")])],
        neighbours: vec![pod("q", "nvidia.com/gpu.shared", &[&format!("{A}::3")])],
        nodes: vec![node],
        exporters: vec![exporter(&[&line])],
        ..Input::default()
    };
    let map = of_pods(&input);
    assert_eq!(devices(&map), [A]);
    assert_eq!(map.devices[0].holders.len(), 2);
    assert!(map.devices[0].shared.as_deref().unwrap().contains("VRAM is not isolated"));
    // The exporter names one of the pods that share a card, which is no contradiction.
    assert!(map.contradictions.is_empty(), "{:?}", map.contradictions);
}

#[test]
fn an_instance_gets_its_card_from_the_exporter() {
    let line =
        row(A, ",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"7\",pod=\"p\",namespace=\"s\",container=\"c\"", 9000);
    let input = Input {
        pods: vec![pod("p", "nvidia.com/mig-1g.10gb", &[MIG])],
        exporters: vec![exporter(&[&line])],
        ..Input::default()
    };
    let map = of_pods(&input);
    assert_eq!(devices(&map), [MIG]);
    let d = &map.devices[0];
    assert_eq!((d.attributes.value("parent"), d.attributes.value("GPU instance")), (Some(A), Some("7")));
    assert!(map.contradictions.is_empty(), "{:?}", map.contradictions);
    // Without the exporter the card is a gap; without the kubelet the instance has no id of its own.
    let map = of_pods(&Input { pods: input.pods.clone(), ..Input::default() });
    assert!(map.gaps.iter().any(|g| g.what == format!("card of {MIG}")), "{:?}", map.gaps);
    let blind = Input {
        pods: vec![pod("p", "nvidia.com/mig-1g.10gb", &[])],
        exporters: vec![exporter(&[&line])],
        ..Input::default()
    };
    assert_eq!(devices(&of_pods(&blind)), [format!("{A}/gi/7")]);
}

fn slice(device: Value) -> Value {
    json!({"metadata": {"name": "slice"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n",
        "pool": {"name": "n"}, "devices": [device]}})
}

fn claimed() -> Input {
    let mut p = pod("p", "x", &[]);
    p["spec"]["containers"][0]["resources"] = json!({"claims": [{"name": "gpu"}]});
    p["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "t"}]);
    p["status"]["resourceClaimStatuses"] = json!([{"name": "gpu", "resourceClaimName": "p-gpu-x7"}]);
    p["status"]["containerStatuses"][0]["allocatedResourcesStatus"] = json!([{"name": "claim:gpu",
        "resources": [{"resourceID": "gpu.nvidia.com/gpu=gpu-0", "health": "Unhealthy"}]}]);
    let result = json!({"request": "r", "driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0"});
    let claim = json!({"metadata": {"namespace": "s", "name": "p-gpu-x7"}, "status": {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "p"}, {"resource": "pods", "name": "z"}]}});
    Input { pods: vec![p], claims: vec![claim], ..Input::default() }
}

#[test]
fn claims_of_all_versions_lead_to_uuids() {
    let attributes = json!({"uuid": {"string": A}, "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "type": {"string": "gpu"}, "driverVersion": {"version": "570.86.15"}});
    let capacity = json!({"memory": {"value": "81559Mi"}});
    let v1 = json!({"name": "gpu-0", "attributes": attributes, "capacity": capacity});
    let v1beta1 = json!({"name": "gpu-0", "basic": {"attributes": attributes, "capacity": capacity}});
    for device in [v1, v1beta1] {
        let map = of_pods(&Input { slices: vec![slice(device)], ..claimed() });
        assert_eq!(devices(&map), [A]);
        let d = &map.devices[0];
        assert_eq!(d.attributes.value("memory"), Some("79.65 GiB"));
        assert_eq!(map.nodes[0].attributes.value("driver"), Some("570.86.15"));
        // A pod that was not read shares the claim.
        let names: Vec<&str> = d.holders.iter().map(|h| h.pod.as_str()).collect();
        assert_eq!(names, ["p", "z"]);
        assert_eq!(d.holders[0].health.as_deref(), Some("Unhealthy"));
        assert!(map.contradictions.is_empty() && map.gaps.is_empty(), "{:?}", map.gaps);
    }
    // The slice may not be readable; the claim still names the device.
    let map = of_pods(&claimed());
    assert_eq!(devices(&map), ["gpu.nvidia.com/n/gpu-0"]);
    assert!(map.gaps.iter().any(|g| g.what.starts_with("UUID of")), "{:?}", map.gaps);
    let map = of_pods(&Input { claims: Vec::new(), ..claimed() });
    assert!(map.gaps.iter().any(|g| g.command.as_deref().unwrap_or("").contains("p-gpu-x7")));
}

#[test]
fn without_any_source_the_map_says_what_would_settle_it() {
    let map = of_pods(&Input { pods: vec![pod("p", "nvidia.com/gpu", &[])], ..Input::default() });
    assert!(devices(&map).is_empty());
    let gap = &map.gaps[0];
    assert_eq!(gap.command.as_deref(), Some("kubectl exec -n s p -c c -- nvidia-smi -L"));
    // One card on the node leaves no choice; two do.
    let with = |rows: &[&str]| {
        let exporters = vec![exporter(rows)];
        of_pods(&Input { pods: vec![pod("p", "nvidia.com/gpu", &[])], exporters, ..Input::default() })
    };
    let (a, b) = (row(A, "", 1), row(B, "", 1));
    assert_eq!(devices(&with(&[&a])), [A]);
    assert!(devices(&with(&[&a, &b])).is_empty());
    let pending = json!({"metadata": {"namespace": "s", "name": "w"}, "spec": {"containers": [
        {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}, "status": {"phase": "Pending"}});
    let map = of_pods(&Input { pods: vec![pending, json!({}), json!([1])], ..Input::default() });
    assert!(map.gaps.iter().any(|g| g.why.contains("not scheduled")), "{:?}", map.gaps);
}

#[test]
fn a_device_is_found_by_its_beginning() {
    let rows = [row(A, "", 3000), row(B, "", 1)];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let input = Input {
        neighbours: vec![pod("p", "nvidia.com/gpu", &[B])],
        exporters: vec![exporter(&rows)],
        ..Input::default()
    };
    let of = |id: &str| assemble(&input, &Asked::Gpu(id.into()));
    let map = of("GPU-BBBB").unwrap();
    assert_eq!((map.devices.len(), map.pods.len()), (1, 1));
    assert_eq!(of("aaaa").unwrap().devices[0].id, A);
    assert!(of("aaaa").unwrap().gaps.iter().any(|g| g.what.starts_with("the user of 2.93 GiB")));
    assert_eq!(of("GPU-").unwrap_err().candidates.len(), 2);
    assert_eq!(of("GPU-x").unwrap_err().known, 2);
    let node = assemble(&input, &Asked::Node("n".into())).unwrap();
    assert_eq!((node.devices.len(), node.pods.len()), (2, 1));
}

#[test]
fn a_gke_plugin_and_an_ended_pod() {
    let line = row(A, "", 1);
    let mut ended = pod("q", "nvidia.com/gpu", &[A]);
    ended["status"]["phase"] = json!("Failed");
    let input = Input {
        pods: vec![pod("p", "nvidia.com/gpu", &["nvidia0/vgpu1"]), ended],
        exporters: vec![exporter(&[&line])],
        ..Input::default()
    };
    let map = of_pods(&input);
    assert_eq!(devices(&map), [A]);
    assert_eq!(map.devices[0].holders.len(), 1);
    assert!(map.devices[0].shared.is_some());
}
