//! A thread for each processor, with a runtime of its own: a connection and those that it opens to servers stay on one of
//! them. With one runtime over all threads nearly each part of a request woke another thread, which cost more than the rest.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of this thread: 0 is the one that accepts, workers follow.
#[must_use]
pub fn number() -> usize {
    NUMBER.with(Cell::get)
}

/// Workers of this machine.
#[must_use]
pub fn count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What becomes of a connection.
pub type Serve = Box<dyn FnOnce(TcpStream, SocketAddr) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

struct Accepted {
    stream: std::net::TcpStream,
    peer: SocketAddr,
    serve: Serve,
}

/// The threads.
pub struct Workers {
    to: Vec<UnboundedSender<Accepted>>,
    next: usize,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts them. Whatever is left when they end has so long.
    ///
    /// # Errors
    /// No runtime or no thread can be had.
    pub fn start(patience: Duration) -> io::Result<Self> {
        let mut workers = Self { to: Vec::new(), next: 0, threads: Vec::new() };
        for number in 1..=count() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (to, from) = unbounded_channel();
            let work = move || {
                NUMBER.with(|n| n.set(number));
                runtime.block_on(work(from));
                runtime.shutdown_timeout(patience);
            };
            workers.threads.push(std::thread::Builder::new().name(format!("worker-{number}")).spawn(work)?);
            workers.to.push(to);
        }
        Ok(workers)
    }

    /// Gives a connection to the next of them. One that cannot be handed on is closed.
    pub fn give(&mut self, stream: TcpStream, peer: SocketAddr, serve: Serve) {
        let Ok(stream) = stream.into_std() else { return };
        self.next = (self.next + 1) % self.to.len().max(1);
        if let Some(to) = self.to.get(self.next) {
            // The receiver lives until this does.
            let _ = to.send(Accepted { stream, peer, serve });
        }
    }

    /// Ends them: what they still serve is cut.
    pub fn end(self) {
        drop(self.to);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

async fn work(mut from: UnboundedReceiver<Accepted>) {
    while let Some(Accepted { stream, peer, serve }) = from.recv().await {
        if let Ok(stream) = TcpStream::from_std(stream) {
            tokio::spawn(serve(stream, peer));
        }
    }
}
