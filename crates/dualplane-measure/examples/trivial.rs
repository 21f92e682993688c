//! A server that answers as an engine does and computes nothing, with delays that are known: what the driver is held against.
//!
//! `trivial PORT [FIRST_MS=20] [EACH_MS=5]`: the first token comes after FIRST_MS, each other EACH_MS later. Its timers are as
//! exact as its runtime's, a millisecond, and later where it is busy: `GET /kept` tells what its delays really were, from a
//! request that was read to tokens that were written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep, sleep_until};

/// Answers, nanoseconds until their first token, answers of several tokens, and nanoseconds between two of their tokens.
static KEPT: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

fn keep(what: usize, number: u64) {
    KEPT[what].fetch_add(number, Ordering::Relaxed);
}

/// Tokens at their times.
struct Tokens {
    begun: Instant,
    first: Option<Instant>,
    left: u64,
    all: u64,
    input: u64,
    each: Duration,
    next: Pin<Box<Sleep>>,
    due: Instant,
}

impl Body for Tokens {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == u64::MAX {
            return Poll::Ready(None);
        }
        if self.next.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // Tools of others take no piece without these fields.
        let head =
            "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"trivial\"";
        let mut text = format!(
            "{head},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"x \"}},\"finish_reason\":null}}]}}\n\n"
        );
        let now = Instant::now();
        if self.first.is_none() {
            self.first = Some(now);
            keep(0, 1);
            keep(1, (now - self.begun).as_nanos() as u64);
        }
        self.left -= 1;
        if self.left == 0 {
            if let Some(first) = self.first.filter(|_| self.all > 1) {
                keep(2, 1);
                keep(3, (now - first).as_nanos() as u64 / (self.all - 1));
            }
            let (input, output) = (self.input, self.all);
            text += &format!(
                "{head},\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"length\"}}],\"usage\":{{\"prompt_tokens\":{input},\"completion_tokens\":{output},\"total_tokens\":{}}}}}\n\ndata: [DONE]\n\n",
                input + output
            );
            self.left = u64::MAX;
        } else {
            let each = self.each;
            self.due += each;
            let due = self.due;
            self.next.as_mut().reset(due);
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |i: usize, default: u64| words.get(i).map_or(default, |w| w.parse().expect("a number"));
    let (first, each) = (Duration::from_millis(number(2, 20)), Duration::from_millis(number(3, 5)));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", number(1, 18_080) as u16)).await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let serve = service_fn(move |r: Request<Incoming>| async move {
            let begun = Instant::now();
            if r.uri().path() == "/kept" {
                let [n, first, gaps, each] = [0, 1, 2, 3].map(|i| KEPT[i].load(Ordering::Relaxed));
                let text = format!(
                    "{{\"answers\":{n},\"first_ns\":{first},\"of_several\":{gaps},\"each_ns\":{each}}}"
                );
                return Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(text)).boxed()));
            }
            if r.uri().path().ends_with("/models") {
                let models = Full::new(Bytes::from("{\"data\":[{\"id\":\"trivial\"}]}"));
                return Ok(Response::new(models.boxed()));
            }
            let body = r.into_body().collect().await?.to_bytes();
            let asked: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let all = asked["max_tokens"].as_u64().unwrap_or(8).max(1);
            let input = asked["messages"][0]["content"].as_str().map_or(0, |t| t.split(' ').count() as u64);
            let due = begun + first;
            let next = Box::pin(sleep_until(due));
            let tokens = Tokens { begun, first: None, left: all, all, input, each, next, due };
            Ok(Response::builder().header("content-type", "text/event-stream").body(tokens.boxed()).unwrap())
        });
        tokio::spawn(
            async move { http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await },
        );
    }
}
