//! Which container's processes are listed next: after a death they are gone, so the list must be there before.
//!
//! A list costs some 50 µs a process. New containers are listed often, as their start-up makes workers; those that move or
//! are near their limit every few seconds; all others in turn, one a round.

use dualplane_base::order::Order as _;
use std::time::Duration;

use dualplane_node::clock::Moment;

/// A container is new for so long.
const NEW: Duration = Duration::from_secs(30);
/// Between two lists of a new container.
const NEW_EVERY: Duration = Duration::from_secs(2);
/// Between two lists of one that is near its limit.
const NEAR_EVERY: Duration = Duration::from_secs(5);
/// A working set above so many thousandths of the limit is near.
const NEAR_PERMILLE: u128 = 800;
/// A working set that grew by so many thousandths of the limit since the last list tells of new processes.
const GREW_PERMILLE: u128 = 100;
/// Between two lists of one that grows.
const GREW_EVERY: Duration = Duration::from_millis(400);
/// Lists of one round.
const MAX_LISTS: usize = 4;

/// What decides about one container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) slot: u16,
    pub(super) since: Moment,
    pub(super) listed: Option<Moment>,
    pub(super) working_set: Option<u64>,
    pub(super) limit: Option<u64>,
    /// What it held when it was last listed.
    pub(super) then: Option<u64>,
}

impl Candidate {
    fn due(&self, now: Moment) -> bool {
        let Some(listed) = self.listed else { return true };
        let age = now.since(listed);
        let near = self
            .working_set
            .zip(self.limit)
            .is_some_and(|(w, l)| u128::from(w) * 1000 >= u128::from(l) * NEAR_PERMILLE);
        // Somebody new is at work, and may be killed within the second.
        let grew = self.working_set.zip(self.then).zip(self.limit).is_some_and(|((w, t), l)| {
            u128::from(w.saturating_sub(t)) * 1000 >= u128::from(l) * GREW_PERMILLE
        });
        (now.since(self.since) < NEW && age >= NEW_EVERY)
            || (near && age >= NEAR_EVERY)
            || (grew && age >= GREW_EVERY)
    }
}

/// The containers to list now: those that are due, the longest unlisted first, and one more in turn.
pub(super) fn choose(candidates: impl Iterator<Item = Candidate>, now: Moment) -> Vec<u16> {
    let mut all: Vec<Candidate> = candidates.collect();
    all.order_by_key(|c| (c.listed, c.slot));
    let turn = all.iter().find(|c| !c.due(now)).map(|c| c.slot);
    let mut out: Vec<u16> = all.iter().filter(|c| c.due(now)).take(MAX_LISTS).map(|c| c.slot).collect();
    out.extend(turn.filter(|_| out.len() < MAX_LISTS));
    out
}
