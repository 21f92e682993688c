//! Connections to the servers, by thread: each is used by the one that opened it.

use std::time::Duration;

use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::answer::Sent;
use crate::connect::Connector;
use crate::workers;

/// Connections to a server that wait for the next request. uvicorn closes an idle one after 5 s: we do before.
const IDLE: Duration = Duration::from_secs(4);
/// Bytes that are read of an answer at a time; its head must fit. Thousands of streams are open at once, and each holds one of
/// these while it waits for its next event: engines' heads of streams have some 200 bytes.
pub(crate) const STREAM_PART: usize = 2 << 10;
/// … of other answers.
pub(crate) const ANSWER_PART: usize = 32 << 10;
/// Of all threads.
pub(crate) struct Clients {
    /// Of the thread that accepts …
    own: Pair,
    /// … and of each worker.
    of_workers: Vec<Pair>,
}

/// Of one thread.
struct Pair {
    /// For answers that come at once.
    whole: Client<Connector, Sent>,
    /// For those in parts.
    streams: Client<Connector, Sent>,
}

impl Pair {
    fn new(connector: &Connector) -> Self {
        let client = |part| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .http1_read_buf_exact_size(part)
                .build(connector.clone())
        };
        Self { whole: client(ANSWER_PART), streams: client(STREAM_PART) }
    }
}

impl Clients {
    /// Without any connection; to make one takes so long at most.
    pub(crate) fn new(connect: Duration) -> Self {
        let connector = Connector::new(connect);
        let pair = || Pair::new(&connector);
        Self { own: pair(), of_workers: (0..workers::count()).map(|_| pair()).collect() }
    }

    /// Sends a request; `streams`: its answer is asked for in parts.
    pub(crate) fn send(&self, request: http::Request<Sent>, streams: bool) -> ResponseFuture {
        let worker = workers::number().checked_sub(1).and_then(|n| self.of_workers.get(n));
        let pair = worker.unwrap_or(&self.own);
        if streams { pair.streams.request(request) } else { pair.whole.request(request) }
    }
}
