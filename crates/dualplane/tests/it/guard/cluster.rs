//! An API server that speaks of EndpointSlices as the real one does: pages, watches, bookmarks, versions that are too old.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::backend::Backend;
use super::{Guard, LONG};

/// What the test has it do.
enum Do {
    /// Send an event of the watch that is open.
    Event(&'static str, Value),
    /// End the watch.
    End,
}

#[derive(Default)]
struct World {
    slices: Vec<Value>,
    version: u64,
    /// Watches from an older version are refused so (410).
    oldest: u64,
    /// What is answered instead.
    refuses: Option<u16>,
}

struct ApiServer {
    address: String,
    world: Arc<Mutex<World>>,
    asked: Receiver<String>,
    tell: Sender<Do>,
}

impl ApiServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let world = Arc::new(Mutex::new(World { version: 10, ..World::default() }));
        let (note, asked) = channel();
        let (tell, todo) = channel();
        let of = Arc::clone(&world);
        std::thread::spawn(move || {
            let todo: Receiver<Do> = todo;
            for stream in listener.incoming() {
                serve(stream.unwrap(), &of, &note, &todo);
            }
        });
        Self { address, world, asked, tell }
    }

    /// The next request that holds these words.
    fn asked(&self, words: &str) -> String {
        loop {
            let head = self.asked.recv_timeout(LONG).unwrap_or_else(|_| panic!("nobody asked for {words}"));
            if head.contains(words) {
                return head;
            }
        }
    }

    fn event(&self, kind: &'static str, object: Value) {
        self.tell.send(Do::Event(kind, object)).unwrap();
    }
}

/// One request a connection, one connection at a time: the guard has a single thread for the Service.
fn serve(stream: TcpStream, world: &Mutex<World>, note: &Sender<String>, todo: &Receiver<Do>) {
    let mut out = stream.try_clone().unwrap();
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let line = head.lines().next().unwrap().to_owned();
    let number = |key: &str| -> Option<u64> {
        let from = line.split(&format!("{key}=")).nth(1)?;
        from.split(['&', ' ']).next()?.parse().ok()
    };
    let mut w = world.lock().unwrap();
    let (version, oldest, refuses) = (w.version, w.oldest, w.refuses);
    let slices = w.slices.clone();
    note.send(head.clone()).unwrap();
    if let Some(status) = refuses {
        let body =
            json!({"kind": "Status", "message": "endpointslices is forbidden", "code": status}).to_string();
        w.refuses = None;
        drop(w);
        return answer(&mut out, status, &body);
    }
    drop(w);
    if !line.contains("watch=true") {
        // A slice a page.
        let at = number("continue").unwrap_or(0) as usize;
        let more = if at + 1 < slices.len() { (at + 1).to_string() } else { String::new() };
        let page: Vec<&Value> = slices.get(at).into_iter().collect();
        let list = json!({"kind": "EndpointSliceList", "metadata": {"resourceVersion": version.to_string(), "continue": more},
            "items": page});
        return answer(&mut out, 200, &list.to_string());
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    out.write_all(head.as_bytes()).unwrap();
    let mut send = |kind: &str, object: &Value| {
        let text = format!("{}\n", json!({"type": kind, "object": object}));
        // Cut where it hurts: events do not come in one piece.
        let (a, b) = text.as_bytes().split_at(text.len() / 2);
        for part in [a, b] {
            let _ = write!(out, "{:x}\r\n", part.len());
            let _ = out.write_all(part);
            let _ = out.write_all(b"\r\n");
            let _ = out.flush();
        }
    };
    if number("resourceVersion").unwrap_or(0) < oldest {
        let status = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"});
        send("ERROR", &status);
    } else {
        while let Ok(Do::Event(kind, object)) = todo.recv_timeout(LONG) {
            send(kind, &object);
        }
    }
    let _ = out.write_all(b"0\r\n\r\n");
}

fn answer(out: &mut TcpStream, status: u16, body: &str) {
    let _ = write!(
        out,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn slice(name: &str, version: u64, pods: &[(&str, &Backend, Value)]) -> Value {
    let port = |b: &Backend| b.url().rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|(pod, _, conditions)| {
            json!({"addresses": ["127.0.0.1"], "conditions": conditions, "nodeName": "n1",
                "targetRef": {"kind": "Pod", "namespace": "serving", "name": pod, "uid": format!("uid-{pod}")}})
        })
        .collect();
    let number = pods.first().map_or(1, |(_, b, _)| port(b));
    json!({"metadata": {"name": name, "namespace": "serving", "resourceVersion": version.to_string()}, "addressType": "IPv4",
        "endpoints": endpoints, "ports": [{"name": "http", "port": number, "protocol": "TCP"}]})
}

fn names(status: &Value) -> Vec<&str> {
    status["servers"].as_array().unwrap().iter().filter_map(|s| s["name"].as_str()).collect()
}

#[test]
fn pods_of_a_service_come_and_go_without_a_dropped_stream() {
    let (one, two) = (Backend::start(10_000), Backend::start(10_000));
    let api = ApiServer::start();
    let ready = json!({"ready": true, "serving": true, "terminating": false});
    let leaving = json!({"ready": false, "serving": true, "terminating": true});
    api.world.lock().unwrap().slices = vec![
        slice("llm-a", 8, &[("p1", &one, ready.clone())]),
        slice("llm-b", 9, &[("p2", &two, json!({"ready": false}))]),
    ];
    let dir = tempfile::tempdir().unwrap();
    let (config, token) = (dir.path().join("guard.toml"), dir.path().join("token"));
    std::fs::write(&token, "first\n").unwrap();
    let text = format!(
        "[kubernetes]\napi = \"http://{}\"\ntoken = \"{}\"\n[[service]]\nname = \"serving/llm\"\nport = \"http\"\n",
        api.address,
        token.display()
    );
    std::fs::write(&config, text).unwrap();
    let guard = Guard::start(&["--config", config.to_str().unwrap()]);
    // Page by page, then a watch from the list's version; each with the token of its file.
    let list = api.asked("limit=100");
    assert!(list.starts_with("GET /apis/discovery.k8s.io/v1/namespaces/serving/endpointslices?"), "{list}");
    assert!(
        list.contains("labelSelector=kubernetes.io%2Fservice-name%3Dllm") && list.contains("Bearer first"),
        "{list}"
    );
    api.asked("continue=1");
    let watch = api.asked("watch=true");
    assert!(watch.contains("resourceVersion=10&") && watch.contains("allowWatchBookmarks=true"), "{watch}");
    let status = guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    assert_eq!(names(&status), ["p1"]);
    assert_eq!(
        (status["services"][0]["servers"].as_u64(), status["services"][0]["idle"].as_u64()),
        (Some(1), Some(1)),
        "{status:#}"
    );
    let chat = super::chat("stream:3:done", 100, 10);
    let mut stream = super::client::stream(&guard.address, "/v1/chat/completions", &chat);
    one.step();
    assert!(stream.next_event().contains("data:"));
    // The pod that streams is about to end and another is ready: what runs goes on, what comes goes there.
    api.event("MODIFIED", slice("llm-b", 11, &[("p2", &two, ready.clone())]));
    api.event("MODIFIED", slice("llm-a", 12, &[("p1", &one, leaving)]));
    guard.until(|s| names(s) == ["p2"] && s["servers"][0]["kv_tokens"].is_u64());
    let before = one.posts();
    assert_eq!(guard.chat("answer", 100, 10).status, 200);
    assert_eq!((one.posts(), two.posts()), (before, 1));
    for _ in 0..2 {
        one.step();
    }
    assert!(stream.rest().contains("[DONE]"));
    // A bookmark moves the version on; the next watch begins there, with the token of now.
    std::fs::write(&token, "second\n").unwrap();
    api.event("BOOKMARK", json!({"kind": "EndpointSlice", "metadata": {"resourceVersion": "30"}}));
    api.tell.send(Do::End).unwrap();
    let watch = api.asked("watch=true");
    assert!(watch.contains("resourceVersion=30&") && watch.contains("Bearer second"), "{watch}");
    // Too old to go on from: all is read again.
    {
        let mut w = api.world.lock().unwrap();
        w.slices = vec![slice("llm-b", 40, &[("p2", &two, ready.clone())])];
        (w.version, w.oldest) = (40, 40);
    }
    api.tell.send(Do::End).unwrap();
    assert!(api.asked("watch=true").contains("resourceVersion=30&"));
    api.asked("limit=100");
    assert!(api.asked("watch=true").contains("resourceVersion=40&"));
    // A right is taken away: what was known stays, and what is missing is said.
    api.world.lock().unwrap().refuses = Some(403);
    api.tell.send(Do::End).unwrap();
    let status = guard.until(|s| s["services"][0]["trouble"].is_string());
    assert!(status["services"][0]["trouble"].as_str().unwrap().contains("list and watch"), "{status:#}");
    assert_eq!(names(&status), ["p2"]);
    assert_eq!(guard.chat("answer", 100, 10).status, 200);
    guard.until(|s| s["services"][0]["trouble"].is_null());
    // Its pods are gone.
    api.event("DELETED", slice("llm-b", 50, &[("p2", &two, ready)]));
    guard.until(|s| names(s).is_empty());
    assert_eq!(super::error(&guard.chat("answer", 100, 10)), (503, "no_server".into()));
}
