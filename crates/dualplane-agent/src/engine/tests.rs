//! A real server on loopback, good and hostile, found through the sockets of this very process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dualplane_core::knowledge::metrics::engines;
use dualplane_node::clock::Moment;

use super::http::{Client, Response};
use super::poller::Poller;
use super::*;

const PAGE: &str = "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.5\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3\n";

/// Serves until the test ends; `answer` gets the stream behind the head of the request.
fn server(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, answer) = (Arc::clone(&asked), Arc::new(answer));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            count.fetch_add(1, Ordering::SeqCst);
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                answer(&mut stream);
            });
        }
    });
    (at, asked)
}

fn page(body: &str) -> impl Fn(&mut TcpStream) + Send + Sync + 'static {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    move |s| {
        let _ = s.write_all(text.as_bytes());
    }
}

fn says(text: &'static str) -> impl Fn(&mut TcpStream) + Send + Sync + 'static {
    move |s| {
        let _ = s.write_all(text.as_bytes());
    }
}

fn me(slot: u16, likely: &[u16]) -> Candidate {
    let vllm = engines().iter().find(|e| e.engine == "vllm");
    Candidate {
        slot,
        pids: vec![std::process::id()],
        engine: vllm,
        likely: likely.to_vec(),
        given: Vec::new(),
    }
}

#[test]
fn hostile_answers_end_in_time_and_within_bounds() {
    let client = Client::new();
    let ask = |at: SocketAddr| {
        let began = Instant::now();
        let got = client.get(at, "/metrics");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        got
    };
    assert_eq!(ask(server(page(PAGE)).0), Response::Page(PAGE.to_owned()));
    let endless = |s: &mut TcpStream| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while s.write_all(&[b'x'; 65536]).is_ok() {}
    };
    assert_eq!(ask(server(endless).0), Response::Unusable);
    let endless_head = |s: &mut TcpStream| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n");
        while s.write_all(b"X-Header: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n").is_ok() {}
    };
    assert_ne!(
        std::mem::discriminant(&ask(server(endless_head).0)),
        std::mem::discriminant(&Response::Page(String::new()))
    );
    // Holds the connection for longer than the client waits, and says nothing.
    let dumb = |s: &mut TcpStream| {
        let _ = s.read_to_end(&mut Vec::new());
    };
    assert_eq!(ask(server(dumb).0), Response::NoAnswer);
    let stalls = |s: &mut TcpStream| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nvllm:");
        let _ = s.read_to_end(&mut Vec::new());
    };
    assert_eq!(ask(server(stalls).0), Response::NoAnswer);
    assert_eq!(ask(server(says("SSH-2.0-OpenSSH_9.6\r\n")).0), Response::Unusable);
    assert_eq!(
        ask(server(says("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")).0),
        Response::Unusable
    );
    assert_eq!(ask(server(says("HTTP/1.1 503 Loading\r\nContent-Length: 0\r\n\r\n")).0), Response::NoAnswer);
    assert_eq!(
        ask(server(says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\u{7f}\u{1b}")).0),
        Response::Page("\u{7f}\u{1b}".into())
    );
    let (elsewhere, asked) = server(page(PAGE));
    let away = move |s: &mut TcpStream| {
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\n\r\n");
        let _ = s.write_all(head.as_bytes());
    };
    assert_eq!(ask(server(away).0), Response::Unusable);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "no redirect is followed");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(ask(closed), Response::NoAnswer);
}

#[test]
fn an_engine_is_found_by_its_socket_and_strangers_are_left_alone() {
    let (at, asked) = server(page(PAGE));
    let (other, strange) = server(page("up 1\n"));
    let mut asker = Poller::new(PathBuf::from("/proc"));
    let c = me(4, &[other.port(), at.port()]);
    let got = asker.round(std::slice::from_ref(&c));
    assert_eq!(got.len(), 1, "{got:?}");
    let (slot, sample) = &got[0];
    assert_eq!((*slot, sample.port, sample.engine), (4, at.port(), "vllm"));
    assert_eq!((sample.kv_use, sample.running, sample.waiting), (Some(0.5), Some(3.0), None));
    assert_eq!(sample.model.as_deref(), Some("m"));
    for _ in 0..3 {
        assert_eq!(asker.round(std::slice::from_ref(&c)).len(), 1);
    }
    assert_eq!(
        (asked.load(Ordering::SeqCst), strange.load(Ordering::SeqCst)),
        (4, 1),
        "the good one is remembered"
    );

    // Nothing good: the stranger is asked once, then not again.
    let mut asker = Poller::new(PathBuf::from("/proc"));
    let mut c = me(4, &[other.port()]);
    c.engine = None;
    c.given = vec![other.port()];
    assert!(asker.round(std::slice::from_ref(&c)).is_empty());
    assert!(asker.round(std::slice::from_ref(&c)).is_empty());
    assert_eq!(strange.load(Ordering::SeqCst), 2);
    // Another container at the same slot number is another one only after it was gone.
    assert!(asker.round(&[]).is_empty());
    assert!(asker.round(std::slice::from_ref(&c)).is_empty());
    assert_eq!(strange.load(Ordering::SeqCst), 3);
}

#[test]
fn a_port_of_another_process_is_not_asked() {
    let (at, asked) = server(page(PAGE));
    let mut asker = Poller::new(PathBuf::from("/proc"));
    // A child shares the network namespace and holds no socket of ours.
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut c = me(1, &[at.port()]);
    c.pids = vec![child.id()];
    assert!(asker.round(std::slice::from_ref(&c)).is_empty());
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    c.given = vec![at.port()];
    assert_eq!(asker.round(std::slice::from_ref(&c)).len(), 1, "what was given is asked all the same");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_hanging_engine_does_not_hold_up_whoever_asks() {
    let (at, _) = server(|s: &mut TcpStream| {
        let _ = s.read_to_end(&mut Vec::new());
    });
    let mut engines = Engines::start(PathBuf::from("/proc"), Duration::ZERO).unwrap();
    let began = Instant::now();
    assert!(engines.is_due(Moment::now()));
    engines.ask(Moment::now(), vec![me(0, &[at.port()])]);
    assert!(engines.take().is_empty());
    engines.ask(Moment::now(), vec![me(0, &[at.port()])]);
    assert_eq!(engines.late, 1);
    assert!(began.elapsed() < Duration::from_millis(500));
    assert!(engines.wait(Duration::from_secs(10)).is_empty());
    let (at, _) = server(page(PAGE));
    engines.ask(Moment::now(), vec![me(1, &[at.port()])]);
    assert_eq!(engines.wait(Duration::from_secs(10)).len(), 1);
}
