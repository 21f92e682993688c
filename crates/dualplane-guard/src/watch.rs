//! Reads the servers once a second: whether they live, what they say of themselves, what their cgroup holds.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dualplane_admission::Ms;
use dualplane_admission::host::Reading;
use dualplane_admission::server::Health;
use dualplane_admission::throttle::Signals;
use dualplane_base::Class;
use dualplane_base::process::of_path;
use dualplane_engines::metrics::engines;
use dualplane_node::cgroup::{Depth, Group, Hierarchy, Kind, Limit, Memory, Reader, Version};
use http::{Method, Uri};
use http_body_util::{BodyExt as _, Limited};

use crate::body::Sent;
use crate::clients::Peer;
use crate::config::Target;
use crate::ends::Ends;
use crate::exchange::{Failed, Outgoing};
use crate::state::{Gate, State};
use crate::told::{last_incident, of_agent, vram_of, vram_of_agent};

/// Between two looks.
const EACH: Duration = Duration::from_secs(1);
/// For one answer.
const WITHIN: Duration = Duration::from_secs(2);
/// The largest page that was seen of vLLM has 400 KiB.
const MAX_PAGE: usize = 4 << 20;
/// Readings by which growth is judged.
const READINGS: usize = 5;
/// Bytes of a file of a cgroup: memory.stat has some 2 KiB.
const FILE: usize = 16 << 10;
/// Where groups are.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Watches one server until it is gone from the configuration, or its number is another's.
pub async fn watch(state: Arc<State>, server: usize, term: u64) {
    let mut host = HostSource::default();
    let mut tick = tokio::time::interval(EACH);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut known: Option<(Arc<Target>, Arc<Mutex<Ends>>)> = None;
    loop {
        tick.tick().await;
        let still = {
            let gate = state.gate();
            let both =
                || Some((Arc::clone(gate.targets.get(server)?), Arc::clone(&gate.seen.get(server)?.ends)));
            (gate.terms.get(server) == Some(&term)).then(both).flatten()
        };
        let Some((target, ends)) = still else {
            // A pod that dies leaves the Service's list at once: its end is still to be named.
            if let Some((target, ends)) = known {
                name_end(&state, &target, &ends, &mut tick).await;
            }
            return;
        };
        known = Some((Arc::clone(&target), Arc::clone(&ends)));
        let up = is_up(&state, &target).await;
        if let Some(up) = up {
            set_up(&state, server, up);
        }
        let reading = host.read(&state, server, &target, &ends).await;
        let mut said =
            if up == Some(false) { Signals::default() } else { metrics(&state, server, &target).await };
        let now = state.now();
        if let Some(reading) = reading {
            said.stalled = reading.stalled;
            said.full_in = host.full_in(&state, server, &reading);
        }
        state.gate().admission.hear(now, server, said);
        settle(&state, &target, &ends);
        state.pump();
    }
}

/// Asks the agent of a server that left, until its end has a name.
async fn name_end(state: &State, target: &Target, ends: &Mutex<Ends>, tick: &mut tokio::time::Interval) {
    while locked(ends).is_open() {
        if let Some(Ok(page)) = agent_page(state, target).await {
            hear_agent(state, target, ends, &page);
        }
        settle(state, target, ends);
        tick.tick().await;
    }
}

/// Counts an end whose class is known, or will not be.
fn settle(state: &State, target: &Target, ends: &Mutex<Ends>) {
    let class = locked(ends).settle(state.now(), target.said.agent.is_some());
    if let Some(class) = class {
        count_death(&mut state.gate(), target, class);
    }
}

fn count_death(gate: &mut Gate, target: &Target, class: Class) {
    let key = (target.name.clone(), class.as_str());
    *gate.counters.deaths.entry(key).or_insert(0) += 1;
}

fn locked(ends: &Mutex<Ends>) -> MutexGuard<'_, Ends> {
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a server answers; `None`: it takes connections and is too busy to say.
async fn is_up(state: &State, target: &Target) -> Option<bool> {
    let uri = format!("{}://{}{}/health", target.scheme, target.authority, target.prefix);
    match get(state, &uri).await {
        // llama.cpp and vLLM say 503 while they load and when their engine is dead.
        Ok((503, _)) | Err(Unanswered::Refused) => Some(false),
        Ok(_) => Some(true),
        Err(Unanswered::Late) => None,
    }
}

enum Unanswered {
    Refused,
    Late,
}

async fn get(state: &State, uri: &str) -> Result<(u16, String), Unanswered> {
    let uri: Uri = uri.parse().map_err(|_| Unanswered::Refused)?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let to = Peer::of(&uri).ok_or(Unanswered::Refused)?;
    let nothing = Sent::Whole(hyper::body::Bytes::new());
    let request = Outgoing::new(to, &Method::GET, ["", path], nothing).with_own_host();
    let answer = tokio::time::timeout(WITHIN, async {
        let response = state.send(request).await.map_err(|e| {
            if matches!(e, Failed::Unreached(_)) { Unanswered::Refused } else { Unanswered::Late }
        })?;
        let status = response.status().as_u16();
        let body =
            Limited::new(response.into_body(), MAX_PAGE).collect().await.map_err(|_| Unanswered::Late)?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    });
    answer.await.unwrap_or(Err(Unanswered::Late))
}

/// A server answers, or does not; the first time that it does not, its end is looked into.
fn set_up(state: &State, server: usize, up: bool) {
    if up {
        let now = state.now();
        state.gate().admission.set_up(now, server, true);
        state.pump();
    } else {
        look_after_death(state, server, true);
    }
}

/// A server failed a request, or `refused` a connection: then it is down, and nothing more is sent to it. An answer that
/// broke off is no death for sure; a kernel kill in its cgroup is. Says what is known of its end.
pub fn look_after_death(state: &State, server: usize, refused: bool) -> Option<Class> {
    let (target, ends) = {
        let gate = state.gate();
        (gate.targets.get(server).cloned()?, Arc::clone(&gate.seen.get(server)?.ends))
    };
    let kills =
        target.said.cgroup.as_deref().and_then(|path| read_cgroup(path).ok()).and_then(|m| m.oom_kill);
    let now = state.now();
    let mut gate = state.gate();
    let was_up = gate.admission.servers().get(server).is_some_and(|s| s.health() != Health::Down);
    let mut ends = locked(&ends);
    if let Some(kills) = kills {
        ends.hear_kills(now, kills);
    }
    let over = refused || ends.just_killed(now);
    if was_up && over {
        gate.admission.set_up(now, server, false);
        let before = ends.end(now);
        let this = ends.settle(now, target.said.agent.is_some());
        for class in before.into_iter().chain(this) {
            count_death(&mut gate, &target, class);
        }
    }
    let death = ends.last().filter(|_| over || !was_up);
    drop(ends);
    drop(gate);
    state.pump();
    death
}

/// What a server says of itself; its pool goes into the budget.
async fn metrics(state: &State, server: usize, target: &Target) -> Signals {
    let known = state.gate().seen.get(server).and_then(|s| s.metrics.clone());
    let pages = match (target.said.metrics.as_deref(), known) {
        (Some("none"), _) => Vec::new(),
        (Some(url), _) => vec![url.to_owned()],
        (None, Some(url)) => vec![url],
        (None, None) => candidates(target),
    };
    for url in pages {
        let Ok((200, page)) = get(state, &url).await else { continue };
        let Some((engine, counts)) = engines().iter().find_map(|e| Some((e, e.read(&page)?))) else {
            continue;
        };
        let mut gate = state.gate();
        if let Some(seen) = gate.seen.get_mut(server) {
            seen.engine = Some(engine.engine);
            seen.metrics = Some(url);
        }
        if let (Some(s), Some(pool)) = (gate.admission.server_mut(server), engine.kv_pool(&page)) {
            if target.said.kv_tokens.is_none() {
                s.limits.kv = Some(pool.tokens);
                s.limits.one = Some(pool.largest);
            }
            if let (None, Some(block)) = (target.said.block_tokens, pool.block) {
                s.limits.block = block;
            }
        }
        if target.said.unpaged
            && let Some(vram) = vram_of(&page)
        {
            let now = state.now();
            gate.admission.read_vram(now, server, Some(vram));
        }
        return Signals {
            kv_use: counts.kv_use,
            preemptions: counts.preemptions,
            waiting: counts.waiting,
            ..Signals::default()
        };
    }
    Signals::default()
}

/// Pages that engines are known for: those on the API's own port, then those that have a port of their own.
fn candidates(target: &Target) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let host = target.authority.rsplit_once(':').map_or(target.authority.as_str(), |(h, _)| h);
    let own = engines()
        .iter()
        .flat_map(|e| e.paths)
        .map(|p| format!("{}://{}{}{p}", target.scheme, target.authority, target.prefix));
    // Triton's 8002: the only one that never stands on the API's port.
    let apart = std::iter::once(format!("http://{host}:8002/metrics"));
    for url in own.chain(apart) {
        if !all.contains(&url) {
            all.push(url);
        }
    }
    all
}

/// Where a server's host RAM is read, and what was read lately.
#[derive(Default)]
struct HostSource {
    lately: VecDeque<(Ms, u64)>,
    /// Time in which all tasks waited, and when it was read: pressure is what grew.
    stalled: Option<(Ms, u64)>,
}

impl HostSource {
    async fn read(
        &mut self,
        state: &State,
        server: usize,
        target: &Target,
        ends: &Mutex<Ends>,
    ) -> Option<Reading> {
        let page = agent_page(state, target).await;
        if let Some(Ok(page)) = &page {
            hear_agent(state, target, ends, page);
            if target.said.unpaged
                && let Some(container) = &target.said.container
                && let Some(vram) = vram_of_agent(page, container)
            {
                let now = state.now();
                state.gate().admission.read_vram(now, server, Some(vram));
            }
        }
        let memory = match (&target.said.cgroup, page, &target.said.container) {
            (Some(path), _, _) => read_cgroup(path),
            (None, Some(page), Some(container)) => page.and_then(|page| of_agent(&page, container)),
            _ => Err("no cgroup and no agent is named for it".into()),
        };
        let now = state.now();
        let memory = match memory {
            Ok(memory) => memory,
            Err(why) => {
                if let Some(seen) = state.gate().seen.get_mut(server) {
                    seen.host_trouble = Some(why);
                }
                return None;
            }
        };
        let stalled = memory.pressure.full_us.and_then(|us| self.stalled_share(now, us));
        let reading = Reading {
            at: now,
            limit: memory.limit.and_then(Limit::bytes).map(|b| b.0),
            held: held(&memory),
            stalled: memory.pressure.full_avg10.or(stalled),
            kills: memory.oom_kill,
        };
        let mut gate = state.gate();
        if let Some(seen) = gate.seen.get_mut(server) {
            seen.host_trouble = None;
        }
        gate.admission.read_host(server, reading);
        drop(gate);
        if let Some(kills) = memory.oom_kill {
            locked(ends).hear_kills(now, kills);
        }
        self.lately.push_back((now, reading.held));
        while self.lately.len() > READINGS {
            self.lately.pop_front();
        }
        Some(reading)
    }

    /// Hundredths of a percent of the time since the last reading.
    fn stalled_share(&mut self, now: Ms, us: u64) -> Option<u64> {
        let (then, before) = self.stalled.replace((now, us))?;
        let span = now.checked_sub(then).filter(|s| *s > 0)?;
        Some(us.saturating_sub(before).saturating_mul(10) / span)
    }

    /// When the limit is reached at the pace of the last readings.
    fn full_in(&self, state: &State, server: usize, reading: &Reading) -> Option<Ms> {
        let most = state.gate().admission.servers().get(server)?.host.most()?;
        let (then, before) = self.lately.front().filter(|_| self.lately.len() == READINGS)?;
        let grown = reading.held.checked_sub(*before).filter(|g| *g > 0)?;
        let span = reading.at.saturating_sub(*then);
        let left = most.saturating_sub(reading.held);
        u64::try_from(u128::from(left) * u128::from(span) / u128::from(grown)).ok()
    }
}

/// What cannot be reclaimed.
fn held(m: &Memory) -> u64 {
    [m.anon, m.shmem, m.kernel].into_iter().flatten().map(|b| b.0).fold(0, u64::saturating_add)
}

fn read_cgroup(path: &str) -> Result<Memory, String> {
    let hierarchy =
        Hierarchy::below(Path::new(CGROUPS)).ok_or("no memory controller below /sys/fs/cgroup")?;
    let version = if hierarchy.version == Version::V1 { 1 } else { 2 };
    // People paste the whole path.
    let inner = path.strip_prefix(CGROUPS).unwrap_or(path);
    let inner = if version == 1 { inner.strip_prefix("/memory").unwrap_or(inner) } else { inner };
    let inner = format!("/{}", inner.trim_matches('/'));
    let group = Group { kind: Kind::Service, identity: of_path(&inner, version) };
    let reader =
        Reader::open(&hierarchy, &group).map_err(|e| format!("cannot read the cgroup {inner}: {e}"))?;
    let (mut memory, mut buffer) = (Memory::default(), vec![0_u8; FILE]);
    reader.read(Depth::Full, &mut buffer, &mut memory).map_err(|_| format!("the cgroup {inner} is gone"))?;
    Ok(memory)
}

/// The page of the agent that is named for a server.
async fn agent_page(state: &State, target: &Target) -> Option<Result<String, String>> {
    let (url, _) = (target.said.agent.as_ref()?, target.said.container.as_ref()?);
    Some(match get(state, url).await {
        Ok((200, page)) => Ok(page),
        _ => Err(format!("the agent does not answer at {url}")),
    })
}

/// Takes in what the agent's page says of the container's last end.
fn hear_agent(state: &State, target: &Target, ends: &Mutex<Ends>, page: &str) {
    if let Some(container) = target.said.container.as_deref() {
        locked(ends).hear_agent(state.now(), last_incident(page, container));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_asked_once_each() {
        let config = crate::config::Config {
            server: vec![crate::config::ServerConfig::at("http://h:8000/x/")],
            ..crate::config::Config::default()
        };
        let all = candidates(&config.check().unwrap().targets[0]);
        assert_eq!(all[0], "http://h:8000/x/metrics");
        let set: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(set.len(), all.len());
    }
}
