//! The printed rules in a real Prometheus and a real Alertmanager: what is really done to a server reaches the receiver, with a
//! first command that runs; a server that is well does not.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::start_at;
use crate::harness::{Namespace, Ran, create, kubectl, run, until, until_within};
use crate::model_server::{PATIENCE, Server, ask, completion, engine};

const NAMESPACE: &str = "e2e-alerts";
const AGENT: &str = "127.0.0.1:10988";
/// What a Prometheus calls itself that has kube-state-metrics and no agent.
const KSM: &str = "by kube-state-metrics";

/// A page as vLLM has it, behind which nothing waits.
const PAGE: &str = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\\nvllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 0\\n\
                    vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.4\\n";

/// A program of Debian's, in a folder with its files. It was unpacked, not installed: it alone sees its share of /usr/share.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn daemon(name: &str, dir: &Path, args: &[&str]) -> Daemon {
    let unpacked = PathBuf::from(std::env::var_os("E2E_DEBIAN").unwrap()).join("usr");
    let log = std::fs::File::create(dir.join(format!("{name}.log"))).unwrap();
    let mount = "mount -t overlay overlay -o lowerdir=$0/share:/usr/share /usr/share && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", mount]).arg(&unpacked).arg(unpacked.join("bin").join(name));
    command.args(args).current_dir(dir).stdout(Stdio::null()).stderr(log);
    Daemon(command.spawn().unwrap())
}

/// Alerts as the receiver got them while they fired, by name and pod.
type Received = Arc<Mutex<BTreeMap<(String, String), Value>>>;

/// Answers Alertmanager's requests and keeps what they tell.
fn receiver() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let received = Received::default();
    let kept = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Some(told) = stream.ok().and_then(message) else { continue };
            let firing = told["alerts"].as_array().into_iter().flatten().filter(|a| a["status"] == "firing");
            for alert in firing {
                let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
                let name = format!("{} {}", label("alertname"), label("seen"));
                kept.lock().unwrap().insert((name.trim().to_owned(), label("pod")), alert.clone());
            }
        }
    });
    (address, received)
}

fn message(mut stream: TcpStream) -> Option<Value> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut text = Vec::new();
    let mut part = [0; 16384];
    loop {
        let n = stream.read(&mut part).ok()?;
        text.extend_from_slice(&part[..n]);
        let all = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = all.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if n == 0 || length.is_some_and(|l: usize| body.len() >= l) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()?;
            return serde_json::from_str(body).ok();
        }
    }
}

/// A Deployment of one pod that is well.
fn steady() -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: steady, namespace: {NAMESPACE}}}\nspec:\n  \
         selector: {{matchLabels: {{app: steady}}}}\n  template:\n    metadata: {{labels: {{app: steady}}}}\n    spec:\n      \
         terminationGracePeriodSeconds: 1\n      containers:\n      - name: vllm\n        image: registry.local/busybox:1\n        \
         imagePullPolicy: Never\n        command: [sh, -c, \"dd if=/dev/zero of=/dev/shm/x bs=1M count=12; exec sleep 3600\"]\n        \
         resources: {{limits: {{memory: 48Mi}}}}\n"
    )
}

/// Serves a page of metrics, and does what the script says.
fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\nspec:\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  - name: vllm\n    image: registry.local/busybox:1\n    \
         imagePullPolicy: Never\n    command: [sh, -c, {:?}]\n    resources: {{limits: {{memory: 48Mi}}}}\n",
        format!("mkdir /tmp/www; printf '{PAGE}' >/tmp/www/metrics; httpd -p 8000 -h /tmp/www; {script}")
    )
}

fn status(name: &str, path: &str) -> String {
    kubectl(&["get", "pod", name, "-n", NAMESPACE, "-o", &format!("jsonpath={path}")])
}

/// Tells Prometheus where the pods are, as a PodMonitor does: with the labels of the pod.
fn scrape(dir: &Path, pods: &[&str]) {
    let target = |name: &&str| {
        let address = until("no address", || Some(status(name, "{.status.podIP}")).filter(|a| !a.is_empty()));
        json!({
            "targets": [format!("{address}:8000")],
            "labels": {"namespace": NAMESPACE, "pod": name, "container": "vllm"},
        })
    };
    let all: Vec<Value> = pods.iter().map(target).collect();
    std::fs::write(dir.join("new.json"), serde_json::to_vec(&all).unwrap()).unwrap();
    std::fs::rename(dir.join("new.json"), dir.join("pods.json")).unwrap();
}

/// An address that nothing listens on.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A Prometheus in a folder of its own, with rules as they are printed for these flags.
fn start_prometheus(dir: &Path, manager: &str, seen: &str, flags: &[&str], others: Value) -> (String, Daemon) {
    let address = free();
    let own = dir.join(if seen.is_empty() { "all" } else { "ksm" });
    std::fs::create_dir(&own).unwrap();
    // States need no minutes here.
    std::fs::write(own.join("rules.yaml"), run(&[&["rules", "--for", "10s"], flags].concat()).ok().out).unwrap();
    let engines =
        json!({"job_name": "engines", "file_sd_configs": [{"files": ["../pods.json"], "refresh_interval": "2s"}]});
    let labels = if seen.is_empty() { json!({}) } else { json!({"seen": seen}) };
    let config = json!({
        "global": {"scrape_interval": "3s", "evaluation_interval": "3s", "external_labels": labels},
        "rule_files": ["rules.yaml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
        "scrape_configs": [others, engines],
    });
    // JSON is YAML.
    std::fs::write(own.join("prometheus.yml"), config.to_string()).unwrap();
    let listen = format!("--web.listen-address={address}");
    let daemon = daemon("prometheus", &own, &["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", &listen]);
    until("no answer", || TcpStream::connect(&address).ok());
    (address, daemon)
}

/// A real kube-state-metrics, where `e2e/run` built one: its address.
fn start_kube_state_metrics(dir: &Path) -> Option<(String, Daemon)> {
    let program = PathBuf::from(std::env::var_os("E2E_KSM")?);
    if !program.is_file() {
        eprintln!("SKIPPED: no kube-state-metrics in {}", program.display());
        return None;
    }
    let (address, own) = (free(), free());
    let port = |a: &str| a.rsplit(':').next().unwrap().to_owned();
    let log = std::fs::File::create(dir.join("ksm.log")).unwrap();
    let child = Command::new(program)
        .args(["--kubeconfig", &std::env::var("KUBECONFIG").unwrap(), "--namespaces", NAMESPACE])
        .args(["--host", "127.0.0.1", "--port", &port(&address)])
        .args(["--telemetry-host", "127.0.0.1", "--telemetry-port", &port(&own)])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let daemon = Daemon(child);
    until("no kube-state-metrics", || TcpStream::connect(&address).ok());
    Some((address, daemon))
}

fn start_alertmanager(dir: &Path, receiver: &str) -> (String, Daemon) {
    let manager = free();
    let config = json!({
        "route": {"receiver": "test", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]},
        "receivers": [{"name": "test", "webhook_configs": [{"url": format!("http://{receiver}/")}]}],
    });
    std::fs::write(dir.join("alertmanager.yml"), config.to_string()).unwrap();
    let alertmanager = ["--config.file=alertmanager.yml", "--storage.path=am", "--cluster.listen-address="];
    let listen = format!("--web.listen-address={manager}");
    let daemon = daemon("prometheus-alertmanager", dir, &[&alertmanager[..], &[&listen]].concat());
    until("no answer", || TcpStream::connect(&manager).ok());
    (manager, daemon)
}

/// A pod for which no node has a place.
fn pending() -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: waits, namespace: {NAMESPACE}}}\nspec:\n  containers:\n  - name: vllm\n    \
         image: registry.local/busybox:1\n    imagePullPolicy: Never\n    command: [sleep, \"3600\"]\n    \
         resources: {{limits: {{memory: 48Mi, nvidia.com/gpu: 99}}}}\n"
    )
}

/// The first command of an alert, run as it is printed.
fn first_command(alert: &Value) {
    let command = alert["annotations"]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words[0], "dualplane", "{command}");
    let dir = tempfile::tempdir().unwrap();
    let ran = Ran::of(crate::harness::dualplane().args(&words[1..]).current_dir(dir.path()));
    assert!(
        matches!(ran.code, Some(0..=2)) && ran.out.len() + ran.err.len() > 0,
        "{command}: {:?}\n{}",
        ran.code,
        ran.err
    );
    let link = alert["annotations"]["runbook_url"].as_str().unwrap();
    let (_, page) = link.split_once("/docs/").unwrap();
    assert!(crate::harness::root().join("docs").join(page).is_file(), "{link}");
}

#[test]
fn what_is_really_done_reaches_a_real_alertmanager() {
    let _namespace = Namespace::fresh(NAMESPACE);
    let dir = tempfile::tempdir().unwrap();
    let _agent = start_at(&dir.path().join("state"), AGENT, &[]);
    let (address, received) = receiver();
    let (manager, _manager) = start_alertmanager(dir.path(), &address);
    let agent = json!({"job_name": "dualplane", "honor_labels": true, "static_configs": [{"targets": [AGENT]}]});
    let (prometheus, _prometheus) = start_prometheus(dir.path(), &manager, "", &[], agent);
    // Most clusters have kube-state-metrics and no agent: what it tells must be enough for these.
    let ksm = start_kube_state_metrics(dir.path());
    let _without_agent = ksm.as_ref().map(|(address, _)| {
        let job = json!({"job_name": "ksm", "honor_labels": true, "static_configs": [{"targets": [address]}]});
        start_prometheus(dir.path(), &manager, KSM, &["--source", "ksm,cadvisor"], job)
    });

    create(&pod("well", "exec sleep 3600"));
    create(&pod("near-limit", "dd if=/dev/zero of=/dev/shm/x bs=1M count=45; exec sleep 3600"));
    create(&steady());
    create(&pending());
    create(&pod("killed", "sleep 25; exec tail /dev/zero"));
    let mut pods = vec!["well", "near-limit", "killed"];
    scrape(dir.path(), &pods);
    let folder = engine();
    if let Some(folder) = &folder {
        // 160 blocks of 128 tokens.
        let more = "--num-gpu-blocks-override 160";
        create(&Server { namespace: NAMESPACE, name: "full", limit: "6Gi", pool: 1, more }.pod(folder));
    }
    let wanted = |all: &[(&str, &str)]| {
        for (name, pod) in all {
            until_within(PATIENCE, &format!("{name} of {pod} did not arrive"), || {
                received.lock().unwrap().contains_key(&((*name).to_owned(), (*pod).to_owned())).then_some(())
            });
            eprintln!("alerts: {name} of {pod}");
        }
    };
    wanted(&[
        ("DualplaneHostMemoryNearLimit", "near-limit"),
        ("DualplaneHostOomKilled", "killed"),
        ("DualplaneRestartWithVerdict", "killed"),
        ("DualplaneCrashLoop", "killed"),
    ]);
    if ksm.is_some() {
        let by = |name: &str| format!("{name} {KSM}");
        wanted(&[
            (&by("DualplaneHostOomKilled"), "killed"),
            (&by("DualplaneCrashLoop"), "killed"),
            (&by("DualplanePodPending"), "waits"),
        ]);
    }
    sized(&prometheus);
    if folder.is_some() {
        until_within(PATIENCE, "vLLM serves", || {
            (status("full", "{.status.containerStatuses[0].ready}") == "true").then_some(())
        });
        pods.push("full");
        scrape(dir.path(), &pods);
        let address = status("full", "{.status.podIP}");
        // Each of 160 requests wants five blocks, so that twice as many wait as run.
        std::thread::scope(|scope| {
            for _ in 0..160 {
                scope.spawn(|| keep_asking(&address));
            }
            wanted(&[
                ("DualplaneKvCacheFull", "full"),
                ("DualplaneQueueLong", "full"),
                ("DualplanePreemptions", "full"),
            ]);
            kubectl(&["delete", "pod", "full", "-n", NAMESPACE, "--wait=false"]);
        });
    }
    let all = received.lock().unwrap().clone();
    eprintln!("alerts: {:?}", all.keys().collect::<Vec<_>>());
    // Scenarios of other tests may fire beside these.
    let own = all.iter().filter(|(_, a)| a["labels"]["namespace"] == NAMESPACE);
    for ((name, pod), alert) in own {
        assert!(pod != "well" && !pod.starts_with("steady-"), "{name}: {alert}");
        if pod != "full" {
            first_command(alert);
        }
    }
    let near = all.keys().filter(|(name, pod)| pod == "near-limit" && !name.ends_with(KSM)).count();
    assert_eq!(near, 1, "near its limit, and nothing else: {all:?}");
}

/// Requests that are answered, until the server is taken away.
fn keep_asking(address: &str) {
    let body = completion(10, r#""max_tokens": 500, "ignore_eos": true"#);
    for _ in 0..50 {
        if ask(address, &body).unwrap_or_default().is_empty() {
            return;
        }
    }
}

/// Sizes from what that Prometheus has: a pod that lives at its limit, and a workload whose patch and autoscaler are applied.
fn sized(prometheus: &str) {
    let url = format!("http://{prometheus}");
    let of = |target: &str, more: &[&str]| {
        let args = ["resources", target, "-n", NAMESPACE, "--prometheus", &url, "--since", "1h"];
        run(&[&args[..], more].concat())
    };
    let report = of("pod/near-limit", &["-o", "json"]).ok().json();
    let c = &report["containers"][0];
    let mib = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{report}")) >> 20;
    let (held, shmem) = (mib(&c["ram"]["peak_bytes"]), mib(&c["most"]["shmem_bytes"]));
    assert!((45..=48).contains(&held) && (45..=held).contains(&shmem), "{report}");
    assert_eq!((mib(&c["now"]["limit_bytes"]), &c["without_page_cache"]), (48, &json!(true)), "{report}");
    // It holds 13 MiB of 48.
    let object = of("deploy/steady", &["-o", "keda", "--max", "3"]).ok().text();
    create(&object);
    let most = ["get", "scaledobject", "steady", "-n", NAMESPACE, "-o", "jsonpath={.spec.maxReplicaCount}"];
    assert_eq!(kubectl(&most), "3", "{object}");
    let object = of("deploy/steady", &["-o", "hpa", "--max", "3"]).ok().text();
    create(&object);
    let metrics = ["get", "hpa", "steady", "-n", NAMESPACE, "-o", "jsonpath={.spec.metrics[*].external.metric.name}"];
    assert_eq!(
        kubectl(&metrics),
        "steady_kv_cache_usage steady_requests_waiting steady_host_ram_above_steady",
        "{object}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), of("deploy/steady", &["-o", "patch"]).ok().text()).unwrap();
    kubectl(&["patch", "deploy/steady", "-n", NAMESPACE, "--patch-file", file.path().to_str().unwrap()]);
    let path = "jsonpath={.spec.template.spec.containers[0].resources.limits.memory}";
    let set = kubectl(&["get", "deploy", "steady", "-n", NAMESPACE, "-o", path]);
    assert_eq!(set, "256Mi", "the smallest step");
}
