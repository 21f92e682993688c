//! Events against a small API server that keeps what it is sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::incident::{SCHEMA, State};

#[derive(Default)]
struct Server {
    events: BTreeMap<String, Value>,
    asked: Vec<String>,
    /// Answers before the real ones.
    refuse: Vec<(u16, &'static str)>,
    /// Between GET and write somebody else changes it.
    race: bool,
}

struct FakeApi {
    state: Arc<Mutex<Server>>,
    home: tempfile::TempDir,
}

impl FakeApi {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]});
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), config.to_string()).unwrap();
        let state = Arc::new(Mutex::new(Server::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || while serve(&stream, &shared).is_some() {});
            }
        });
        Self { state, home }
    }

    fn sink(&self) -> EventSink {
        let access = Access { kubeconfig: Some(self.home.path().join("config")), ..Access::default() };
        EventSink::new(access, Arc::new(Knowledge::embedded().unwrap())).unwrap()
    }

    fn events(&self) -> Vec<Value> {
        self.state.lock().unwrap().events.values().cloned().collect()
    }
}

fn serve(stream: &TcpStream, state: &Mutex<Server>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let (mut length, mut header) = (0, String::new());
    while reader.read_line(&mut header).ok()? > 2 {
        if let Some(n) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().ok()?;
        }
        header.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, answer) = answer(line.trim(), &body, &mut state.lock().unwrap());
    let text = answer.to_string();
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

fn answer(line: &str, body: &[u8], state: &mut Server) -> (u16, Value) {
    let refused = |code: u16, why: &str| (code, json!({"kind": "Status", "message": why}));
    let words: Vec<&str> = line.split(' ').collect();
    let name = words[1].rsplit('/').next().unwrap().to_owned();
    state.asked.push(format!("{} {}", words[0], words[1]));
    if let Some((code, why)) = state.refuse.pop() {
        return refused(code, why);
    }
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    match words[0] {
        "GET" => state.events.get(&name).map_or_else(|| refused(404, "no such event"), |e| (200, e.clone())),
        "POST" => {
            let name = sent["metadata"]["name"].as_str().unwrap().to_owned();
            if state.events.contains_key(&name) {
                return refused(409, "already exists");
            }
            let mut made = sent;
            made["metadata"]["resourceVersion"] = json!("1");
            if std::mem::take(&mut state.race) {
                // Another agent was faster.
                made["metadata"]["annotations"][event::INCIDENT] = json!("0");
                state.events.insert(name, made);
                return refused(409, "already exists");
            }
            state.events.insert(name, made.clone());
            (201, made)
        }
        _ => {
            let there = state.events.get_mut(&name).unwrap();
            if sent["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"] {
                return refused(409, "modified");
            }
            let version: u64 = there["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            for (k, v) in sent.as_object().unwrap() {
                if k != "metadata" {
                    there[k] = v.clone();
                }
            }
            there["metadata"]["annotations"] = sent["metadata"]["annotations"].clone();
            there["metadata"]["resourceVersion"] = json!((version + 1).to_string());
            (200, there.clone())
        }
    }
}

fn death(id: &str) -> Summary {
    let now = Anchor::take().wall_ms(Moment::now());
    let at = Stamp::Wall { ms: now, zoned: true, year: true }.show();
    serde_json::from_value(json!({
        "schema": SCHEMA, "id": id, "kind": "death", "state": State::Judged, "died_at": at, "node": "node-1",
        "namespace": "serving", "pod": "llm-0", "uid": "uid-1", "container": "vllm", "first": true,
        "class": "cuda_oom_runtime", "plane": "gpu", "trigger": "torch.OutOfMemoryError: CUDA out of memory.", "bytes": 3,
    }))
    .unwrap()
}

#[test]
fn a_loop_is_one_event_and_no_incident_counts_twice() {
    let api = FakeApi::new();
    let mut sink = api.sink();
    assert_eq!(sink.tell(&death("1-a")), Ok(Outcome::Published(Published::Created)));
    assert_eq!(sink.tell(&death("1-a")), Ok(Outcome::Published(Published::Unchanged)));
    assert_eq!(sink.tell(&death("2-b")), Ok(Outcome::Published(Published::Updated(2))));
    // A restart forgets what was sent; the Event itself knows.
    let mut again = api.sink();
    assert_eq!(again.tell(&death("2-b")), Ok(Outcome::Published(Published::Unchanged)));
    assert_eq!(again.tell(&death("1-a")), Ok(Outcome::Published(Published::Unchanged)));
    let other = Summary { class: Some("host_oom_killed".into()), ..death("3-c") };
    assert_eq!(
        again.tell(&other),
        Ok(Outcome::Published(Published::Created)),
        "another class is another Event"
    );
    let events = api.events();
    assert_eq!(events.len(), 2);
    let e = events.iter().find(|e| e["count"] == 2).unwrap();
    assert_eq!((&e["reason"], &e["type"]), (&json!("DualplaneVerdict"), &json!("Warning")));
    assert_eq!(e["involvedObject"]["uid"], "uid-1");
    assert_eq!(e["involvedObject"]["fieldPath"], "spec.containers{vllm}");
    assert_eq!(e["related"]["name"], "node-1");
    assert_eq!(e["reportingComponent"], "dualplane.dev/agent");
    assert_eq!(e["metadata"]["labels"]["dualplane.dev/class"], "cuda_oom_runtime");
    let message = e["message"].as_str().unwrap();
    assert!(
        message.contains("VRAM ran out while serving (cuda_oom_runtime, gpu plane); first line: torch."),
        "{message}"
    );
    let asked = &api.state.lock().unwrap().asked;
    assert!(asked.iter().all(|a| a.contains(" /api/v1/namespaces/serving/events")), "{asked:?}");
}

#[test]
fn another_writer_in_between_is_borne() {
    let api = FakeApi::new();
    api.state.lock().unwrap().race = true;
    assert_eq!(api.sink().tell(&death("1-a")), Ok(Outcome::Published(Published::Updated(2))));
}

#[test]
fn what_is_no_memory_failure_of_a_pod_is_not_told() {
    let api = FakeApi::new();
    let mut sink = api.sink();
    for s in [
        Summary { class: Some("not_memory".into()), ..death("1-a") },
        Summary { class: None, ..death("1-a") },
        Summary { class: Some("made_up".into()), ..death("1-a") },
        Summary { kind: Kind::End, ..death("1-a") },
        Summary { uid: String::new(), ..death("1-a") },
        Summary { died_at: "2020-01-01T00:00:00.000Z".into(), ..death("1-a") },
    ] {
        assert_eq!(sink.tell(&s), Ok(Outcome::Skipped), "{s:?}");
    }
    assert!(api.state.lock().unwrap().asked.is_empty(), "the API server is not asked");
}

#[test]
fn a_message_is_bounded_masked_and_printable() {
    let api = FakeApi::new();
    let line = format!("\u{1b}[31mAuthorization: Bearer abcdefghijklmnop123456 {}", "é".repeat(2_000));
    let s = Summary {
        trigger: Some(line),
        kind: Kind::Kill,
        pod: format!("{}.", "p".repeat(252)),
        ..death("1-a")
    };
    api.sink().tell(&s).unwrap();
    let events = api.events();
    let message = events[0]["message"].as_str().unwrap();
    assert!(
        message.len() <= 1024
            && message.starts_with(
                "processes were killed, the container is still \
        running: "
            ),
        "{message}"
    );
    assert!(!message.contains("abcdefghijklmnop") && !message.contains('\u{1b}'), "{message}");
    assert!(events[0]["metadata"]["name"].as_str().unwrap().len() <= 253);
}

#[test]
fn only_time_decides_what_is_tried_again() {
    let api = FakeApi::new();
    let mut sink = api.sink();
    let tell = |sink: &mut EventSink, code, why| {
        api.state.lock().unwrap().refuse.push((code, why));
        sink.tell(&death("1-a"))
    };
    assert!(
        matches!(tell(&mut sink, 500, "etcd is away"), Err(SinkError::Later(w)) if w.contains("etcd is away"))
    );
    let rights = "events is forbidden: User \"u\" cannot create resource \"events\" in API group \"\"";
    assert!(matches!(tell(&mut sink, 403, rights), Err(SinkError::Later(_))));
    let going = "unable to create new content in namespace serving because it is being terminated";
    assert!(matches!(tell(&mut sink, 403, going), Err(SinkError::Refused(_))));
    assert!(matches!(tell(&mut sink, 401, "expired"), Err(SinkError::Later(_))));
    assert_eq!(sink.tell(&death("1-a")), Ok(Outcome::Published(Published::Created)), "with new credentials");
    let nowhere = Access { kubeconfig: Some("/nonexistent".into()), ..Access::default() };
    let mut lost = EventSink::new(nowhere, Arc::new(Knowledge::embedded().unwrap())).unwrap();
    assert!(matches!(lost.tell(&death("1-a")), Err(SinkError::Later(_))));
}
