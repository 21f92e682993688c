//! All servers and all who wait: what becomes of a request, when it comes and whenever something changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Ms;
use crate::arithmetic::share;
use crate::cost::{Cost, Shape, price};
use crate::decision::{Code, Decision, Grant, Numbers, Place, Refusal, Ticket, Would};
use crate::host::Reading;
use crate::outputs::Outputs;
use crate::policy::{Policy, TenantPolicy};
use crate::queue::{Queue, Waiting};
use crate::server::{Health, Held, Server, Taken, Vram};
use crate::throttle::Signals;
use crate::unpaged::Bucket;

/// Tenants that have a name of their own here; more share one.
const MAX_TENANTS: usize = 4096;
/// The name that they share.
pub const OTHERS: &str = "other";

/// A request that came.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// Path by which outputs are learnt.
    pub path: &'static str,
    /// What it asks.
    pub shape: Shape,
    /// What it is like, for a server that does not page its memory.
    pub bucket: Bucket,
    /// Number of its pool.
    pub pool: usize,
    /// Higher goes first within its tenant.
    pub priority: u8,
    /// The longest that it waits, where the caller says so.
    pub max_wait: Option<Ms>,
    /// Bytes that it keeps in this program while it waits.
    pub bytes: u64,
}

/// What happened to one that waited.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It goes on.
    Granted(Grant),
    /// It does not.
    Refused(Ticket, Refusal),
}

/// A request that waits.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: &'static str,
    pub(crate) shape: Shape,
    pub(crate) bucket: Bucket,
}

/// A request that runs.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    pub(crate) server: usize,
    tenant: Arc<str>,
    asked: Asked,
    pub(crate) held: Held,
    produced: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answered; the tokens of all its sequences where they are known.
    Done(Option<u64>),
    /// The caller went away, or the server failed: nothing is learnt of how long it would have been.
    Broken,
}

/// Tenant's share of what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// Requests.
    pub running: u64,
    /// Tokens that they are counted with.
    pub kv: u64,
}

/// The state of it all.
#[derive(Debug, Clone)]
pub struct Admission {
    pub(crate) policy: Policy,
    pub(crate) servers: Vec<Server>,
    pub(crate) queues: Vec<Queue<Asked>>,
    /// What was sent of each pool over its share, while another waited: the one that is furthest behind is next.
    pub(crate) turns: Vec<f64>,
    pub(crate) running: BTreeMap<Ticket, Runs>,
    uses: BTreeMap<Arc<str>, Use>,
    outputs: Outputs,
    last_ticket: u64,
    /// Tokens (or requests) that become free in a millisecond, and when the last did.
    pub(crate) pace: Option<f64>,
    pub(crate) last_end: Option<(Ms, u64)>,
    events: Vec<Event>,
}

impl Admission {
    /// Begins with nothing running.
    #[must_use]
    pub fn new(policy: Policy, servers: Vec<Server>) -> Self {
        let queues: Vec<_> = policy.pools.iter().map(|_| Queue::default()).collect();
        Self {
            turns: vec![0.0; queues.len()],
            policy,
            servers,
            queues,
            running: BTreeMap::new(),
            uses: BTreeMap::new(),
            outputs: Outputs::default(),
            last_ticket: 0,
            pace: None,
            last_end: None,
            events: Vec::new(),
        }
    }

    /// Takes on another policy; what runs and waits stays. Pools that are gone send their queue to the first.
    pub fn set_policy(&mut self, policy: Policy) {
        let pools = policy.pools.len().max(1);
        let gone = self.queues.split_off(self.queues.len().min(pools));
        self.queues.resize_with(pools, Queue::default);
        self.turns = vec![0.0; pools];
        self.policy = policy;
        for mut queue in gone {
            for (tenant, waiting) in queue.drain() {
                let weight = self.tenant(&tenant).weight;
                if let Some(first) = self.queues.first_mut() {
                    first.push(&tenant, weight, waiting);
                }
            }
        }
    }

    /// How requests are treated.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// One server, to be told what was read of it.
    pub fn server_mut(&mut self, server: usize) -> Option<&mut Server> {
        self.servers.get_mut(server)
    }

    /// Takes in what a server said.
    pub fn hear(&mut self, now: Ms, server: usize, said: Signals) {
        if let Some(s) = self.servers.get_mut(server) {
            s.hear(now, said);
        }
        self.watch(now, server, false);
    }

    /// Takes in a reading of a server's cgroup.
    pub fn read_host(&mut self, server: usize, reading: Reading) {
        if let Some(s) = self.servers.get_mut(server) {
            s.read_host(reading);
        }
        self.watch(reading.at, server, false);
    }

    /// Takes in a reading of the VRAM that a server uses.
    pub fn read_vram(&mut self, now: Ms, server: usize, vram: Option<Vram>) {
        if let Some(s) = self.servers.get_mut(server) {
            s.read_vram(vram);
        }
        self.watch(now, server, true);
    }

    fn watch(&mut self, now: Ms, server: usize, of_vram: bool) {
        let Some(s) = self.servers.get(server).filter(|s| s.limits.unpaged) else { return };
        for runs in self.running.values_mut().filter(|r| r.server == server) {
            s.watch(now, &mut runs.held, of_vram);
        }
    }

    /// A server answers, or does not.
    pub fn set_up(&mut self, now: Ms, server: usize, up: bool) {
        if let Some(s) = self.servers.get_mut(server) {
            s.set_up(now, up);
        }
    }

    pub(crate) fn tenant(&self, name: &str) -> TenantPolicy {
        self.policy.tenants.get(name).copied().unwrap_or(self.policy.tenant)
    }

    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// What a request costs on a server with this block, by what is expected of it now.
    #[must_use]
    pub fn cost(&self, tenant: &str, path: &str, shape: &Shape, block: u64) -> Cost {
        let bound = shape.max_output;
        let expected = if self.policy.worst_case {
            bound.unwrap_or(self.policy.default_output)
        } else {
            let learnt = self.outputs.expected(tenant, path);
            learnt.unwrap_or_else(|| bound.unwrap_or(self.policy.default_output))
        };
        price(shape, expected, block, &self.policy.host)
    }

    pub(crate) fn cost_on(&self, server: &Server, tenant: &str, asked: &Asked) -> Cost {
        self.cost(tenant, asked.path, &asked.shape, server.limits.block)
    }

    pub(crate) fn pool_share(&self, pool: usize) -> f64 {
        self.policy.pools.get(pool).map_or(1.0, |p| p.share)
    }

    pub(crate) fn takes_pool(&self, server: usize, pool: usize) -> bool {
        self.policy.pools.get(pool).is_none_or(|p| p.servers.is_empty() || p.servers.contains(&server))
    }

    #[expect(clippy::unused_self, reason = "a refusal may come to depend on the policy")]
    pub(crate) fn refusal(&self, code: Code, numbers: Numbers, retry_after: Option<u64>) -> Refusal {
        Refusal { code, retry_after, numbers }
    }

    /// What a request counts in fairness and in the queue's model: tokens, at least one.
    pub(crate) fn weight(&self, tenant: &str, asked: &Asked) -> u64 {
        let block = self.servers.iter().find(|s| !s.is_retired()).map_or(1, |s| s.limits.block);
        self.cost(tenant, asked.path, &asked.shape, block).kv.max(1)
    }

    /// The name under which a tenant is counted.
    fn known(&self, tenant: &Arc<str>) -> Arc<str> {
        let known = self.uses.contains_key(tenant) || self.policy.tenants.contains_key(&**tenant);
        if known || self.uses.len() < MAX_TENANTS { Arc::clone(tenant) } else { OTHERS.into() }
    }

    fn tenant_may_go(&self, tenant: &str) -> bool {
        let policy = self.tenant(tenant);
        let used = self.uses.get(tenant).copied().unwrap_or_default();
        let cap = self.servers.iter().filter_map(Server::cap).reduce(u64::saturating_add);
        policy.running.is_none_or(|n| used.running < n)
            && (policy.kv_share >= 1.0
                || used.running == 0
                || cap.is_none_or(|c| used.kv < share(c, policy.kv_share)))
    }

    /// A request came.
    pub fn offer(&mut self, now: Ms, request: Request) -> Decision {
        let tenant = self.known(&request.tenant);
        let pool = request.pool.min(self.policy.pools.len().saturating_sub(1));
        let asked = Asked { path: request.path, shape: request.shape, bucket: request.bucket };
        let decision = self.decide(now, &tenant, pool, &asked, &request);
        if !self.policy.shadow {
            return match decision {
                Ok(None) => self.enqueue(now, tenant, pool, asked, &request),
                Ok(Some((server, taken))) => {
                    Decision::Admit(self.take(now, &tenant, asked, server, &taken, 0, Would::Admit))
                }
                Err(refusal) => Decision::Refuse(refusal),
            };
        }
        let would = match &decision {
            Ok(Some(_)) => Would::Admit,
            Ok(None) => Would::Queue,
            Err(refusal) => Would::Refuse(refusal.code),
        };
        let least = match decision {
            Ok(Some((server, taken))) => Some((server, taken)),
            _ => self.least_full(now, &tenant, pool, &asked),
        };
        match least {
            Some((server, taken)) => {
                Decision::Admit(self.take(now, &tenant, asked, server, &taken, 0, would))
            }
            None => Decision::Refuse(self.refusal(Code::NoServer, Numbers::default(), Some(5))),
        }
    }

    /// Where it goes at once; `None`: it waits.
    fn decide(
        &self,
        now: Ms,
        tenant: &str,
        pool: usize,
        asked: &Asked,
        request: &Request,
    ) -> Result<Option<(usize, Taken)>, Refusal> {
        let up = |(i, s): (usize, &Server)| s.health() != Health::Down && self.takes_pool(i, pool);
        if !self.servers.iter().enumerate().any(up) {
            return Err(self.refusal(Code::NoServer, Numbers::default(), Some(5)));
        }
        self.could_ever(tenant, asked, pool)?;
        let queue = self.queues.get(pool);
        let may_go = self.tenant_may_go(tenant);
        if may_go
            && queue.is_none_or(Queue::lets_pass)
            && let Ok(at) = self.place(now, tenant, asked, pool, &self.held_for_others(now, pool))
        {
            return Ok(Some(at));
        }
        self.may_wait(tenant, pool, asked, request)?;
        Ok(None)
    }

    pub(crate) fn full(&self, retry: Option<u64>) -> Refusal {
        let numbers =
            Numbers { needs: self.waiting() as u64, limit: self.policy.max_waiting, ..Numbers::default() };
        self.refusal(Code::QueueFull, numbers, retry)
    }

    /// Requests that wait in all pools.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(Queue::len).sum()
    }

    /// Bytes of bodies that wait in all pools.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.queues.iter().map(Queue::bytes).fold(0, u64::saturating_add)
    }

    fn enqueue(
        &mut self,
        now: Ms,
        tenant: Arc<str>,
        pool: usize,
        asked: Asked,
        request: &Request,
    ) -> Decision {
        let policy = self.tenant(&tenant);
        let weight = self.weight(&tenant, &asked);
        let retry = Some(self.retry_after(&tenant, pool, weight));
        while self.waiting() as u64 >= self.policy.max_waiting
            || self.waiting_bytes().saturating_add(request.bytes) > self.policy.max_bytes
        {
            let out =
                self.queues.get_mut(pool).and_then(|q| q.push_out(&tenant, policy.weight, request.bytes));
            let Some((whose, waiting)) = out else { return Decision::Refuse(self.full(retry)) };
            let retry = Some(self.retry_after(&whose, pool, waiting.weight));
            let refusal = self.refusal(Code::PushedOut, Numbers::default(), retry);
            self.events.push(Event::Refused(waiting.ticket, refusal));
        }
        let ticket = self.ticket();
        let expected = self.expected_wait(&tenant, pool, weight);
        let may = request.max_wait.unwrap_or(self.policy.max_wait).min(self.policy.max_wait);
        self.begins_to_wait(pool);
        let Some(queue) = self.queues.get_mut(pool) else {
            return Decision::Refuse(self.full(retry));
        };
        let uses = &self.uses;
        queue.forgive(|t| uses.get(t).map_or(0, |u| u.kv.max(u.running)));
        self.uses.entry(Arc::clone(&tenant)).or_default();
        let waiting = Waiting {
            ticket,
            priority: request.priority,
            since: now,
            deadline: now.saturating_add(may),
            weight,
            bytes: request.bytes,
            what: asked,
        };
        queue.push(&tenant, policy.weight, waiting);
        Decision::Queue(Place { ticket, waiting: queue.len(), expected })
    }

    #[expect(clippy::too_many_arguments, reason = "all of it belongs to one request that begins")]
    fn take(
        &mut self,
        now: Ms,
        tenant: &Arc<str>,
        asked: Asked,
        server: usize,
        taken: &Taken,
        waited: Ms,
        would: Would,
    ) -> Grant {
        let ticket = self.ticket();
        let kv = self.begin(now, ticket, tenant, asked, server, taken);
        Grant { ticket, server, waited, kv, would }
    }

    /// Tokens that it is counted with.
    fn begin(
        &mut self,
        now: Ms,
        ticket: Ticket,
        tenant: &Arc<str>,
        asked: Asked,
        server: usize,
        taken: &Taken,
    ) -> u64 {
        let share_of_pool = self.pool_share(taken.pool);
        let Some(s) = self.servers.get_mut(server) else { return 0 };
        let held = s.take(now, taken, share_of_pool);
        let used = match self.uses.get_mut(tenant) {
            Some(used) => used,
            None => self.uses.entry(Arc::clone(tenant)).or_default(),
        };
        used.running += 1;
        used.kv = used.kv.saturating_add(held.kv);
        let weight = self.tenant(tenant).weight;
        if let Some(q) = self.queues.get_mut(taken.pool) {
            let uses = &self.uses;
            q.charge(tenant, weight, taken.cost.kv.max(1), |t| {
                uses.get(t).map_or(0, |u| u.kv.max(u.running))
            });
        }
        self.turn(taken.pool, taken.cost.kv.max(1));
        let runs = Runs { server, tenant: Arc::clone(tenant), asked, held, produced: 0 };
        let kv = runs.held.kv;
        self.running.insert(ticket, runs);
        self.watch(now, server, false);
        kv
    }

    /// A request that runs has generated so many tokens so far, all its sequences together.
    pub fn progress(&mut self, ticket: Ticket, produced: u64) {
        let Some(runs) = self.running.get_mut(&ticket) else { return };
        runs.produced = runs.produced.max(produced);
        let before = runs.held.kv;
        if let Some(s) = self.servers.get_mut(runs.server) {
            s.grow(&mut runs.held, runs.produced);
        }
        if let Some(used) = self.uses.get_mut(&runs.tenant) {
            used.kv = used.kv.saturating_add(runs.held.kv - before);
        }
    }

    /// A request ended. Whether it was running: each is released once, whoever asks again gets `false`.
    pub fn release(&mut self, now: Ms, ticket: Ticket, outcome: Outcome) -> bool {
        let Some(runs) = self.running.remove(&ticket) else { return false };
        self.give_back(now, &runs, matches!(outcome, Outcome::Done(_)));
        let tokens = match outcome {
            Outcome::Done(Some(n)) => Some(n),
            Outcome::Done(None) => Some(runs.produced).filter(|n| *n > 0),
            // It was at least so long: worth knowing only where that is more than was expected.
            Outcome::Broken => None,
        };
        if let Some(n) = tokens.filter(|_| runs.asked.shape.generates) {
            let sequences = runs.asked.shape.sequences.max(1);
            self.outputs.learn(now, &runs.tenant, runs.asked.path, n.div_ceil(sequences));
        }
        true
    }

    fn give_back(&mut self, now: Ms, runs: &Runs, learn: bool) {
        let same = self.running.values().filter(|r| r.server == runs.server);
        let unpaged = self.servers.get(runs.server).is_some_and(|s| s.limits.unpaged);
        let others: Vec<Bucket> = if unpaged { same.map(|r| r.held.bucket).collect() } else { Vec::new() };
        if let Some(s) = self.servers.get_mut(runs.server) {
            s.give_back(now, &runs.held, &others, learn);
        }
        if let Some(used) = self.uses.get_mut(&runs.tenant) {
            used.running = used.running.saturating_sub(1);
            used.kv = used.kv.saturating_sub(runs.held.kv);
        }
        let waits = self.queues.iter().any(|q| q.of(&runs.tenant).0 > 0);
        if !waits && self.uses.get(&runs.tenant).is_some_and(|u| u.running == 0) {
            self.uses.remove(&runs.tenant);
        }
        self.pace_of_ends(now, runs.held.cost.kv.max(1));
    }

    /// The caller of one that waits went away. Whether it waited.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        self.queues.iter_mut().any(|q| q.remove(ticket).is_some())
    }

    /// The server did not get it: another one, where one can take it now. It is no longer counted with the first.
    pub fn move_on(&mut self, now: Ms, ticket: Ticket) -> Option<usize> {
        let runs = self.running.remove(&ticket)?;
        self.give_back(now, &runs, false);
        let (tenant, pool) = (runs.tenant, runs.held.pool);
        let at = if self.policy.shadow {
            self.least_full(now, &tenant, pool, &runs.asked).filter(|(i, _)| *i != runs.server)
        } else {
            self.place(now, &tenant, &runs.asked, pool, &[runs.server]).ok()
        };
        let (server, taken) = at?;
        self.begin(now, ticket, &tenant, runs.asked, server, &taken);
        Some(server)
    }

    /// Who goes on and whose time is over. To be asked whenever something changed.
    pub fn poll(&mut self, now: Ms) -> Vec<Event> {
        for pool in 0..self.queues.len() {
            self.expire(now, pool);
        }
        while let Some((tenant, waiting, server, taken)) = self.next_of_all(now) {
            let waited = now.saturating_sub(waiting.since);
            let kv = self.begin(now, waiting.ticket, &tenant.into(), waiting.what, server, &taken);
            let grant = Grant { ticket: waiting.ticket, server, waited, kv, would: Would::Queue };
            self.events.push(Event::Granted(grant));
        }
        std::mem::take(&mut self.events)
    }

    fn expire(&mut self, now: Ms, pool: usize) {
        while let Some((tenant, waiting)) = self.queues.get_mut(pool).and_then(|q| q.expired(now)) {
            let retry = Some(self.retry_after(&tenant, pool, waiting.weight));
            let waited = now.saturating_sub(waiting.since);
            let numbers = Numbers { needs: waited, limit: waited, ..Numbers::default() };
            let refusal = self.refusal(Code::QueueTimeout, numbers, retry);
            self.events.push(Event::Refused(waiting.ticket, refusal));
        }
    }

    pub(crate) fn next(
        &mut self,
        now: Ms,
        pool: usize,
        not: &[usize],
    ) -> Option<(String, Waiting<Asked>, usize, Taken)> {
        // The queue is taken out so that it can ask the rest.
        let mut queue = std::mem::take(self.queues.get_mut(pool)?);
        let mut at = None;
        // The tenant of a head is not known to `fits`: it is the one that was asked for last.
        let asked_for = std::cell::RefCell::new(String::new());
        let passed = std::cell::OnceCell::new();
        let found = queue.next(
            now,
            |tenant| {
                tenant.clone_into(&mut asked_for.borrow_mut());
                self.tenant_may_go(tenant)
            },
            |head| {
                at = self.place(now, &asked_for.borrow(), &head.what, pool, not).ok();
                at.is_some()
            },
            |of, waits, other| {
                let passed = passed.get_or_init(|| self.passed(waits.ticket));
                self.has_room_beside(now, (of, &waits.what), (&asked_for.borrow(), &other.what), pool, passed)
            },
        );
        let stuck = queue.stuck().map(|(_, head, _)| head.ticket);
        if let Some(place) = self.queues.get_mut(pool) {
            *place = queue;
        }
        let ((tenant, waiting), (server, taken)) = found.zip(at)?;
        Some((tenant, waiting, server, Taken { passes: stuck, ..taken }))
    }

    /// When [`Self::poll`] has something to do even if nothing changes.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Ms> {
        self.queues.iter().filter_map(Queue::next_deadline).min()
    }

    /// Requests that run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Those that run on one server, to be answered when it died.
    pub fn on(&self, server: usize) -> impl Iterator<Item = Ticket> {
        self.running.iter().filter(move |(_, r)| r.server == server).map(|(t, _)| *t)
    }

    /// What each tenant uses and how many of its requests wait.
    pub fn tenants(&self) -> impl Iterator<Item = (&str, Use, usize)> {
        self.uses.iter().map(|(t, u)| (&**t, *u, self.queues.iter().map(|q| q.of(t).0).sum()))
    }

    /// Requests, bytes and tokens that wait, by pool.
    pub fn pools(&self) -> impl Iterator<Item = (&str, usize, u64, u64)> {
        self.policy
            .pools
            .iter()
            .zip(&self.queues)
            .map(|(p, q)| (p.name.as_str(), q.len(), q.bytes(), q.sum()))
    }
}
