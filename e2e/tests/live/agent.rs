//! The agent as a process on the real kubelet's node: pods die in front of it, their bundles hold what the kubelet has dropped
//! since, and the Event stands on the pod. What the kubelet gave is known while nothing uses it.

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::harness::{create, dualplane, kubectl, run, server, succeeds, unpack, until};

/// A job that is only done.
const DONE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: agent-done, namespace: serving, labels: {app: agent}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: job
    image: registry.local/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "echo agent-done; sleep 3"]
    resources: {limits: {memory: 48Mi}}
"#;

/// Killed when a test fails.
pub(crate) struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(state: &Path) -> Agent {
    start_at(state, "127.0.0.1:10981", &[])
}

/// Answers on a port of its own: tests run beside each other.
pub(crate) fn start_at(state: &Path, listen: &str, more: &[&str]) -> Agent {
    let kubeconfig = std::env::var("KUBECONFIG").unwrap();
    let log =
        std::fs::OpenOptions::new().create(true).append(true).open(state.with_extension("err")).unwrap();
    Agent(
        dualplane()
            .args([
                "agent",
                "--node",
                "gpu-node-1",
                "--listen",
                listen,
                "--kubeconfig",
                &kubeconfig,
                "--state",
            ])
            .arg(state)
            .args(more)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    )
}

pub(crate) fn incidents(state: &Path) -> Vec<Value> {
    let ran = run(&["incidents", "ls", "--all", "-o", "json", "--state", &state.to_string_lossy()]);
    if ran.code != Some(0) {
        return Vec::new();
    }
    ran.json()["items"].as_array().unwrap().clone()
}

pub(crate) fn of<'a>(all: &'a [Value], pod: &str) -> Vec<&'a Value> {
    all.iter().filter(|i| i["pod"] == pod).collect()
}

#[test]
fn deaths_in_front_of_the_agent_are_kept_though_the_kubelet_dropped_them() {
    let d = tempfile::tempdir().unwrap();
    let state = d.path().join("state");
    let agent = start(&state);
    until("the agent does not answer", || std::net::TcpStream::connect("127.0.0.1:10981").ok());
    let _ = succeeds(&["delete", "pod", "-n", "serving", "-l", "app=agent", "--ignore-not-found", "--wait"]);
    // Two deaths, by the kernel at the limit and by itself, and a job that is only done.
    let grows =
        "echo agent-oom begins with hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345678; sleep 4; exec tail /dev/zero";
    let fails = "echo agent-exit begins; sleep 3; echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free.'; exit 1";
    create(&server("agent-oom", "agent", grows));
    create(&server("agent-exit", "agent", fails));
    create(DONE);
    // Until the kubelet has dropped the first log: it keeps one dead instance.
    let restarts = |pod: &str| {
        let text = kubectl(&[
            "get",
            "pod",
            pod,
            "-n",
            "serving",
            "-o",
            "jsonpath={.status.containerStatuses[0].restartCount}",
        ]);
        text.trim().parse::<u64>().unwrap_or(0)
    };
    until("the pods do not die", || {
        (restarts("agent-oom") >= 2 && restarts("agent-exit") >= 2).then_some(())
    });
    let all = until("no first deaths", || {
        let all = incidents(&state);
        let judged = |pod: &str| {
            of(&all, pod).iter().any(|i| i["first"] == true && i["state"] == "judged" && i["kind"] == "death")
        };
        (judged("agent-oom") && judged("agent-exit")).then_some(all)
    });
    // kill -9, and the next run goes on.
    drop(agent);
    let agent = start(&state);

    let first = |pod: &str| *of(&all, pod).iter().find(|i| i["first"] == true).unwrap();
    let oom = first("agent-oom");
    assert_eq!(
        (oom["class"].as_str(), oom["plane"].as_str()),
        (Some("host_oom_killed"), Some("host")),
        "{oom:#}"
    );
    assert_eq!((oom["restart"].as_u64(), oom["exit_code"].as_i64()), (Some(0), Some(137)), "{oom:#}");
    let exit = first("agent-exit");
    assert_eq!(exit["plane"].as_str(), Some("gpu"), "{exit:#}");
    assert_eq!(exit["exit_code"].as_i64(), Some(1), "{exit:#}");

    for (incident, said) in [(oom, "agent-oom begins"), (exit, "agent-exit begins")] {
        let id = incident["id"].as_str().unwrap();
        let out = d.path().join("b.tar.zst");
        run(&[
            "incidents",
            "export",
            id,
            "--state",
            &state.to_string_lossy(),
            "--out",
            &out.to_string_lossy(),
        ])
        .ok();
        let files = unpack(&out);
        let text = |name: &str| {
            let f = files.iter().find(|(n, _)| n.ends_with(name));
            String::from_utf8_lossy(
                &f.unwrap_or_else(|| {
                    panic!("no {name}: {:?}", files.iter().map(|f| &f.0).collect::<Vec<_>>())
                })
                .1,
            )
            .into_owned()
        };
        let log = text("logs/server.previous.log");
        assert!(log.contains(said) && !log.contains("hf_AbCd"), "{log}");
        assert!(text("pod.json").contains("restartPolicy"), "the API server's pod, with its end");
        let host = text("series/host.json");
        assert!(
            host.contains("container_memory_working_set_bytes"),
            "{}",
            host.chars().take(400).collect::<String>()
        );
        // The kubelet has it no more.
        let uid = incident["uid"].as_str().unwrap();
        let dropped =
            format!("/var/log/pods/serving_{}_{uid}/server/0.log", incident["pod"].as_str().unwrap());
        assert!(!Path::new(&dropped).exists(), "{dropped}");
        let shown = run(&["incidents", "show", id, "--state", &state.to_string_lossy()]).ok().text();
        assert!(shown.contains(incident["pod"].as_str().unwrap()), "{shown}");
    }
    let event = until("no Event on the pod", || {
        let list = kubectl(&[
            "get",
            "events",
            "-n",
            "serving",
            "--field-selector",
            "involvedObject.name=agent-oom",
            "-o",
            "json",
        ]);
        let list: Value = serde_json::from_str(&list).unwrap();
        list["items"].as_array().unwrap().iter().find(|e| e.to_string().contains("host_oom_killed")).cloned()
    });
    assert_eq!(event["type"].as_str(), Some("Warning"), "{event:#}");
    // A job that is done is no death.
    until("a job that is done was kept", || of(&incidents(&state), "agent-done").is_empty().then_some(()));
    drop(agent);
    let _ = succeeds(&["delete", "pod", "-n", "serving", "-l", "app=agent", "--wait=false"]);
}

/// A GPU that nothing in the container touches, as no such card is here: only the kubelet knows of it.
const WITH_GPU: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: agent-gpu, namespace: serving, labels: {app: agent-gpu}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: registry.local/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "echo agent-gpu begins; while [ ! -e /tmp/die ]; do sleep 1; done; echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'; exit 1"]
    resources: {limits: {memory: 48Mi, nvidia.com/gpu: 1}}
  - name: sidecar
    image: registry.local/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "sleep 1000"]
    resources: {limits: {memory: 48Mi}}
"#;

fn metrics(address: &str) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn a_gpu_that_was_given_is_known_though_nothing_uses_it() {
    let d = tempfile::tempdir().unwrap();
    let state = d.path().join("state");
    // The driver's view of the plugin's two GPUs; their order is not that of the plugin.
    let table = d.path().join("gpus.json");
    let uuids = ["GPU-9c1b0f7e-2d3a-4e5f-8a6b-7c8d9e0f1a2b", "GPU-5fd4f087-86f3-7a43-b711-4771313afc50"];
    let device = |i: usize| serde_json::json!({"uuid": uuids[i], "index": i, "name": "NVIDIA H100 80GB HBM3", "pci": format!("0000:{i}a:00")});
    std::fs::write(&table, serde_json::json!({"devices": [device(0), device(1)]}).to_string()).unwrap();
    let address = "127.0.0.1:10982";
    let agent = start_at(&state, address, &["--gpu-table", &table.to_string_lossy()]);
    until("the agent does not answer", || metrics(address));
    let _ =
        succeeds(&["delete", "pod", "-n", "serving", "-l", "app=agent-gpu", "--ignore-not-found", "--wait"]);
    create(WITH_GPU);
    let page = until("no GPU that was given", || {
        metrics(address).filter(|m| {
            m.lines().any(|l| l.starts_with("dualplane_container_gpu_given") && l.contains("agent-gpu"))
        })
    });
    assert!(page.contains("dualplane_pod_resources_readable{node=\"gpu-node-1\"} 1"), "{page}");
    let given: Vec<&str> = page
        .lines()
        .filter(|l| l.starts_with("dualplane_container_gpu_given{") && l.contains("agent-gpu"))
        .collect();
    let path = "jsonpath={.status.containerStatuses[?(@.name==\"server\")].allocatedResourcesStatus[0].resources[0].resourceID}";
    let id = kubectl(&["get", "pod", "agent-gpu", "-n", "serving", "-o", path]);
    let index = uuids.iter().position(|u| *u == id).unwrap_or_else(|| panic!("{id}"));
    let expected = format!(
        "dualplane_container_gpu_given{{node=\"gpu-node-1\",namespace=\"serving\",pod=\"agent-gpu\",container=\"server\",gpu=\"{index}\",UUID=\"{id}\",resource=\"nvidia.com/gpu\",device_id=\"{id}\"}} 1"
    );
    assert_eq!(given, [expected.as_str()], "the sidecar was given none");
    assert!(!page.contains("dualplane_container_gpu_processes"), "nothing uses it");

    kubectl(&["exec", "-n", "serving", "agent-gpu", "-c", "server", "--", "touch", "/tmp/die"]);
    let incident = until("no incident", || {
        of(&incidents(&state), "agent-gpu")
            .iter()
            .find(|i| i["container"] == "server" && i["state"] == "judged")
            .map(|i| (*i).clone())
    });
    let out = d.path().join("b.tar.zst");
    let id_of = incident["id"].as_str().unwrap();
    run(&[
        "incidents",
        "export",
        id_of,
        "--state",
        &state.to_string_lossy(),
        "--out",
        &out.to_string_lossy(),
    ])
    .ok();
    let given = &crate::harness::manifest(&out)["incident"]["gpus_given"];
    assert_eq!(
        *given,
        serde_json::json!([
            {"resource": "nvidia.com/gpu", "id": id, "uuid": id, "index": index, "card": null, "profile": null}
        ])
    );
    // The next life has what its pod was given at once: no answer is waited for.
    let again = until("the second life has no GPU", || metrics(address).filter(|m| m.contains(&expected)));
    assert!(again.contains("agent-gpu"));
    // And the live view of the machine.
    let top = run(&["top", "-o", "json", "--filter", "agent-gpu", "--gpu-table", &table.to_string_lossy()])
        .ok()
        .json();
    let server =
        top["containers"].as_array().unwrap().iter().find(|c| c["name"] == "serving/agent-gpu/server");
    assert_eq!(server.unwrap()["vram"][0]["gpu"], index.to_string(), "{top:#}");
    drop(agent);
    let _ = succeeds(&["delete", "pod", "-n", "serving", "-l", "app=agent-gpu", "--wait=false"]);
}
