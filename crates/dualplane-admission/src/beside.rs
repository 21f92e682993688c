//! Who may go before a request that waits for room, and not hold it up: short ones use the room that a long one will leave.

use crate::Ms;
use crate::admission::{Admission, Asked};
use crate::decision::Ticket;

impl Admission {
    /// What passed one that waits and still runs, by server: tokens of KV cache, and how many.
    pub(crate) fn passed(&self, waits: Ticket) -> Vec<(u64, u64)> {
        let mut all = vec![(0_u64, 0_u64); self.servers.len()];
        for runs in self.running.values().filter(|r| r.held.passes == Some(waits)) {
            if let Some((kv, n)) = all.get_mut(runs.server) {
                (*kv, *n) = (kv.saturating_add(runs.held.kv), *n + 1);
            }
        }
        all
    }

    /// Whether another can go before one that waits and not hold it up, wherever either goes.
    pub(crate) fn has_room_beside(
        &self,
        now: Ms,
        (of, waits): (&str, &Asked),
        (tenant, other): (&str, &Asked),
        pool: usize,
        passed: &[(u64, u64)],
    ) -> bool {
        let share = self.pool_share(pool);
        let servers = self.servers.iter().enumerate().filter(|(i, _)| self.takes_pool(*i, pool));
        { servers }.all(|(i, s)| {
            let (waits, other) = (self.cost_on(s, of, waits), self.cost_on(s, tenant, other));
            let passed = passed.get(i).copied().unwrap_or_default();
            s.could_ever(&waits, share).is_err() || s.has_room_beside(now, &waits, &other, passed, share)
        })
    }
}
