//! Whose turn it is among pools: the one that got least for its share, so that one that always has more to send starves no other.

use crate::Ms;
use crate::admission::{Admission, Asked};
use crate::arithmetic::real;
use crate::queue::{PATIENCE, Queue, Waiting};
use crate::server::{Lack, Server, Taken};

/// A pool whose next request does not fit yet.
struct Stuck {
    /// Others may pass it while they are not further ahead than by its size …
    furthest: f64,
    /// … and not any more when it was passed long enough.
    over: bool,
    /// Servers whose memory it waits for.
    servers: Vec<usize>,
}

impl Admission {
    /// The next of all pools that can go.
    pub(crate) fn next_of_all(&mut self, now: Ms) -> Option<(String, Waiting<Asked>, usize, Taken)> {
        let mut order: Vec<(f64, usize)> = self.waiting_pools().map(|i| (self.turn_of(i), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut stuck = Vec::new();
        for (turn, pool) in order {
            if let Some(next) = self.next(now, pool, &held(&stuck, turn)) {
                return Some(next);
            }
            stuck.extend(self.stuck(now, pool));
        }
        None
    }

    /// Servers that requests of other pools wait for, so that one of this pool may not take them.
    pub(crate) fn held_for_others(&self, now: Ms, pool: usize) -> Vec<usize> {
        let others = self.waiting_pools().filter(|i| *i != pool);
        let stuck: Vec<Stuck> = others.filter_map(|i| self.stuck(now, i)).collect();
        held(&stuck, self.turn_of(pool))
    }

    fn stuck(&self, now: Ms, pool: usize) -> Option<Stuck> {
        let (tenant, head, since) = self.queues.get(pool)?.stuck()?;
        let asked = &head.what;
        let waits = |(i, s): &(usize, &Server)| {
            let cost = self.cost_on(s, tenant, asked);
            let taken =
                Taken { pool, cost, bucket: asked.bucket, prompt: asked.shape.prompt.high, passes: None };
            let lack = s.can_take(now, &taken, self.pool_share(pool)).err();
            // A pool that has its share waits for itself.
            self.takes_pool(*i, pool) && lack.is_some_and(|l| l != Lack::Server && l != Lack::Pool)
        };
        let servers = self.servers.iter().enumerate().filter(waits).map(|(i, _)| i).collect();
        let furthest = self.turn_of(pool) + real(head.weight) / self.divisor(pool);
        Some(Stuck { furthest, over: now.saturating_sub(since) >= PATIENCE, servers })
    }

    fn waiting_pools(&self) -> impl Iterator<Item = usize> {
        self.queues.iter().enumerate().filter(|(_, q)| !q.is_empty()).map(|(i, _)| i)
    }

    fn turn_of(&self, pool: usize) -> f64 {
        self.turns.get(pool).copied().unwrap_or(0.0)
    }

    fn divisor(&self, pool: usize) -> f64 {
        self.pool_share(pool).max(f64::MIN_POSITIVE)
    }

    /// One that comes to wait in an empty pool begins where the others are: a pool does not save up.
    pub(crate) fn begins_to_wait(&mut self, pool: usize) {
        if !self.queues.get(pool).is_some_and(Queue::is_empty) {
            return;
        }
        let least = self.waiting_pools().map(|i| self.turn_of(i)).reduce(f64::min);
        match (self.turns.get_mut(pool), least) {
            (Some(turn), Some(least)) => *turn = turn.max(least),
            // Nobody else waits: what was taken before is no debt.
            _ => self.turns.fill(0.0),
        }
    }

    /// Counts what was sent of a pool.
    pub(crate) fn turn(&mut self, pool: usize, sent: u64) {
        let part = self.divisor(pool);
        if let Some(turn) = self.turns.get_mut(pool) {
            *turn += real(sent) / part;
        }
    }
}

/// What one whose turn stands there may not take.
fn held(stuck: &[Stuck], turn: f64) -> Vec<usize> {
    stuck.iter().filter(|s| s.over || turn > s.furthest).flat_map(|s| s.servers.iter().copied()).collect()
}
