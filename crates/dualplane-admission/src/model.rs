//! The queue's model: how long one would wait, by what waits before it and how fast memory becomes free.

use crate::Ms;
use crate::admission::{Admission, Asked, Request};
use crate::arithmetic::{ceil, real};
use crate::decision::{Code, Numbers, Refusal};
use crate::queue::Queue;

/// Nobody is told to come back later than this.
const LONGEST_RETRY: u64 = 600;
/// How fast the pace at which tokens become free follows what is: half of it within some seven ends.
const PACE: f64 = 0.1;

impl Admission {
    /// How long one more request of a tenant would wait, by what waits before it and how fast tokens become free.
    #[must_use]
    pub fn expected_wait(&self, tenant: &str, pool: usize, weight: u64) -> Option<Ms> {
        let pace = self.pace.filter(|p| *p > 0.0)?;
        let queue = self.queues.get(pool)?;
        let part = queue.share_of(tenant, self.tenant(tenant).weight);
        let (_, _, own) = queue.of(tenant);
        // Its own lane at its part of the pace; never longer than behind all who wait.
        let lane = real(own.saturating_add(weight)) / (pace * part);
        let all = real(queue.sum().saturating_add(weight)) / pace;
        Some(ceil(lane.min(all)))
    }

    pub(crate) fn retry_after(&self, tenant: &str, pool: usize, weight: u64) -> u64 {
        let wait = self.expected_wait(tenant, pool, weight).unwrap_or(1000);
        wait.div_ceil(1000).clamp(1, LONGEST_RETRY)
    }

    /// Whether it may wait; what is full may still be made free by another tenant, see [`Self::enqueue`].
    pub(crate) fn may_wait(
        &self,
        tenant: &str,
        pool: usize,
        asked: &Asked,
        request: &Request,
    ) -> Result<(), Refusal> {
        let Some(queue) = self.queues.get(pool) else { return Ok(()) };
        let weight = self.weight(tenant, asked);
        let retry = Some(self.retry_after(tenant, pool, weight));
        let (own, _, _) = queue.of(tenant);
        if let Some(most) = self.tenant(tenant).waiting
            && own as u64 >= most
        {
            let numbers = Numbers { needs: own as u64, limit: most, ..Numbers::default() };
            return Err(self.refusal(Code::TenantQueueFull, numbers, retry));
        }
        let may = request.max_wait.unwrap_or(self.policy.max_wait).min(self.policy.max_wait);
        // The pace is only known while somebody waits: the first is let in, or nobody would ever learn that it rose.
        let wait = self.expected_wait(tenant, pool, weight).filter(|w| *w > may && !queue.is_empty());
        if let Some(wait) = wait {
            let numbers = Numbers { needs: wait, limit: may, ..Numbers::default() };
            return Err(self.refusal(Code::WaitTooLong, numbers, retry));
        }
        if request.bytes > self.policy.max_bytes || self.policy.max_waiting == 0 || may == 0 {
            return Err(self.full(retry));
        }
        Ok(())
    }

    /// The pace at which tokens become free, while somebody waits: an idle server's pace says nothing of a full one's.
    pub(crate) fn pace_of_ends(&mut self, now: Ms, freed: u64) {
        if self.queues.iter().all(Queue::is_empty) {
            self.last_end = None;
            return;
        }
        let Some((before, sum)) = self.last_end else {
            self.last_end = Some((now, 0));
            return;
        };
        let sum = sum.saturating_add(freed);
        let span = now.saturating_sub(before);
        if span < 100 {
            self.last_end = Some((before, sum));
            return;
        }
        let pace = real(sum) / real(span);
        // A longer span says more.
        let weight = (PACE * real(span) / 100.0).min(0.5);
        self.pace = Some(self.pace.map_or(pace, |p| p + (pace - p) * weight));
        self.last_end = Some((now, 0));
    }

    /// Tokens that become free in a second while requests wait.
    #[must_use]
    pub fn pace(&self) -> Option<f64> {
        self.pace.map(|p| p * 1000.0)
    }
}
