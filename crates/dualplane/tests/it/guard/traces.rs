//! Spans: what a collector gets, and what becomes of requests while it is away.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use super::*;

/// Answers as a collector does, these first and then 200; hands on what it was sent.
fn collector(first: &'static [u16]) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while lines.read_line(&mut line).unwrap() > 2 {
                head.push_str(&line.to_ascii_lowercase());
                line.clear();
            }
            assert!(
                head.starts_with("post /v1/traces ") && head.contains("content-type: application/json"),
                "{head}"
            );
            let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().trim();
            let mut body = vec![0; length.parse().unwrap()];
            lines.read_exact(&mut body).unwrap();
            let status = first.get(n).unwrap_or(&200);
            write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}")
                .unwrap();
            if *status == 200 && tell.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, told)
}

fn file(url: &str, backend: &Backend) -> tempfile::TempDir {
    let text = format!(
        "[traces]\nendpoint = \"{url}\"\nshare = 0.0\n[queue]\nwait_seconds = 0\n[[server]]\nname = \"s\"\nurl = \"{}\"\n",
        backend.url()
    );
    dir(&[("g.toml", text.as_bytes())])
}

fn begin(url: &str, backend: &Backend) -> (Guard, tempfile::TempDir) {
    let d = file(url, backend);
    let guard = Guard::start(&["--config", d.path().join("g.toml").to_str().unwrap()]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    (guard, d)
}

fn ask(guard: &Guard, traceparent: &str, body: &Value) -> Answer {
    let headers = format!("traceparent: {traceparent}\r\ntracestate: vendor=1\r\n");
    send(&guard.address, "POST", "/v1/chat/completions", &headers, body.to_string().as_bytes())
}

/// Spans, with their attributes by name.
fn spans(message: &Value) -> Vec<(Value, std::collections::BTreeMap<String, Value>)> {
    let all = message["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    all.iter()
        .map(|s| {
            let known = s["attributes"].as_array().unwrap().iter();
            let value = |v: &Value| v.as_object().unwrap().values().next().unwrap().clone();
            (s.clone(), known.map(|a| (a["key"].as_str().unwrap().into(), value(&a["value"]))).collect())
        })
        .collect()
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn a_caller_s_trace_goes_through_the_guard_to_the_server() {
    let backend = Backend::start(1000);
    // It is busy at first: that loses nothing.
    let (url, told) = collector(&[503]);
    let (guard, _d) = begin(&url, &backend);
    assert_eq!(ask(&guard, &format!("00-{TRACE}-00f067aa0ba902b7-01"), &chat("answer", 100, 10)).status, 200);
    let head = backend.heads().into_iter().rfind(|h| h.starts_with("POST")).unwrap().to_ascii_lowercase();
    let sent = head.split(&format!("traceparent: 00-{TRACE}-")).nth(1).expect(&head);
    assert!(&sent[16..19] == "-01" && head.contains("tracestate: vendor=1"), "{head}");
    // What its caller does not keep is not told, but belongs together all the same; one of nobody's trace is one of ours.
    assert_eq!(ask(&guard, &format!("00-{TRACE}-00f067aa0ba902b7-00"), &chat("answer", 100, 10)).status, 200);
    let head = backend.heads().into_iter().rfind(|h| h.starts_with("POST")).unwrap().to_ascii_lowercase();
    assert!(head.contains(&format!("traceparent: 00-{TRACE}-")), "{head}");
    let message = told.recv_timeout(LONG).unwrap();
    let all = spans(&message);
    let (span, known) = &all[0];
    assert_eq!(all.len(), 1, "{message}");
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &json!("00f067aa0ba902b7")));
    assert_eq!((&span["spanId"], &span["name"]), (&json!(sent[..16]), &json!("POST /v1/chat/completions")));
    assert_eq!(
        (&known["http.response.status_code"], &known["dualplane.server"]),
        (&json!("200"), &json!("s"))
    );
    assert!(
        known["gen_ai.usage.output_tokens"].is_string() && known["dualplane.kv_tokens"].is_string(),
        "{known:?}"
    );
    assert_eq!(span["events"][0]["name"], "admitted");
    let at = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(
        at("startTimeUnixNano") <= at("endTimeUnixNano")
            && at("startTimeUnixNano") > 1_600_000_000_000_000_000
    );
    assert!(!message.to_string().contains("xxxxx"), "nothing of the prompt: {message}");
}

#[test]
fn what_the_guard_refuses_has_a_span_that_says_why() {
    let backend = Backend::start(1000);
    let (url, told) = collector(&[]);
    let mut guard = Guard::start(&["--upstream", &backend.url(), "--traces", &url]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    let kept = format!("00-{TRACE}-00f067aa0ba902b7-01");
    assert_eq!(ask(&guard, &kept, &chat("answer", 100, 100_000)).status, 413);
    // What is told at the very end arrives as well.
    guard.signal("-TERM");
    assert_eq!(guard.child.wait().unwrap().code(), Some(0));
    let (span, known) = spans(&told.recv_timeout(LONG).unwrap()).remove(0);
    assert_eq!(
        (&known["dualplane.code"], &known["http.response.status_code"]),
        (&json!("kv_never_fits"), &json!("413"))
    );
    assert!(
        span["status"] == json!({}) && span["events"] == json!([]),
        "a caller's mistake is no failure: {span}"
    );
}

#[test]
fn a_collector_that_is_away_holds_up_nobody() {
    let backend = Backend::start(10_000);
    let refuses = "http://127.0.0.1:9";
    let (mut guard, d) = begin(refuses, &backend);
    let kept = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(ask(&guard, &kept, &chat("answer", 100, 10)).status, 200);
    }
    assert!(begun.elapsed() < LONG);
    let page = send(&guard.admin, "GET", "/metrics", "", b"");
    assert!(String::from_utf8_lossy(&page.body).contains("\ndualplane_guard_spans_lost_total"));
    guard.signal("-TERM");
    assert_eq!(guard.child.wait().unwrap().code(), Some(0));
    // What cannot be is said before a port is bound.
    let o = run(&["guard", "--upstream", &backend.url(), "--traces", "grpc://c:4317"]);
    assert!(
        code(&o) != 0 && stderr(&o).contains("--traces") && !stderr(&o).contains("--upstream"),
        "{}",
        stderr(&o)
    );
    let text = std::fs::read_to_string(d.path().join("g.toml")).unwrap();
    for (from, to, key) in [
        (refuses, "grpc://c:4317", "traces.endpoint"),
        ("share = 0.0", "share = 2.0", "traces.share"),
        ("share = 0.0", "token = \"/no/such\"", "traces.token"),
    ] {
        let file = d.path().join("bad.toml");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let o = run(&["guard", "check", "--config", file.to_str().unwrap()]);
        assert!(code(&o) != 0 && stderr(&o).contains(key), "{to}: {}", stderr(&o));
    }
}
