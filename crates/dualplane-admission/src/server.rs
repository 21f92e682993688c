//! What one server has, holds and may still take.

use std::collections::BTreeMap;

use crate::Ms;
use crate::arithmetic::{real, share, whole_blocks};
use crate::cost::Cost;
use crate::decision::Ticket;
use crate::host::{Host, Reading};
use crate::throttle::{Signals, Throttle};
use crate::unpaged::{Bucket, Need, Shapes};

/// A server that came back takes this share at first.
const FIRST_SHARE: f64 = 0.1;
/// The place of a retired server is given to another after this time: whoever watched it, or passed it what costs no memory,
/// has long ended.
const OVER: Ms = 60_000;

/// What is known of a server's room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Tokens of its KV cache; `None` where nobody knows.
    pub kv: Option<u64>,
    /// Tokens that one request may hold at most, where the cache is that of several engines that do not share it.
    pub one: Option<u64>,
    /// Tokens of a block.
    pub block: u64,
    /// Share of the KV cache that is given out.
    pub ceiling: f64,
    /// Requests at a time, where the operator bounds them.
    pub requests: Option<u64>,
    /// Requests at a time while nothing is known of its KV cache.
    pub blind_requests: u64,
    /// It does not page its memory: what a request takes is learnt by its shape.
    pub unpaged: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            kv: None,
            one: None,
            block: 16,
            ceiling: 0.95,
            requests: None,
            blind_requests: 8,
            unpaged: false,
        }
    }
}

/// Whether it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It does not.
    Down,
    /// It does, since then.
    Up(Ms),
}

/// What stands against one more request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// It is down.
    Server,
    /// KV cache.
    Kv,
    /// The pool's share of the KV cache.
    Pool,
    /// Host RAM.
    Host,
    /// VRAM of a server that does not page it.
    Vram,
    /// The bound on requests at a time.
    Requests,
}

impl Lack {
    /// As metrics and status say it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Kv => "kv",
            Self::Pool => "pool",
            Self::Host => "host_ram",
            Self::Vram => "vram",
            Self::Requests => "requests",
        }
    }
}

/// What one admitted request holds.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) pool: usize,
    pub(crate) cost: Cost,
    /// Tokens that it is counted with, without its prefix.
    pub(crate) kv: u64,
    /// Tokens of its prefix, which are counted once for all that share it.
    shared: u64,
    /// The most tokens that its prompt may be.
    prompt: u64,
    pub(crate) bucket: Bucket,
    /// It ran alone since it was admitted.
    alone: bool,
    /// What a server that does not page gives it; `None`: nobody knows, so nothing joins it.
    given: Option<Need>,
    /// What was read of both planes before it, and the most since.
    before: Need,
    most: Need,
    /// The one that it passed, which still waits for room.
    pub(crate) passes: Option<Ticket>,
}

/// What a request took that ran alone and is over, until VRAM is read once more: caching allocators keep what it had.
#[derive(Debug, Clone, Copy)]
struct Lesson {
    bucket: Bucket,
    before: Need,
    most: Need,
}

/// A request as a server takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) pool: usize,
    pub(crate) cost: Cost,
    pub(crate) bucket: Bucket,
    /// The most tokens that its prompt may be.
    pub(crate) prompt: u64,
    /// The one that it passes, which still waits for room.
    pub(crate) passes: Option<Ticket>,
}

/// VRAM of a server that does not page it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vram {
    /// All of the card's.
    pub limit: u64,
    /// In use.
    pub used: u64,
}

/// One server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its room.
    pub limits: Limits,
    /// Its host RAM.
    pub host: Host,
    throttle: Throttle,
    health: Health,
    /// Since when it is no longer one of the servers; requests that it works on are counted to their end.
    retired: Option<Ms>,
    /// A server that comes back takes everything again after this time.
    return_over: Ms,
    came_back: bool,
    kv: u64,
    kv_by_pool: Vec<u64>,
    running: u64,
    prefixes: BTreeMap<u64, (u64, u64)>,
    shapes: Shapes,
    vram: Option<Vram>,
    /// What the server takes without any request, where that is known: it was read before the first, or after some gave back what
    /// they had. An allocator that keeps what it had shows it never: then all that is in use counts as that of each request.
    vram_base: Option<u64>,
    /// The most that was read while requests ran.
    vram_high: u64,
    /// No request was sent to it yet …
    untouched: bool,
    /// … when it came up, nor since. Later one that answers again may be the same process, with all that it kept.
    fresh: bool,
    /// VRAM that those that run are given: a reading tells of it late, or not yet at its most.
    vram_given: u64,
    /// Of them, those of shapes that nobody knows.
    unmeasured: u64,
    lesson: Option<Lesson>,
    said: Signals,
}

impl Server {
    /// A server that is up and of which nothing more is known.
    #[must_use]
    pub fn new(limits: Limits, reserve: f64, return_over: Ms) -> Self {
        Self {
            limits,
            host: Host::new(reserve),
            throttle: Throttle::default(),
            health: Health::Up(0),
            retired: None,
            return_over,
            came_back: false,
            kv: 0,
            kv_by_pool: Vec::new(),
            running: 0,
            prefixes: BTreeMap::new(),
            shapes: Shapes::default(),
            vram: None,
            vram_base: None,
            vram_high: 0,
            untouched: true,
            fresh: false,
            vram_given: 0,
            unmeasured: 0,
            lesson: None,
            said: Signals::default(),
        }
    }

    /// The most tokens that may ever be given out. Of one that is retired nothing is.
    #[must_use]
    pub fn cap(&self) -> Option<u64> {
        self.limits
            .kv
            .filter(|_| !self.limits.unpaged && self.retired.is_none())
            .map(|kv| share(kv, self.limits.ceiling))
    }

    /// The most tokens that one request may hold.
    #[must_use]
    pub fn most_for_one(&self) -> Option<u64> {
        self.cap().map(|cap| self.limits.one.map_or(cap, |one| cap.min(share(one, self.limits.ceiling))))
    }

    /// The most tokens that are given out now: less than the cap in trouble and after a return.
    #[must_use]
    pub fn cap_now(&self, now: Ms) -> Option<u64> {
        Some(share(self.cap()?, self.throttle.share() * self.ramp(now)))
    }

    fn ramp(&self, now: Ms) -> f64 {
        match self.health {
            Health::Down => 0.0,
            Health::Up(since) if self.came_back && self.return_over > 0 => {
                (real(now.saturating_sub(since)) / real(self.return_over)).clamp(FIRST_SHARE, 1.0)
            }
            Health::Up(_) => 1.0,
        }
    }

    /// Requests at a time now.
    fn requests_now(&self, now: Ms) -> Option<u64> {
        let blind = self.limits.kv.is_none() && !self.limits.unpaged;
        let most = match (self.limits.requests, blind) {
            (Some(n), _) => n,
            (None, true) => self.limits.blind_requests,
            (None, false) => return None,
        };
        // Where tokens are not known, the closed loop works on requests.
        let part = if blind { self.throttle.share() * self.ramp(now) } else { 1.0 };
        Some(share(most, part).max(1))
    }

    /// Tokens that requests are counted with.
    #[must_use]
    pub fn kv_held(&self) -> u64 {
        self.kv
    }

    /// Requests that it works on.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.running
    }

    /// How full it is, to choose between servers.
    pub(crate) fn load(&self, now: Ms, kv: u64) -> f64 {
        match self.cap_now(now).filter(|c| *c > 0) {
            Some(cap) => real(self.kv.saturating_add(kv)) / real(cap),
            None => real(self.running + 1) / real(self.requests_now(now).unwrap_or(1).max(1)),
        }
    }

    /// Tokens that a request would add: its prefix is there already where another runs with it.
    fn adds(&self, cost: &Cost, most: u64) -> u64 {
        let there = cost.prefix.and_then(|p| Some(self.prefixes.get(&p.hash)?.0.min(p.tokens)));
        cost.kv.min(most).saturating_sub(there.unwrap_or(0))
    }

    /// Whether it could hold a request that runs alone; else what it lacks for ever.
    pub(crate) fn could_ever(&self, cost: &Cost, pool_share: f64) -> Result<(), Lack> {
        let needs = cost.bound.unwrap_or(cost.certain).max(cost.certain);
        if self.most_for_one().is_some_and(|most| needs > share(most, pool_share)) {
            return Err(Lack::Kv);
        }
        if self.host.most().is_some_and(|most| cost.host > most) {
            return Err(Lack::Host);
        }
        Ok(())
    }

    /// Whether it can take a request now; else what it lacks.
    pub(crate) fn can_take(&self, now: Ms, asked: &Taken, pool_share: f64) -> Result<(), Lack> {
        let cost = &asked.cost;
        if self.health == Health::Down {
            return Err(Lack::Server);
        }
        if self.requests_now(now).is_some_and(|n| self.running >= n) {
            return Err(Lack::Requests);
        }
        // A prefix belongs to no pool: it is counted for the server alone.
        if let (Some(cap), Some(now_cap)) = (self.cap(), self.cap_now(now)) {
            let adds = self.adds(cost, share(cap, pool_share));
            let of_pool = self.kv_by_pool.get(asked.pool).copied().unwrap_or(0);
            // A server in trouble still takes what it can hold, one at a time: else the longest request waits for ever.
            if self.running > 0 && of_pool.saturating_add(adds) > share(now_cap, pool_share) {
                return Err(Lack::Pool);
            }
            if self.running > 0 && self.kv.saturating_add(adds) > now_cap {
                return Err(Lack::Kv);
            }
        }
        let need = self.need(asked);
        if self.host.free(now).is_some_and(|free| host_of(cost, need) > free) {
            return Err(Lack::Host);
        }
        if self.limits.unpaged && self.running > 0 {
            let room = self.vram_free().filter(|_| self.unmeasured == 0);
            if need.zip(room).is_none_or(|(need, room)| need.vram > room) {
                return Err(Lack::Vram);
            }
        }
        Ok(())
    }

    /// What was learnt of its shape, where VRAM is not paged.
    fn need(&self, asked: &Taken) -> Option<Need> {
        if self.limits.unpaged { self.shapes.need(&asked.bucket) } else { None }
    }

    /// VRAM that nobody uses and nobody was given.
    fn vram_free(&self) -> Option<u64> {
        let v = self.vram?;
        Some(v.limit.saturating_sub(v.used.max(self.vram_base.unwrap_or(0).saturating_add(self.vram_given))))
    }

    /// Whether another can go before one that waits for room here, and hold nothing up: there is room for it beside that one, and
    /// beside all that passed it before (tokens of KV cache, and how many).
    pub(crate) fn has_room_beside(
        &self,
        now: Ms,
        waits: &Cost,
        other: &Cost,
        passed: (u64, u64),
        pool_share: f64,
    ) -> bool {
        let Some(cap) = self.cap_now(now).map(|cap| share(cap, pool_share)) else { return false };
        let all = [waits.kv, other.kv, passed.0].into_iter().fold(0, u64::saturating_add);
        let host = waits.host.saturating_add(other.host);
        all <= cap
            && self.host.free(now).is_none_or(|free| host <= free)
            && self.requests_now(now).is_none_or(|n| passed.1.saturating_add(2) <= n)
    }

    /// Takes a request, whether or not it fits: in shadow mode it is not asked.
    pub(crate) fn take(&mut self, now: Ms, taken: &Taken, pool_share: f64) -> Held {
        let cost = taken.cost;
        // Longer than the server by its estimate, but not for sure: it runs with all there is.
        let whole = cost.kv.min(self.cap().map_or(u64::MAX, |cap| share(cap, pool_share)));
        let shared = match cost.prefix {
            None => 0,
            Some(p) => {
                let (tokens, users) = self.prefixes.entry(p.hash).or_insert((p.tokens.min(whole), 0));
                if *users == 0 {
                    self.kv = self.kv.saturating_add(*tokens);
                }
                *users += 1;
                p.tokens.min(*tokens).min(whole)
            }
        };
        let kv = whole - shared;
        self.kv = self.kv.saturating_add(kv);
        self.of_pool(taken.pool, |n| n.saturating_add(kv));
        if self.running == 0 {
            self.learn(0);
        }
        (self.untouched, self.fresh) = (false, false);
        self.running += 1;
        let given = self.need(taken);
        match given {
            Some(need) => self.vram_given = self.vram_given.saturating_add(need.vram),
            None if self.limits.unpaged => self.unmeasured += 1,
            None => {}
        }
        self.host.admit(now, host_of(&cost, given));
        Held {
            pool: taken.pool,
            cost,
            kv,
            shared,
            prompt: taken.prompt,
            bucket: taken.bucket,
            alone: self.running == 1,
            given,
            // Above what nobody read nothing is known to have grown.
            before: Need { vram: self.vram.map_or(u64::MAX, |v| v.used), host: self.host_held(now) },
            most: Need::default(),
            passes: taken.passes,
        }
    }

    fn host_held(&self, now: Ms) -> u64 {
        self.host.reading(now).map_or(0, |r| r.held)
    }

    /// A request that runs has generated so many tokens in all its sequences: it is counted with what it holds.
    pub(crate) fn grow(&mut self, held: &mut Held, produced: u64) {
        let holds =
            whole_blocks(held.prompt.saturating_add(produced), self.limits.block).saturating_sub(held.shared);
        if holds > held.kv {
            let more = holds - held.kv;
            held.kv = holds;
            self.kv = self.kv.saturating_add(more);
            self.of_pool(held.pool, |n| n.saturating_add(more));
        }
    }

    /// A request ended. `learn`: what it took is worth learning.
    pub(crate) fn give_back(&mut self, now: Ms, held: &Held, others: &[Bucket], learn: bool) {
        self.kv = self.kv.saturating_sub(held.kv);
        self.of_pool(held.pool, |n| n.saturating_sub(held.kv));
        self.running = self.running.saturating_sub(1);
        match held.given {
            Some(need) => self.vram_given = self.vram_given.saturating_sub(need.vram),
            None if self.limits.unpaged => self.unmeasured = self.unmeasured.saturating_sub(1),
            None => {}
        }
        if let Some(p) = held.cost.prefix
            && let Some(entry) = self.prefixes.get_mut(&p.hash)
        {
            entry.1 = entry.1.saturating_sub(1);
            if entry.1 == 0 {
                self.kv = self.kv.saturating_sub(entry.0);
                self.prefixes.remove(&p.hash);
            }
        }
        if !self.limits.unpaged || !learn {
            return;
        }
        let Held { bucket, before, .. } = *held;
        let most = Need { host: held.most.host.max(self.host_held(now)), ..held.most };
        if held.alone {
            self.lesson = Some(Lesson { bucket, before, most });
        } else if most.vram > 0 && !others.is_empty() {
            let all: Vec<Bucket> = others.iter().copied().chain([bucket]).collect();
            self.shapes.together(&all, self.took(most, before.host));
        }
    }

    fn took(&self, most: Need, host_before: u64) -> Need {
        most.above(Need { vram: self.vram_base.unwrap_or(0), host: host_before })
    }

    /// What ran alone is over, and `read` is VRAM that was read since. Of one that was too short to be read and left nothing behind
    /// nobody knows what it took: the next of its shape runs alone, too.
    fn learn(&mut self, read: u64) {
        let Some(Lesson { bucket, before, most }) = self.lesson.take() else { return };
        if most.vram > 0 || read > before.vram {
            let most = Need { vram: most.vram.max(read), ..most };
            self.shapes.alone(bucket, self.took(most, before.host));
        }
    }

    fn of_pool(&mut self, pool: usize, change: impl FnOnce(u64) -> u64) {
        if self.kv_by_pool.len() <= pool {
            self.kv_by_pool.resize(pool + 1, 0);
        }
        if let Some(n) = self.kv_by_pool.get_mut(pool) {
            *n = change(*n);
        }
    }

    /// Marks what runs beside another, and the high-water of both planes; `of_vram`: that was read.
    pub(crate) fn watch(&self, now: Ms, held: &mut Held, of_vram: bool) {
        held.alone &= self.running <= 1;
        if of_vram {
            held.most.vram = held.most.vram.max(self.vram.map_or(0, |v| v.used));
        }
        held.most.host = held.most.host.max(self.host_held(now));
    }

    /// It was heard.
    pub(crate) fn hear(&mut self, now: Ms, said: Signals) {
        self.said = said;
        self.throttle.hear(now, &said);
    }

    /// Its cgroup was read.
    pub(crate) fn read_host(&mut self, reading: Reading) {
        self.host.read(reading);
    }

    /// Its VRAM was read.
    pub(crate) fn read_vram(&mut self, vram: Option<Vram>) {
        self.vram = vram;
        let Some(used) = vram.map(|v| v.used) else { return };
        if self.running > 0 {
            self.vram_high = self.vram_high.max(used);
            return;
        }
        if self.fresh || used < self.vram_high {
            self.vram_base = Some(self.vram_base.map_or(used, |base| base.min(used)));
        }
        self.learn(used);
    }

    /// It answers, or does not. One that comes back does so slowly.
    pub(crate) fn set_up(&mut self, now: Ms, up: bool) {
        // Whoever looked after it may still have an answer on its way.
        if self.retired.is_some() {
            return;
        }
        match (self.health, up) {
            (Health::Up(_), false) => self.health = Health::Down,
            (Health::Down, true) => {
                self.health = Health::Up(now);
                self.came_back = true;
                // What requests take is told above what the process takes without any, and this may be another.
                (self.vram_base, self.fresh) = (None, self.untouched);
                (self.shapes, self.lesson) = (Shapes::default(), None);
                // A new process knows nothing of what the old one was told.
                self.throttle = Throttle::default();
                self.said = Signals::default();
            }
            _ => {}
        }
    }

    /// It is no longer one of the servers: it gets nothing more, and what it works on goes on.
    pub(crate) fn retire(&mut self, now: Ms) {
        self.health = Health::Down;
        self.retired.get_or_insert(now);
    }

    /// It is one of the servers again, and gets something as soon as it answers.
    pub(crate) fn bring_back(&mut self) {
        self.retired = None;
    }

    /// Whether it is no longer one of the servers.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.retired.is_some()
    }

    /// Whether its place is free: nothing that was sent to it is on its way any more.
    pub(crate) fn is_over(&self, now: Ms) -> bool {
        self.running == 0 && self.retired.is_some_and(|since| now.saturating_sub(since) >= OVER)
    }

    /// Whether it answers.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health
    }

    /// Its closed loop.
    #[must_use]
    pub fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// What it said last.
    #[must_use]
    pub fn said(&self) -> &Signals {
        &self.said
    }

    /// Shapes that were learnt.
    #[must_use]
    pub fn shapes(&self) -> usize {
        self.shapes.len()
    }

    /// VRAM, where it is read.
    #[must_use]
    pub fn vram(&self) -> Option<Vram> {
        self.vram
    }

    /// Nothing is known of its memory: requests are bounded by their number alone.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.limits.kv.is_none() && !self.limits.unpaged
    }
}

/// Host RAM of a request: what it costs whatever it asks of the engine, or what its shape was seen to take.
fn host_of(cost: &Cost, need: Option<Need>) -> u64 {
    need.map_or(cost.host, |need| need.host.max(cost.host))
}
