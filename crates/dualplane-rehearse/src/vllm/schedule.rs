//! One step: first those that run, then those that wait.

use super::{Phase, Scheduled, Scheduler, State, Step};
use crate::settings::Policy;

impl Scheduler<'_> {
    /// Fills a step. What `step` held before is lost, but its memory is used again.
    pub fn schedule(&mut self, step: &mut Step) {
        step.scheduled.clear();
        (step.tokens, step.prefill_tokens, step.context, step.preempted, step.asleep) = (0, 0, 0, 0, 0);
        let mut budget = self.set.max_num_batched_tokens;
        let others = self.running() + self.waiting() > 1;
        let long = if others { self.set.long_prefill_token_threshold } else { 0 };
        match self.set.policy {
            Policy::Fcfs => self.schedule_in_order(step, &mut budget, long),
            Policy::Priority => self.schedule_by_priority(step, &mut budget, long),
        }
        if step.preempted == 0 {
            self.schedule_waiting(step, &mut budget, long);
        }
        for e in &step.scheduled {
            let Some(s) = self.states.get_mut(e.request as usize) else { continue };
            s.computed = s.computed.saturating_add(e.tokens);
            s.in_flight = s.in_flight.saturating_add(e.tokens);
            s.prefills = s.computed < s.tokens().saturating_add(s.placeholders);
            if self.set.asynchronous && !s.prefills {
                s.placeholders += 1;
            }
            step.tokens = step.tokens.saturating_add(e.tokens);
            step.context += u64::from(s.computed);
            if e.tokens > 1 {
                step.prefill_tokens = step.prefill_tokens.saturating_add(e.tokens);
            }
        }
        self.sleepers.took_part(step);
    }

    /// What a request that runs is to compute next, at most; none where the steps that run bring its last token.
    fn wants(&self, s: &State, long: u32) -> u32 {
        let last = s.placeholders > 0
            && s.computed.saturating_add(2).saturating_sub(s.placeholders)
                >= s.input.saturating_add(s.output);
        if last {
            return 0;
        }
        let mut more = s.tokens().saturating_add(s.placeholders).saturating_sub(s.computed);
        if long > 0 {
            more = more.min(long);
        }
        more.min(self.set.max_model_len.saturating_sub(s.computed).saturating_sub(1))
    }

    /// Who came first goes first, and who was admitted last is preempted. Who sleeps is only counted: it takes one token of
    /// the step, wherever it stands.
    fn schedule_in_order(&mut self, step: &mut Step, budget: &mut u32, long: u32) {
        self.wake_due();
        // A chunk gets what those before it leave, so nobody may stand behind it uncounted.
        let fits = self.set.max_num_batched_tokens >= self.running();
        let tail = self.running.last().copied();
        let chunks = |n: &u32| self.states.get(*n as usize).is_some_and(|s| self.wants(s, long) > 1);
        let rests = fits && !self.awake.iter().any(|n| Some(*n) != tail && chunks(n));
        if !rests {
            self.wake_all();
        }
        *budget = budget.saturating_sub(self.sleepers.count());
        let mut awake = std::mem::take(&mut self.awake);
        let (mut index, mut kept) = (0, 0);
        'all: while *budget > 0 {
            let Some(&number) = awake.get(index) else { break };
            let Some(s) = self.states.get(number as usize).copied() else { break };
            if rests && self.sleep(number, &s) {
                *budget -= 1;
                index += 1;
                continue;
            }
            let more = self.wants(&s, long).min(*budget);
            if more > 0 {
                while !self.allocate(number, more, 0) {
                    let Some(victim) = self.running.pop() else { break 'all };
                    if self.wake(victim) {
                        *budget += 1;
                    } else {
                        awake.pop();
                    }
                    self.preempt(victim);
                    step.preempted += 1;
                    if victim == number {
                        if self.running.is_empty() {
                            self.had_the_whole_pool(number);
                        }
                        break 'all;
                    }
                }
                let samples = s.computed.saturating_add(more) >= s.tokens().saturating_add(s.placeholders);
                step.scheduled.push(Scheduled { request: number, tokens: more, samples });
                *budget -= more;
            }
            if let Some(place) = awake.get_mut(kept) {
                *place = number;
            }
            (index, kept) = (index + 1, kept + 1);
        }
        awake.drain(kept..index.min(awake.len()).max(kept));
        self.awake = awake;
    }

    fn schedule_by_priority(&mut self, step: &mut Step, budget: &mut u32, long: u32) {
        let mut index = 0;
        while *budget > 0 {
            let Some(&number) = self.running.get(index) else { break };
            let Some(s) = self.states.get(number as usize).copied() else { break };
            let more = self.wants(&s, long).min(*budget);
            if more == 0 {
                index += 1;
                continue;
            }
            let mut got = self.allocate(number, more, 0);
            while !got {
                let Some(victim) = self.least_important() else { break };
                let place = self.running.iter().position(|r| *r == victim).unwrap_or(0);
                self.running.remove(place);
                if place < index {
                    index -= 1;
                }
                if let Some(i) = step.scheduled.iter().position(|e| e.request == victim) {
                    *budget = budget.saturating_add(step.scheduled.remove(i).tokens);
                }
                self.preempt(victim);
                step.preempted += 1;
                if victim == number {
                    if self.running.is_empty() {
                        self.had_the_whole_pool(number);
                    }
                    return;
                }
                got = self.allocate(number, more, 0);
            }
            if !got {
                return;
            }
            let samples = s.computed.saturating_add(more) >= s.tokens().saturating_add(s.placeholders);
            step.scheduled.push(Scheduled { request: number, tokens: more, samples });
            *budget -= more;
            index += 1;
        }
    }

    /// Who loses its blocks next by priority: the least important, and of these the last to come.
    fn least_important(&self) -> Option<u32> {
        let rank = |r: &u32| (self.requests.get(*r as usize).map_or(0, |r| r.priority), *r);
        self.running.iter().copied().max_by_key(rank)
    }

    fn preempt(&mut self, number: u32) {
        self.ask_again(number);
        self.free(number);
        let Some(s) = self.states.get_mut(number as usize) else { return };
        s.phase = Phase::Preempted;
        s.computed = 0;
        s.stale = s.in_flight;
        s.placeholders = 0;
        s.preempted += 1;
        self.waiting_tokens += u64::from(s.tokens());
        let priority = self.requests.get(number as usize).map_or(0, |r| r.priority);
        self.waiting.add_first(number, priority);
    }

    fn schedule_waiting(&mut self, step: &mut Step, budget: &mut u32, long: u32) {
        let mut skipped = std::mem::take(&mut self.skipped);
        while *budget > 0 && self.running() < self.set.max_num_seqs {
            let Some(number) = self.waiting.first(&self.states) else { break };
            let Some(s) = self.states.get(number as usize).copied() else { break };
            if s.stale > 0 {
                // What a running step still brings must come first.
                self.waiting.pop();
                skipped.push(number);
                continue;
            }
            let hit = self.look_up(number);
            let mut more = s.tokens().saturating_sub(hit);
            if long > 0 {
                more = more.min(long);
            }
            if !self.set.chunked_prefill && more > *budget {
                break;
            }
            more = more.min(*budget);
            if !self.allocate(number, more, hit) {
                break;
            }
            if s.preempted == 0 {
                self.hits += u64::from(hit);
                self.looked_up += u64::from(s.tokens());
            } else {
                self.lost += u64::from(s.tokens().saturating_sub(1).saturating_sub(hit));
            }
            self.waiting.pop();
            self.waiting_tokens = self.waiting_tokens.saturating_sub(u64::from(s.tokens()));
            self.running.push(number);
            if self.set.policy == Policy::Fcfs {
                self.awake.push(number);
            }
            self.admitted += 1;
            if let Some(s) = self.states.get_mut(number as usize) {
                s.phase = Phase::Running;
                s.computed = hit;
                s.admitted = self.admitted;
            }
            let samples = hit.saturating_add(more) >= s.tokens();
            step.scheduled.push(Scheduled { request: number, tokens: more, samples });
            *budget -= more;
        }
        for number in skipped.drain(..).rev() {
            let priority = self.requests.get(number as usize).map_or(0, |r| r.priority);
            self.waiting.add_first(number, priority);
        }
        self.skipped = skipped;
    }
}
