//! A server that does not page its memory: what was learnt of it and given out is never more than there is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;

use common::request;
use dualplane_admission::admission::Outcome;
use dualplane_admission::server::{Limits, Server};
use dualplane_admission::{Admission, Decision, Event, Policy, Ticket};
use proptest::prelude::*;

#[test]
fn a_server_that_does_not_page_runs_a_new_shape_alone_and_then_what_fits() {
    use dualplane_admission::server::Vram;
    let limits = Limits { unpaged: true, ..Limits::default() };
    let mut a = Admission::new(Policy::default(), vec![Server::new(limits, 0.1, 0)]);
    let vram = |used| Some(Vram { limit: 10_000, used });
    a.read_vram(0, 0, vram(2000));
    let Decision::Admit(first) = a.offer(0, request("a", 100, None)) else { panic!() };
    let Decision::Queue(_) = a.offer(0, request("a", 100, None)) else { panic!("a shape that nobody saw") };
    a.read_vram(1000, 0, vram(5000));
    a.release(2000, first.ticket, Outcome::Done(None));
    a.read_vram(2000, 0, vram(2000));
    assert_eq!(a.poll(2000).len(), 1);
    // 3,300 bytes each: another one fits beside what is used, and not a third.
    a.read_vram(3000, 0, vram(5000));
    assert!(matches!(a.offer(3000, request("a", 100, None)), Decision::Admit(_)));
    a.read_vram(4000, 0, vram(8000));
    assert!(matches!(a.offer(4000, request("a", 100, None)), Decision::Queue(_)));
}

#[derive(Debug, Clone)]
enum Doing {
    /// A request of this shape comes.
    Comes(usize),
    /// One of those that run ends.
    Ends(usize),
    /// VRAM is read.
    Reads,
}

/// Requests with their shapes.
type Requests = Vec<(Ticket, usize)>;

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Doing::Comes),
        3 => (0..64_usize).prop_map(Doing::Ends),
        2 => Just(Doing::Reads),
    ]
}

proptest! {
    /// Whatever comes and ends between two readings, and whether the server keeps what it had or gives it back: requests that run
    /// together never take more VRAM than there is, and a shape that nobody has measured runs alone.
    #[test]
    fn what_runs_together_fits_the_vram_of_a_server_that_does_not_page(
        mut takes in proptest::array::uniform4(100..6_000_u64),
        base in 0..5_000_u64,
        keeps in any::<bool>(),
        // It comes up before the first request, and answers again after this many happenings without having ended.
        flaps in proptest::option::of(0..100_usize),
        all in proptest::collection::vec(doing(), 1..300),
    ) {
        use dualplane_admission::server::Vram;
        const LIMIT: u64 = 10_000;
        // Larger shapes take more.
        takes.sort_unstable();
        let limits = Limits { unpaged: true, ..Limits::default() };
        let mut a = Admission::new(Policy::default(), vec![Server::new(limits, 0.1, 0)]);
        let (mut running, mut waiting) = (Requests::new(), Requests::new());
        // What it held at most, and what was seen of each shape while it ran alone.
        let (mut most, mut measured) = (0, BTreeSet::new());
        let mut now = 0;
        if flaps.is_some() {
            a.set_up(0, 0, false);
            a.set_up(0, 0, true);
        }
        for (n, what) in all.into_iter().enumerate() {
            now += 100;
            if Some(n) == flaps {
                a.set_up(now, 0, false);
                a.set_up(now, 0, true);
            }
            let held = |running: &Requests| running.iter().map(|(_, s)| takes[*s]).sum::<u64>();
            match what {
                Doing::Comes(shape) => match a.offer(now, request("a", 10 << (4 * shape), None)) {
                    Decision::Admit(g) => running.push((g.ticket, shape)),
                    Decision::Queue(p) => waiting.push((p.ticket, shape)),
                    Decision::Refuse(_) => {}
                },
                Doing::Ends(_) if running.is_empty() => {}
                Doing::Ends(i) => {
                    let (ticket, _) = running.swap_remove(i % running.len());
                    a.release(now, ticket, Outcome::Done(None));
                }
                Doing::Reads => {
                    let used = base + if keeps { most } else { held(&running) };
                    a.read_vram(now, 0, Some(Vram { limit: LIMIT, used: used.min(LIMIT) }));
                }
            }
            for event in a.poll(now) {
                let (ticket, runs) = match event {
                    Event::Granted(g) => (g.ticket, true),
                    Event::Refused(ticket, _) => (ticket, false),
                };
                let one = waiting.swap_remove(waiting.iter().position(|(t, _)| *t == ticket).unwrap());
                if runs {
                    running.push(one);
                }
            }
            if let [(_, alone)] = running[..] {
                measured.insert(alone);
            }
            most = most.max(held(&running));
            if running.len() > 1 {
                prop_assert!(base + held(&running) <= LIMIT, "{running:?} of {takes:?} beside {base}");
                let known = |s: &usize| measured.iter().any(|m| m >= s);
                prop_assert!(running.iter().all(|(_, s)| known(s)), "{running:?}, seen {measured:?}");
            }
        }
    }
}
