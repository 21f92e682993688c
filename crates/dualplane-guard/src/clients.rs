//! Connections to the servers, by thread: each is used by the one that opened it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dualplane_wire::tls::Encrypted;
use dualplane_wire::{Unreached, Wire};
use http::Uri;
use http::uri::Authority;

use crate::workers;

/// Connections to a server that wait for the next request. uvicorn closes an idle one after 5 s: we do before.
const IDLE: Duration = Duration::from_secs(4);
/// … and one that carried a stream is not used before: llama.cpp closes it behind each stream without a word, which a request that
/// follows at once would meet half-way.
const RESTS: Duration = Duration::from_millis(100);
/// Of them, to each server and in each thread.
const MAX_IDLE: usize = 1024;

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    encrypts: bool,
    authority: Authority,
}

impl Peer {
    /// Of a whole URL; `None` where it names no host.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let authority = uri.authority()?.clone();
        Some(Self { encrypts: uri.scheme_str() == Some("https"), authority })
    }

    fn host(&self) -> &str {
        self.authority.host().trim_matches(['[', ']'])
    }

    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.encrypts { 443 } else { 80 })
    }

    /// As the header `Host` has it.
    pub(crate) fn name(&self) -> &str {
        self.authority.as_str()
    }
}

struct Idle {
    wire: Wire,
    since: Instant,
    /// It carried a stream.
    rests: bool,
}

impl Idle {
    fn is_rested(&self) -> bool {
        !self.rests || self.since.elapsed() >= RESTS
    }
}

type Waiting = HashMap<Peer, Vec<Idle>>;

/// Connections that wait.
pub(crate) struct Clients {
    /// For the handshake of TCP, and that of TLS.
    time: Duration,
    /// Of the thread that accepts, and of each worker.
    of_threads: Vec<Mutex<Waiting>>,
}

impl Clients {
    /// Without any connection; to make one takes so long at most.
    pub(crate) fn new(time: Duration) -> Arc<Self> {
        Arc::new(Self { time, of_threads: (0..=workers::count()).map(|_| Mutex::default()).collect() })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Waiting) -> T) -> Option<T> {
        let own = self.of_threads.get(workers::number())?;
        Some(f(&mut own.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// One that waited and that the server did not close meanwhile, else a new one.
    pub(crate) async fn connection(&self, to: &Peer) -> Result<Wire, Unreached> {
        // The youngest first: the others may end.
        let youngest = |w: &mut Waiting| {
            let of = w.get_mut(to)?;
            Some(of.swap_remove(of.iter().rposition(Idle::is_rested)?))
        };
        while let Some(mut idle) = self.with(youngest).flatten() {
            if idle.since.elapsed() < IDLE && idle.wire.is_idle() {
                return Ok(idle.wire);
            }
        }
        // Making one takes much room, and is rare.
        Box::pin(async {
            let encrypted = match to.encrypts {
                true => Some(Encrypted::to(to.host()).ok_or(Unreached::Unencrypted("its host is no name"))?),
                false => None,
            };
            Wire::connect(to.host(), to.port(), encrypted.as_ref(), self.time).await
        })
        .await
    }

    /// An answer is over, and its connection waits for the next; `rests`: it was a stream.
    pub(crate) fn keep(&self, to: Peer, wire: Wire, rests: bool) {
        self.with(|w| {
            let of = w.entry(to).or_default();
            if of.len() < MAX_IDLE {
                of.push(Idle { wire, since: Instant::now(), rests });
            }
        });
    }

    /// Closes those that waited for too long.
    pub(crate) fn sweep(&self) {
        for of in &self.of_threads {
            let mut of = of.lock().unwrap_or_else(PoisonError::into_inner);
            of.retain(|_, all| {
                all.retain(|idle| idle.since.elapsed() < IDLE);
                !all.is_empty()
            });
        }
    }
}
