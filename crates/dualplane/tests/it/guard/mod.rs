//! `dualplane guard` as a real program before a server that does what it is told: who is admitted, what passes and how,
//! what a caller or a server that goes away does, and what hostile requests reach.

mod backend;
mod client;
mod cluster;
mod deaths;
mod random;
mod renew;
mod tokenizer;
mod traces;
mod wire;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::backend::Backend;
use self::client::{Answer, send, stream};
use crate::harness::{code, dir, dualplane, run, stderr, stdout};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);

struct Guard {
    child: Child,
    address: String,
    admin: String,
    /// Shared by threads that send at a time.
    lines: Mutex<Receiver<String>>,
}

impl Guard {
    fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// With these variables.
    fn start_with(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = dualplane();
        command.arg("guard").envs(env.iter().copied()).args(["--listen", "127.0.0.1:0"]).args(args);
        Self::of(command)
    }

    /// On this socket.
    fn inheriting(listener: &std::net::TcpListener, args: &[&str]) -> Self {
        let socket = std::os::fd::OwnedFd::from(listener.try_clone().unwrap());
        let mut command = dualplane();
        command.arg("guard").args(["--listen", "stdin"]).args(args).stdin(socket);
        Self::of(command)
    }

    fn of(mut command: std::process::Command) -> Self {
        let mut child = command.args(["--admin", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let err = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || err.lines().map_while(Result::ok).for_each(|l| drop(tell.send(l))));
        let mut guard =
            Self { child, address: String::new(), admin: String::new(), lines: Mutex::new(lines) };
        let first = guard.line("listens on");
        guard.address = first.split("listens on ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        guard.admin = guard.line("http://").rsplit("http://").next().unwrap().to_owned();
        guard
    }

    fn before(backend: &Backend) -> Self {
        let guard = Self::start(&["--upstream", &backend.url()]);
        // The size of the pool is known from the first look at its metrics.
        guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
        guard
    }

    /// The next line that holds these words.
    fn line(&self, words: &str) -> String {
        loop {
            let line = self
                .lines
                .lock()
                .unwrap()
                .recv_timeout(LONG)
                .unwrap_or_else(|_| panic!("no line with {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    fn status(&self) -> Value {
        let o = run(&["guard", "status", "--admin", &self.admin, "-o", "json"]);
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        serde_json::from_slice(&o.stdout).unwrap()
    }

    fn until(&self, is: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if is(&status) {
                return status;
            }
            assert!(begun.elapsed() < LONG, "{status:#}");
            std::thread::yield_now();
        }
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        send(&self.address, "POST", path, "", body.to_string().as_bytes())
    }

    fn chat(&self, todo: &str, prompt: usize, most: u64) -> Answer {
        self.post("/v1/chat/completions", &chat(todo, prompt, most))
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request whose prompt has so many bytes, for a server that does `todo`.
fn chat(todo: &str, prompt: usize, most: u64) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(prompt)}], "max_tokens": most, "user": todo,
        "stream": todo.starts_with("stream") || todo.starts_with("flood")})
}

fn error(answer: &Answer) -> (u16, String) {
    let v: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|e| panic!("{e}: {answer:?}"));
    assert!(v["error"]["message"].is_string() && v["error"]["type"].is_string(), "{v}");
    (answer.status, v["error"]["code"].as_str().unwrap().to_owned())
}

/// Before Kubernetes ends a pod's server it may ask whether all were answered.
#[test]
fn drained_answers_when_nothing_is_under_way() {
    let backend = Backend::start(10_000);
    let guard = Guard::before(&backend);
    let mut events = stream(&guard.address, "/v1/chat/completions", &chat("stream:2:done", 100, 10));
    backend.step();
    events.next_event();
    let (tell, told) = channel();
    let admin = guard.admin.clone();
    std::thread::spawn(move || tell.send(send(&admin, "GET", "/drained", "", b"")).unwrap());
    // It waits longer than for requests that have not heard of it, as long as one is under way.
    assert!(told.recv_timeout(Duration::from_secs(8)).is_err(), "a stream is under way");
    assert_eq!(guard.chat("answer", 100, 10).status, 200, "whoever asks changes nothing");
    backend.step();
    events.rest();
    let answer = told.recv_timeout(LONG).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"drained\n".as_slice()));
}

#[test]
fn requests_pass_and_what_they_take_is_told() {
    let backend = Backend::start(1000);
    let guard = Guard::before(&backend);
    let answer = guard.chat("answer", 100, 10);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.body).contains("completion_tokens"));
    assert!(answer.header("x-request-id").is_some());
    let socket = "upgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let socket = send(&guard.address, "GET", "/v1/realtime", socket, b"");
    assert_eq!(error(&socket), (501, "no_websocket".into()));
    // What costs no memory passes, whatever it is; who offers HTTP/2 is answered in this one.
    let h2c = send(&guard.address, "GET", "/v1/anything", "upgrade: h2c\r\n", b"");
    assert_eq!(h2c.status, 200);
    let other = send(&guard.address, "GET", "/v1/anything?x=1", "", b"");
    assert_eq!((other.status, backend.last_path().as_str()), (200, "/v1/anything?x=1"));
    let sum = send(
        &guard.address,
        "POST",
        "/v1/chat/completions",
        "te: trailers\r\n",
        chat("trailers", 10, 5).to_string().as_bytes(),
    );
    assert!(String::from_utf8_lossy(&sum.body).ends_with("x-sum: 7\r\n\r\n"), "{sum:?}");
    let status = guard.status();
    crate::schema::follows(&status, "guard");
    assert_eq!(status["servers"][0]["kv_tokens"], 1000);
    assert_eq!(status["servers"][0]["engine"], "vllm");
    assert_eq!(status["servers"][0]["kv_held"], 0);
    let text = stdout(&run(&["guard", "status", "--admin", &guard.admin]));
    assert!(text.contains("0 of 950 tokens given out, 1000 in all"), "{text}");
    assert!(text.contains("not watched"), "{text}");
    let page = send(&guard.admin, "GET", "/metrics", "", b"");
    let page = String::from_utf8(page.body).unwrap();
    assert!(
        page.contains("dualplane_guard_requests_total{api=\"chat\",status=\"200\",code=\"\"} 2\n"),
        "{page}"
    );
    assert!(page.contains("dualplane_guard_server_kv_tokens{server="), "{page}");
    // What the manual and the manifests of autoscalers name is there.
    for file in ["docs/guard.md", "deploy/guard-keda.yaml", "deploy/guard-hpa.yaml"] {
        let text = std::fs::read_to_string(crate::harness::root().join(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words.filter(|w| w.starts_with("dualplane_guard_")).collect();
        assert!(names.len() > 2, "{file}");
        // One is made by the rule beside it, and one is there in shadow mode alone.
        let made = ["dualplane_guard_replicas_asked_for", "dualplane_guard_shadow_decisions_total"];
        for name in names.into_iter().filter(|n| !made.contains(n)) {
            assert!(page.contains(&format!("# TYPE {name} ")), "{file}: {name}");
        }
    }
    for line in page.lines().filter(|l| !l.starts_with('#')) {
        assert!(dualplane_base::metrics::sample(line).is_some(), "{line}");
    }
}

#[test]
fn what_never_fits_is_refused_with_what_would_and_what_fits_later_waits() {
    let backend = Backend::start(1000);
    let guard = Guard::before(&backend);
    let never = guard.chat("answer", 20_000, 10);
    assert_eq!(error(&never), (413, "kv_never_fits".into()));
    assert!(String::from_utf8_lossy(&never.body).contains("holds 950"), "{never:?}");
    let never = guard.chat("answer", 100, 5000);
    assert_eq!(error(&never), (413, "kv_never_fits".into()));
    assert!(String::from_utf8_lossy(&never.body).contains("max_tokens"), "{never:?}");
    // 600 of 950 tokens each: one at a time, and nobody is refused.
    std::thread::scope(|s| {
        let all: Vec<_> = (0..4).map(|_| s.spawn(|| guard.chat("hold:100", 100, 500).status)).collect();
        for one in all {
            assert_eq!(one.join().unwrap(), 200);
        }
    });
    assert_eq!(backend.most_at_a_time(), 1);
    assert!(guard.status()["servers"][0]["kv_held"] == 0);
}

#[test]
fn shadow_mode_sends_everything() {
    let backend = Backend::start(1000);
    let guard = Guard::start(&["--upstream", &backend.url(), "--shadow"]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    assert_eq!(guard.chat("answer", 20_000, 10).status, 200);
    assert_eq!(guard.status()["would"]["kv_never_fits"], 1);
}

#[test]
fn events_pass_one_by_one_and_a_caller_that_goes_away_reaches_the_server() {
    let backend = Backend::start(10_000);
    let guard = Guard::before(&backend);
    let mut events = stream(&guard.address, "/v1/chat/completions", &chat("stream:3:step", 100, 10));
    for _ in 0..3 {
        // The next event is written only when the one before has arrived here.
        backend.step();
        assert!(events.next_event().contains("\"content\""));
    }
    drop(events);
    let mut events = stream(&guard.address, "/v1/chat/completions", &chat("stream:1000:step", 100, 10));
    backend.step();
    events.next_event();
    let went = Instant::now();
    drop(events);
    let heard = backend.closed();
    // The bound is 50 ms; a machine that builds beside it gets some slack. bench/guard.sh measures.
    assert!(heard.duration_since(went) < Duration::from_secs(2), "{:?}", heard.duration_since(went));
    guard.until(|s| s["servers"][0]["kv_held"] == 0 && s["servers"][0]["running"] == 0);
    // Before the answer begins, too.
    let waits = client::open(&guard.address, "/v1/chat/completions", &chat("hold:60000", 100, 10));
    guard.until(|s| s["servers"][0]["running"] == 1);
    let went = Instant::now();
    drop(waits);
    assert!(backend.closed().duration_since(went) < Duration::from_secs(2));
    guard.until(|s| s["servers"][0]["running"] == 0);
    // One that waits in the queue leaves it.
    let one = Backend::start(1000);
    let guard = Guard::before(&one);
    let mut runs = stream(&guard.address, "/v1/chat/completions", &chat("stream:1000:step", 100, 500));
    one.step();
    runs.next_event();
    let waits = client::open(&guard.address, "/v1/chat/completions", &chat("answer", 100, 500));
    guard.until(|s| s["pools"][0]["waiting"] == 1);
    drop(waits);
    guard.until(|s| s["pools"][0]["waiting"] == 0);
}

#[test]
fn a_server_that_dies_answers_its_requests_and_gets_none_until_it_is_back() {
    let backend = Backend::start(10_000);
    let other = Backend::start(10_000);
    let guard = Guard::before(&backend);
    let mut events = stream(&guard.address, "/v1/chat/completions", &chat("stream:1:die", 100, 10));
    backend.step();
    events.next_event();
    let rest = events.rest();
    assert!(rest.contains("\"code\":\"server_died\""), "{rest}");
    assert_eq!(error(&guard.chat("die", 100, 10)), (502, "server_died".into()));
    drop(guard);
    // Two servers, one of which takes no connections: everything goes to the other, at once.
    let (a, b) = (backend.url(), other.url());
    drop(backend);
    let guard = Guard::start(&["--upstream", &a, "--upstream", &b]);
    for _ in 0..4 {
        assert_eq!(guard.chat("answer", 100, 10).status, 200);
    }
    guard.until(|s| s["servers"][0]["up"] == false && s["servers"][1]["up"] == true);
    drop(other);
    // A connection that stood open may break off first; after that nothing is sent any more.
    let begun = Instant::now();
    loop {
        match error(&guard.chat("answer", 100, 10)) {
            (503, code) if code == "server_down" || code == "no_server" => break,
            (502, code) if code == "server_died" && begun.elapsed() < LONG => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn sigterm_answers_what_was_accepted_and_sighup_takes_a_new_file() {
    let backend = Backend::start(10_000);
    let file = |wait: u32| {
        format!("[queue]\nwait_seconds = {wait}\n[[server]]\nname = \"s\"\nurl = \"{}\"\n", backend.url())
    };
    let d = dir(&[("g.toml", file(30).as_bytes())]);
    let path = d.path().join("g.toml");
    let mut guard = Guard::start(&["--config", path.to_str().unwrap()]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    let mut events = stream(&guard.address, "/v1/chat/completions", &chat("stream:3:step", 100, 10));
    backend.step();
    events.next_event();
    std::fs::write(&path, "listen = 3\n").unwrap();
    guard.signal("-HUP");
    guard.line("not taken");
    std::fs::write(&path, file(1)).unwrap();
    guard.signal("-HUP");
    guard.line("reloaded");
    backend.step();
    events.next_event();
    // Who connected and says nothing holds up no end; a stream is under way until its last byte.
    let silent = std::net::TcpStream::connect(&guard.address).unwrap();
    assert_eq!(guard.status()["under_way"], 1);
    guard.signal("-TERM");
    assert!(guard.line("draining").contains("1 request"));
    assert!(std::net::TcpStream::connect(&guard.address).is_err(), "nobody new");
    backend.step();
    events.next_event();
    assert!(events.rest().contains("[DONE]"));
    let ended = Instant::now();
    assert_eq!(guard.child.wait().unwrap().code(), Some(0));
    assert!(ended.elapsed() < LONG, "{:?}", ended.elapsed());
    drop(silent);
}

/// A guard that is told to end answers what was on its way to it, however far that had come, and says that it goes.
#[test]
fn what_was_on_its_way_at_the_end_is_answered() {
    let backend = Backend::start(10_000);
    // It has half a second to arrive, which a busy machine may take from this test.
    assert!((0..20).any(|_| all_arrives_and_is_answered(&backend)), "too slow 20 times");
}

/// False: it did not arrive in time.
fn all_arrives_and_is_answered(backend: &Backend) -> bool {
    let mut guard = Guard::before(backend);
    let ask = chat("answer", 100, 10).to_string();
    let post = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{ask}",
        ask.len()
    );
    let get = "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n".to_owned();
    let mut callers = Vec::new();
    for request in [&get, &post] {
        let body = request.find("\r\n\r\n").unwrap() + 4;
        for sent in [0, 1, 4, 20, body - 1, (body + request.len()) / 2, request.len()] {
            // On a connection of its own, and on one that has served before.
            for before in [0, 1] {
                let mut caller = client::Kept::connect(&guard.address);
                for _ in 0..before {
                    caller.write(get.as_bytes());
                    assert_eq!(caller.answer().status, 200);
                }
                caller.write(&request.as_bytes()[..sent]);
                callers.push((caller, &request[sent..], format!("{before}, {sent} of {request}")));
            }
        }
    }
    let told = Instant::now();
    guard.signal("-TERM");
    guard.line("draining");
    for (caller, rest, _) in &mut callers {
        caller.write(rest.as_bytes());
    }
    if told.elapsed() > Duration::from_millis(300) {
        return false;
    }
    for (mut caller, _, what) in callers {
        let answer = caller.answer();
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
        // One that was answered before the end was told is closed without a word.
        assert!(answer.header("connection").is_none_or(|c| c == "close"), "{what}: {answer:?}");
        assert!(caller.ended(), "{what}");
    }
    assert_eq!(guard.child.wait().unwrap().code(), Some(0));
    true
}

#[test]
fn hostile_requests_reach_nothing() {
    let backend = Backend::start(10_000);
    let guard = Guard::before(&backend);
    let before = backend.posts();
    let raw = |text: &[u8]| client::raw(&guard.address, text, true);
    let body = chat("answer", 10, 5).to_string();
    let n = body.len();
    // Two framings: what is behind the body of the one must not become a request of the other.
    let both = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {n}\r\ntransfer-encoding: chunked\r\n\r\n{n:x}\r\n{body}\r\n0\r\n\r\n"
    );
    for (name, text) in [
        ("both framings", both.as_str()),
        (
            "two lengths",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        ),
        (
            "a length with a sign",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: +2\r\n\r\n{}",
        ),
        (
            "a chunk that is none",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        ),
        (
            "a chunk of 2^64",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
        ),
        (
            "chunked, and not last",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        ),
        (
            "a blank before the colon",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length : 2\r\n\r\n{}",
        ),
        (
            "a folded header",
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\n{}",
        ),
        ("no JSON", "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n[]"),
    ] {
        let answer = raw(text.as_bytes());
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4") || name == "both framings",
            "{name}: {answer}"
        );
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{name}: {answer}");
    }
    let flood: String = (0..5000).map(|i| format!("x-{i}: y\r\n")).collect();
    let answer = raw(format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{flood}\r\n").as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    let deep = format!("{{\"messages\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let answer = send(&guard.address, "POST", "/v1/chat/completions", "", deep.as_bytes());
    assert_eq!(error(&answer), (400, "body_not_read".into()));
    let large = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1073741824\r\n\r\n{";
    let large = client::raw(&guard.address, large, false);
    assert!(large.starts_with("HTTP/1.1 413"), "{large}");
    let gzip = send(&guard.address, "POST", "/v1/chat/completions", "content-encoding: gzip\r\n", b"{}");
    assert_eq!(error(&gzip), (415, "compressed_body".into()));
    // At most the one with both framings, read as one request, reached the server; the guard lives.
    assert!(backend.posts() <= before + 1, "{}", backend.posts());
    assert_eq!(guard.chat("answer", 10, 5).status, 200);
    for request in backend.heads() {
        let head = request.to_ascii_lowercase();
        assert!(
            head.matches("content-length:").count() + head.matches("transfer-encoding:").count() <= 1,
            "{head}"
        );
    }
}

#[test]
fn a_configuration_is_checked_before_a_port_is_bound() {
    let d = dir(&[
        ("bad.toml", b"[queue]\nwait = 3\n"),
        ("good.toml", b"[[server]]\nurl = \"http://127.0.0.1:1\"\n"),
    ]);
    let path = |name: &str| d.path().join(name).display().to_string();
    let bad = run(&["guard", "check", "--config", &path("bad.toml")]);
    assert_eq!(code(&bad), 2);
    assert!(stderr(&bad).contains("line 2") && stderr(&bad).contains("wait_seconds"), "{}", stderr(&bad));
    let good = run(&["guard", "check", "--config", &path("good.toml")]);
    assert_eq!((code(&good), stdout(&good).contains("127.0.0.1:1: KV cache by its metrics")), (0, true));
    assert_eq!(code(&run(&["guard", "check", "--config", &path("none.toml")])), 3);
    let none = run(&["guard"]);
    assert!(code(&none) == 2 && stderr(&none).contains("--config"), "{}", stderr(&none));
    let odd = run(&["guard", "--upstream", "ftp://127.0.0.1:1"]);
    assert!(code(&odd) == 2 && stderr(&odd).contains("https://"), "{}", stderr(&odd));
    let nobody = run(&["guard", "status", "--admin", "127.0.0.1:1"]);
    assert!(code(&nobody) == 3 && stderr(&nobody).contains("no status of a guard"), "{}", stderr(&nobody));
    // The port is taken: said with the port.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let o = run(&["guard", "--upstream", "http://127.0.0.1:1", "--listen", &at, "--admin", "none"]);
    assert!(code(&o) == 3 && stderr(&o).contains(&at), "{}", stderr(&o));
    // The whole example of the manual.
    let manual = std::fs::read_to_string(crate::harness::root().join("docs/guard.md")).unwrap();
    let example = manual.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let example =
        example.replace("[tls]", "#").replace("certificate =", "#").replace("key = \"/etc", "# \"/etc");
    let d = dir(&[("g.toml", example.as_bytes())]);
    let o = run(&["guard", "check", "--config", d.path().join("g.toml").to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
}
