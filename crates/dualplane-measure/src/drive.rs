//! Sends the requests of a shape: at their times (open), or each when one ends (closed).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dualplane_runs::{Gather, Outcome, State};
use dualplane_shape::{Play, Request, Shape};
use dualplane_wire::Unreached;
use tokio::task::LocalSet;

use crate::client::{Ask, Target};
use crate::planes::Reading;
use crate::prompt::{self, Calibration};

/// Requests under way at most: a machine has some ten thousand ports.
const MOST_OPEN: u64 = 16_000;
/// How often flags are looked at, and progress is told.
const TICK: Duration = Duration::from_millis(100);
/// Before a caller who waits for its answer tries a server again that refused its connection: without it a server that is
/// gone would be asked ten thousand times a second, and the failures would say nothing.
const AFTER_REFUSAL: Duration = Duration::from_millis(250);

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Work {
    /// Requests.
    pub shape: Shape,
    /// Seed of their chance.
    pub seed: u64,
    /// Pattern and time.
    pub play: Play,
    /// Requests at once, where the loop is closed.
    pub closed: Option<u64>,
    /// Requests, at most.
    pub requests: Option<u64>,
    /// Seconds at the beginning that do not count.
    pub warmup: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// Seconds after the end in which open requests may end.
    pub drain: f64,
    /// Prompt and answer together, at most.
    pub longest: Option<u64>,
    /// How words become tokens.
    pub calibration: Calibration,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Seconds since it began.
    pub at: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// Requests under way.
    pub open: u64,
    /// Sent so far.
    pub sent: u64,
    /// Answered in full so far.
    pub done: u64,
    /// Failed so far.
    pub failed: u64,
    /// Time to the first token that 99 of 100 met.
    pub ttft_p99: Option<f64>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// On the run's clock.
    pub at: f64,
    /// Before its time.
    pub early: bool,
    /// Requests that were cut to the longest that the server takes.
    pub cut: u64,
    /// How late requests were sent, 99 of 100, in seconds: the driver's own error.
    pub late_p99: f64,
    /// Requests that could not be sent since too many were open.
    pub held_back: u64,
}

struct Inner {
    target: Target,
    gather: RefCell<Gather>,
    clock: Instant,
    open: Cell<u64>,
    sent: Cell<u64>,
    late: RefCell<dualplane_runs::Histo>,
    freed: tokio::sync::Notify,
}

/// Drives the server until its time is up, `stop` is set, or `dead` says so. Returns the gatherer, and how it ended.
///
/// # Errors
/// The shape contradicts itself.
pub fn drive(
    target: Target,
    work: &Work,
    gather: Gather,
    clock: Instant,
    readings: &mut std::sync::mpsc::Receiver<Reading>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<(Gather, Target, Ended), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let began = clock.elapsed().as_secs_f64();
    let inner = Rc::new(Inner {
        target,
        gather: RefCell::new(gather),
        clock,
        open: Cell::new(0),
        sent: Cell::new(0),
        late: RefCell::default(),
        freed: tokio::sync::Notify::new(),
    });
    let local = LocalSet::new();
    let ended = local.block_on(&runtime, run(&inner, work, began, readings, stop, tell))?;
    // Tasks that are still under way hold the rest: they go with the set.
    drop(local);
    let inner = Rc::try_unwrap(inner).map_err(|_| "requests are still under way".to_owned())?;
    Ok((inner.gather.into_inner(), inner.target, ended))
}

async fn run(
    inner: &Rc<Inner>,
    work: &Work,
    began: f64,
    readings: &mut std::sync::mpsc::Receiver<Reading>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<Ended, String> {
    let play = Play { seconds: Some(work.seconds), ..work.play };
    let mut draw = work.shape.draw(work.seed, play)?;
    let open = draw.open() && work.closed.is_none();
    let end = began + work.seconds;
    let cut = Rc::new(Cell::new(0_u64));
    let mut held_back = 0;
    let mut left = work.requests.unwrap_or(u64::MAX);
    let mut next: Option<Request> = None;
    let mut dead = false;
    let mut told = Instant::now();
    loop {
        let now = inner.now();
        if now >= began + work.warmup {
            inner.gather.borrow_mut().counts_from(began + work.warmup);
        }
        dead |= inner.readings(readings);
        let none_left = next.is_none() && left == 0;
        if stop.load(Ordering::Relaxed) || dead || now >= end || (none_left && inner.open.get() == 0) {
            break;
        }
        if told.elapsed() >= TICK {
            told = Instant::now();
            tell(inner.progress(now - began, work.seconds));
        }
        if !open && left > 0 {
            if inner.open.get() >= closed_at(work, now - began) {
                let _ = tokio::time::timeout(TICK, inner.freed.notified()).await;
                continue;
            }
            draw.now(now - began);
        }
        if left > 0 && next.is_none() {
            next = draw.next();
            left = if next.is_some() { left - 1 } else { 0 };
        }
        let soon = tokio::time::Instant::now() + TICK;
        let Some(request) = next else {
            tokio::time::sleep(TICK).await;
            continue;
        };
        let due = if open {
            let at = began + request.at;
            if at > now {
                // Never longer than until the next look at flags.
                let until = tokio::time::Instant::from_std(inner.clock) + Duration::from_secs_f64(at);
                tokio::time::sleep_until(until.min(soon)).await;
                if until > soon {
                    continue;
                }
            }
            if inner.open.get() >= MOST_OPEN {
                held_back += 1;
                inner.held_back(at);
                next = None;
                continue;
            }
            at
        } else {
            now
        };
        next = None;
        start(inner, work, request, due, &cut, open);
    }
    let mut early = dead || stop.load(Ordering::Relaxed);
    let at = inner.now().min(end);
    inner.gather.borrow_mut().ends(at);
    // What is under way may end: its requests are of the measured time.
    let last = inner.now() + if early { 0.0 } else { work.drain };
    while inner.open.get() > 0 && inner.now() < last && !stop.load(Ordering::Relaxed) {
        early |= inner.readings(readings);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    inner.readings(readings);
    let late_p99 = inner.late.borrow().at(0.99).unwrap_or(0.0);
    Ok(Ended { at: at.max(began), early, cut: cut.get(), late_p99, held_back })
}

/// Requests at once at this time of a closed loop.
fn closed_at(work: &Work, at: f64) -> u64 {
    let all = work.closed.or(work.shape.concurrency).unwrap_or(1).max(1);
    ((all as f64 * work.play.factor(at)).round() as u64).clamp(1, MOST_OPEN)
}

fn start(inner: &Rc<Inner>, work: &Work, mut request: Request, due: f64, cut: &Rc<Cell<u64>>, open: bool) {
    if let Some(longest) = work.longest
        && request.input + request.output > longest
    {
        cut.set(cut.get() + 1);
        request.output = request.output.min((longest / 2).max(1));
        request.input = request.input.min(longest.saturating_sub(request.output).max(1));
        request.prefix_tokens = request.prefix_tokens.min(request.input);
    }
    let ask = Ask {
        prompt: prompt::of(&request, work.seed, work.calibration),
        input: request.input,
        output: request.output,
        cancel_after: request.cancel_after.map(|n| n.min(request.output.saturating_sub(1))),
    };
    inner.open.set(inner.open.get() + 1);
    inner.sent.set(inner.sent.get() + 1);
    // Also one that has no end within the run was sent.
    inner.gather.borrow_mut().sent(inner.now());
    let own = Rc::clone(inner);
    tokio::task::spawn_local(async move {
        let (outcome, _) = own.target.send(&ask, due, own.clock).await;
        own.took(&outcome, open);
        if !open && outcome.state == State::Failed(Unreached::Refused.word()) {
            tokio::time::sleep(AFTER_REFUSAL).await;
        }
        own.free();
    });
}

impl Inner {
    fn now(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    fn took(&self, outcome: &Outcome, open: bool) {
        if open {
            self.late.borrow_mut().add((outcome.sent - outcome.due).max(0.0));
        }
        self.gather.borrow_mut().outcome(outcome);
    }

    fn free(&self) {
        self.open.set(self.open.get().saturating_sub(1));
        self.freed.notify_one();
    }

    fn held_back(&self, at: f64) {
        let state = State::Failed("not sent: too many under way");
        let outcome = Outcome { due: at, sent: at, first: None, end: at, input: 0, output: 0, state };
        let mut gather = self.gather.borrow_mut();
        gather.sent(at);
        gather.outcome(&outcome);
    }

    /// Takes what was read of both planes; whether the server is dead.
    fn readings(&self, readings: &mut std::sync::mpsc::Receiver<Reading>) -> bool {
        let mut dead = false;
        while let Ok(reading) = readings.try_recv() {
            match reading {
                Reading::Sample(mut sample) => {
                    sample.sent = Some(self.sent.get() as f64);
                    self.gather.borrow_mut().sample(*sample);
                }
                Reading::Faults(f) => self.gather.borrow_mut().faults(&f),
                Reading::Processes(all) => self.gather.borrow_mut().processes(&all),
                Reading::Dead => dead = true,
            }
        }
        dead
    }

    fn progress(&self, at: f64, seconds: f64) -> Progress {
        let gather = self.gather.borrow();
        let (done, failed) = gather.so_far();
        let (open, sent) = (self.open.get(), self.sent.get());
        Progress { at, seconds, open, sent, done, failed, ttft_p99: gather.ttft_p99() }
    }
}
