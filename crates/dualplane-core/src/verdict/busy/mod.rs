//! How busy a server that lives is, and whether that is well: use of its cards beside queue, time to the first token,
//! errors and what its host does.
//!
//! High use is no fault: with a queue, and without errors, at an unchanged rate of tokens, the card is saturated and healthy.
//! Low use beside late answers says that something before the card is slow. Where figures that decide are missing, that is
//! said.

mod counters;
mod signals;
#[cfg(test)]
mod tests;

use super::case::Case;
use super::pressure::{Bound, Level};
use super::proof::{Busy as Figure, Untold};
use super::{Cause, Cited, Class, Confidence, Plane};
use crate::evidence::Gap;
use signals::Signals;

/// Above this mean use a card is busy.
const BUSY: f64 = 0.8;
/// Below it a card waits for work.
const IDLE: f64 = 0.3;
/// A mean time to the first token above it is late for a chat, in seconds.
const LATE: f64 = 2.0;
/// One that grew by this factor is late, unless it is short for anybody.
const GROWN: f64 = 2.0;
/// No answer within it is late, in seconds.
const PROMPT: f64 = 0.5;
/// A rate of tokens that fell below this part of the one before has collapsed; above the other it holds.
const COLLAPSED: f64 = 0.8;
const HOLDS: f64 = 0.9;
/// So many periods held back are felt in each answer.
const THROTTLED: f64 = 0.25;
/// So much of the time spent waiting for storage, too.
const STORAGE: f64 = 0.1;

/// What holds a card idle while requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The container's share of CPU time: tokenizer, preprocessing, scheduler.
    Cpu,
    /// Reading from disks or volumes.
    Storage,
    /// The pod's network.
    Network,
    /// The number of requests that the launch admits.
    Admission,
}

/// The reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The card does all it can, in order.
    Saturated,
    /// More is asked of it than it can do: requests fail, or the work done shrinks.
    Overloaded,
    /// The card waits for something before it.
    Held(Held),
    /// The figures at hand do not tell.
    Untold,
}

/// A reading with its evidence.
#[derive(Debug, Clone)]
pub struct Busy {
    /// The reading.
    pub state: State,
    /// What speaks for it.
    pub supports: Vec<Cited>,
    /// What would have to be known.
    pub untold: Vec<Untold>,
}

/// Reads the load of a server that lives; `None` where nothing calls for it.
pub(super) fn of(case: &Case<'_>) -> Option<Busy> {
    let living = super::pressure::living_containers(case.bundle, &case.subject);
    // A full cache says what its queue is for.
    let told = case.pressure.as_ref().is_some_and(|p| {
        p.bound != Bound::None
            || p.worst(Plane::Gpu).is_some_and(|r| r.bytes.is_none() && r.level == Level::High)
    });
    if living.is_empty() || told {
        return None;
    }
    let signals = signals::of(case, &living);
    let (state, untold) = read(&signals)?;
    Some(Busy { state, supports: signals.cited(), untold })
}

/// The reading of these figures.
fn read(s: &Signals) -> Option<(State, Vec<Untold>)> {
    let waits = s.queue.as_ref().is_some_and(|q| q.last >= 1.0);
    let grows = s.queue.as_ref().is_some_and(|q| q.last >= 1.0 && q.last > q.first);
    let late = s.first_token.as_ref().is_some_and(|t| {
        t.after >= LATE || t.after >= PROMPT && t.before.is_some_and(|b| b > 0.0 && t.after >= GROWN * b)
    });
    let failing = s.failed.as_ref().map(|f| f.count >= 1.0);
    let Some(usage) = s.usage.as_ref().map(|u| u.mean) else {
        return (late && waits || grows).then(|| (State::Untold, vec![Untold::Use]));
    };
    if usage >= BUSY {
        if failing == Some(true) {
            return Some((State::Overloaded, Vec::new()));
        }
        if !waits && !late {
            return None;
        }
        let rate = s.generated.as_ref().filter(|g| g.before > 0.0).map(|g| g.after / g.before);
        return Some(match rate {
            Some(rate) if rate < COLLAPSED => (State::Overloaded, Vec::new()),
            Some(rate) if rate >= HOLDS && failing == Some(false) => (State::Saturated, Vec::new()),
            _ => {
                let errors = failing.is_none().then_some(Untold::Errors);
                let tokens = rate.is_none_or(|r| r < HOLDS).then_some(Untold::Throughput);
                (State::Untold, errors.into_iter().chain(tokens).collect())
            }
        });
    }
    if usage > IDLE || !late && !grows {
        return None;
    }
    let over = |share: &Option<(f64, _)>, most: f64| share.as_ref().is_some_and(|(v, _)| *v >= most);
    let held = if over(&s.throttled, THROTTLED) {
        Held::Cpu
    } else if over(&s.storage, STORAGE) {
        Held::Storage
    } else if over(&s.dropped, 1.0) {
        Held::Network
    } else if waits && s.admitted.as_ref().is_some_and(|a| a.running >= a.most) {
        Held::Admission
    } else {
        return Some((State::Untold, vec![Untold::Host]));
    };
    Some((State::Held(held), Vec::new()))
}

impl Busy {
    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match self.state {
            State::Saturated => {
                "the GPU is saturated and healthy: requests wait, none fails, and the work done holds"
            }
            State::Overloaded => {
                "more is admitted than the GPU can serve: it is busy, and requests fail or less work gets done"
            }
            State::Held(Held::Cpu) => {
                "the GPU waits for the host: the container's CPUs are held back, so that tokenizer and scheduler are slow"
            }
            State::Held(Held::Storage) => "the GPU waits for the host: the container waits for storage",
            State::Held(Held::Network) => "the GPU waits for the host: the pod loses packets",
            State::Held(Held::Admission) => {
                "the GPU waits while requests queue: the launch admits no more of them at a time"
            }
            State::Untold if self.untold.contains(&Untold::Host) => {
                "answers are late while the GPU is hardly used: something before it is slow, and nothing tells what"
            }
            State::Untold => {
                "requests wait, and the evidence does not tell whether that is healthy saturation or overload"
            }
        }
    }

    pub(super) fn cause(&self) -> Cause {
        let known = self.state != State::Untold;
        Cause {
            class: if known { Class::NotMemory } else { Class::Unknown },
            title: self.sentence().to_owned(),
            confidence: if known { Confidence::Medium } else { Confidence::Low },
            rejected: false,
            supports: self.supports.clone(),
            against: self.untold.iter().map(|u| Cited::plain(Figure::Untold(*u))).collect(),
        }
    }

    /// What is missing, and the command that gets it.
    pub(super) fn missing(&self, case: &Case<'_>) -> Vec<Gap> {
        /// Two halves to compare, and long enough for a request or two.
        const ROUNDS: &str = "for i in 1 2 3 4; do";
        const PAUSE: &str = "sleep 15; done > metrics.prom";
        let n = super::Names::of(&case.subject);
        // Prometheus text may carry its time behind the value, in milliseconds.
        let stamped = "awk -v t=\"$(date +%s)000\" '!/^#/ {print $0, t}'";
        let of_engine = case.facts.engine.head().and_then(|d| d.ports.first()).copied().unwrap_or(8000);
        let page = |path: String| format!("{ROUNDS} kubectl get --raw {path} | {stamped}; {PAUSE}");
        let gap = |what: &str, why: &str, command: String| Gap {
            what: what.to_owned(),
            why: why.to_owned(),
            command: Some(command),
        };
        let mut out = Vec::new();
        if self.untold.iter().any(|u| matches!(u, Untold::Errors | Untold::Throughput)) {
            out.push(gap(
                "the engine's metrics over a minute",
                "requests that fail, or fewer tokens a second, are overload; none of both is healthy saturation",
                page(format!("/api/v1/namespaces/{}/pods/{}:{of_engine}/proxy/metrics", n.ns, n.pod)),
            ));
        }
        if self.untold.contains(&Untold::Use) {
            out.push(gap(
                "the use of the card",
                "a queue before a busy card is saturation, before an idle one it is the host, the network or the launch",
                format!(
                    "{} > nvidia-smi.csv",
                    n.exec("timeout 60 nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,memory.total --format=csv -l 5")
                ),
            ));
        }
        if self.untold.contains(&Untold::Host) {
            out.push(gap(
                "CPU, storage and network of the container over a minute",
                "throttled CPUs, waits for storage or lost packets say what the card waits for",
                page(format!("/api/v1/nodes/{}/proxy/metrics/cadvisor", n.node)),
            ));
        }
        out
    }
}
