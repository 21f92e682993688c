//! deploy/agent.yaml as it stands, on the real node: its rights, mounts and privileges are enough, and no more than that is
//! asked for. Then without privileges, by the change that deploy/ offers, below the seccomp profile of deploy/, and in a
//! network that leads to the API server alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::agent::of;
use crate::harness::{binary, create, kubectl, root, server, succeeds, until};

const NAMESPACE: &str = "dualplane";

/// What the manifest made goes, also when the test fails.
struct Installed(PathBuf);

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = succeeds(&["delete", "-f", &self.0.to_string_lossy(), "--ignore-not-found", "--wait=false"]);
        let _ = succeeds(&["delete", "pod", "-n", "serving", "-l", "app=daemonset", "--wait=false"]);
    }
}

fn pod(name: &str) -> String {
    server(name, "daemonset", &format!("echo {name} begins; sleep 4; exec tail /dev/zero"))
}

/// The manifest with what no registry gives here: the program and its libraries, which lie on the node, and a state of the
/// test's own.
fn manifest(dir: &Path) -> PathBuf {
    let binary = binary();
    let list = kubectl(&[
        "create",
        "--dry-run=client",
        "-o",
        "json",
        "-f",
        &root().join("deploy/agent.yaml").to_string_lossy(),
    ]);
    let docs = serde_json::Deserializer::from_str(&list).into_iter::<Value>().map(Result::unwrap);
    let mut items: Vec<Value> =
        docs.flat_map(|d| d["items"].as_array().cloned().unwrap_or_else(|| vec![d.clone()])).collect();
    let set = items.iter_mut().find(|i| i["kind"] == "DaemonSet").unwrap();
    let spec = &mut set["spec"]["template"]["spec"];
    let own =
        [("dp", binary.parent().unwrap().to_path_buf()), ("lib", "/lib".into()), ("lib64", "/lib64".into())];
    for (name, path) in own {
        let mount = json!({"name": name, "mountPath": format!("/{name}"), "readOnly": true});
        spec["containers"][0]["volumeMounts"].as_array_mut().unwrap().push(mount);
        spec["volumes"].as_array_mut().unwrap().push(json!({"name": name, "hostPath": {"path": path}}));
    }
    for volume in spec["volumes"].as_array_mut().unwrap() {
        if volume["name"] == "state" {
            volume["hostPath"]["path"] = json!(dir.join("state"));
        }
    }
    // The fleet's nodes are names only: nothing runs on them.
    spec["nodeSelector"]["kubernetes.io/hostname"] = json!("gpu-node-1");
    let container = &mut spec["containers"][0];
    container["image"] = json!("registry.local/busybox:1");
    container["imagePullPolicy"] = json!("Never");
    container["command"] = json!([format!("/dp/{}", binary.file_name().unwrap().to_string_lossy())]);
    let path = dir.join("agent.json");
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
    path
}

fn in_agent(command: &str) -> String {
    kubectl(&["exec", "-n", NAMESPACE, "ds/dualplane-agent", "--", "sh", "-c", command])
}

fn first_death(program: &str, pod: &str) -> Value {
    until("no judged death", || {
        let text = in_agent(&format!("{program} incidents ls --all -o json"));
        let all: Value = serde_json::from_str(&text).unwrap();
        let judged = |i: &&&Value| i["first"] == true && i["state"] == "judged" && i["kind"] == "death";
        of(all["items"].as_array().unwrap(), pod).iter().find(judged).map(|i| (*i).clone())
    })
}

#[test]
fn the_manifest_is_enough_and_asks_for_no_more() {
    // Below the cluster's own folder: the node's other programs must not find it as theirs.
    let d = tempfile::tempdir_in(std::env::var("E2E_DIR").unwrap()).unwrap();
    let installed = Installed(manifest(d.path()));
    kubectl(&["apply", "-f", &installed.0.to_string_lossy()]);
    let rolled_out =
        || kubectl(&["rollout", "status", "ds/dualplane-agent", "-n", NAMESPACE, "--timeout=90s"]);
    rolled_out();
    let text = std::fs::read_to_string(&installed.0).unwrap();
    let program = text.split('"').find(|w| w.starts_with("/dp/")).unwrap().to_owned();

    create(&pod("ds-oom"));
    let death = first_death(&program, "ds-oom");
    assert_eq!(
        (death["class"].as_str(), death["exit_code"].as_i64()),
        (Some("host_oom_killed"), Some(137)),
        "{death:#}"
    );
    // The kernel's own record: what `privileged` is for.
    assert!(death["kernel_record"].is_u64(), "{death:#}");
    let shown = in_agent(&format!("{program} incidents show {}", death["id"].as_str().unwrap()));
    assert!(shown.contains("limit") && shown.contains("ds-oom"), "{shown}");
    let event = until("no Event on the pod", || {
        let list = kubectl(&[
            "get",
            "events",
            "-n",
            "serving",
            "--field-selector",
            "involvedObject.name=ds-oom,reason=DualplaneVerdict",
            "-o",
            "json",
        ]);
        let list: Value = serde_json::from_str(&list).unwrap();
        list["items"].as_array().unwrap().first().cloned()
    });
    assert!(event["message"].as_str().unwrap().contains("host_oom_killed"), "{event:#}");

    // It sees the containers of the node by name, itself among them, and its page is there for Prometheus.
    let page = in_agent("wget -qO- http://127.0.0.1:10980/metrics");
    assert!(page.contains("namespace=\"dualplane\"") && page.contains("container=\"agent\""), "{page}");
    assert!(
        page.contains("dualplane_container_memory_limit_bytes")
            && page.contains("dualplane_pod_resources_readable{node=\"gpu-node-1\"} 1"),
        "{page}"
    );
    // A root file system that cannot be written, and rights for what it does alone.
    assert!(!in_agent("touch /x 2>&1 || echo refused").is_empty());
    let account = "--as=system:serviceaccount:dualplane:dualplane-agent";
    for (verb, what, may) in [
        ("get", "pods", true),
        ("create", "events", true),
        ("list", "pods", false),
        ("get", "secrets", false),
        ("patch", "pods", false),
        ("delete", "events", false),
    ] {
        assert_eq!(succeeds(&["auth", "can-i", verb, what, "-n", "serving", account]), may, "{verb} {what}");
    }

    // Without privileges: the cgroup's own counter tells the kill, and the kernel's messages are said to be missing.
    let patch = root().join("deploy/agent-unprivileged.yaml");
    kubectl(&["patch", "ds", "dualplane-agent", "-n", NAMESPACE, "--patch-file", &patch.to_string_lossy()]);
    rolled_out();
    let log = kubectl(&["logs", "-n", NAMESPACE, "ds/dualplane-agent"]);
    assert!(log.contains("cannot read the kernel log"), "{log}");
    create(&pod("ds-oom-unprivileged"));
    let death = first_death(&program, "ds-oom-unprivileged");
    assert_eq!(
        (death["class"].as_str(), death["exit_code"].as_i64()),
        (Some("host_oom_killed"), Some(137)),
        "{death:#}"
    );
    assert!(death["kernel_record"].is_null(), "{death:#}");

    // With the profile of deploy/ instead of the runtime's: the same verdict, and calls outside of it are refused.
    let profiles = Path::new("/var/lib/kubelet/seccomp");
    std::fs::create_dir_all(profiles).unwrap();
    std::fs::copy(root().join("deploy/profiles/seccomp.json"), profiles.join("dualplane-agent.json"))
        .unwrap();
    let security =
        json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "dualplane-agent.json"}});
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "securityContext": security}]}}}});
    kubectl(&["patch", "ds", "dualplane-agent", "-n", NAMESPACE, "-p", &patch.to_string()]);
    rolled_out();
    create(&pod("ds-oom-seccomp"));
    let death = first_death(&program, "ds-oom-seccomp");
    assert_eq!(death["class"], "host_oom_killed", "{death:#}");
    assert!(in_agent("unshare -U true 2>&1 || true").contains("not permitted"), "the profile is on");

    // Nothing leaves it but to the API server: in a network with a route to that alone, from its first moment, the kernel
    // counts no packet that had nowhere to go.
    let pid = agents_pid();
    let ip = |args: &str| nsenter(&pid, &format!("ip {args}"));
    let gateway = ip("route show default").split_whitespace().nth(2).unwrap().to_owned();
    ip(&format!("route add {}/32 via {gateway}", api_server()));
    ip("route del default");
    nsenter(&pid, "ip -6 route del default 2>/dev/null || true");
    let before = lost_packets(&pid);
    Command::new("kill").args(["-KILL", &pid]).status().unwrap();
    let again = until("no agent after its end", || Some(agents_pid()).filter(|p| *p != pid && !p.is_empty()));
    rolled_out();
    create(&pod("ds-oom-blocked"));
    let death = first_death(&program, "ds-oom-blocked");
    assert_eq!(death["class"], "host_oom_killed", "{death:#}");
    until("no Event from behind the block", || {
        let at = "involvedObject.name=ds-oom-blocked,reason=DualplaneVerdict";
        let list = kubectl(&["get", "events", "-n", "serving", "--field-selector", at, "-o", "name"]);
        Some(list).filter(|l| !l.trim().is_empty())
    });
    assert_eq!(lost_packets(&again), before, "it tried to reach something that nobody configured");
    nsenter(&again, "timeout 1 bash -c 'exec 3<>/dev/tcp/192.0.2.1/9' 2>/dev/null || true");
    assert!(lost_packets(&again) > before, "what is tried must be counted");
}

/// The agent's process, by the pid of the node; empty while there is none.
fn agents_pid() -> String {
    let found = Command::new("pgrep").args(["-f", "^/dp/[^ ]+ agent "]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().next().unwrap_or_default().to_owned()
}

/// In the network of a process, with the node's programs.
fn nsenter(pid: &str, script: &str) -> String {
    let o = Command::new("nsenter").args(["-t", pid, "-n", "sh", "-c", script]).output().unwrap();
    assert!(o.status.success(), "{script}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

/// Packets of a network that had no route.
fn lost_packets(pid: &str) -> u64 {
    let text = nsenter(pid, "cat /proc/net/snmp /proc/net/snmp6");
    let mut of_ip = text.lines().filter(|l| l.starts_with("Ip: "));
    let (names, values) = (of_ip.next().unwrap(), of_ip.next().unwrap());
    let four = names.split(' ').zip(values.split(' ')).find(|(n, _)| *n == "OutNoRoutes").unwrap().1;
    let six = text.lines().find_map(|l| l.strip_prefix("Ip6OutNoRoutes")).unwrap();
    four.parse::<u64>().unwrap() + six.trim().parse::<u64>().unwrap()
}

/// The address that pods reach the API server by.
fn api_server() -> String {
    kubectl(&["get", "service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}"])
}
