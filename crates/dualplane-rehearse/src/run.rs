//! A rehearsal: requests come, steps are scheduled and take their time, clients hang up.

use std::cmp::Ordering;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::clock::StepTime;
use crate::outcome::{Outcome, Tally};
use crate::request::Request;
use crate::scheduling::Scheduling;
use crate::settings::Settings;
use crate::slots::Slots;
use crate::vllm::{Brought, Scheduler, Step};

/// So often a request may start again from nothing, and nobody be finished, before it is said that this goes on for ever.
const HOPELESS: u32 = 16;

/// A point in time that can be sorted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Who comes and who hangs up, by time.
struct Events<'a> {
    requests: &'a [Request],
    next: usize,
    cancels: BinaryHeap<Reverse<(At, u32)>>,
}

impl Events<'_> {
    /// When something happens next that no step brings.
    fn next_at(&self) -> Option<f64> {
        let comes = self.requests.get(self.next).map(|r| r.at);
        let goes = self.cancels.peek().map(|c| c.0.0.0);
        match (comes, goes) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn arrive(&mut self, until: f64, scheduler: &mut impl Scheduling, tally: &mut Tally) {
        while let Some(r) = self.requests.get(self.next).filter(|r| r.at <= until) {
            let number = self.next as u32;
            if scheduler.arrive(number) {
                if let Some(after) = r.cancel.filter(|c| c.is_finite()) {
                    self.cancels.push(Reverse((At(r.at + after.max(0.0)), number)));
                }
            } else {
                tally.rejected += 1;
            }
            self.next += 1;
        }
    }

    fn hang_up(&mut self, until: f64, scheduler: &mut impl Scheduling, tally: &mut Tally) {
        while let Some(Reverse((_, number))) = self.cancels.peek().copied().filter(|c| c.0.0.0 <= until) {
            self.cancels.pop();
            if scheduler.cancel(number) {
                tally.cancelled += 1;
            }
        }
    }
}

/// Replays requests, which stand in the order in which they come. `watch` is told of every step when it is scheduled.
#[must_use]
pub fn rehearse(
    settings: &Settings,
    requests: &[Request],
    time: &StepTime,
    watch: impl FnMut(f64, &Step, &dyn Scheduling),
) -> Outcome {
    rehearse_by(settings, requests, |_, step| time.of(step), watch)
}

/// The same with any time of a step: `seconds` is given when it begins, and the step.
#[must_use]
pub fn rehearse_by(
    settings: &Settings,
    requests: &[Request],
    seconds: impl FnMut(f64, &Step) -> f64,
    watch: impl FnMut(f64, &Step, &dyn Scheduling),
) -> Outcome {
    match settings.cells {
        None => play(Scheduler::new(settings.clone(), requests), settings, requests, seconds, watch),
        Some(cells) => play(Slots::new(settings, cells, requests), settings, requests, seconds, watch),
    }
}

fn play(
    mut scheduler: impl Scheduling,
    settings: &Settings,
    requests: &[Request],
    mut seconds: impl FnMut(f64, &Step) -> f64,
    mut watch: impl FnMut(f64, &Step, &dyn Scheduling),
) -> Outcome {
    let depth = settings.in_flight() as usize;
    let mut events = Events { requests, next: 0, cancels: BinaryHeap::new() };
    let mut tally = Tally::new(requests.len());
    let mut flying: VecDeque<(Step, f64)> = VecDeque::new();
    let mut spare: Vec<Step> = Vec::new();
    let (mut now, mut busy_until) = (requests.first().map_or(0.0, |r| r.at), 0.0_f64);
    tally.begins(now);
    loop {
        if scheduler.hopeless() > HOPELESS && events.next_at().is_none() {
            break;
        }
        events.arrive(now, &mut scheduler, &mut tally);
        events.hang_up(now, &mut scheduler, &mut tally);
        if scheduler.has_requests() {
            let mut step = spare.pop().unwrap_or_default();
            scheduler.schedule(&mut step);
            tally.come(events.next, requests.len(), scheduler.waiting());
            tally.scheduled(now, &step, &scheduler);
            watch(now, &step, &scheduler);
            if step.is_empty() {
                // Who gave way to nobody but itself leaves a step empty in which those that wait were not asked, itself among
                // them: they are in the next.
                let goes_on = scheduler.running() > 0 || scheduler.hopeless() <= HOPELESS;
                let again = step.preempted > 0 && goes_on && flying.is_empty();
                spare.push(step);
                if again {
                    continue;
                }
            } else {
                let begins = busy_until.max(now);
                busy_until = begins + seconds(begins, &step).max(0.0);
                flying.push_back((step, busy_until));
                if flying.len() < depth {
                    continue;
                }
            }
        }
        if let Some((step, end)) = flying.pop_front() {
            now = now.max(end);
            events.hang_up(now, &mut scheduler, &mut tally);
            scheduler.update(&step, &mut |brought| match brought {
                Brought::First(n) => tally.first_token(n, now, requests),
                Brought::Last(n) => tally.finished(n, now, requests),
                Brought::Enough(n) => events.cancels.push(Reverse((At(now), n))),
                Brought::Cut(n, tokens) => tally.cut(n, now, requests, tokens),
                Brought::BrokenOff(_) => tally.broken_off += 1,
            });
            tally.updated(now, &step, &scheduler);
            spare.push(step);
            continue;
        }
        // Nothing runs: the next thing that happens is somebody who comes or goes.
        match events.next_at() {
            Some(at) => now = now.max(at),
            None => break,
        }
    }
    tally.outcome(now, settings, &scheduler, requests.len())
}
