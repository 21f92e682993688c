//! What holds for every order of events: the sum never above the cap, each request released once, nobody starves, and more
//! room never refuses more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{request, server};
use dualplane_admission::admission::Outcome;
use dualplane_admission::cost::Prefix;
use dualplane_admission::host::Reading;
use dualplane_admission::policy::{Pool, TenantPolicy};
use dualplane_admission::server::{Health, Server};
use dualplane_admission::throttle::Signals;
use dualplane_admission::{Admission, Code, Decision, Event, Policy, Ticket};
use proptest::prelude::*;

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Offer {
        tenant: u8,
        prompt: u64,
        spread: u64,
        most: Option<u64>,
        n: u64,
        prefix: Option<(u64, u64)>,
        pool: usize,
    },
    Progress(usize, u64),
    Release(usize, Option<u64>),
    Cancel(usize),
    MoveOn(usize),
    Later(u64),
    Hear(f64, u8),
    Host(u64),
    Kv(u64),
    Up(usize, bool),
    Retire(usize),
    BringBack(usize),
    Join(u64),
    Again(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let offer = (
        0_u8..5,
        1_u64..3000,
        0_u64..500,
        proptest::option::of(1_u64..2000),
        1_u64..3,
        proptest::option::of((0_u64..3, 0_u64..900)),
        0_usize..2,
    )
        .prop_map(|(tenant, prompt, spread, most, n, prefix, pool)| Step::Offer {
            tenant,
            prompt,
            spread,
            most,
            n,
            prefix,
            pool,
        });
    let step = prop_oneof![
        6 => offer,
        3 => (0_usize..50, 0_u64..3000).prop_map(|(i, n)| Step::Progress(i, n)),
        4 => (0_usize..50, proptest::option::of(0_u64..2000)).prop_map(|(i, n)| Step::Release(i, n)),
        1 => (0_usize..50).prop_map(Step::Cancel),
        1 => (0_usize..50).prop_map(Step::MoveOn),
        3 => (0_u64..4000).prop_map(Step::Later),
        1 => (0.0..1.1_f64, 0_u8..4).prop_map(|(u, p)| Step::Hear(u, p)),
        1 => (0_u64..2000 << 10).prop_map(Step::Host),
        1 => (0_usize..4).prop_map(Step::Retire),
        1 => (0_usize..4).prop_map(Step::BringBack),
        1 => (500_u64..9000).prop_map(Step::Join),
        1 => (500_u64..9000).prop_map(Step::Kv),
        1 => (0_usize..2, any::<bool>()).prop_map(|(i, up)| Step::Up(i, up)),
        1 => (0_usize..50).prop_map(Step::Again),
    ];
    proptest::collection::vec(step, 1..200)
}

/// What the tests know of it by their own account.
struct World {
    admission: Admission,
    now: u64,
    running: BTreeSet<Ticket>,
    waiting: BTreeSet<Ticket>,
    preemptions: f64,
}

impl World {
    fn new(policy: Policy, servers: Vec<Server>) -> Self {
        let admission = Admission::new(policy, servers);
        Self { admission, now: 0, running: BTreeSet::new(), waiting: BTreeSet::new(), preemptions: 0.0 }
    }

    fn held(&self) -> Vec<u64> {
        self.admission.servers().iter().map(Server::kv_held).collect()
    }

    fn poll(&mut self) {
        for event in self.admission.poll(self.now) {
            match event {
                Event::Granted(g) => {
                    assert!(self.waiting.remove(&g.ticket), "granted and did not wait");
                    assert!(self.running.insert(g.ticket));
                }
                Event::Refused(t, _) => assert!(self.waiting.remove(&t), "refused and did not wait"),
            }
        }
    }

    fn nth(set: &BTreeSet<Ticket>, i: usize) -> Option<Ticket> {
        set.iter().nth(i % set.len().max(1)).copied()
    }

    /// The step, and whether it may only have added what fits.
    fn step(&mut self, step: Step) {
        match step {
            Step::Offer { tenant, prompt, spread, most, n, prefix, pool } => {
                let mut r = request(&tenant.to_string(), prompt, most);
                r.shape.prompt.high += spread;
                r.shape.sequences = n;
                r.shape.prefix = prefix.map(|(hash, tokens)| Prefix { hash, tokens });
                r.pool = pool;
                r.priority = tenant % 2;
                match self.admission.offer(self.now, r) {
                    Decision::Admit(g) => assert!(self.running.insert(g.ticket)),
                    Decision::Queue(p) => assert!(self.waiting.insert(p.ticket)),
                    Decision::Refuse(r) => assert!(!r.to_string().is_empty()),
                }
            }
            Step::Progress(i, n) => {
                if let Some(t) = Self::nth(&self.running, i) {
                    self.admission.progress(t, n);
                }
            }
            Step::Release(i, n) => {
                if let Some(t) = Self::nth(&self.running, i) {
                    assert!(self.admission.release(self.now, t, Outcome::Done(n)));
                    assert!(!self.admission.release(self.now, t, Outcome::Done(n)), "released twice");
                    self.running.remove(&t);
                }
            }
            Step::Cancel(i) => {
                if let Some(t) = Self::nth(&self.waiting, i) {
                    assert!(self.admission.cancel(t) && !self.admission.cancel(t));
                    self.waiting.remove(&t);
                }
            }
            Step::MoveOn(i) => {
                if let Some(t) = Self::nth(&self.running, i)
                    && self.admission.move_on(self.now, t).is_none()
                {
                    self.running.remove(&t);
                }
            }
            Step::Later(ms) => self.now += ms,
            Step::Hear(kv_use, more) => {
                self.preemptions += f64::from(more / 3);
                let said = Signals {
                    kv_use: Some(kv_use),
                    preemptions: Some(self.preemptions),
                    waiting: Some(1.0),
                    ..Signals::default()
                };
                self.admission.hear(self.now, 0, said);
            }
            Step::Host(held) => {
                let reading =
                    Reading { at: self.now, limit: Some(2 << 20), held, stalled: None, kills: None };
                self.admission.read_host(0, reading);
            }
            Step::Kv(kv) => self.admission.server_mut(0).unwrap().limits.kv = Some(kv),
            Step::Up(i, up) => self.admission.set_up(self.now, i, up),
            Step::Retire(i) => self.admission.retire(self.now, i),
            Step::BringBack(i) => self.admission.bring_back(i),
            Step::Join(kv) => {
                let there = self.admission.servers().len();
                // As many as stay are there at once; the rest are places that are used again.
                if there < 6 || self.admission.servers().iter().any(|s| s.is_retired() && s.running() == 0) {
                    self.admission.add_server(self.now, server(kv));
                }
            }
            Step::Again(i) => {
                if let Some(t) = Self::nth(&self.running, i) {
                    assert!(!self.admission.cancel(t));
                }
            }
        }
    }
}

fn policy(worst_case: bool) -> Policy {
    let pool = |name: &str, share| Pool { name: name.into(), share, servers: Vec::new() };
    Policy {
        worst_case,
        max_waiting: 20,
        max_bytes: 60_000,
        pools: vec![pool("short", 1.0), pool("long", 0.5)],
        ..Policy::default()
    }
}

proptest! {
    #[test]
    fn the_sum_is_never_above_the_cap_and_each_is_released_once(all in steps(), worst in any::<bool>()) {
        let mut w = World::new(policy(worst), vec![server(6000), server(4000)]);
        for step in all {
            let before = w.held();
            let grows = matches!(step, Step::Progress(..));
            w.step(step);
            w.poll();
            for (i, s) in w.admission.servers().iter().enumerate() {
                // Only outputs that are longer than expected, or a pool that became smaller, may stand above it; then
                // nothing is added.
                let (cap, held) = (s.cap().unwrap_or(0), before.get(i).copied().unwrap_or(0));
                prop_assert!(s.kv_held() <= cap.max(held) || grows, "{} of {}", s.kv_held(), cap);
            }
            prop_assert_eq!(w.admission.running(), w.running.len());
            prop_assert_eq!(w.admission.waiting(), w.waiting.len());
            prop_assert!(w.admission.waiting() <= 20 && w.admission.waiting_bytes() <= 60_000);
        }
        for t in std::mem::take(&mut w.running) {
            prop_assert!(w.admission.release(w.now, t, Outcome::Broken));
        }
        for t in std::mem::take(&mut w.waiting) {
            prop_assert!(w.admission.cancel(t));
        }
        prop_assert!(w.held().iter().all(|kv| *kv == 0));
        prop_assert!(w.admission.servers().iter().all(|s| s.running() == 0));
        prop_assert!(w.admission.tenants().all(|(_, u, n)| u.running == 0 && u.kv == 0 && n == 0));
    }

    /// With the whole bound of each counted, no growth stands above the cap either.
    #[test]
    fn with_the_worst_case_counted_no_output_overflows(all in proptest::collection::vec((1_u64..900, 1_u64..900, 0_u64..900), 1..60)) {
        let mut w = World::new(policy(true), vec![server(6000)]);
        let mut most = BTreeMap::new();
        for (prompt, bound, produced) in all {
            if let Decision::Admit(g) = w.admission.offer(w.now, request("a", prompt, Some(bound))) {
                most.insert(g.ticket, bound);
                w.running.insert(g.ticket);
            }
            for (t, bound) in &most {
                w.admission.progress(*t, produced.min(*bound));
            }
            w.now += 10;
            prop_assert!(w.held()[0] <= 6000);
        }
    }

    #[test]
    fn more_room_never_refuses_more(all in steps(), more in 0_u64..9000, offer in (1_u64..9000, proptest::option::of(1_u64..9000))) {
        let mut w = World::new(policy(false), vec![server(6000), server(4000)]);
        for step in all {
            w.step(step);
            w.poll();
        }
        let mut larger = w.admission.clone();
        for i in 0..2 {
            let s = larger.server_mut(i).unwrap();
            s.limits.kv = s.limits.kv.map(|kv| kv + more);
        }
        let rank = |d: &Decision| match d {
            Decision::Admit(_) => 2,
            Decision::Queue(_) => 1,
            Decision::Refuse(_) => 0,
        };
        let r = request("new", offer.0, offer.1);
        let (small, large) = (w.admission.offer(w.now, r.clone()), larger.offer(w.now, r));
        prop_assert!(rank(&large) >= rank(&small), "{:?} became {:?}", small, large);
    }
}

/// Runs tenants that always have more to send than there is room, and answers what was sent of each, in tokens.
fn compete(weights: &[f64], prompts: &[u64], ends: &mut dyn FnMut() -> u64, for_ms: u64) -> Vec<u64> {
    let names: Vec<String> = (0..weights.len()).map(|i| i.to_string()).collect();
    let tenants = names
        .iter()
        .zip(weights)
        .map(|(n, w)| (n.clone(), TenantPolicy { weight: *w, ..TenantPolicy::default() }));
    let policy =
        Policy { max_waiting: 400, tenants: tenants.collect(), max_wait: 1 << 40, ..Policy::default() };
    let mut a = Admission::new(policy, vec![server(8000)]);
    let mut sent = vec![0_u64; weights.len()];
    let mut owner: BTreeMap<Ticket, usize> = BTreeMap::new();
    let mut running: BTreeMap<Ticket, u64> = BTreeMap::new();
    let mut waits = vec![0_usize; weights.len()];
    for now in (0..for_ms).step_by(10) {
        for (i, name) in names.iter().enumerate() {
            while waits[i] < 5 {
                match a.offer(now, request(name, prompts[i], Some(16))) {
                    Decision::Admit(g) => {
                        owner.insert(g.ticket, i);
                        running.insert(g.ticket, now + ends());
                        sent[i] += prompts[i] + 16;
                    }
                    Decision::Queue(p) => {
                        owner.insert(p.ticket, i);
                        waits[i] += 1;
                    }
                    Decision::Refuse(r) => panic!("{r}"),
                }
            }
        }
        let over: Vec<Ticket> = running.iter().filter(|(_, at)| **at <= now).map(|(t, _)| *t).collect();
        for t in over {
            running.remove(&t);
            assert!(a.release(now, t, Outcome::Done(Some(16))));
        }
        for event in a.poll(now) {
            let Event::Granted(g) = event else { panic!("{event:?}") };
            let i = owner[&g.ticket];
            waits[i] -= 1;
            sent[i] += prompts[i] + 16;
            running.insert(g.ticket, now + ends());
        }
    }
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn each_tenant_gets_four_fifths_of_its_fair_share(
        tenants in proptest::collection::vec((1_u8..5, 100_u64..4000), 2..6),
        seed in any::<u64>(),
    ) {
        let weights: Vec<f64> = tenants.iter().map(|(w, _)| f64::from(*w)).collect();
        let prompts: Vec<u64> = tenants.iter().map(|(_, p)| *p).collect();
        let mut state = seed | 1;
        let mut ends = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            50 + (state >> 33) % 400
        };
        let sent = compete(&weights, &prompts, &mut ends, 20_000);
        let all: u64 = sent.iter().sum();
        let sum: f64 = weights.iter().sum();
        for (i, s) in sent.iter().enumerate() {
            let fair = all as f64 * weights[i] / sum;
            prop_assert!(*s as f64 >= 0.8 * fair, "{}: {} of {} fair; {:?} {:?} {:?}", i, s, fair, sent, weights, prompts);
        }
    }
}

#[test]
fn a_flood_takes_nothing_from_others_and_makes_room_in_a_full_queue() {
    let policy = Policy { max_waiting: 10, ..Policy::default() };
    let mut a = Admission::new(policy, vec![server(1000)]);
    let Decision::Admit(first) = a.offer(0, request("flood", 900, Some(10))) else { panic!() };
    for _ in 0..50 {
        a.offer(0, request("flood", 900, Some(10)));
    }
    assert_eq!(a.waiting(), 10);
    let Decision::Queue(own) = a.offer(1, request("quiet", 900, Some(10))) else { panic!() };
    let pushed = a.poll(1);
    assert!(matches!(pushed[..], [Event::Refused(_, r)] if r.code.word() == "pushed_out"), "{pushed:?}");
    a.release(100, first.ticket, Outcome::Done(Some(10)));
    let Event::Granted(g) = a.poll(100)[0] else { panic!() };
    assert_eq!(g.ticket, own.ticket, "the flood had its turn");
}

#[test]
fn what_never_fits_is_refused_with_what_would() {
    let mut a = Admission::new(Policy::default(), vec![server(4096)]);
    let Decision::Refuse(r) = a.offer(0, request("a", 4000, Some(500))) else { panic!() };
    assert_eq!((r.code.status(), r.retry_after), (413, None));
    let fits = r.numbers.would_fit;
    assert!(fits > 0 && matches!(a.offer(0, request("a", 4000, Some(fits))), Decision::Admit(_)), "{r}");
    let Decision::Refuse(r) = a.offer(0, request("a", 5000, Some(1))) else { panic!() };
    assert!(r.to_string().contains("at least 5000 tokens") && r.numbers.would_fit == 0, "{r}");
    // A bound that nobody set is no reason to refuse.
    let mut b = Admission::new(Policy::default(), vec![server(4096)]);
    assert!(matches!(b.offer(0, request("a", 4000, None)), Decision::Admit(_)));
}

#[test]
fn retry_after_follows_the_pace_at_which_room_comes() {
    let mut a = Admission::new(Policy { max_wait: 20_000, ..Policy::default() }, vec![server(1040)]);
    let Decision::Admit(mut runs) = a.offer(0, request("a", 1000, Some(16))) else { panic!() };
    let mut refused = None;
    for i in 0..40 {
        let now = i * 2000;
        while let Decision::Queue(_) = a.offer(now, request("a", 1000, Some(16))) {
            if a.waiting() > 30 {
                break;
            }
        }
        if let Decision::Refuse(r) = a.offer(now, request("a", 1000, Some(16))) {
            refused = Some(r);
        }
        a.release(now + 1999, runs.ticket, Outcome::Done(Some(16)));
        for event in a.poll(now + 1999) {
            if let Event::Granted(g) = event {
                runs = g;
            }
        }
    }
    let r = refused.unwrap();
    assert_eq!(r.code.word(), "wait_too_long");
    assert!((20..=24).contains(&r.retry_after.unwrap()), "{r:?}: ten wait, each takes 2 s");
}

#[test]
fn a_server_that_died_gets_nothing_and_comes_back_slowly() {
    let mut a = Admission::new(Policy::default(), vec![server(10_000), server(10_000)]);
    a.set_up(0, 0, false);
    for _ in 0..3 {
        let Decision::Admit(g) = a.offer(0, request("a", 1000, Some(16))) else { panic!() };
        assert_eq!(g.server, 1);
        assert_eq!(a.move_on(0, g.ticket), None, "the other is down");
    }
    a.set_up(1000, 0, true);
    assert_eq!(a.servers()[0].cap_now(1000), Some(1000));
    assert_eq!(a.servers()[0].cap_now(6000), Some(5000));
    assert_eq!(a.servers()[0].cap_now(99_000), Some(10_000));
    a.set_up(99_000, 0, false);
    a.set_up(99_000, 1, false);
    let Decision::Refuse(r) = a.offer(99_000, request("a", 10, None)) else { panic!() };
    assert_eq!(r.code.status(), 503);
}

#[test]
fn a_retired_server_counts_nowhere_and_its_place_is_used_again() {
    let mut w = World::new(Policy::default(), vec![server(9000), server(1000)]);
    let Decision::Admit(first) = w.admission.offer(0, request("a", 800, Some(1))) else {
        panic!("not taken")
    };
    w.admission.retire(0, 0);
    // An answer that was on its way when it left brings it back to nobody.
    w.admission.set_up(1, 0, true);
    let Decision::Refuse(r) = w.admission.offer(1, request("a", 5000, Some(1))) else { panic!("no 413") };
    assert_eq!((r.code, r.numbers.limit), (Code::KvNeverFits, 1000), "the largest that is left decides");
    let Decision::Admit(second) = w.admission.offer(2, request("a", 100, Some(1))) else {
        panic!("not taken")
    };
    assert_eq!((first.server, second.server), (0, 1));
    assert_eq!(w.admission.add_server(3_600_000, server(50)), 2, "it still works on a request");
    assert!(w.admission.release(3_600_000, first.ticket, Outcome::Done(Some(1))));
    assert_eq!(w.admission.add_server(3_600_001, server(60)), 0);
    w.admission.retire(3_600_001, 2);
    assert_eq!(
        w.admission.add_server(3_600_002, server(70)),
        3,
        "whoever watched it may still be about to learn that it left"
    );
    w.admission.bring_back(2);
    assert!(matches!(w.admission.servers()[2].health(), Health::Down), "it must answer first");
}

#[test]
fn host_ram_alone_holds_a_request_back() {
    let mut a = Admission::new(Policy::default(), vec![server(100_000)]);
    let reading = |at, held| Reading { at, limit: Some(100 << 20), held, stalled: None, kills: None };
    a.read_host(0, reading(0, 89 << 20));
    let mut large = request("a", 10, Some(1));
    large.shape.pixels = 1 << 20;
    let Decision::Queue(p) = a.offer(0, large.clone()) else { panic!() };
    a.read_host(0, reading(1000, 20 << 20));
    assert!(matches!(a.poll(1000)[..], [Event::Granted(g)] if g.ticket == p.ticket));
    large.shape.pixels = 4 << 20;
    let Decision::Refuse(r) = a.offer(0, large) else { panic!() };
    assert_eq!(r.code.word(), "host_never_fits");
}

#[test]
fn shadow_mode_sends_everything_and_says_what_it_would_have_done() {
    use dualplane_admission::{Code, Would};
    let mut a = Admission::new(Policy { shadow: true, ..Policy::default() }, vec![server(1000)]);
    let mut would = |prompt, most| match a.offer(0, request("a", prompt, Some(most))) {
        Decision::Admit(g) => g.would,
        other => panic!("{other:?}"),
    };
    assert_eq!(would(900, 10), Would::Admit);
    assert_eq!(would(900, 10), Would::Queue);
    assert_eq!(would(9000, 10), Would::Refuse(Code::KvNeverFits));
}
