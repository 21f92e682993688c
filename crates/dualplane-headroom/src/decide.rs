//! Whether the next batch has room on both planes. Pure: numbers in, an answer with its reason out.

use dualplane_base::units::Bytes;

use crate::host::{Host, Scope};
use crate::need::Needs;

/// A share of the limit below which waiting for memory is somebody else's: a disk, a neighbour on the node.
const STALL_COUNTS_FROM: f64 = 70.0;

/// What the caller allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowed {
    /// Percent of the limit of host RAM.
    pub host: f64,
    /// Percent of a card's memory; `None` does not ask.
    pub vram: Option<f64>,
    /// Percent of the last ten seconds that every task may wait for memory.
    pub stall: f64,
}

/// The card that is fullest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vram {
    /// Its UUID.
    pub device: String,
    /// Bytes in use.
    pub used: u64,
    /// Bytes of the card.
    pub total: u64,
}

/// What is known of one plane at this moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held<'a> {
    /// Held now.
    pub(crate) now: u64,
    /// Held when no batch was open.
    pub(crate) idle: u64,
    /// Items of the batches that are open.
    pub(crate) open: u64,
    pub(crate) needs: &'a Needs,
}

impl Held<'_> {
    /// What will be held when all open batches and one more of `items` stand at their peaks. Batches that began together have
    /// not taken their memory yet, so what they are known to need counts from the start.
    pub(crate) fn with(&self, items: u64) -> u64 {
        let open = if self.open == 0 { 0 } else { self.needs.of(self.open).unwrap_or(0) };
        let next = if items == 0 { 0 } else { self.needs.of(items).unwrap_or(0) };
        self.now.max(self.idle.saturating_add(open)).saturating_add(next)
    }

    /// The most items, at most `wanted`, that end below `allowed`.
    pub(crate) fn items_within(&self, allowed: u64, wanted: u64) -> u64 {
        let before = self.with(0);
        if before > allowed { 0 } else { self.needs.items_within(allowed.saturating_sub(before), wanted) }
    }
}

/// Why not.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Host RAM would be above the share that is allowed.
    Host {
        /// Bytes at the end of the batch.
        expected: u64,
        /// Bytes of them for this batch.
        need: u64,
        /// Bytes that are allowed: `percent` of `limit`.
        allowed: u64,
        /// Bytes of the limit.
        limit: u64,
        /// The share that is allowed.
        percent: f64,
        /// Whose limit.
        scope: Scope,
    },
    /// All tasks wait for memory.
    Stall {
        /// Percent of the last ten seconds.
        stalled: f64,
        /// Percent that is allowed.
        allowed: f64,
    },
    /// The limit comes before the batch ends.
    Growth {
        /// Until the limit.
        seconds: f64,
        /// That a batch takes.
        batch: f64,
    },
    /// VRAM would be above the share that is allowed.
    Vram {
        /// UUID of the card.
        device: String,
        /// Bytes at the end of the batch.
        expected: u64,
        /// Bytes that are allowed.
        allowed: u64,
        /// Bytes of the card.
        total: u64,
        /// The share that is allowed.
        percent: f64,
    },
}

impl Refusal {
    /// `host` or `gpu`.
    #[must_use]
    pub fn plane(&self) -> &'static str {
        if matches!(self, Self::Vram { .. }) { "gpu" } else { "host" }
    }

    /// A sentence with its numbers.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Host { expected, need, allowed, limit, percent, scope } => {
                let whose =
                    if *scope == Scope::Cgroup { "the cgroup's limit" } else { "the machine's memory" };
                format!(
                    "host RAM would reach {} ({} for this batch), more than {percent} % of {whose}: {} of {}",
                    Bytes(*expected),
                    Bytes(*need),
                    Bytes(*allowed),
                    Bytes(*limit)
                )
            }
            Self::Stall { stalled, allowed } => format!(
                "every task waited for host RAM in {stalled:.1} % of the last 10 s, more than {allowed} %: the kernel reclaims"
            ),
            Self::Growth { seconds, batch } => format!(
                "host RAM grows and reaches its limit in {seconds:.0} s, before a batch of {batch:.1} s is over"
            ),
            Self::Vram { device, expected, allowed, total, percent } => format!(
                "VRAM of {device} would reach {}, more than {percent} % of it: {} of {}",
                Bytes(*expected),
                Bytes(*allowed),
                Bytes(*total)
            ),
        }
    }
}

/// `percent` of `whole`.
pub(crate) fn share(whole: u64, percent: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of bytes needs no last bit, and percent is at least 0"
    )]
    let part = (whole as f64 * percent.max(0.0) / 100.0) as u64;
    part
}

/// The first plane that has no room for a batch of `items`.
pub(crate) fn refusal(
    host: Option<(&Host, Held)>,
    vram: Option<(&Vram, Held)>,
    growth: Option<f64>,
    batch_seconds: f64,
    items: u64,
    allowed: &Allowed,
) -> Option<Refusal> {
    if let Some((host, held)) = host {
        let most = share(host.limit, allowed.host);
        let expected = held.with(items);
        if expected > most {
            let need = expected.saturating_sub(held.with(0));
            let (limit, percent) = (host.limit, allowed.host);
            return Some(Refusal::Host { expected, need, allowed: most, limit, percent, scope: host.scope });
        }
        let full = share(host.limit, STALL_COUNTS_FROM) < host.used;
        if let Some(stalled) = host.stalled.filter(|s| full && *s > allowed.stall) {
            return Some(Refusal::Stall { stalled, allowed: allowed.stall });
        }
        #[allow(clippy::cast_precision_loss, reason = "seconds to the limit need no last bit")]
        let seconds = growth.filter(|g| *g > 0.0).map(|g| host.limit.saturating_sub(expected) as f64 / g);
        if let Some(seconds) = seconds.filter(|s| *s < batch_seconds) {
            return Some(Refusal::Growth { seconds, batch: batch_seconds });
        }
    }
    if let (Some((vram, held)), Some(percent)) = (vram, allowed.vram) {
        let most = share(vram.total, percent);
        let expected = held.with(items);
        if expected > most {
            let device = vram.device.clone();
            return Some(Refusal::Vram { device, expected, allowed: most, total: vram.total, percent });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(held: u64) -> Host {
        Host { scope: Scope::Cgroup, limit: 1_000, held, used: held, stalled: None, kills: None }
    }

    const ALLOWED: Allowed = Allowed { host: 85.0, vram: Some(95.0), stall: 20.0 };

    fn of(host: &Host, needs: &Needs, open: u64, items: u64) -> Option<Refusal> {
        let held = Held { now: host.held, idle: host.held, open, needs };
        refusal(Some((host, held)), None, None, 0.0, items, &ALLOWED)
    }

    #[test]
    fn below_the_share_there_is_room_and_above_there_is_none() {
        let needs = Needs::default();
        assert_eq!(of(&host(850), &needs, 0, 1), None);
        assert!(matches!(of(&host(851), &needs, 0, 1), Some(Refusal::Host { allowed: 850, .. })));
    }

    #[test]
    fn what_batches_are_known_to_need_counts_before_they_took_it() {
        let mut needs = Needs::default();
        needs.learn(1, 100);
        assert_eq!(of(&host(500), &needs, 2, 1), None);
        // Three that have not begun to allocate, and one more: 500 + 300 + 100.
        assert!(of(&host(500), &needs, 3, 1).is_some());
    }

    #[test]
    fn a_stall_counts_where_the_group_is_full() {
        let needs = Needs::default();
        let stalled = |used| Host { stalled: Some(50.0), used, ..host(100) };
        assert_eq!(of(&stalled(200), &needs, 0, 1), None);
        assert!(matches!(of(&stalled(990), &needs, 0, 1), Some(Refusal::Stall { .. })));
    }

    #[test]
    fn growth_that_reaches_the_limit_within_a_batch_refuses() {
        let (needs, host) = (Needs::default(), host(800));
        let held = Held { now: 800, idle: 800, open: 0, needs: &needs };
        let ask = |growth, seconds| refusal(Some((&host, held)), None, Some(growth), seconds, 1, &ALLOWED);
        assert_eq!(ask(10.0, 5.0), None);
        assert!(matches!(ask(100.0, 5.0), Some(Refusal::Growth { .. })));
    }

    #[test]
    fn the_other_plane_is_asked_only_if_wanted() {
        let needs = Needs::default();
        let vram = Vram { device: "GPU-1".into(), used: 99, total: 100 };
        let held = Held { now: 99, idle: 99, open: 0, needs: &needs };
        let ask = |vram_percent| {
            refusal(None, Some((&vram, held)), None, 0.0, 1, &Allowed { vram: vram_percent, ..ALLOWED })
        };
        assert_eq!(ask(None), None);
        assert_eq!(ask(Some(95.0)).map(|r| r.plane()), Some("gpu"));
    }

    proptest! {
        #[test]
        fn what_is_advised_is_not_refused(rises in prop::collection::vec((1_u64..64, 0_u64..500), 1..20),
                                          held in 0_u64..1_000, open in 0_u64..8, wanted in 1_u64..128) {
            let mut needs = Needs::default();
            for (items, rise) in rises {
                needs.learn(items, rise);
            }
            let host = host(held);
            let state = Held { now: held, idle: held, open, needs: &needs };
            let advised = state.items_within(share(host.limit, ALLOWED.host), wanted);
            if advised > 0 {
                prop_assert_eq!(of(&host, &needs, open, advised), None);
            }
        }

        #[test]
        fn more_held_never_allows_more(held in 0_u64..2_000, more in 0_u64..500, items in 1_u64..9) {
            let mut needs = Needs::default();
            needs.learn(2, 60);
            if of(&host(held), &needs, 0, items).is_some() {
                prop_assert!(of(&host(held + more), &needs, 0, items).is_some());
            }
        }
    }
}
