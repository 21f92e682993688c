//! Which of five branches holds: what keeps a server from more goodput.
//!
//! Memory is asked first: a plane that is nearly full makes every other lever dangerous. Then whether requests wait, whether
//! the device is busy, and whether clients see what they should.

use serde::{Deserialize, Serialize};

use crate::numbers::Numbers;

/// Host RAM and VRAM beyond this share of their limits leave no room for a lever that takes memory.
const MEMORY_HIGH: f64 = 0.95;
/// A KV cache that was this full, and took places away, is too small for what runs: the last sequence that would fit none
/// leaves room.
const KV_HIGH: f64 = 0.8;
/// A device below this is idle enough to take more.
const IDLE: f64 = 0.7;
/// A queue is long where as much waits as this share of what runs, and at least one request.
const LONG: f64 = 0.25;
/// p99 holds where this share of requests is good.
const GOOD: f64 = 0.99;

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// Idle, and little waits: requests do not get there.
    HostSide,
    /// Requests wait while the device could take more of them.
    Batching,
    /// Busy, and clients are served well: what is left is headroom and cost.
    HeadroomAndCost,
    /// Busy, and clients are not served well: admit less, scale out, isolate.
    Admission,
    /// A plane is full: a smaller envelope, another card or slice.
    SmallerEnvelope,
}

impl Branch {
    /// What it says.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::HostSide => "the device idles and little waits: look at the host side",
            Self::Batching => "requests wait while more could run: batch more",
            Self::HeadroomAndCost => "busy, and clients are served well: look at headroom and cost",
            Self::Admission => "busy, and clients are not served well: admit less, scale out, isolate",
            Self::SmallerEnvelope => "memory is full: a smaller envelope, or another card or slice",
        }
    }
}

/// What the flow says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// None where a number that decides is missing.
    pub branch: Option<Branch>,
    /// Numbers that led there, a sentence each.
    pub because: Vec<String>,
    /// Numbers that are missing, and how to get them.
    pub missing: Vec<String>,
}

/// Runs the flow.
#[must_use]
pub fn flow(n: &Numbers) -> Finding {
    let mut because = Vec::new();
    let mut missing = Vec::new();
    if memory_is_high(n, &mut because) {
        return Finding { branch: Some(Branch::SmallerEnvelope), because, missing };
    }
    let queue = n.waiting.zip(n.running);
    let long = queue.map(|(waiting, running)| {
        because.push(format!("{waiting:.1} requests wait and {running:.1} run, on average"));
        waiting >= 1.0 && waiting >= LONG * running
    });
    if long.is_none() {
        missing.push("how many requests wait and run: measure with the engine's own metrics".to_owned());
    }
    match n.busy {
        Some(busy) => {
            let of = n.busy_of.as_deref().unwrap_or("device");
            because.push(format!("the {of} are busy for {:.0} % of the time", busy * 100.0));
        }
        None => missing.push(
            "how busy the device is: measure with NVML, DCGM's exporter, or the container's CPU".to_owned(),
        ),
    }
    // A device is as busy with two sequences as with twenty: what runs at its bound while the KV cache is empty is held
    // back by that bound, however busy it looks.
    let bound = long == Some(true)
        && n.kv_share.is_some_and(|kv| kv < 0.5)
        && n.running.zip(n.running_peak).is_some_and(|(mean, peak)| mean >= 0.8 * peak);
    if bound {
        because.push(format!(
            "what runs is at its bound of {:.0} almost all the time, and the KV cache is {:.0} % full at most",
            n.running_peak.unwrap_or_default(),
            n.kv_share.unwrap_or_default() * 100.0
        ));
        return Finding { branch: Some(Branch::Batching), because, missing };
    }
    let branch = match (n.busy.map(|b| b < IDLE), long) {
        (Some(true), Some(false)) => Some(Branch::HostSide),
        (Some(true), Some(true)) => Some(Branch::Batching),
        (Some(false), _) => served(n, &mut because, &mut missing),
        _ => None,
    };
    Finding { branch, because, missing }
}

fn memory_is_high(n: &Numbers, because: &mut Vec<String>) -> bool {
    let mut high = false;
    if let Some(restarts) = n.restarts.filter(|r| *r > 0) {
        because.push(format!("it died {restarts} times while it was measured"));
        high = true;
    }
    if let Some(host) = n.host_share.filter(|s| *s >= MEMORY_HIGH) {
        because.push(format!("host RAM reached {:.0} % of its limit", host * 100.0));
        high = true;
    }
    let kept = n.preemptions.is_some_and(|p| p > 0);
    if kept && n.kv_share.is_none_or(|kv| kv >= KV_HIGH) {
        because.push(format!(
            "the KV cache was {}full and {} requests lost their place",
            n.kv_share.map(|kv| format!("{:.0} % ", kv * 100.0)).unwrap_or_default(),
            n.preemptions.unwrap_or_default()
        ));
        high = true;
    }
    // Engines that reserve their share at start stand at it, and are well: VRAM counts beyond all shares.
    if let Some(vram) = n.vram_share.filter(|s| *s >= 0.98) {
        because.push(format!("VRAM reached {:.0} % of the cards'", vram * 100.0));
        high = true;
    }
    high
}

fn served(n: &Numbers, because: &mut Vec<String>, missing: &mut Vec<String>) -> Option<Branch> {
    let Some(good) = n.good_share else {
        missing.push("how many requests are good: measure with an SLO".to_owned());
        return None;
    };
    because.push(format!("{:.1} % of requests are good", good * 100.0));
    Some(if good >= GOOD { Branch::HeadroomAndCost } else { Branch::Admission })
}
