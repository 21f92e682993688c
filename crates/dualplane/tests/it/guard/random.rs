//! Requests that are broken at random: none of them makes the server behind the guard see a request that the guard did not see.
//!
//! `GUARD_INPUTS=1000000 cargo test --release -p dualplane --test it guard::random` tries as many.

use std::fmt::Write as _;

use super::backend::Backend;
use super::{Guard, chat, client};

/// What parsers disagree about.
const PARTS: &[&str] = &[
    "transfer-encoding: chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "transfer-encoding:\tchunked\r\n",
    "transfer-encoding: identity\r\n",
    "transfer-encoding: chunked, chunked\r\n",
    "transfer-encoding: xchunked\r\n",
    "transfer-encoding:\r\n chunked\r\n",
    "content-length: 0\r\n",
    "content-length: 5\r\n",
    "content-length: +5\r\n",
    "content-length: 5, 5\r\n",
    "content-length: 0x5\r\n",
    "content-length: 18446744073709551616\r\n",
    "connection: content-length, transfer-encoding, host\r\n",
    "connection: upgrade\r\nupgrade: h2c\r\n",
    "expect: 100-continue\r\n",
    "host: other\r\n",
    "0\r\n\r\n",
    "0;x=\"\r\n\"\r\n\r\n",
    "5\r\nhello\r\n",
    "5;a\nhello\r\n",
    "-1\r\n",
    "ffffffffffffffff\r\n",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST /smuggled HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// A good request, broken in up to four places.
    fn request(&mut self) -> Vec<u8> {
        // Half of them are answered by events, which the guard writes itself.
        let body = chat(["answer", "stream:0:step"][self.below(2)], 10, 5).to_string();
        let path = ["/v1/chat/completions", "/v1/models", "/v1/audio/transcriptions", "/v1/completions"]
            [self.below(4)];
        let mut text = format!("POST {path} HTTP/1.1\r\nhost: x\r\n");
        if self.below(2) == 0 {
            let _ = write!(text, "content-length: {}\r\n\r\n{body}", body.len());
        } else {
            let _ = write!(text, "transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        }
        if self.below(2) == 0 {
            text.push_str("GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n");
        }
        let mut bytes = text.into_bytes();
        for _ in 0..self.below(4) + 1 {
            // Where one line ends the next header would begin.
            let lines: Vec<usize> =
                bytes.windows(2).enumerate().filter(|(_, w)| w == b"\r\n").map(|(i, _)| i + 2).collect();
            let at = if self.below(4) > 0 { lines.get(self.below(lines.len())).copied() } else { None };
            let at = at.unwrap_or_else(|| self.below(bytes.len()));
            match self.below(4) {
                0 | 1 => drop(bytes.splice(at..at, PARTS[self.below(PARTS.len())].bytes())),
                2 if at < bytes.len() => bytes[at] = u8::try_from(self.below(256)).unwrap(),
                _ => drop(bytes.drain(at..(at + self.below(8)).min(bytes.len()))),
            }
        }
        bytes
    }
}

#[test]
fn no_request_reaches_the_server_that_the_guard_did_not_see() {
    let inputs: usize = std::env::var("GUARD_INPUTS").map_or(400, |n| n.parse().unwrap());
    let backend = Backend::start(1_000_000);
    let mut guard = Guard::before(&backend);
    let threads = 4;
    std::thread::scope(|s| {
        for seed in 0..threads {
            let address = &guard.address;
            s.spawn(move || {
                let mut dice = Dice(seed + 21);
                for _ in 0..inputs / threads as usize {
                    client::raw(address, &dice.request(), true);
                }
            });
        }
    });
    let mut seen = 0;
    for head in backend.heads() {
        if head.starts_with("GET /health HTTP/1.1\r\n") || head.starts_with("GET /metrics HTTP/1.1\r\n") {
            continue;
        }
        seen += 1;
        // The guard gives each request that it sends a number: what has none was hidden in the body of another.
        let lower = head.to_ascii_lowercase();
        assert_eq!(lower.matches("\r\nx-request-id: dualplane-").count(), 1, "{head:?}");
        let framed =
            lower.matches("\r\ncontent-length:").count() + lower.matches("\r\ntransfer-encoding:").count();
        assert!(framed <= 1, "{head:?}");
    }
    assert!(seen > inputs / 50, "{seen} of {inputs} reached the server: the test tries nothing");
    assert!(guard.child.try_wait().unwrap().is_none(), "the guard ended");
    assert_eq!(guard.chat("answer", 10, 5).status, 200);
    guard.until(|s| s["servers"][0]["kv_held"] == 0 && s["under_way"] == 0);
}
