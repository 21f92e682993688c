//! Fairness for every order of arrivals: while a tenant waits, no other is served more than its weight allows, but for the size of
//! single requests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use dualplane_admission::admission::Outcome;
use dualplane_admission::cost::{Range, Shape};
use dualplane_admission::policy::{Pool, TenantPolicy};
use dualplane_admission::server::{Limits, Server};
use dualplane_admission::unpaged::Bucket;
use dualplane_admission::{Admission, Decision, Event, Policy, Request, Ticket};
use proptest::prelude::*;

/// Tokens of the server.
const ROOM: u64 = 8_000;
/// The largest request.
const LARGEST: u64 = 4_000;

/// Requests of one tenant that come together.
#[derive(Debug, Clone)]
struct Burst {
    after: u64,
    tenant: usize,
    count: usize,
    prompt: u64,
    priority: u8,
}

fn bursts(tenants: usize) -> impl Strategy<Value = Vec<Burst>> {
    let size = prop_oneof![10_u64..200, 200_u64..LARGEST - 32];
    let burst = (0_u64..400, 0..tenants, 1_usize..12, size, 0_u8..3);
    let burst = burst.prop_map(|(after, tenant, count, prompt, priority)| Burst {
        after,
        tenant,
        count,
        prompt,
        priority,
    });
    proptest::collection::vec(burst, 10..120)
}

fn request(tenant: usize, prompt: u64, priority: u8, pool: usize) -> Request {
    let shape = Shape {
        prompt: Range::exact(prompt),
        max_output: Some(16),
        generates: true,
        sequences: 1,
        body_bytes: prompt * 4,
        ..Shape::default()
    };
    Request {
        tenant: tenant.to_string().into(),
        path: "chat",
        shape,
        bucket: Bucket::of(prompt, 0, 1, 0, prompt * 4),
        pool,
        priority,
        max_wait: None,
        bytes: prompt,
    }
}

/// What was sent of each tenant since each began to wait.
struct Account {
    /// Whether tenants compete with each other, and not only their pools.
    checks: bool,
    weights: Vec<f64>,
    waits: Vec<usize>,
    /// By who waits, then by who was served.
    since: Vec<Vec<u64>>,
}

impl Account {
    fn new(weights: Vec<f64>, checks: bool) -> Self {
        let n = weights.len();
        Self { checks, weights, waits: vec![0; n], since: vec![vec![0; n]; n] }
    }

    fn queued(&mut self, tenant: usize) {
        if self.waits[tenant] == 0 {
            self.since[tenant].fill(0);
        }
        self.waits[tenant] += 1;
    }

    /// Checks at each step what holds for the whole: it is served, and it waited.
    fn served(&mut self, tenant: usize, kv: u64, waited: bool) {
        for i in 0..self.waits.len() {
            if self.waits[i] > 0 {
                self.since[i][tenant] += kv;
            }
        }
        for i in (0..self.waits.len()).filter(|i| self.checks && self.waits[*i] > 0) {
            let per_weight = |j: usize| self.since[i][j] as f64 / self.weights[j];
            for j in (0..self.waits.len()).filter(|j| *j != i) {
                // A request that is larger than its turn, and one that passes another that does not fit, on both sides; and
                // what it held already when the first began to wait.
                let slack = 2.0 * LARGEST as f64 * (1.0 / self.weights[i] + 1.0 / self.weights[j])
                    + ROOM as f64 / self.weights[i];
                assert!(
                    per_weight(j) - per_weight(i) <= slack,
                    "{i} waits and got {}, {j} got {} by weight; weights {:?}",
                    per_weight(i),
                    per_weight(j),
                    self.weights
                );
            }
            let all: u64 = self.since[i].iter().sum();
            let fair = all as f64 * self.weights[i] / self.weights.iter().sum::<f64>();
            // As soon as single requests weigh little in it.
            if fair > 60.0 * LARGEST as f64 {
                assert!(self.since[i][i] as f64 >= 0.8 * fair, "{i} got {} of {fair}", self.since[i][i]);
            }
        }
        if waited {
            self.waits[tenant] -= 1;
        }
    }
}

struct Run {
    admission: Admission,
    account: Account,
    sent: Vec<u64>,
    owner: BTreeMap<Ticket, usize>,
    ends: BTreeMap<(u64, Ticket), ()>,
    state: u64,
}

impl Run {
    fn new(weights: &[u8], seed: u64, pools: Vec<Pool>) -> Self {
        let weights: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
        let one_pool = pools.len() == 1;
        let tenants = weights.iter().enumerate();
        let tenants =
            tenants.map(|(i, w)| (i.to_string(), TenantPolicy { weight: *w, ..TenantPolicy::default() }));
        let policy = Policy {
            max_waiting: 1 << 20,
            max_bytes: 1 << 40,
            max_wait: 1 << 40,
            worst_case: true,
            tenants: tenants.collect(),
            pools,
            ..Policy::default()
        };
        let limits = Limits { kv: Some(ROOM), ceiling: 1.0, ..Limits::default() };
        let admission = Admission::new(policy, vec![Server::new(limits, 0.1, 0)]);
        let (owner, ends) = (BTreeMap::new(), BTreeMap::new());
        let sent = vec![0; weights.len()];
        Self { admission, sent, account: Account::new(weights, one_pool), owner, ends, state: seed | 1 }
    }

    fn lasts(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        20 + (self.state >> 33) % 300
    }

    fn offer(&mut self, now: u64, tenant: usize, request: Request) {
        match self.admission.offer(now, request) {
            Decision::Admit(g) => {
                let lasts = self.lasts();
                self.owner.insert(g.ticket, tenant);
                self.ends.insert((now + lasts, g.ticket), ());
                self.sent[tenant] += g.kv;
                self.account.served(tenant, g.kv, false);
            }
            Decision::Queue(p) => {
                self.owner.insert(p.ticket, tenant);
                self.account.queued(tenant);
            }
            Decision::Refuse(r) => panic!("{r}"),
        }
        self.poll(now);
    }

    fn poll(&mut self, now: u64) {
        for event in self.admission.poll(now) {
            let Event::Granted(g) = event else { panic!("{event:?}") };
            let lasts = self.lasts();
            self.ends.insert((now + lasts, g.ticket), ());
            let tenant = self.owner[&g.ticket];
            self.sent[tenant] += g.kv;
            self.account.served(tenant, g.kv, true);
        }
    }

    /// Ends what ends until then.
    fn until(&mut self, then: u64) {
        while let Some(((at, ticket), ())) = self.ends.first_key_value().map(|(k, ())| (*k, ())) {
            if at > then {
                break;
            }
            self.ends.remove(&(at, ticket));
            assert!(self.admission.release(at, ticket, Outcome::Done(Some(16))));
            self.poll(at);
        }
        self.poll(then);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn who_waits_is_served_by_weight_whatever_comes_when(
        (weights, all) in proptest::collection::vec(1_u8..5, 2..6).prop_flat_map(|w| { let n = w.len(); (Just(w), bursts(n)) }),
        seed in any::<u64>(),
    ) {
        let one = vec![Pool { name: "all".into(), share: 1.0, servers: Vec::new() }];
        let mut run = Run::new(&weights, seed, one);
        let mut now = 0;
        for b in all {
            now += b.after;
            run.until(now);
            for _ in 0..b.count {
                run.offer(now, b.tenant, request(b.tenant, b.prompt, b.priority, 0));
            }
        }
        run.until(u64::MAX >> 1);
        prop_assert_eq!(run.admission.waiting() + run.admission.running(), 0);
    }

    /// A pool that always has more to send does not starve another.
    #[test]
    fn pools_take_turns_by_their_shares(
        short in 200_u64..1_000, long in 1_000_u64..LARGEST - 32, shares in (0.3..1.0_f64, 0.6..1.0_f64), seed in any::<u64>(),
    ) {
        let pool = |name: &str, share| Pool { name: name.into(), share, servers: Vec::new() };
        let mut run = Run::new(&[1, 1], seed, vec![pool("short", shares.0), pool("long", shares.1)]);
        let sizes = [short, long];
        for now in (0..10_000).step_by(20) {
            run.until(now);
            for (i, size) in sizes.into_iter().enumerate() {
                while run.account.waits[i] < 10 {
                    run.offer(now, i, request(i, size, 0, i));
                }
            }
        }
        let sent = run.sent;
        let all = (sent[0] + sent[1]) as f64;
        for (i, share) in [shares.0, shares.1].into_iter().enumerate() {
            let fair = all * share / (shares.0 + shares.1);
            // What a pool cannot use of its share, because its requests are large, the other may.
            prop_assert!(sent[i] as f64 >= 0.5 * fair, "{}: {:?} by {:?} of {:?}", i, sent, shares, sizes);
        }
    }
}
