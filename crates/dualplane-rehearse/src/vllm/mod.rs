//! vLLM's scheduler (V1), step by step: who gets how many tokens of a step, which blocks they take, and who is preempted.
//!
//! Read from `vllm/v1/core/sched/scheduler.py`, `kv_cache_manager.py` and `block_pool.py` of 0.32.0, and held to them by
//! `testdata/rehearse`. A step is [`Scheduler::schedule`], then [`Scheduler::update`] with what it gave, one step later where
//! scheduling is asynchronous.

mod blocks;
mod queue;
mod schedule;
pub(crate) mod sleep;
mod update;

use queue::Queue;
use sleep::Sleepers;

use crate::pool::Pool;
use crate::request::Request;
use crate::settings::{Policy, Settings};

const NO_SEAT: u32 = u32::MAX;
/// Of a request that is awake.
const AWAKE: u64 = u64::MAX;

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not come yet.
    Away,
    Waiting,
    Running,
    /// Waits again: its blocks were taken.
    Preempted,
    Finished,
    /// The client hung up.
    Cancelled,
    /// Longer than the engine takes.
    Rejected,
}

/// What the scheduler knows of a request. Names as in `vllm/v1/request.py`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    input: u32,
    output: u32,
    /// Tokens after which the client hangs up.
    enough: u32,
    generated: u32,
    computed: u32,
    /// Tokens of the answer that running steps will bring.
    placeholders: u32,
    /// Tokens of running steps.
    in_flight: u32,
    /// Those of them that a preemption has overtaken.
    stale: u32,
    /// Up to so many tokens nothing happens to its blocks.
    quiet: u32,
    /// Its place among [`Seat`]s.
    seat: u32,
    /// Who was admitted before it has a smaller one.
    admitted: u32,
    /// The first step of its sleep, and the one at which it wakes; [`AWAKE`] where it does not sleep.
    asleep_from: u64,
    wakes: u64,
    phase: Phase,
    /// Its prompt is not computed whole.
    prefills: bool,
    /// How often it was preempted.
    pub(crate) preempted: u32,
}

impl State {
    const fn tokens(&self) -> u32 {
        self.input.saturating_add(self.generated)
    }
}

/// Blocks of one request, by group of layers.
#[derive(Debug, Clone, Default)]
struct Seat {
    tables: Vec<Vec<u32>>,
    /// Blocks at the beginning that have their names.
    named: Vec<u32>,
}

/// What one request does in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// Which request.
    pub request: u32,
    /// Tokens that are computed.
    pub tokens: u32,
    /// Whether a token of the answer comes out.
    pub samples: bool,
}

/// A step.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Who takes part, in the engine's order, without those that are only counted.
    pub scheduled: Vec<Scheduled>,
    /// Requests that take part with one token of their answers, and whose blocks stay as they are.
    pub asleep: u32,
    /// Tokens of all.
    pub tokens: u32,
    /// Of these, tokens of requests that do more than one.
    pub prefill_tokens: u32,
    /// Tokens that the attention looks back on, over all requests.
    pub context: u64,
    /// Requests that lost their blocks.
    pub preempted: u32,
}

impl Step {
    /// Nobody takes part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scheduled.is_empty() && self.asleep == 0
    }

    /// How many take part.
    #[must_use]
    pub fn requests(&self) -> u32 {
        (self.scheduled.len() as u32).saturating_add(self.asleep)
    }
}

/// What a step brought to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brought {
    /// The first token of its answer.
    First(u32),
    /// The last.
    Last(u32),
    /// As many as its client waits for.
    Enough(u32),
    /// The last that the context has room for, after so many tokens of the answer.
    Cut(u32, u32),
    /// An error: the engine has no room for the next token of all its requests.
    BrokenOff(u32),
}

/// The scheduler.
#[derive(Debug, Clone)]
pub struct Scheduler<'a> {
    set: Settings,
    requests: &'a [Request],
    pub(crate) states: Vec<State>,
    seats: Vec<Seat>,
    free_seats: Vec<u32>,
    pool: Pool,
    running: Vec<u32>,
    /// Of those that run, who does not sleep, in the same order.
    awake: Vec<u32>,
    sleepers: Sleepers,
    /// Requests that were admitted.
    admitted: u32,
    waiting: Queue,
    /// Tokens of prompts that stood in the cache, and those that were looked up.
    hits: u64,
    looked_up: u64,
    /// Tokens whose blocks were taken by preemptions.
    lost: u64,
    /// Blocks that got a name that no other block had then: what a copy of the cache elsewhere would have to store.
    stored: u64,
    waiting_tokens: u64,
    /// How often a request that had the whole pool needed more, since one was finished.
    hopeless: u32,
    /// Which one it was last.
    unfit: Option<u32>,
    /// Block lists of a request that is looked up, kept to save their memory.
    found: Vec<Vec<u32>>,
    skipped: Vec<u32>,
    taken: Vec<Scheduled>,
}

impl<'a> Scheduler<'a> {
    /// Nobody has come yet. The requests stand in the order in which they come.
    #[must_use]
    pub fn new(set: Settings, requests: &'a [Request]) -> Self {
        let state = |r: &Request| State {
            input: r.input.max(1),
            output: r.output.max(1),
            enough: r.cancel_tokens.map_or(u32::MAX, |n| n.max(1)),
            generated: 0,
            computed: 0,
            placeholders: 0,
            in_flight: 0,
            stale: 0,
            quiet: 0,
            seat: NO_SEAT,
            admitted: 0,
            asleep_from: AWAKE,
            wakes: AWAKE,
            phase: Phase::Away,
            prefills: true,
            preempted: 0,
        };
        Self {
            states: requests.iter().map(state).collect(),
            requests,
            seats: Vec::new(),
            free_seats: Vec::new(),
            pool: Pool::new(set.blocks.max(1), set.prefix_caching, set.unnamed_first),
            running: Vec::new(),
            awake: Vec::new(),
            sleepers: Sleepers::new(),
            admitted: 0,
            waiting: Queue::new(set.policy == Policy::Priority),
            hits: 0,
            looked_up: 0,
            lost: 0,
            hopeless: 0,
            unfit: None,
            stored: 0,
            waiting_tokens: 0,
            found: vec![Vec::new(); set.groups.len()],
            skipped: Vec::new(),
            taken: Vec::new(),
            set,
        }
    }

    /// A request comes. `false`: the engine does not take it, because it is longer than the context.
    pub fn arrive(&mut self, number: u32) -> bool {
        let longest = self.set.max_model_len;
        let Some(s) = self.states.get_mut(number as usize) else { return false };
        if s.input.saturating_add(s.output) > longest {
            s.phase = Phase::Rejected;
            return false;
        }
        s.phase = Phase::Waiting;
        self.waiting_tokens += u64::from(s.tokens());
        let priority = self.requests.get(number as usize).map_or(0, |r| r.priority);
        self.waiting.add(number, priority);
        true
    }

    /// The client hangs up. `true` where the request was still there.
    pub fn cancel(&mut self, number: u32) -> bool {
        let Some(s) = self.states.get(number as usize).copied() else { return false };
        match s.phase {
            Phase::Running => self.leave(number),
            Phase::Waiting | Phase::Preempted => {
                self.waiting_tokens = self.waiting_tokens.saturating_sub(u64::from(s.tokens()));
                self.waiting.leave();
            }
            _ => return false,
        }
        if let Some(s) = self.states.get_mut(number as usize) {
            s.phase = Phase::Cancelled;
        }
        if self.unfit == Some(number) {
            self.somebody_is_done();
        }
        self.free(number);
        true
    }

    /// It runs no more.
    fn leave(&mut self, number: u32) {
        self.wake(number);
        let Some(admitted) = self.states.get(number as usize).map(|s| s.admitted) else { return };
        let states = &self.states;
        let before = |n: &u32| states.get(*n as usize).is_some_and(|s| s.admitted < admitted);
        for list in [&mut self.running, &mut self.awake] {
            let place = list.partition_point(before);
            if list.get(place) == Some(&number) {
                list.remove(place);
            }
        }
    }

    /// Blocks that requests hold.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.pool.used()
    }

    /// Requests that run.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.running.len() as u32
    }

    /// Requests that wait.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting.len()
    }

    /// Tokens of prompts that stood in the cache, and tokens that were looked up.
    #[must_use]
    pub const fn prefix_hits(&self) -> (u64, u64) {
        (self.hits, self.looked_up)
    }

    /// Tokens that preempted requests had to compute again; what of them still stood in the cache is not counted.
    #[must_use]
    pub const fn recomputed(&self) -> u64 {
        self.lost
    }

    /// Blocks whose content was new when they were filled.
    #[must_use]
    pub const fn stored(&self) -> u64 {
        self.stored
    }

    /// Tokens of the requests that wait, from the first on.
    #[must_use]
    pub const fn waiting_tokens(&self) -> u64 {
        self.waiting_tokens
    }

    /// How often a request that had the whole pool to itself needed more than it holds, since one was finished last: it starts
    /// again and again.
    #[must_use]
    pub const fn hopeless(&self) -> u32 {
        self.hopeless
    }

    /// Whether anybody runs or waits.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.running.is_empty() || self.waiting.len() > 0
    }

    pub(crate) fn phase(&self, number: u32) -> Phase {
        self.states.get(number as usize).map_or(Phase::Away, |s| s.phase)
    }

    /// It had the whole pool to itself and needs more, so it starts again from nothing.
    fn had_the_whole_pool(&mut self, number: u32) {
        self.hopeless += 1;
        self.unfit = Some(number);
    }

    /// The others get on.
    fn somebody_is_done(&mut self) {
        (self.hopeless, self.unfit) = (0, None);
    }

    /// Who holds up all others where nobody gets on any more: the request that the whole pool was too small for, which may be
    /// on its way again, or the one that would be admitted next.
    #[must_use]
    pub fn head(&self) -> Option<u32> {
        let there = |n: &u32| matches!(self.phase(*n), Phase::Waiting | Phase::Running | Phase::Preempted);
        self.unfit.filter(there).or_else(|| self.waiting.peek(&self.states))
    }
}
