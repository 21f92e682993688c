//! One step: first those that run, then those that wait.

use super::{Phase, Scheduled, Scheduler, Step};
use crate::settings::Policy;

impl Scheduler<'_> {
    /// Fills a step. What `step` held before is lost, but its memory is used again.
    pub fn schedule(&mut self, step: &mut Step) {
        step.scheduled.clear();
        (step.tokens, step.prefill_tokens, step.context, step.preempted) = (0, 0, 0, 0);
        let mut budget = self.set.max_num_batched_tokens;
        let others = self.running() + self.waiting() > 1;
        let long = if others { self.set.long_prefill_token_threshold } else { 0 };
        self.schedule_running(step, &mut budget, long);
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
    }

    fn schedule_running(&mut self, step: &mut Step, budget: &mut u32, long: u32) {
        let mut index = 0;
        while *budget > 0 {
            let Some(&number) = self.running.get(index) else { break };
            let Some(s) = self.states.get(number as usize).copied() else { break };
            // The steps that run bring its last token.
            let last = s.placeholders > 0
                && s.computed.saturating_add(2).saturating_sub(s.placeholders)
                    >= s.input.saturating_add(s.output);
            let mut more = s.tokens().saturating_add(s.placeholders).saturating_sub(s.computed);
            if long > 0 {
                more = more.min(long);
            }
            let room = self.set.max_model_len.saturating_sub(s.computed).saturating_sub(1);
            more = more.min(*budget).min(room);
            if last || more == 0 {
                index += 1;
                continue;
            }
            let mut got = self.allocate(number, more, 0);
            while !got {
                let Some(victim) = self.victim() else { break };
                if self.set.policy == Policy::Priority {
                    let place = self.running.iter().position(|r| *r == victim).unwrap_or(0);
                    self.running.remove(place);
                    if place < index {
                        index -= 1;
                    }
                    if let Some(i) = step.scheduled.iter().position(|e| e.request == victim) {
                        *budget = budget.saturating_add(step.scheduled.remove(i).tokens);
                    }
                } else {
                    self.running.pop();
                }
                self.preempt(victim);
                step.preempted += 1;
                if victim == number {
                    // It had the whole pool and needs more.
                    self.hopeless += u32::from(self.running.is_empty());
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

    /// Who loses its blocks next: the last to be admitted, or the least important and of these the last to come.
    fn victim(&self) -> Option<u32> {
        match self.set.policy {
            Policy::Fcfs => self.running.last().copied(),
            Policy::Priority => self
                .running
                .iter()
                .copied()
                .max_by_key(|r| (self.requests.get(*r as usize).map_or(0, |r| r.priority), *r)),
        }
    }

    fn preempt(&mut self, number: u32) {
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
            if let Some(s) = self.states.get_mut(number as usize) {
                s.phase = Phase::Running;
                s.computed = hit;
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
