//! An API server that asks to wait, breaks off, or is slow; a pod that is deleted while it is captured.

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Ran, create, dualplane, kubectl, manifest, until};

/// The proxy has one set of rules.
static PROXY: Mutex<()> = Mutex::new(());

struct Proxy(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Proxy {
    fn with(rules: Value) -> Self {
        let held = PROXY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        control("DELETE", "/rules", None);
        control("PUT", "/rules", Some(&rules.to_string()));
        Self(held)
    }

    fn counts(&self) -> Value {
        serde_json::from_str(&control("GET", "/counts", None)).unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        control("DELETE", "/rules", None);
    }
}

fn control(method: &str, path: &str, body: Option<&str>) -> String {
    let url = format!("{}{path}", std::env::var("E2E_FAULTS").unwrap());
    let mut c = Command::new("curl");
    c.args(["-sS", "--fail-with-body", "--noproxy", "*", "-X", method, &url]);
    if let Some(body) = body {
        c.args(["--data-binary", body]);
    }
    let ran = Ran::of(&mut c);
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.text());
    ran.text()
}

/// `dualplane` through the proxy.
fn through(args: &[&str]) -> Command {
    let mut c = dualplane();
    let (verb, rest) = args.split_first().unwrap();
    c.arg(verb).arg("--kubeconfig").arg(std::env::var("E2E_FAULTS_KUBECONFIG").unwrap()).args(rest);
    c
}

#[test]
fn a_storm_of_429_is_waited_out_as_it_asks() {
    let proxy = Proxy::with(json!([{"path": ".", "status": 429, "retry_after": 1, "times": 12}]));
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    let ran = Ran::of(through(&["capture", "pod/pid1-oom", "-n", "serving", "--out"]).arg(&bundle)).ok();
    let manifest = manifest(&bundle);
    assert_eq!(manifest["gaps"], json!([]), "{manifest}");
    assert_eq!(manifest["server_asked_to_wait"], 12);
    assert!(ran.took >= Duration::from_secs(1), "it did not wait: {:?}", ran.took);
    let counts = proxy.counts();
    assert!(counts["max_in_flight"].as_u64().unwrap() <= 8, "{counts}");
}

#[test]
fn a_server_that_asks_for_too_long_is_a_gap() {
    let _proxy = Proxy::with(json!([{"path": "/events", "status": 429, "retry_after": 3600}]));
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    let ran = Ran::of(through(&["capture", "pod/pid1-oom", "-n", "serving", "--out"]).arg(&bundle)).ok();
    assert!(ran.took < Duration::from_secs(60), "{:?}", ran.took);
    let gaps = manifest(&bundle)["gaps"].to_string();
    assert!(gaps.contains("asked to wait 3600 s"), "{gaps}");
}

#[test]
fn a_log_that_breaks_off_keeps_what_came_and_its_end() {
    let _proxy =
        Proxy::with(json!([{"path": "log-30mib/log\\?.*previous", "cut_after": 400_000, "times": 1},
                                     {"path": "log-30mib/log\\?", "cut_after": 400_000, "times": 1}]));
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    Ran::of(through(&["capture", "pod/log-30mib", "-n", "serving", "--out"]).arg(&bundle)).ok();
    let manifest = manifest(&bundle);
    let gaps = manifest["gaps"].to_string();
    assert!(gaps.contains("interrupted") && gaps.contains("fetched separately"), "{gaps}");
    let ran = Ran::of(dualplane().args(["triage", "-o", "json"]).arg(&bundle)).ok().json();
    assert_eq!(ran["verdict"]["class"], "host_oom_killed");
}

#[test]
fn a_server_killed_midway_leaves_what_was_read() {
    // Everything after the pod and its log is cut before its head.
    let _proxy = Proxy::with(
        json!([{"path": "/(events|nodes|replicasets|resourcequotas|limitranges)", "cut_after": -1}]),
    );
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    Ran::of(through(&["capture", "pod/pid1-oom", "-n", "serving", "--out"]).arg(&bundle)).ok();
    let manifest = manifest(&bundle);
    let state = |n: &str| {
        manifest["sources"].as_array().unwrap().iter().find(|s| s["name"] == n).unwrap()["state"].clone()
    };
    assert_eq!((state("pod"), state("logs/vllm (previous)")), ("ok".into(), "ok".into()));
    assert_eq!((state("events"), state("node")), ("failed".into(), "failed".into()));
    let verdict = Ran::of(dualplane().args(["triage", "-o", "json"]).arg(&bundle)).ok().json();
    assert_eq!(verdict["verdict"]["class"], "host_oom_killed");
}

#[test]
fn a_server_that_is_gone_is_said_to_be() {
    let _proxy = Proxy::with(json!([{"path": ".", "cut_after": -1}]));
    let ran = Ran::of(&mut through(&["triage", "pod/pid1-oom", "-n", "serving"]));
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("cannot reach") && ran.err.contains("kubectl version"), "{}", ran.err);
}

#[test]
fn an_expired_list_is_as_much_as_was_read() {
    let _proxy = Proxy::with(json!([{"path": "continue=", "status": 410}]));
    let ran = Ran::of(&mut through(&["triage", "-A", "--failed", "-o", "json"]));
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.err);
}

#[test]
fn a_pod_that_is_deleted_while_it_is_captured_keeps_what_there_was() {
    let proxy = Proxy::with(json!([{"path": "pods/doomed/log", "hold": true}]));
    create(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: doomed, namespace: serving}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: 'registry.local/busybox:1', imagePullPolicy: Never, command: [sh, -c, 'echo INFO one; exit 1']}\n",
    );
    // Before its container has a status, the answer is empty: its log is not asked for then.
    let restarts = || {
        let path = "jsonpath={.status.containerStatuses[0].restartCount}";
        kubectl(&["get", "pod", "doomed", "-n", "serving", "-o", path]).trim().parse::<u32>().ok()
    };
    until("it does not restart", || restarts().filter(|n| *n > 0));
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    let child = through(&["capture", "pod/doomed", "-n", "serving", "--request-timeout", "5m", "--out"])
        .arg(&bundle)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its log is asked for, and is answered when the pod is no more.
    let asked = |p: &str| p.ends_with("pods/doomed/log");
    until("its log is not asked for", || {
        proxy.counts()["paths"].as_object().unwrap().keys().any(|p| asked(p)).then_some(())
    });
    kubectl(&["delete", "pod", "doomed", "-n", "serving", "--now", "--wait=true"]);
    drop(proxy);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let manifest = manifest(&bundle);
    let gaps = manifest["gaps"].to_string();
    assert!(gaps.contains("log of container c") && gaps.contains("not found"), "{gaps}");
    assert!(manifest["sources"].as_array().unwrap().iter().any(|s| s["name"] == "pod" && s["state"] == "ok"));
}
