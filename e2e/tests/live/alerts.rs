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
use crate::harness::{Ran, create, kubectl, run, succeeds, until, until_within};
use crate::real_vllm::engine;

const NAMESPACE: &str = "e2e-alerts";
const AGENT: &str = "127.0.0.1:10988";
/// A start of vLLM on a busy machine of two cores, and then minutes of requests.
const PATIENCE: Duration = Duration::from_secs(420);

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

/// Everything goes, also when the test fails.
struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = succeeds(&["delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found"]);
    }
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
                kept.lock().unwrap().insert((label("alertname"), label("pod")), alert.clone());
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

/// Serves a page of metrics, and does what the script says.
fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\nspec:\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  - name: vllm\n    image: registry.local/busybox:1\n    \
         imagePullPolicy: Never\n    command: [sh, -c, {:?}]\n    resources: {{limits: {{memory: 48Mi}}}}\n",
        format!("mkdir /tmp/www; printf '{PAGE}' >/tmp/www/metrics; httpd -p 8000 -h /tmp/www; {script}")
    )
}

fn real_server(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: full, namespace: {NAMESPACE}}}\nspec:\n  hostPID: true\n  \
         restartPolicy: Never\n  terminationGracePeriodSeconds: 5\n  hostname: localhost\n  containers:\n  - name: vllm\n    \
         image: docker.io/vllm/vllm-openai:v0.11.0\n    imagePullPolicy: Never\n    \
         command: [chroot, /host, /bin/bash, -c]\n    args:\n    - |\n      \
         cd {folder} && exec venv/bin/python venv/bin/vllm serve ./tiny --port 8000 \\\n        \
         --max-model-len 4096 --enforce-eager --num-gpu-blocks-override 160 2>&1\n    \
         env:\n    - {{name: VLLM_CPU_KVCACHE_SPACE, value: \"1\"}}\n    - {{name: VLLM_HOST_IP, value: 127.0.0.1}}\n    \
         - {{name: GLOO_SOCKET_IFNAME, value: lo}}\n    - {{name: HF_HUB_OFFLINE, value: \"1\"}}\n    \
         - {{name: PATH, value: \"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"}}\n    \
         readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 3}}\n    \
         resources: {{limits: {{memory: 6Gi}}, requests: {{memory: 64Mi}}}}\n    \
         volumeMounts: [{{name: host, mountPath: /host}}]\n  \
         volumes: [{{name: host, hostPath: {{path: /}}}}]\n"
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

fn start_prometheus(dir: &Path, receiver: &str) -> [Daemon; 2] {
    let (prometheus, manager) = (free(), free());
    // States need no minutes here.
    std::fs::write(dir.join("rules.yaml"), run(&["rules", "--for", "10s"]).ok().out).unwrap();
    let config = json!({
        "global": {"scrape_interval": "3s", "evaluation_interval": "3s"},
        "rule_files": ["rules.yaml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
        "scrape_configs": [
            {"job_name": "dualplane", "honor_labels": true, "static_configs": [{"targets": [AGENT]}]},
            {"job_name": "engines", "file_sd_configs": [{"files": ["pods.json"], "refresh_interval": "2s"}]},
        ],
    });
    // JSON is YAML.
    std::fs::write(dir.join("prometheus.yml"), config.to_string()).unwrap();
    let config = json!({
        "route": {"receiver": "test", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]},
        "receivers": [{"name": "test", "webhook_configs": [{"url": format!("http://{receiver}/")}]}],
    });
    std::fs::write(dir.join("alertmanager.yml"), config.to_string()).unwrap();
    let alertmanager = ["--config.file=alertmanager.yml", "--storage.path=am", "--cluster.listen-address="];
    let listen = format!("--web.listen-address={manager}");
    let first = daemon("prometheus-alertmanager", dir, &[&alertmanager[..], &[&listen]].concat());
    let listen = format!("--web.listen-address={prometheus}");
    let second =
        daemon("prometheus", dir, &["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", &listen]);
    for address in [&manager, &prometheus] {
        until("no answer", || TcpStream::connect(address).ok());
    }
    [first, second]
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
    let _ = succeeds(&["delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait"]);
    let _gone = Gone;
    kubectl(&["create", "namespace", NAMESPACE]);
    until("no service account", || {
        succeeds(&["get", "serviceaccount", "default", "-n", NAMESPACE]).then_some(())
    });
    let dir = tempfile::tempdir().unwrap();
    let _agent = start_at(&dir.path().join("state"), AGENT, &[]);
    let (address, received) = receiver();
    let _daemons = start_prometheus(dir.path(), &address);

    create(&pod("well", "exec sleep 3600"));
    create(&pod("near-limit", "dd if=/dev/zero of=/dev/shm/x bs=1M count=45; exec sleep 3600"));
    create(&pod("killed", "sleep 25; exec tail /dev/zero"));
    let mut pods = vec!["well", "near-limit", "killed"];
    scrape(dir.path(), &pods);
    let folder = engine();
    if let Some(folder) = &folder {
        create(&real_server(folder));
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
    if folder.is_some() {
        until_within(PATIENCE, "vLLM serves", || {
            (status("full", "{.status.containerStatuses[0].ready}") == "true").then_some(())
        });
        pods.push("full");
        scrape(dir.path(), &pods);
        let address = status("full", "{.status.podIP}");
        // 160 blocks of 128 tokens: each of 160 requests wants five, so that twice as many wait as run.
        std::thread::scope(|scope| {
            for _ in 0..160 {
                scope.spawn(|| ask(&address));
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
        assert_ne!(pod, "well", "{name}: {alert}");
        if pod != "full" {
            first_command(alert);
        }
    }
    let near = all.keys().filter(|(_, pod)| pod == "near-limit").count();
    assert_eq!(near, 1, "near its limit, and nothing else: {all:?}");
}

/// A request that is answered, or cut off when the server is taken away.
fn ask(address: &str) {
    let body = format!(
        r#"{{"model": "./tiny", "prompt": "{}", "max_tokens": 500, "ignore_eos": true}}"#,
        "one two three four ".repeat(10)
    );
    for _ in 0..50 {
        let Ok(mut stream) = TcpStream::connect((address, 8000)) else { return };
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let head = "POST /v1/completions HTTP/1.0\r\nHost: llm\r\nContent-Type: application/json";
        let sent = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut answer = String::new();
        if sent.is_err() || stream.read_to_string(&mut answer).is_err() || answer.is_empty() {
            return;
        }
    }
}
