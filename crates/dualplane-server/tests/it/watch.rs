//! Pods that are watched, by the real program and client against an API server of a few lines that plays recorded deaths. `e2e/helm live`
//! and `e2e/run test watched` have a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use dualplane_kube::ends;
use serde_json::{Value, json};

use crate::harness::{Server, kubeconfig, program, request, upload};

/// A cluster of pods, each with the log of the container that died.
#[derive(Default)]
struct Cluster {
    state: Mutex<Played>,
    changed: Condvar,
}

#[derive(Default)]
struct Played {
    pods: BTreeMap<String, (Value, String)>,
    /// What a watch is told, each with its number.
    events: Vec<String>,
    /// Watches end when this changes.
    cut: usize,
    asked: Vec<String>,
}

impl Cluster {
    fn start(self: &Arc<Self>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let cluster = Arc::clone(self);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let cluster = Arc::clone(&cluster);
                std::thread::spawn(move || cluster.serve(stream.unwrap()));
            }
        });
        address
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut out = stream;
        loop {
            let (path, _) = request(&mut lines)?;
            self.state.lock().unwrap().asked.push(path.clone());
            if path.contains("watch=true") {
                return self.watched(&path, &mut out);
            }
            let (status, body) = self.answer(&path);
            write!(out, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok()?;
        }
    }

    fn answer(&self, path: &str) -> (&'static str, String) {
        let state = self.state.lock().unwrap();
        let (base, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = base.split('/').collect();
        let found = match parts.as_slice() {
            ["", "api", "v1", "pods"] => {
                // Two pages, so that there is a second one.
                let all: Vec<&Value> = state.pods.values().map(|(p, _)| p).collect();
                let (first, second) = all.split_at(all.len() / 2);
                let (items, next) = if query.contains("continue=") { (second, "") } else { (first, "c") };
                let version = state.events.len().to_string();
                Some(json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": next, "resourceVersion": version}, "items": items}).to_string())
            }
            ["", "api", "v1", "namespaces", ns, "pods", name, rest @ ..] => {
                let pod = state.pods.get(&format!("{ns}/{name}"));
                match (pod, rest) {
                    (Some((pod, _)), []) => Some(pod.to_string()),
                    (Some((pod, log)), ["log"]) => (query.contains(&format!("container={}&", died(pod)))
                        && (query.contains("previous=true")
                            || !pod.to_string().contains("lastState\":{\"terminated")))
                    .then(|| log.clone()),
                    _ => None,
                }
            }
            _ => None,
        };
        match found {
            Some(body) => ("200 OK", body),
            None => {
                ("404 Not Found", json!({"kind": "Status", "code": 404, "message": "not found"}).to_string())
            }
        }
    }

    fn watched(&self, path: &str, out: &mut TcpStream) -> Option<()> {
        let from = path.split("resourceVersion=").nth(1)?.split('&').next()?;
        let mut at: usize = from.parse().ok()?;
        write!(out, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").ok()?;
        let mut state = self.state.lock().unwrap();
        let cut = state.cut;
        loop {
            let new: String = state.events.iter().skip(at).cloned().collect();
            at = state.events.len();
            if out.write_all(new.as_bytes()).is_err() || state.cut != cut {
                return None;
            }
            state = self.changed.wait_timeout(state, Duration::from_millis(200)).unwrap().0;
        }
    }

    /// The pod is in this state now, and whoever watches is told.
    fn is(&self, pod: &Value, log: &str) {
        self.tell("MODIFIED", pod, Some(log));
    }

    fn tell(&self, kind: &str, pod: &Value, log: Option<&str>) {
        let mut state = self.state.lock().unwrap();
        let mut told = pod.clone();
        told["metadata"]["resourceVersion"] = (state.events.len() + 1).to_string().into();
        state.events.push(format!("{}\n", json!({"type": kind, "object": told})));
        let key = format!(
            "{}/{}",
            pod["metadata"]["namespace"].as_str().unwrap(),
            pod["metadata"]["name"].as_str().unwrap()
        );
        match log {
            Some(log) => drop(state.pods.insert(key, (pod.clone(), log.to_owned()))),
            None => drop(state.pods.remove(&key)),
        }
        self.changed.notify_all();
    }

    fn cut(&self) {
        self.state.lock().unwrap().cut += 1;
        self.changed.notify_all();
    }

    /// Logs that were asked for, but those of this pod.
    fn logs_asked_beside(&self, pod: &str) -> usize {
        let of = format!("/{pod}/log?");
        let state = self.state.lock().unwrap();
        state.asked.iter().filter(|p| p.contains("/log?") && !p.contains(&of)).count()
    }
}

fn died(pod: &Value) -> String {
    ends::last(pod).map(|e| e.container).unwrap_or_default()
}

fn watching(home: &Path, api: &str, agents_first: &str) -> Server {
    let mut c = program();
    c.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--watch",
        "--cluster",
        "k",
        "--keep-days",
        "36500",
        "--data",
    ])
    .arg(home);
    c.args(["--watch-agents-first", agents_first]);
    c.env("KUBECONFIG", kubeconfig(home, api));
    Server::of(c)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// For long enough that a death would have been captured and kept.
fn a_while() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        std::thread::park_timeout(Duration::from_secs(1));
    }
}

fn incidents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/incidents")
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Recorded deaths that consist of a pod and a log, each in a namespace of its own, with their class.
fn recorded() -> Vec<(Value, String, String)> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(incidents()).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    let one = |dir: &PathBuf| {
        let names: BTreeSet<String> =
            std::fs::read_dir(dir).ok()?.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        let wanted = ["expected.txt", "pod.json", "previous.log", "truth.json"];
        let mut pod = read(&dir.join("pod.json")).filter(|_| names.iter().eq(wanted))?;
        let class = read(&dir.join("truth.json"))?["class"].as_str()?.to_owned();
        let uid = dir.file_name()?.to_str()?.to_owned();
        ends::last(&pod).filter(|e| pod["spec"].is_object() && !e.was_asked_for(&pod))?;
        pod["metadata"]["namespace"] = json!(uid);
        pod["metadata"]["uid"] = json!(uid);
        Some((
            pod,
            String::from_utf8_lossy(&std::fs::read(dir.join("previous.log")).ok()?).into_owned(),
            class,
        ))
    };
    all.iter().filter_map(one).collect()
}

#[test]
fn deaths_of_a_cluster_are_kept_as_triage_judges_them_and_once() {
    let home = tempfile::tempdir().unwrap();
    let cluster: Arc<Cluster> = Arc::default();
    let all = recorded();
    assert!(all.len() > 30, "{}", all.len());
    // Half of them are there already, the others die now.
    let (before, now) = all.split_at(all.len() / 2);
    before.iter().for_each(|(pod, log, _)| cluster.is(pod, log));
    let api = cluster.start();
    let s = watching(home.path(), &api, "0");
    now.iter().for_each(|(pod, log, _)| cluster.is(pod, log));
    // Told of again, as a kubelet does.
    now.iter().for_each(|(pod, log, _)| cluster.is(pod, log));
    until("all are kept", || s.ids().len() >= all.len());
    let mut wrong = Vec::new();
    for (pod, _, class) in &all {
        let ns = pod["metadata"]["namespace"].as_str().unwrap();
        let page = s.get(&format!("/v1/incidents?each=true&cluster=k&namespace={ns}")).json();
        let [i] = page["items"].as_array().unwrap().as_slice() else { panic!("{ns}: {page}") };
        if i["class"] != **class {
            wrong.push(format!("{ns}: {}, and is {class}", i["class"]));
        }
        assert_eq!(i["pod"], pod["metadata"]["name"], "{ns}");
        let id = i["id"].as_str().unwrap();
        assert_eq!(s.get(&format!("/v1/incidents/{id}/bundle")).status, 200, "{id}");
    }
    assert_eq!(wrong, Vec::<String>::new());
    // A server that is killed and knows nothing finds what it has.
    let asked = cluster.logs_asked_beside("another");
    drop(s);
    let s = watching(home.path(), &api, "0");
    cluster.cut();
    let (pod, log, _) = &all[0];
    let mut again = pod.clone();
    again["metadata"]["uid"] = json!("another");
    again["metadata"]["name"] = json!("another");
    until("the new one is kept", || {
        cluster.is(&again, log);
        s.ids().len() > all.len()
    });
    assert_eq!((s.ids().len(), cluster.logs_asked_beside("another")), (all.len() + 1, asked));
}

/// A death of this cluster, whose pod has this name.
fn death(name: &str) -> (Value, String) {
    let dir = incidents().join("real-k8s-pid1-oom");
    let mut pod = read(&dir.join("pod.json")).unwrap();
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(name);
    pod["spec"]["containers"][0]["image"] = json!("vllm/vllm-openai:v0.11.0");
    (pod, std::fs::read_to_string(dir.join("previous.log")).unwrap())
}

#[test]
fn an_agent_comes_first_and_what_is_deleted_is_told_with_what_is_left() {
    let home = tempfile::tempdir().unwrap();
    let cluster: Arc<Cluster> = Arc::default();
    let api = cluster.start();
    let s = watching(home.path(), &api, "3");
    let (pod, log) = death("by-agent");
    let at = ends::last(&pod).unwrap().at.unwrap();
    let ns = pod["metadata"]["namespace"].as_str().unwrap();
    let mut sent: Value = serde_json::from_slice(&upload("agent-1", ns)).unwrap();
    sent["where"]["pod"] = json!("by-agent");
    sent["where"]["died_at"] = json!(at.to_string());
    until("it watches", || cluster.state.lock().unwrap().asked.iter().any(|p| p.contains("watch=true")));
    cluster.is(&pod, &log);
    assert_eq!(s.ask("PUT", "/v1/incidents/agent-1", &[], sent.to_string().as_bytes()).status, 201);
    // Gone before anybody looked: the object still says that the kernel killed it.
    let (gone, _) = death("gone");
    cluster.tell("DELETED", &gone, None);
    // Told to end, and no model server.
    let (mut told, log) = death("told");
    let restarts = &mut told["status"]["containerStatuses"][0];
    restarts["lastState"] = json!({});
    restarts["state"] =
        json!({"terminated": {"exitCode": 143, "reason": "Error", "finishedAt": at.to_string()}});
    told["metadata"]["deletionTimestamp"] = json!(at.to_string());
    told["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    cluster.is(&told, &log);
    let (mut other, log) = death("nginx");
    other["spec"]["containers"][0]["image"] = json!("nginx:1.27");
    other["spec"]["containers"][0]["command"] = json!(["nginx"]);
    other["spec"]["containers"][0]["args"] = json!([]);
    other["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "96Mi"}});
    cluster.is(&other, &log);
    until("the one that is gone is kept", || s.ids().len() > 1);
    a_while();
    let page = s.get("/v1/incidents?each=true").json();
    let kept: BTreeSet<(String, String)> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (i["pod"].as_str().unwrap().to_owned(), i["class"].as_str().unwrap().to_owned()))
        .collect();
    let wanted = [("by-agent", "cuda_oom_runtime"), ("gone", "host_oom_killed")];
    assert_eq!(kept, wanted.map(|(p, c)| (p.to_owned(), c.to_owned())).into());
    // Whoever starts anew captures nothing again: neither what it has itself nor what the agent sent.
    let asked = cluster.logs_asked_beside("later");
    drop(s);
    let s = watching(home.path(), &api, "0");
    let (later, log) = death("later");
    cluster.is(&later, &log);
    until("the later one is kept", || s.ids().len() > 2);
    assert_eq!((s.ids().len(), cluster.logs_asked_beside("later")), (3, asked));
}
