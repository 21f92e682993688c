//! What the clock asks of an engine's scheduler, whichever engine it is.

use crate::vllm::{Brought, Phase, Scheduler, Step};

/// A scheduler: requests come and go, a step is given out, and then what it brought is taken in.
pub trait Scheduling {
    /// A request comes. `false`: the engine refuses it, because it is longer than the context.
    fn arrive(&mut self, number: u32) -> bool;
    /// The client hangs up. `true` where the request was still there.
    fn cancel(&mut self, number: u32) -> bool;
    /// Gives out the next step.
    fn schedule(&mut self, step: &mut Step);
    /// Takes in what a step brought.
    fn update(&mut self, step: &Step, tell: &mut dyn FnMut(Brought));
    /// Whether anybody runs or waits.
    fn has_requests(&self) -> bool;
    /// Blocks that requests hold.
    fn used(&self) -> u32;
    /// Requests that run.
    fn running(&self) -> u32;
    /// Requests that wait.
    fn waiting(&self) -> u32;
    /// Tokens of the requests that wait.
    fn waiting_tokens(&self) -> u64;
    /// Requests that run or wait and never end.
    fn unanswered(&self) -> u64;
    /// Who holds up all others where nobody gets on any more, by its place in the list.
    fn head(&self) -> Option<u32>;
    /// How often a request started again from nothing since one was finished last.
    fn hopeless(&self) -> u32 {
        0
    }
    /// Tokens of prompts that stood in the cache.
    fn cached(&self) -> u64 {
        0
    }
    /// Tokens that preempted requests had to compute again.
    fn recomputed(&self) -> u64 {
        0
    }
    /// Blocks whose content was new when they were filled.
    fn stored(&self) -> u64 {
        0
    }
    /// Requests that lost their blocks at least once.
    fn preempted_requests(&self) -> u64 {
        0
    }
}

impl Scheduling for Scheduler<'_> {
    fn arrive(&mut self, number: u32) -> bool {
        self.arrive(number)
    }

    fn cancel(&mut self, number: u32) -> bool {
        self.cancel(number)
    }

    fn schedule(&mut self, step: &mut Step) {
        self.schedule(step);
    }

    fn update(&mut self, step: &Step, tell: &mut dyn FnMut(Brought)) {
        self.update(step, tell);
    }

    fn has_requests(&self) -> bool {
        self.has_requests()
    }

    fn used(&self) -> u32 {
        self.used()
    }

    fn running(&self) -> u32 {
        self.running()
    }

    fn waiting(&self) -> u32 {
        self.waiting()
    }

    fn waiting_tokens(&self) -> u64 {
        self.waiting_tokens()
    }

    fn unanswered(&self) -> u64 {
        let open = |n: &u32| matches!(self.phase(*n), Phase::Waiting | Phase::Preempted | Phase::Running);
        (0..self.states.len() as u32).filter(open).count() as u64
    }

    fn head(&self) -> Option<u32> {
        self.head()
    }

    fn hopeless(&self) -> u32 {
        self.hopeless()
    }

    fn cached(&self) -> u64 {
        self.prefix_hits().0
    }

    fn recomputed(&self) -> u64 {
        self.recomputed()
    }

    fn stored(&self) -> u64 {
        self.stored()
    }

    fn preempted_requests(&self) -> u64 {
        self.states.iter().filter(|s| s.preempted > 0).count() as u64
    }
}
