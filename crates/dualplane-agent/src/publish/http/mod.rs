//! A small HTTP server on a thread of its own: `/metrics`, health, incidents. GET and HEAD only.
//!
//! Bounded against whoever can reach the port: connections in all and of one address, time until a request is there,
//! time of a connection, size of a request. A connection is good for one request, so idle ones cost nothing.

mod body;
mod routes;
mod shared;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

pub use shared::{Access, Options, Shared};

/// Not registered for anything, and outside of 9100 to 9999, where every number has an exporter.
pub const DEFAULT_PORT: u16 = 10_980;

/// Connections at once. A page is written once for all of them.
const CONNECTIONS: usize = 64;
/// Of one address: a single host cannot keep Prometheus out.
const OF_ONE_ADDRESS: usize = 16;
/// For the head of a request. Tests wait for it.
const HEAD_TIME: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 5_000 });
/// For a whole connection: a bundle of 100 MiB at 1 MiB/s.
const LIFETIME: Duration = Duration::from_secs(120);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const HEADERS: usize = 64;
/// After an accept that failed: descriptors come back when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Binds and serves.
    ///
    /// # Errors
    /// The address is in use or none of this machine, or no thread can be started.
    pub fn start(listen: SocketAddr, state: Arc<Shared>) -> io::Result<Self> {
        let explain = |e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {listen}: {e}"));
        let listener = TcpListener::bind(listen).map_err(explain)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, state) => {}
                    // Also when the sender is gone.
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("http".into()).spawn(run)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens; with port 0 the one that was given.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Connections by address.
#[derive(Debug, Default)]
struct Connections {
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// A place among the connections; given back when it is dropped.
struct ConnectionSlot {
    open: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    fn place(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let mut all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().sum::<usize>() >= CONNECTIONS {
            return None;
        }
        let own = all.entry(address).or_insert(0);
        if *own >= OF_ONE_ADDRESS {
            return None;
        }
        *own += 1;
        Some(ConnectionSlot { open: Arc::clone(self), address })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut all = self.open.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = all.get_mut(&self.address) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                all.remove(&self.address);
            }
        }
    }
}

async fn accept(listener: TcpListener, state: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let open = Arc::new(Connections::default());
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let peer = peer.ip().to_canonical();
        // Without a place the connection is closed at once: whoever waits learns of it.
        let Some(place) = open.place(peer) else { continue };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = routes::answer(&state, peer, &request);
                async move { Ok::<_, std::convert::Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_BYTES)
                .max_headers(HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // An error is the client's: it hung up, sent no HTTP, or was too slow.
            let _ = timeout(LIFETIME, connection).await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests;
