//! A server that speaks as vLLM does and does what the field `user` of a request says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

#[derive(Default)]
struct Seen {
    heads: Mutex<Vec<String>>,
    posts: AtomicUsize,
    connections: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
    over: AtomicBool,
}

pub(super) struct Backend {
    address: std::net::SocketAddr,
    seen: Arc<Seen>,
    steps: Sender<()>,
    closed: Receiver<Instant>,
}

impl Backend {
    /// With a KV cache of so many tokens.
    pub(super) fn start(kv: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (steps, next) = channel();
        let next = Arc::new(Mutex::new(next));
        let (tell, closed) = channel();
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // Dropping the listener is how the port closes.
                if all.over.load(Ordering::Relaxed) {
                    return;
                }
                all.connections.fetch_add(1, Ordering::Relaxed);
                let (seen, next, tell) = (Arc::clone(&all), Arc::clone(&next), tell.clone());
                std::thread::spawn(move || serve(&stream.unwrap(), kv, &seen, &next, &tell));
            }
        });
        Self { address, seen, steps, closed }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets a stream write its next event.
    pub(super) fn step(&self) {
        self.steps.send(()).unwrap();
    }

    /// When a request found its reader gone.
    pub(super) fn closed(&self) -> Instant {
        self.closed.recv_timeout(super::LONG).expect("the server never heard of it")
    }

    pub(super) fn posts(&self) -> usize {
        self.seen.posts.load(Ordering::Relaxed)
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub(super) fn most_at_a_time(&self) -> usize {
        self.seen.most.load(Ordering::Relaxed)
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    pub(super) fn last_path(&self) -> String {
        let other = |h: &&String| !h.contains(" /health ") && !h.contains(" /metrics ");
        let heads = self.heads();
        heads.iter().rev().find(other).unwrap().split(' ').nth(1).unwrap().to_owned()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.seen.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, kv: u64, seen: &Seen, next: &Mutex<Receiver<()>>, tell: &Sender<Instant>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut out = stream.try_clone().unwrap();
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        if seen.over.load(Ordering::Relaxed) {
            return;
        }
        let length = header(&head, "content-length").map_or(0, |l| l.parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        if header(&head, "transfer-encoding") == Some("chunked") {
            let Some(chunks) = chunked(&mut reader) else { return };
            body = chunks;
        }
        let page = format!(
            "vllm:cache_config_info{{block_size=\"1\",num_gpu_blocks=\"{kv}\"}} 1.0\nvllm:num_requests_running 0\n"
        );
        let get = head.starts_with("GET /metrics ");
        seen.heads.lock().unwrap().push(head.clone());
        if !head.starts_with("POST") {
            let text = if get { page } else { "{}".into() };
            answer(&mut out, &text);
            continue;
        }
        seen.posts.fetch_add(1, Ordering::Relaxed);
        let running = seen.running.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most.fetch_max(running, Ordering::Relaxed);
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let todo = request["user"].as_str().unwrap_or("answer").to_owned();
        let prompt = body.len() / 4;
        let usage =
            format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":5}}}}");
        let goes_on = match todo.split(':').collect::<Vec<_>>()[..] {
            ["hold", ms] => {
                // The time that a request takes is what this server is for.
                let _ = stream.set_read_timeout(Some(Duration::from_millis(ms.parse().unwrap())));
                let gone = matches!(stream.peek(&mut [0]), Ok(0));
                let _ = stream.set_read_timeout(None);
                seen.running.fetch_sub(1, Ordering::Relaxed);
                if gone {
                    let _ = tell.send(Instant::now());
                }
                answer(&mut out, &usage);
                !gone
            }
            ["trailers"] => {
                seen.running.fetch_sub(1, Ordering::Relaxed);
                let _ = write!(
                    out,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                     2\r\n{{}}\r\n0\r\nx-sum: 7\r\n\r\n"
                );
                true
            }
            ["stream", n, end] => {
                let all = events(stream, &mut out, n.parse().unwrap(), end, next);
                seen.running.fetch_sub(1, Ordering::Relaxed);
                if !all {
                    let _ = tell.send(Instant::now());
                }
                false
            }
            ["flood", n, length] => {
                let all = flood(&mut out, n.parse().unwrap(), length.parse().unwrap());
                seen.running.fetch_sub(1, Ordering::Relaxed);
                if !all {
                    let _ = tell.send(Instant::now());
                }
                all
            }
            ["counts", n] => {
                seen.running.fetch_sub(1, Ordering::Relaxed);
                answer(&mut out, &format!("{{\"usage\":{{\"prompt_tokens\":{n},\"completion_tokens\":5}}}}"));
                true
            }
            ["close"] => {
                seen.running.fetch_sub(1, Ordering::Relaxed);
                answer(&mut out, &usage);
                false
            }
            ["chunks"] => {
                seen.running.fetch_sub(1, Ordering::Relaxed);
                let _ = write!(
                    out,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
                );
                usage.as_bytes().chunks(7).all(|part| chunk(&mut out, std::str::from_utf8(part).unwrap()))
                    && write!(out, "0\r\n\r\n").is_ok()
            }
            ["die"] => false,
            _ => {
                seen.running.fetch_sub(1, Ordering::Relaxed);
                answer(&mut out, &usage);
                true
            }
        };
        if !goes_on {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// The value of a line of a head; of a line whose name only ends so, nothing.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
    fields.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// A body in chunks, as strictly as it can be read.
fn chunked(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let n = usize::from_str_radix(line.strip_suffix("\r\n")?, 16).ok()?;
        let at = body.len();
        body.resize(at + n + 2, 0);
        reader.read_exact(&mut body[at..]).ok()?;
        assert!(body.ends_with(b"\r\n"), "a chunk without its end");
        body.truncate(at + n);
        if n == 0 {
            return Some(body);
        }
    }
}

fn answer(out: &mut TcpStream, text: &str) {
    let _ = write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
}

fn chunk(out: &mut TcpStream, text: &str) -> bool {
    write!(out, "{:x}\r\n{text}\r\n", text.len()).is_ok()
}

/// Writes events of so many bytes as fast as they are taken; `false` where the reader went away.
fn flood(out: &mut TcpStream, n: usize, length: usize) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    out.write_all(head.as_bytes()).is_ok()
        && (0..n).all(|i| {
            let letter = char::from(b'a' + u8::try_from(i % 26).unwrap());
            chunk(out, &format!("data: {}\n\n", String::from(letter).repeat(length)))
        })
        && write!(out, "0\r\n\r\n").is_ok()
}

/// Writes an event for each step; `false` where the reader went away.
fn events(stream: &TcpStream, out: &mut TcpStream, n: usize, end: &str, next: &Mutex<Receiver<()>>) -> bool {
    let _ = write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let _ = stream.set_read_timeout(Some(Duration::from_millis(5)));
    for i in 0..n {
        loop {
            if next.lock().unwrap().try_recv().is_ok() {
                break;
            }
            // A reader that went away is heard of by reading.
            match stream.peek(&mut [0]) {
                Ok(0) => return false,
                Err(e)
                    if !matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                {
                    return false;
                }
                _ => {}
            }
        }
        if !chunk(out, &format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{i}\"}}}}]}}\n\n")) {
            return false;
        }
    }
    if end == "die" {
        return true;
    }
    chunk(out, "data: [DONE]\n\n") && write!(out, "0\r\n\r\n").is_ok()
}
