//! The slots of llama.cpp's server, step by step: who gets how many tokens of a batch, which cells they take, and what happens
//! when none is left.
//!
//! Read from `tools/server/server-context.cpp` (`update_slots`, `decode`, `try_clear_idle_slots`, `process_token`) as packaged with
//! llama-cpp-python 0.3.36. Whoever finds no slot waits in line. Nothing is preempted and nothing waits for cells: where one
//! cache is shared and full, the batch is tried again in halves, and when not even one token fits, every request that is being
//! answered ends with "Context size has been exceeded".

use std::collections::VecDeque;

use crate::request::Request;
use crate::scheduling::Scheduling;
use crate::settings::{Cells, Settings};
use crate::vllm::{Brought, Scheduled, Step};

/// Slots that llama.cpp takes (`LLAMA_MAX_SEQ` in src/llama-cparams.h).
pub(crate) const MOST: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Away,
    Waiting,
    Running,
    Gone,
}

/// A request that is being answered.
#[derive(Debug, Clone, Copy)]
struct Held {
    request: u32,
    /// Tokens in the cache.
    cells: u32,
    input: u32,
    generated: u32,
    /// Tokens of the answer that it gets, and whether it was to get more.
    answer: u32,
    cut: bool,
    /// Its last token has come: its cells are free for whoever needs them, and taken until then.
    done: bool,
    emptied: bool,
}

/// One slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    held: Option<Held>,
    /// Who was used longest ago has the smallest; 0: never.
    used: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Slots<'a> {
    requests: &'a [Request],
    phases: Vec<Phase>,
    slots: Vec<Slot>,
    cells: Cells,
    /// Of all slots together.
    capacity: u32,
    context: u32,
    batch: u32,
    waiting: VecDeque<u32>,
    waiting_count: u32,
    waiting_tokens: u64,
    uses: u64,
    brought: Vec<Brought>,
    /// What a step would compute: slot and tokens.
    lot: Vec<(usize, u32)>,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(set: &Settings, cells: Cells, requests: &'a [Request]) -> Self {
        Self {
            phases: vec![Phase::Away; requests.len()],
            requests,
            slots: vec![Slot::default(); set.max_num_seqs.clamp(1, MOST) as usize],
            cells,
            capacity: set.usable(),
            context: set.max_model_len,
            batch: set.max_num_batched_tokens.max(1),
            waiting: VecDeque::new(),
            waiting_count: 0,
            waiting_tokens: 0,
            uses: 0,
            brought: Vec::new(),
            lot: Vec::new(),
        }
    }

    fn of(&self, number: u32) -> Request {
        self.requests.get(number as usize).copied().unwrap_or_default()
    }

    fn phase(&self, number: u32) -> Phase {
        self.phases.get(number as usize).copied().unwrap_or(Phase::Gone)
    }

    fn set(&mut self, number: u32, phase: Phase) {
        if let Some(p) = self.phases.get_mut(number as usize) {
            *p = phase;
        }
    }

    fn left_the_line(&mut self, number: u32) {
        self.waiting_count = self.waiting_count.saturating_sub(1);
        self.waiting_tokens = self.waiting_tokens.saturating_sub(u64::from(self.of(number).input.max(1)));
    }

    /// Whoever came first gets the free slot that was used longest ago; of several that never were, the last.
    fn admit(&mut self) {
        while let Some(number) = self.waiting.front().copied() {
            if self.phase(number) != Phase::Waiting {
                self.waiting.pop_front();
                continue;
            }
            let free = self.slots.iter().enumerate().rev().filter(|(_, s)| s.held.is_none());
            let Some(place) = free.min_by_key(|(_, s)| s.used).map(|(i, _)| i) else { return };
            self.waiting.pop_front();
            self.left_the_line(number);
            self.set(number, Phase::Running);
            let r = self.of(number);
            // It ends when the tokens in the cache and the one that just came fill the context.
            let room = self.context.saturating_sub(r.input.max(1)).max(1);
            let (input, answer) = (r.input.max(1), r.output.max(1).min(room));
            let cut = r.output.max(1) > room;
            let held = Held {
                request: number,
                cells: 0,
                input,
                generated: 0,
                answer,
                cut,
                done: false,
                emptied: false,
            };
            if let Some(s) = self.slots.get_mut(place) {
                s.held = Some(held);
            }
        }
    }

    /// One token of each answer, then prompts in the order of the slots until the batch is full.
    fn fill(&mut self) {
        self.lot.clear();
        let mut left = self.batch;
        for prompts in [false, true] {
            for (i, s) in self.slots.iter().enumerate() {
                let Some(h) = s.held.filter(|h| (h.cells < h.input) == prompts) else { continue };
                let tokens = if prompts { (h.input - h.cells).min(left) } else { 1 };
                // The server asserts that a batch has room for a token of each answer; a prompt takes what is left.
                if tokens > 0 {
                    self.lot.push((i, tokens));
                    left = left.saturating_sub(tokens);
                }
            }
        }
    }

    /// Cells that a batch could take now, after what idle slots keep was cleared as far as it must be.
    fn room(&mut self, wanted: u32) -> u32 {
        if self.cells == Cells::Own {
            return wanted;
        }
        let mut used = self.used();
        for s in &mut self.slots {
            if used.saturating_add(wanted) <= self.capacity {
                break;
            }
            if let Some(h) = s.held.as_mut().filter(|h| h.done && !h.emptied) {
                used = used.saturating_sub(h.cells);
                (h.cells, h.emptied) = (0, true);
            }
        }
        self.capacity.saturating_sub(used)
    }

    /// Computes the next tokens of the lot, from this place in it on; answers the place behind them.
    fn compute(&mut self, from: (usize, u32), tokens: u32, step: &mut Step) -> (usize, u32) {
        let (mut place, mut begun) = from;
        let mut left = tokens;
        while left > 0 {
            let Some((slot, all)) = self.lot.get(place).copied() else { break };
            let now = (all - begun).min(left);
            (left, begun) = (left - now, begun + now);
            let whole = begun == all;
            if let Some(h) = self.slots.get_mut(slot).and_then(|s| s.held.as_mut()) {
                let prompt = h.cells < h.input;
                step.context += u64::from(h.cells);
                h.cells += now;
                let samples = whole && h.cells >= h.input;
                step.scheduled.push(Scheduled { request: h.request, tokens: now, samples });
                step.tokens += now;
                step.prefill_tokens += if prompt { now } else { 0 };
                if samples {
                    h.generated += 1;
                    if h.generated == 1 {
                        self.brought.push(Brought::First(h.request));
                    }
                    h.done = h.generated >= h.answer;
                    if h.done && h.cut {
                        self.brought.push(Brought::Cut(h.request, h.answer));
                    } else if h.done {
                        self.brought.push(Brought::Last(h.request));
                    } else if self.requests.get(h.request as usize).and_then(|r| r.cancel_tokens)
                        == Some(h.generated)
                    {
                        self.brought.push(Brought::Enough(h.request));
                    }
                }
            }
            if whole {
                (place, begun) = (place + 1, 0);
            }
        }
        (place, begun)
    }

    /// Every request that is being answered ends with an error.
    fn break_off(&mut self, step: &mut Step) {
        for s in &self.slots {
            if let Some(h) = s.held.filter(|h| !h.done) {
                // A batch that was tried is a step, also where it computed nothing.
                step.scheduled.push(Scheduled { request: h.request, tokens: 0, samples: false });
                self.brought.push(Brought::BrokenOff(h.request));
            }
        }
    }

    fn release(&mut self, number: u32) {
        self.uses += 1;
        for s in self.slots.iter_mut().filter(|s| s.held.is_some_and(|h| h.request == number)) {
            *s = Slot { held: None, used: self.uses };
        }
    }
}

impl Scheduling for Slots<'_> {
    fn arrive(&mut self, number: u32) -> bool {
        let input = self.of(number).input.max(1);
        if input >= self.context {
            self.set(number, Phase::Gone);
            return false;
        }
        self.set(number, Phase::Waiting);
        self.waiting.push_back(number);
        self.waiting_count += 1;
        self.waiting_tokens += u64::from(input);
        true
    }

    fn cancel(&mut self, number: u32) -> bool {
        match self.phase(number) {
            Phase::Waiting => self.left_the_line(number),
            Phase::Running => self.release(number),
            Phase::Away | Phase::Gone => return false,
        }
        self.set(number, Phase::Gone);
        true
    }

    fn schedule(&mut self, step: &mut Step) {
        step.scheduled.clear();
        (step.tokens, step.prefill_tokens, step.context, step.preempted, step.asleep) = (0, 0, 0, 0, 0);
        self.brought.clear();
        self.admit();
        self.fill();
        let mut left: u32 = self.lot.iter().map(|(_, n)| *n).sum();
        let (mut from, mut batch) = ((0, 0), self.batch);
        while left > 0 {
            let tokens = batch.min(left);
            if tokens <= self.room(tokens) {
                from = self.compute(from, tokens, step);
                left -= tokens;
                batch = self.batch;
            } else if batch > 1 {
                batch /= 2;
            } else {
                self.break_off(step);
                break;
            }
        }
    }

    fn update(&mut self, _: &Step, tell: &mut dyn FnMut(Brought)) {
        for brought in std::mem::take(&mut self.brought) {
            let (number, ends) = match brought {
                Brought::First(n) | Brought::Enough(n) => (n, false),
                Brought::Last(n) | Brought::Cut(n, _) | Brought::BrokenOff(n) => (n, true),
            };
            if self.phase(number) != Phase::Running {
                continue;
            }
            tell(brought);
            if ends {
                self.set(number, Phase::Gone);
                self.release(number);
            }
        }
    }

    fn has_requests(&self) -> bool {
        self.waiting_count > 0 || self.slots.iter().any(|s| s.held.is_some())
    }

    fn used(&self) -> u32 {
        self.slots.iter().filter_map(|s| s.held).map(|h| h.cells).fold(0, u32::saturating_add)
    }

    fn running(&self) -> u32 {
        self.slots.iter().filter(|s| s.held.is_some()).count() as u32
    }

    fn waiting(&self) -> u32 {
        self.waiting_count
    }

    fn waiting_tokens(&self) -> u64 {
        self.waiting_tokens
    }

    fn unanswered(&self) -> u64 {
        self.phases.iter().filter(|p| matches!(p, Phase::Waiting | Phase::Running)).count() as u64
    }

    fn head(&self) -> Option<u32> {
        self.waiting.iter().copied().find(|n| self.phase(*n) == Phase::Waiting)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Outcome, StepTime, rehearse};

    const TIME: StepTime = StepTime { base: 0.01, token: 1e-5, request: 0.0, context: 0.0 };

    fn set(cells: Cells, slots: u32, total: u32) -> Settings {
        let max_model_len = if cells == Cells::Own { total / slots } else { total };
        Settings {
            max_num_seqs: slots,
            max_num_batched_tokens: 256,
            max_model_len,
            asynchronous: false,
            cells: Some(cells),
            ..Settings::plain(total + 1, 1)
        }
    }

    fn load(all: &[(u32, u32)]) -> Vec<Request> {
        all.iter()
            .map(|(input, output)| Request { input: *input, output: *output, ..Request::default() })
            .collect()
    }

    fn play(s: &Settings, requests: &[Request]) -> Outcome {
        rehearse(s, requests, &TIME, |_, _, _| {})
    }

    #[test]
    fn a_full_shared_cache_ends_every_answer() {
        // Two of 100 + 100 tokens in 300 cells: both have 50 tokens of their answers when the last cell is taken.
        let o = play(&set(Cells::Shared, 2, 300), &load(&[(100, 100), (100, 100)]));
        assert_eq!((o.broken_off, o.finished, o.peak_blocks), (2, 0, 300));
        // Room for both: 2 * 199 cells, since the last token of an answer is never computed.
        let o = play(&set(Cells::Shared, 2, 398), &load(&[(100, 100), (100, 100)]));
        assert_eq!((o.broken_off, o.finished, o.peak_blocks), (0, 2, 398));
        // One less holds too: the batch is halved, and whoever is done makes room. Two less does not.
        let broken = |total| play(&set(Cells::Shared, 2, total), &load(&[(100, 100), (100, 100)])).broken_off;
        assert_eq!((broken(397), broken(396)), (0, 2));
    }

    #[test]
    fn a_slot_of_its_own_refuses_and_cuts() {
        let o = play(&set(Cells::Own, 2, 200), &load(&[(100, 1), (99, 1), (60, 100)]));
        assert_eq!((o.rejected, o.finished, o.cut_short, o.broken_off), (1, 2, 1, 0));
        assert_eq!(o.output_tokens, 1 + 40);
    }

    #[test]
    fn who_finds_no_slot_waits() {
        let o = play(&set(Cells::Own, 2, 400), &load(&[(10, 5), (10, 5), (10, 5)]));
        assert_eq!((o.longest_queue, o.most_running, o.finished), (1, 2, 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Cells are never overdrawn, and every request ends one way or another.
        #[test]
        fn cells_and_requests_add_up(
            shared in any::<bool>(),
            slots in 1..9_u32,
            total in 16..900_u32,
            batch in 1..100_u32,
            all in prop::collection::vec((0.0..2.0_f64, 1..200_u32, 1..80_u32, prop::option::weighted(0.2, 0.0..1.0_f64), prop::option::weighted(0.2, 1..40_u32)), 1..30),
        ) {
            let s = set(if shared { Cells::Shared } else { Cells::Own }, slots, total);
            let s = Settings { max_num_batched_tokens: batch.max(slots), ..s };
            let mut requests: Vec<Request> = all
                .iter()
                .map(|(at, input, output, cancel, cancel_tokens)| Request {
                    at: *at, input: *input, output: *output, cancel: *cancel, cancel_tokens: *cancel_tokens, ..Request::default()
                })
                .collect();
            requests.sort_by(|a, b| a.at.total_cmp(&b.at));
            let mut over = 0;
            let o = rehearse(&s, &requests, &TIME, |_, step, now| {
                over += u32::from(now.used() > s.usable() || step.tokens > s.max_num_batched_tokens || now.running() > slots);
            });
            prop_assert_eq!(over, 0);
            prop_assert_eq!(o.finished + o.cancelled + o.rejected + o.broken_off, requests.len() as u64);
            prop_assert_eq!(o.stuck, 0);
            prop_assert!(shared || o.broken_off == 0);
        }
    }
}
