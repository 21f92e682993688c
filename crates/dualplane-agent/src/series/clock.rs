//! Moments on the wall, all by one anchor: two anchors would tear a series where somebody set the clock between them.

use dualplane_node::clock::Moment;
use dualplane_node::sample::Record;

/// Readings of one round lie this near its begin; a device that answered later has its own time.
const SAME_ROUND_NS: u64 = 60_000_000;

/// Rounds of a window.
#[derive(Debug)]
pub(super) struct Clock {
    at: Moment,
    wall_ms: i64,
    /// Begins of rounds, in order.
    rounds: Vec<Moment>,
}

impl Clock {
    /// By the last round's anchor, so that the end of the series is where the death is. `None` where no round tells.
    pub(super) fn of(rounds: &[Record]) -> Option<Self> {
        let anchors = rounds.iter().filter_map(|r| Some((r.at, i64::try_from(r.field(1)?).ok()?)));
        let (at, wall_ms) = anchors.max_by_key(|(at, _)| *at)?;
        let mut rounds: Vec<Moment> = rounds.iter().map(|r| r.at).collect();
        rounds.sort_unstable();
        Some(Self { at, wall_ms, rounds })
    }

    /// Milliseconds since 1970 of a reading: of the round that it belongs to.
    pub(super) fn wall_ms(&self, moment: Moment) -> i64 {
        let behind = self.rounds.partition_point(|r| *r <= moment);
        let before = behind.checked_sub(1).and_then(|i| self.rounds.get(i));
        let near = |r: &&Moment| r.0.abs_diff(moment.0) <= SAME_ROUND_NS;
        // GPUs are asked before the containers are read.
        let after = self.rounds.get(behind);
        let distance = |r: &&Moment| r.0.abs_diff(moment.0);
        let round = before.into_iter().chain(after).filter(near).min_by_key(distance).copied();
        let ahead = i128::from(round.unwrap_or(moment).0) - i128::from(self.at.0);
        self.wall_ms.saturating_add(i64::try_from(ahead.div_euclid(1_000_000)).unwrap_or_default())
    }
}
