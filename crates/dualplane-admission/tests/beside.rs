//! Who goes before a request that waits for room.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;

use common::{request, server};
use dualplane_admission::admission::Outcome;
use dualplane_admission::{Admission, Decision, Event, Policy, Ticket};
use proptest::prelude::*;

proptest! {
    /// A request that waits for room is passed by smaller ones, and none of them holds it up: once those have ended that ran when it came
    /// to be first, it goes, whoever passed it meanwhile.
    #[test]
    fn whoever_passes_a_request_that_waits_does_not_hold_it_up(
        all in proptest::collection::vec((any::<bool>(), 10..9_000_u64, 0..64_usize), 1..120),
    ) {
        let mut a = Admission::new(Policy::default(), vec![server(9_216)]);
        let (mut running, mut waiting): (Vec<Ticket>, Vec<Ticket>) = (Vec::new(), Vec::new());
        let mut first: Option<(Ticket, BTreeSet<Ticket>)> = None;
        for (n, (comes, prompt, i)) in all.into_iter().enumerate() {
            let now = n as u64 * 50;
            if comes || running.is_empty() {
                match a.offer(now, request("a", prompt, Some(1))) {
                    Decision::Admit(g) => running.push(g.ticket),
                    Decision::Queue(p) => waiting.push(p.ticket),
                    Decision::Refuse(_) => {}
                }
            } else {
                let ended = running.swap_remove(i % running.len());
                a.release(now, ended, Outcome::Done(Some(1)));
            }
            for event in a.poll(now) {
                match event {
                    Event::Granted(g) => {
                        waiting.retain(|t| *t != g.ticket);
                        running.push(g.ticket);
                    }
                    Event::Refused(ticket, _) => waiting.retain(|t| *t != ticket),
                }
            }
            let head = waiting.first().copied();
            if first.as_ref().map(|(t, _)| *t) != head {
                first = head.map(|t| (t, running.iter().copied().collect()));
            }
            if let Some((head, before)) = &first {
                prop_assert!(
                    running.iter().any(|t| before.contains(t)),
                    "{head:?} waits, though of {before:?} none runs: {running:?}"
                );
            }
        }
    }
}

/// A server of 9,216 tokens holds 7,800 of one request, and the next needs most of it: short ones use what neither can.
#[test]
fn short_requests_use_the_room_that_a_long_one_leaves() {
    let mut a = Admission::new(Policy::default(), vec![server(9_216)]);
    let mut ask = |prompt| a.offer(0, request("a", prompt, Some(1)));
    assert!(matches!(ask(7_000), Decision::Admit(_)));
    assert!(matches!(ask(6_000), Decision::Queue(_)));
    let Decision::Queue(short) = ask(500) else { panic!() };
    let Decision::Queue(long) = ask(1_500) else { panic!() };
    let Decision::Queue(too_long) = ask(1_600) else { panic!() };
    let granted: Vec<Ticket> = a
        .poll(0)
        .iter()
        .filter_map(|e| match e {
            Event::Granted(g) => Some(g.ticket),
            _ => None,
        })
        .collect();
    assert!(granted.contains(&short.ticket) && !granted.contains(&too_long.ticket), "{granted:?} {long:?}");
}
