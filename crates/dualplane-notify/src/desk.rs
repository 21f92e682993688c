//! Who decides when something is told. Time is a value; the state is small, bounded and can be kept (`serde`).

use std::collections::{BTreeMap, VecDeque};

use crate::notice::Notice;
use crate::quiet::{Quiet, until};
use serde::{Deserialize, Serialize};

const HOUR_MS: i64 = 3_600_000;
/// Loops that are remembered; those told longest ago are forgotten first.
const LOOPS: usize = 10_000;

/// When a channel is told something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// A cause of a loop that was told is told again after this time at the earliest.
    pub repeat_after_ms: i64,
    /// Messages of any hour.
    pub per_hour: usize,
    /// When nothing is told.
    pub quiet: Vec<Quiet>,
    /// Faults of hardware are told in quiet hours as well: they do not go away by a restart.
    pub hardware_always: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { repeat_after_ms: 4 * HOUR_MS, per_hour: 20, quiet: Vec::new(), hardware_always: true }
    }
}

/// What is to be done with a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Send it; so many of the same cause were folded into it since the last.
    Send {
        /// How many.
        folded: u64,
    },
    /// The same was told; it is counted for the next message of this loop.
    Fold,
    /// Ask again then: it is quiet, or the hour is full.
    Wait {
        /// Milliseconds since 1970.
        until: i64,
    },
}

/// What is known of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    at: i64,
    folded: u64,
}

/// The memory of one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desk {
    /// By cause within its loop.
    told: BTreeMap<String, Told>,
    /// When the last messages were sent.
    sent: VecDeque<i64>,
}

impl Desk {
    /// What to do with it now. A message that is to be sent counts as sent.
    pub fn decide(&mut self, notice: &Notice, policy: &Policy, now_ms: i64) -> Decision {
        let key = &notice.incident.cause_key;
        // A clock that was set back must not silence a loop for long.
        let recent = |t: &Told| (0..policy.repeat_after_ms).contains(&now_ms.saturating_sub(t.at));
        if let Some(told) = self.told.get_mut(key).filter(|t| recent(t)) {
            told.folded = told.folded.saturating_add(1);
            return Decision::Fold;
        }
        let hardware = notice.incident.plane == dualplane_base::Plane::Hardware;
        if let Some(until) = until(&policy.quiet, now_ms).filter(|_| !(hardware && policy.hardware_always)) {
            return Decision::Wait { until };
        }
        self.sent.retain(|at| (0..HOUR_MS).contains(&now_ms.saturating_sub(*at)));
        if self.sent.len() >= policy.per_hour.max(1) {
            let until = self.sent.front().map_or(now_ms, |at| at.saturating_add(HOUR_MS));
            return Decision::Wait { until: until.max(now_ms.saturating_add(1)) };
        }
        self.sent.push_back(now_ms);
        let folded = self.told.insert(key.clone(), Told { at: now_ms, folded: 0 }).map_or(0, |t| t.folded);
        self.forget();
        Decision::Send { folded }
    }

    fn forget(&mut self) {
        if self.told.len() > LOOPS {
            let oldest = self.told.iter().min_by_key(|(_, t)| t.at).map(|(k, _)| k.clone());
            oldest.map(|k| self.told.remove(&k));
        }
    }
}
