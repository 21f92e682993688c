//! Which port of a container is asked when: the one that answered each time, others seldom, strangers almost never.

use dualplane_base::order::Order as _;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dualplane_core::knowledge::metrics::{Counts, EngineMetrics, engines};
use dualplane_node::clock::Moment;

use super::detect::Candidate;
use super::histograms::histograms;
use super::http::{Client, Response};
use super::sockets::{ListeningSocket, home, listening, owned, reach};
use crate::view::EngineSample;

/// Ports of one container that are asked in one go.
const MAX_PORTS: usize = 3;
/// A port that answered with something else is left alone for so long.
const UNUSABLE_PAUSE: Duration = Duration::from_secs(600);
/// A port that does not answer is asked again after this, then twice as long, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// A port that was good may be silent so often before it is left alone: engines stall for seconds in a long step.
const PATIENCE: u32 = 3;

/// What is known of one port of one container.
#[derive(Debug, Clone, Copy, Default)]
struct Port {
    /// Engine whose page it gave, with the path.
    good: Option<(&'static EngineMetrics, &'static str)>,
    /// Where it was reached.
    at: Option<IpAddr>,
    /// How often in a row it gave no page.
    silent: u32,
    next: Moment,
}

/// Everything about asking, owned by the thread.
#[derive(Debug)]
pub(super) struct Poller {
    proc_root: PathBuf,
    client: Client,
    ports: HashMap<(u16, u16), Port>,
}

impl Poller {
    pub(super) fn new(proc_root: PathBuf) -> Self {
        Self { proc_root, client: Client::new(), ports: HashMap::new() }
    }

    /// Asks each container at most once successfully. What belongs to containers that are not among them is forgotten.
    pub(super) fn round(&mut self, all: &[Candidate]) -> Vec<(u16, EngineSample)> {
        self.ports.retain(|(slot, _), _| all.iter().any(|c| c.slot == *slot));
        all.iter().filter_map(|c| Some((c.slot, self.one(c)?))).collect()
    }

    fn one(&mut self, c: &Candidate) -> Option<EngineSample> {
        let known = self.ports.iter().find(|((slot, _), p)| *slot == c.slot && p.good.is_some());
        if let Some((&(_, number), &port)) = known {
            if Moment::now() < port.next {
                return None;
            }
            let sample = port.at.and_then(|ip| self.ask(c, number, ip));
            // A pod that got another address, or a server that moved: look again.
            if let Some(p) = self.ports.get_mut(&(c.slot, number))
                && p.silent > PATIENCE
            {
                p.good = None;
            }
            return sample;
        }
        let places = self.places(c);
        places.into_iter().find_map(|(port, ip)| self.ask(c, port, ip))
    }

    /// Ports to ask now, with the address that leads there, the likeliest first.
    fn places(&self, c: &Candidate) -> Vec<(u16, IpAddr)> {
        let Some(pid) = c.pids.first() else { return Vec::new() };
        let now = Moment::now();
        let mut listening = listening(&self.proc_root, *pid);
        listening.retain(|l| self.ports.get(&(c.slot, l.port)).is_none_or(|p| p.next <= now));
        if listening.is_empty() {
            return Vec::new();
        }
        let home = home(&self.proc_root, *pid);
        let place = |l: &ListeningSocket| {
            let given = c.given.iter().position(|p| *p == l.port);
            let likely = c.likely.iter().position(|p| *p == l.port).map(|i| i + c.given.len());
            given.or(likely)
        };
        listening.order_by_key(|l| (place(l).unwrap_or(usize::MAX), l.port));
        let mut out: Vec<(u16, IpAddr)> = Vec::new();
        for l in &listening {
            if out.len() == MAX_PORTS {
                break;
            }
            if out.iter().any(|(port, _)| *port == l.port) {
                continue;
            }
            // Namespaces are shared: by the containers of a pod, on a host network by everybody. A port that nothing
            // speaks for is asked only where it is surely this container's; a likely one unless it is surely not.
            let mine = || owned(&self.proc_root, &c.pids, l.inode);
            let ask = match place(l) {
                Some(i) if i < c.given.len() => true,
                Some(_) => mine() != Some(false),
                None => c.engine.is_some() && mine() == Some(true),
            };
            if ask && let Some(ip) = reach(l, &home) {
                out.push((l.port, ip));
            }
        }
        out
    }

    fn ask(&mut self, c: &Candidate, number: u16, ip: IpAddr) -> Option<EngineSample> {
        let port = self.ports.entry((c.slot, number)).or_default();
        port.at = Some(ip);
        let to = SocketAddr::new(ip, number);
        let mut stranger = false;
        let paths = match (port.good, c.engine) {
            (Some((_, path)), _) => vec![path],
            (None, Some(e)) => e.paths.iter().map(String::as_str).collect(),
            (None, None) => vec!["/metrics"],
        };
        for path in paths {
            match self.client.get(to, path) {
                Response::NoAnswer => {}
                Response::Unusable => stranger = true,
                Response::Page(page) => match read(&page, c.engine) {
                    None => stranger = true,
                    Some((engine, counts)) => {
                        *port = Port { good: Some((engine, path)), at: Some(ip), ..Port::default() };
                        return Some(sample(engine, number, counts, histograms(&page)));
                    }
                },
            }
        }
        port.silent += 1;
        let wait = if stranger {
            UNUSABLE_PAUSE
        } else if port.good.is_some() && port.silent <= PATIENCE {
            Duration::ZERO
        } else {
            (FIRST_PAUSE * 2_u32.saturating_pow(port.silent - 1)).min(MAX_PAUSE)
        };
        port.next = Moment::now().plus(wait);
        None
    }
}

/// Whose page it is: the engine that the processes name first, then any (a wrapper may hide which one runs).
fn read(page: &str, engine: Option<&'static EngineMetrics>) -> Option<(&'static EngineMetrics, Counts)> {
    engine.into_iter().chain(engines()).find_map(|e| Some((e, e.read(page)?)))
}

fn sample(engine: &'static EngineMetrics, port: u16, counts: Counts, histograms: Arc<str>) -> EngineSample {
    EngineSample {
        at: Moment::now(),
        port,
        engine: engine.engine,
        model: counts.model,
        kv_use: counts.kv_use,
        running: counts.running,
        waiting: counts.waiting,
        preemptions: counts.preemptions,
        first_tokens: counts.first_tokens,
        first_token_seconds: counts.first_token_seconds,
        prompt_tokens: counts.prompt_tokens,
        generated_tokens: counts.generated_tokens,
        histograms,
    }
}
