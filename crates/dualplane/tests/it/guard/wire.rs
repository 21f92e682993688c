//! The guard's own half of HTTP: connections that serve on, callers that are slow or early, servers that close.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::backend::Backend;
use super::{Guard, LONG, chat, client, error};

/// A request on a connection that stays.
fn ask(body: &serde_json::Value) -> String {
    let body = body.to_string();
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Reads one answer whose body has a length or chunks: its head and its body.
fn one(reader: &mut BufReader<TcpStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "closed after {head:?}");
    }
    let head = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(length) = head.split("content-length: ").nth(1) {
        body.resize(length.split("\r\n").next().unwrap().parse().unwrap(), 0);
        reader.read_exact(&mut body).unwrap();
        return (head, String::from_utf8(body).unwrap());
    }
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let n = usize::from_str_radix(size.strip_suffix("\r\n").unwrap(), 16).unwrap();
        let mut chunk = vec![0; n + 2];
        reader.read_exact(&mut chunk).unwrap();
        assert!(chunk.ends_with(b"\r\n"));
        chunk.truncate(n);
        body.extend(chunk);
        if n == 0 {
            return (head, String::from_utf8(body).unwrap());
        }
    }
}

fn connect(guard: &Guard) -> (TcpStream, BufReader<TcpStream>) {
    let stream = TcpStream::connect(&guard.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    (stream.try_clone().unwrap(), BufReader::new(stream))
}

#[test]
fn a_connection_serves_on_behind_a_stream_and_what_was_sent_meanwhile_is_not_lost() {
    let backend = Backend::start(100_000);
    let guard = Guard::before(&backend);
    let (mut to, mut from) = connect(&guard);
    for turn in 0..3 {
        to.write_all(ask(&chat("stream:2:step", 100, 10)).as_bytes()).unwrap();
        backend.step();
        // Behind the stream that runs: one whole request, and the beginning of another.
        let (whole, part) = (ask(&chat("answer", 50, 5)), ask(&chat("stream:0:step", 50 + turn, 5)));
        let (early, late) = part.split_at(part.len() / 3 * turn);
        to.write_all(format!("{whole}{early}").as_bytes()).unwrap();
        backend.step();
        let (head, body) = one(&mut from);
        assert!(head.contains("text/event-stream") && body.ends_with("data: [DONE]\n\n"), "{head}{body}");
        assert_eq!(body.matches("\"content\"").count(), 2, "{body}");
        let (head, body) = one(&mut from);
        assert!(head.contains("application/json") && body.contains("completion_tokens"), "{head}{body}");
        to.write_all(late.as_bytes()).unwrap();
        assert_eq!(one(&mut from).1, "data: [DONE]\n\n");
    }
    guard.until(|s| s["servers"][0]["kv_held"] == 0 && s["under_way"] == 0);
    // Who wants no more is closed, by the word of either version.
    to.write_all(
        ask(&chat("stream:0:step", 9, 5)).replace("host: x", "host: x\r\nconnection: Close").as_bytes(),
    )
    .unwrap();
    let (head, _) = one(&mut from);
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(from.read(&mut [0]).unwrap(), 0);
    let old = ask(&chat("stream:0:step", 9, 5)).replace("HTTP/1.1", "HTTP/1.0");
    let old = client::raw(&guard.address, old.as_bytes(), false);
    assert!(old.ends_with("\r\n\r\ndata: [DONE]\n\n"), "{old}");
}

#[test]
fn requests_that_are_sent_while_one_is_held_are_answered_in_their_order() {
    let backend = Backend::start(100_000);
    let guard = Guard::before(&backend);
    let (mut to, mut from) = connect(&guard);
    // Of the next ones nothing, a part of a head, a part of a body, all: shorter and longer than what is read ahead.
    for (turn, length) in [0, 10, 200, 600, 3000, 9000].into_iter().enumerate() {
        to.write_all(ask(&chat("hold:100", 100, 10)).as_bytes()).unwrap();
        guard.until(|s| s["servers"][0]["running"] == 1);
        let turn = turn as u64 * 10;
        let next = ask(&chat(&format!("counts:{}", turn + 1), 4000, 5))
            + &ask(&chat(&format!("counts:{}", turn + 2), 40, 5));
        let (early, late) = next.split_at(length.min(next.len()));
        to.write_all(early.as_bytes()).unwrap();
        assert!(one(&mut from).1.contains("\"prompt_tokens\""));
        to.write_all(late.as_bytes()).unwrap();
        for n in 1..=2 {
            let body = one(&mut from).1;
            assert!(body.contains(&format!("\"prompt_tokens\":{},", turn + n)), "{length}: {body}");
        }
    }
    // One that goes away with more of them on the way leaves nothing behind.
    to.write_all((ask(&chat("hold:100", 100, 10)) + &ask(&chat("answer", 100, 10))).as_bytes()).unwrap();
    guard.until(|s| s["servers"][0]["running"] == 1);
    let _ = to.shutdown(Shutdown::Both);
    drop((to, from));
    guard
        .until(|s| s["servers"][0]["running"] == 0 && s["servers"][0]["kv_held"] == 0 && s["under_way"] == 0);
}

#[test]
fn a_slow_reader_gets_every_byte_and_holds_up_nobody() {
    let backend = Backend::start(1_000_000);
    let guard = Guard::before(&backend);
    // More than all buffers between the two ends hold.
    let (parts, length) = (64, 256 << 10);
    let (mut to, mut from) = connect(&guard);
    to.write_all(ask(&chat(&format!("flood:{parts}:{length}"), 100, 10)).as_bytes()).unwrap();
    assert_eq!(guard.chat("answer", 100, 10).status, 200);
    let (head, body) = one(&mut from);
    assert!(head.contains("text/event-stream"), "{head}");
    let events: Vec<&str> = body.split("\n\n").filter(|e| !e.is_empty()).collect();
    assert_eq!(events.len(), parts);
    for (n, event) in events.iter().enumerate() {
        let letter = char::from(b'a' + u8::try_from(n % 26).unwrap());
        assert!(event.len() == length + 6 && event[6..].chars().all(|c| c == letter), "{n}: {}", event.len());
    }
    // One that goes away in the middle ends it at the server.
    let (mut to, from) = connect(&guard);
    to.write_all(ask(&chat(&format!("flood:{parts}:{length}"), 100, 10)).as_bytes()).unwrap();
    guard.until(|s| s["servers"][0]["running"] == 1);
    let _ = to.shutdown(Shutdown::Both);
    drop((to, from));
    backend.closed();
    guard.until(|s| s["servers"][0]["running"] == 0 && s["under_way"] == 0);
}

#[test]
fn connections_to_a_server_are_used_again_unless_it_closed_them() {
    let backend = Backend::start(100_000);
    let guard = Guard::before(&backend);
    let (mut to, mut from) = connect(&guard);
    let mut ask_one = |todo: &str| {
        to.write_all(ask(&chat(todo, 100, 10)).as_bytes()).unwrap();
        let (head, body) = one(&mut from);
        assert!(head.starts_with("http/1.1 200"), "{head}{body}");
    };
    ask_one("answer");
    let before = backend.connections();
    for _ in 0..20 {
        ask_one("answer");
    }
    // The watch of its metrics has one of its own.
    assert!(backend.connections() <= before + 1, "{} and {before}", backend.connections());
    // Closed behind an answer that said nothing of it: no request is lost on it.
    for _ in 0..3 {
        ask_one("close");
        // Until its end has arrived; one that arrives together with the next request cannot be told from a death.
        guard.status();
    }
    // Behind a stream llama.cpp does so each time, and a request that follows at once is no loss.
    for _ in 0..20 {
        ask_one("stream:0:step");
    }
    ask_one("chunks");
    ask_one("answer");
}

/// A server that answers each connection with these bytes and closes it.
fn says(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut first = [0; 4096];
                let n = stream.read(&mut first).unwrap_or(0);
                let own = first[..n].starts_with(b"POST ");
                let _ = stream.write_all(if own {
                    answer
                } else {
                    b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"
                });
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read(&mut first);
            });
        }
    });
    url
}

#[test]
fn what_a_server_says_that_could_be_read_in_two_ways_reaches_nobody() {
    for (answer, code) in [
        (&b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 30\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\nsmuggled"[..], "server_died"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "server_died"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "server_died"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "server_died"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "server_died"),
        (b"", "server_died"),
    ] {
        let guard = Guard::start(&["--upstream", &says(answer)]);
        let got = guard.chat("answer", 100, 10);
        assert_eq!(error(&got), (502, code.into()), "{}", String::from_utf8_lossy(answer));
        guard.until(|s| s["servers"][0]["running"] == 0);
    }
    // What is said behind an answer is nobody's.
    let twice = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled";
    let guard = Guard::start(&["--upstream", &says(twice)]);
    for _ in 0..3 {
        let got = guard.chat("answer", 100, 10);
        assert_eq!((got.status, &got.body[..]), (200, &b"{}"[..]));
    }
    // A body that ends too soon is not taken for a whole one.
    let short = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{}";
    let guard = Guard::start(&["--upstream", &says(short)]);
    let raw = client::raw(&guard.address, ask(&chat("answer", 9, 9)).as_bytes(), false);
    assert!(raw.is_empty() || (raw.contains("content-length: 9") && raw.ends_with("{}")), "{raw}");
}

/// Two guards on one socket, one after the other, while callers come without a pause and a stream is open.
#[test]
fn an_upgrade_drops_no_connection() {
    let backend = Backend::start(100_000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let start = || Guard::inheriting(&listener, &["--upstream", &backend.url()]);
    let mut old = start();
    let mut events = super::stream(&address, "/v1/chat/completions", &chat("stream:2:step", 100, 10));
    backend.step();
    events.next_event();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        let callers: Vec<_> = (0..4)
            .map(|i| {
                let (over, address) = (&over, &address);
                let asks = chat("answer", 100, 10).to_string();
                let (method, path, body) = match i % 2 {
                    0 => ("GET", "/v1/models", ""),
                    _ => ("POST", "/v1/chat/completions", asks.as_str()),
                };
                let body = body.to_owned();
                s.spawn(move || {
                    let mut n = 0;
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        let answer = client::send(address, method, path, "", body.as_bytes());
                        assert_eq!(answer.status, 200, "{answer:?}");
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        let new = start();
        old.signal("-TERM");
        old.line("draining");
        backend.step();
        events.next_event();
        assert!(events.rest().contains("[DONE]"));
        assert_eq!(old.child.wait().unwrap().code(), Some(0));
        // The new one is alone now.
        let seen = backend.heads().len();
        new.until(|_| backend.heads().len() > seen + 8);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(callers.into_iter().all(|c| c.join().unwrap() > 0));
    });
    // What is no such socket is said.
    let o =
        crate::harness::run(&["guard", "--upstream", &backend.url(), "--listen", "stdin", "--admin", "none"]);
    let said = crate::harness::stderr(&o);
    assert!(crate::harness::code(&o) == 3 && said.contains("StandardInput=socket"), "{said}");
}
