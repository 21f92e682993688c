//! Connections to the servers, by thread: each is used by the one that opened it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dualplane_wire::tls::Encrypted;
use dualplane_wire::{Unreached, Wire};
use http::Uri;

use crate::workers;

/// Connections to a server that wait for the next request. uvicorn closes an idle one after 5 s: we do before.
const IDLE: Duration = Duration::from_secs(4);
/// … and one that carried a stream is not used before: llama.cpp closes it behind each stream without a word, which a request that
/// follows at once would meet half-way.
const RESTS: Duration = Duration::from_millis(100);
/// One that answered so lately is taken at the runtime's word, which costs no call of the kernel: a server that closes behind an
/// answer is heard of with the answer, or with what is sent next.
const LATELY: Duration = Duration::from_millis(50);
/// Of them, to each server and in each thread.
const MAX_IDLE: usize = 1024;

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    encrypts: bool,
    /// `HOST` or `HOST:PORT`.
    authority: Arc<str>,
}

impl Peer {
    /// A server that was configured.
    pub(crate) fn new(scheme: &str, authority: &str) -> Self {
        Self { encrypts: scheme == "https", authority: authority.into() }
    }

    /// Of a whole URL; `None` where it names no host.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let (host, port) = (uri.host()?, uri.port().map_or_else(String::new, |p| format!(":{p}")));
        Some(Self { encrypts: uri.scheme_str() == Some("https"), authority: format!("{host}{port}").into() })
    }

    /// Host and port; a colon within brackets is one of an address.
    fn parts(&self) -> (&str, u16) {
        let own = if self.encrypts { 443 } else { 80 };
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(own)),
            _ => (&*self.authority, own),
        };
        (host.trim_matches(['[', ']']), port)
    }

    /// As the header `Host` has it.
    pub(crate) fn name(&self) -> &str {
        &self.authority
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

/// There are few servers: a look that compares is cheaper than one that hashes.
type Waiting = BTreeMap<Peer, Vec<Idle>>;

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
            let since = idle.since.elapsed();
            let is_idle = if since < LATELY { idle.wire.is_idle_yet() } else { idle.wire.is_idle() };
            if since < IDLE && is_idle {
                return Ok(idle.wire);
            }
        }
        // Making one takes much room, and is rare.
        Box::pin(async {
            let (host, port) = to.parts();
            let encrypted = match to.encrypts {
                true => Some(Encrypted::to(host).ok_or(Unreached::Unencrypted("its host is no name"))?),
                false => None,
            };
            Wire::connect(host, port, encrypted.as_ref(), self.time).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_of_a_server() {
        for (url, host, port) in [
            ("http://127.0.0.1:8000/v1", "127.0.0.1", 8000),
            ("http://llm.serving", "llm.serving", 80),
            ("https://llm.serving", "llm.serving", 443),
            ("http://[fd00::1]:8000", "fd00::1", 8000),
            ("http://[fd00::1]", "fd00::1", 80),
        ] {
            assert_eq!(Peer::of(&url.parse().unwrap()).unwrap().parts(), (host, port), "{url}");
        }
    }
}
