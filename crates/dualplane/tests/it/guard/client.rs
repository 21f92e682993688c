//! A caller that sees every byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|l| l.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(':').map(|(_, v)| v.trim())
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(super::LONG)).unwrap();
    stream
}

fn head(reader: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    head
}

/// One request on a connection of its own.
pub(super) fn send(address: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n").unwrap();
    // A guard that refuses early may close before it has read all.
    let _ = stream.write_all(body);
    let mut reader = BufReader::new(stream);
    let head = head(&mut reader);
    let mut body = Vec::new();
    let _ = reader.read_to_end(&mut body);
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("{head:?}"));
    Answer { status, head, body }
}

/// A connection that is used again.
pub(super) struct Kept(BufReader<TcpStream>);

impl Kept {
    pub(super) fn connect(address: &str) -> Self {
        Self(BufReader::new(connect(address)))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        // A guard that closed meanwhile gives no answer.
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// The next answer, whose length is said.
    pub(super) fn answer(&mut self) -> Answer {
        let head = head(&mut self.0);
        let status =
            head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("{head:?}"));
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").unwrap().parse().unwrap();
        answer.body.resize(length, 0);
        self.0.read_exact(&mut answer.body).unwrap();
        answer
    }

    /// Whether nothing more comes.
    pub(super) fn ended(&mut self) -> bool {
        self.0.read(&mut [0]).unwrap() == 0
    }
}

/// Bytes as they are, and all that comes back. `ends`: nothing more will come, and says so.
pub(super) fn raw(address: &str, bytes: &[u8], ends: bool) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(bytes);
    if ends {
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    let mut out = Vec::new();
    let _ = stream.read_to_end(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A request that is sent and whose answer nobody waits for.
pub(super) fn open(address: &str, path: &str, body: &Value) -> TcpStream {
    let mut stream = connect(address);
    let body = body.to_string();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    stream
}

/// An answer of events.
pub(super) struct Events(BufReader<TcpStream>);

pub(super) fn stream(address: &str, path: &str, body: &Value) -> Events {
    let mut reader = BufReader::new(open(address, path, body));
    // The server answers before its first event.
    let head = head(&mut reader);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_ascii_lowercase().contains("text/event-stream"), "{head}");
    Events(reader)
}

impl Events {
    pub(super) fn next_event(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if line.starts_with("data:") {
                return line;
            }
        }
    }

    /// What comes until its end; the connection stays open.
    pub(super) fn rest(mut self) -> String {
        let mut all = String::new();
        while !all.ends_with("\r\n0\r\n\r\n") && self.0.read_line(&mut all).unwrap_or(0) > 0 {}
        all
    }
}
