//! Which server takes a request: the one that is least full with it; and whether any ever could.

use crate::Ms;
use crate::admission::{Admission, Asked};
use crate::arithmetic::share;
use crate::decision::{Code, Numbers, Refusal};
use crate::server::{Health, Lack, Server, Taken};

impl Admission {
    /// The server that would take it now: the one that is least full with it. Else what the first lacks.
    pub(crate) fn place(
        &self,
        now: Ms,
        tenant: &str,
        asked: &Asked,
        pool: usize,
        not: &[usize],
    ) -> Result<(usize, Taken), Lack> {
        let mut best: Option<(f64, usize, Taken)> = None;
        let mut lack = Lack::Server;
        for (i, s) in self.servers.iter().enumerate() {
            if !self.takes_pool(i, pool) || not.contains(&i) {
                continue;
            }
            let cost = self.cost_on(s, tenant, asked);
            let taken =
                Taken { pool, cost, bucket: asked.bucket, prompt: asked.shape.prompt.high, passes: None };
            match s.can_take(now, &taken, self.pool_share(pool)) {
                Err(l) => lack = if lack == Lack::Server { l } else { lack },
                Ok(()) => {
                    let load = s.load(now, cost.kv);
                    if best.as_ref().is_none_or(|(b, _, _)| load < *b) {
                        best = Some((load, i, taken));
                    }
                }
            }
        }
        best.map(|(_, i, taken)| (i, taken)).ok_or(lack)
    }

    /// Whether any server could ever hold it; else the refusal with the numbers of the largest.
    pub(crate) fn could_ever(&self, tenant: &str, asked: &Asked, pool: usize) -> Result<(), Refusal> {
        let share_of_pool = self.pool_share(pool);
        let mut worst: Option<(u64, Code, Numbers)> = None;
        let may = |(i, s): &(usize, &Server)| !s.is_retired() && self.takes_pool(*i, pool);
        for (_, s) in self.servers.iter().enumerate().filter(may) {
            let cost = self.cost_on(s, tenant, asked);
            let (limit, code, numbers) = match s.could_ever(&cost, share_of_pool) {
                Ok(()) => return Ok(()),
                Err(Lack::Host) => {
                    let limit = s.host.most().unwrap_or(0);
                    (limit, Code::HostNeverFits, Numbers { needs: cost.host, limit, ..Numbers::default() })
                }
                Err(_) => {
                    let limit = share(s.most_for_one().unwrap_or(0), share_of_pool);
                    let n = asked.shape.sequences.max(1);
                    let room = limit.saturating_sub(asked.shape.prompt.low);
                    // Each further sequence may need a block more than its tokens.
                    let blocks = s.limits.block.max(1).saturating_mul(if n > 1 { 2 } else { 1 });
                    let would_fit = (room / n).saturating_sub(blocks);
                    let prompt = asked.shape.prompt.low;
                    let needs = cost.bound.unwrap_or(cost.certain).max(cost.certain);
                    (limit, Code::KvNeverFits, Numbers { needs, limit, prompt, would_fit })
                }
            };
            if worst.as_ref().is_none_or(|(l, _, _)| limit > *l) {
                worst = Some((limit, code, numbers));
            }
        }
        match worst {
            None => Err(self.refusal(Code::NoServer, Numbers::default(), Some(5))),
            Some((_, code, numbers)) => Err(self.refusal(code, numbers, None)),
        }
    }

    pub(crate) fn least_full(
        &self,
        now: Ms,
        tenant: &str,
        pool: usize,
        asked: &Asked,
    ) -> Option<(usize, Taken)> {
        let up = self
            .servers
            .iter()
            .enumerate()
            .filter(|(i, s)| s.health() != Health::Down && self.takes_pool(*i, pool));
        let (i, s) = up.min_by(|(_, a), (_, b)| a.load(now, 0).total_cmp(&b.load(now, 0)))?;
        let cost = self.cost_on(s, tenant, asked);
        Some((i, Taken { pool, cost, bucket: asked.bucket, prompt: asked.shape.prompt.high, passes: None }))
    }
}
