//! Requests that do nothing but take a token a step, for so many steps that are known beforehand: nobody looks at them meanwhile.
//!
//! A server spends most of its steps on requests whose blocks stay as they are until the next one is full. Such a request
//! sleeps, and what its steps would have counted is made up for when it wakes: every count of a [`State`] is a sum over steps.

use super::{AWAKE, Scheduled, Scheduler, State, Step};

/// Nobody sleeps longer; a power of two.
const LONGEST: u64 = 256;

#[cfg(test)]
thread_local! {
    /// Nobody sleeps in this thread: what tests compare with.
    pub(crate) static RESTLESS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Who sleeps, by the step at which it wakes.
#[derive(Debug, Clone)]
pub(super) struct Sleepers {
    wake_at: Vec<Vec<u32>>,
    count: u32,
    /// Tokens that all of them have computed.
    computed: u64,
    /// The step that is scheduled next, and the one whose outcome is taken in next.
    step: u64,
    outcome: u64,
    /// Steps that still run, each with a request that took part asleep and is awake now.
    owed: Vec<(u64, u32)>,
}

impl Sleepers {
    pub(super) fn new() -> Self {
        Self {
            wake_at: vec![Vec::new(); LONGEST as usize],
            count: 0,
            computed: 0,
            step: 0,
            outcome: 0,
            owed: Vec::new(),
        }
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// A step is scheduled, and all that sleep take part.
    pub(super) fn took_part(&mut self, step: &mut Step) {
        step.asleep = self.count;
        step.tokens = step.tokens.saturating_add(self.count);
        if step.is_empty() {
            return;
        }
        self.computed += u64::from(self.count);
        step.context += self.computed;
        self.step += 1;
    }

    /// Who was asleep in the step whose outcome is taken in now, and is awake.
    fn owed_now(&mut self, to: &mut Vec<Scheduled>) {
        let now = self.outcome;
        self.owed.retain(|(step, number)| {
            if *step == now {
                to.push(Scheduled { request: *number, tokens: 1, samples: true });
            }
            *step > now
        });
    }

    /// What a step brought was taken in.
    pub(super) fn taken_in(&mut self) {
        self.outcome += 1;
    }
}

impl Scheduler<'_> {
    /// For how many steps, the next one with them, a request takes one token each and nothing else happens to it.
    fn calm(&self, s: &State) -> u64 {
        let decodes = !s.prefills && s.stale == 0;
        let next = s.tokens().saturating_add(s.placeholders);
        if !decodes || s.computed.saturating_add(1) != next {
            return 0;
        }
        // Tokens of its answer, those with them that running steps will bring.
        let coming = s.generated.saturating_add(s.placeholders);
        let mut last = s.output.min(self.set.max_model_len.saturating_sub(s.input));
        if s.enough > coming {
            last = last.min(s.enough);
        }
        let answer = last.saturating_sub(coming).saturating_sub(1);
        u64::from(answer.min(s.quiet.saturating_sub(s.computed))).min(LONGEST - 1)
    }

    /// Puts a request to sleep, from the next step on, where that is worth it.
    pub(super) fn sleep(&mut self, number: u32, s: &State) -> bool {
        let steps = self.calm(s);
        #[cfg(test)]
        let steps = if RESTLESS.get() { 0 } else { steps };
        if steps < 2 {
            return false;
        }
        let (from, wakes) = (self.sleepers.step, self.sleepers.step + steps);
        let (Some(state), Some(bucket)) =
            (self.states.get_mut(number as usize), self.sleepers.wake_at.get_mut((wakes % LONGEST) as usize))
        else {
            return false;
        };
        (state.asleep_from, state.wakes) = (from, wakes);
        bucket.push(number);
        self.sleepers.count += 1;
        self.sleepers.computed += u64::from(s.computed);
        true
    }

    /// Wakes a request where it sleeps, with all that its steps have counted. It is not put among those that are awake.
    pub(super) fn wake(&mut self, number: u32) -> bool {
        let Some(s) = self.states.get_mut(number as usize).filter(|s| s.wakes != AWAKE) else { return false };
        let steps = self.sleepers.step.saturating_sub(s.asleep_from) as u32;
        let brought = self.sleepers.outcome.saturating_sub(s.asleep_from) as u32;
        s.computed = s.computed.saturating_add(steps);
        s.generated = s.generated.saturating_add(brought);
        // Of the steps of its sleep, those that still run.
        let open = steps.saturating_sub(brought);
        s.in_flight = s.in_flight.saturating_add(open);
        if self.set.asynchronous {
            s.placeholders = s.placeholders.saturating_add(open);
        }
        (s.asleep_from, s.wakes) = (AWAKE, AWAKE);
        for step in self.sleepers.step.saturating_sub(u64::from(open))..self.sleepers.step {
            self.sleepers.owed.push((step, number));
        }
        self.sleepers.count = self.sleepers.count.saturating_sub(1);
        self.sleepers.computed = self.sleepers.computed.saturating_sub(u64::from(s.computed));
        true
    }

    /// Who took part in the step whose outcome is taken in now and is awake, in the engine's order.
    pub(super) fn took_part(&mut self, step: &Step) -> Vec<Scheduled> {
        let mut all = std::mem::take(&mut self.taken);
        all.clear();
        all.extend_from_slice(&step.scheduled);
        self.sleepers.owed_now(&mut all);
        if all.len() > step.scheduled.len() {
            let states = &self.states;
            all.sort_by_key(|e| states.get(e.request as usize).map_or(0, |s| s.admitted));
        }
        all
    }

    /// Wakes those whose time it is.
    pub(super) fn wake_due(&mut self) {
        let now = self.sleepers.step;
        let Some(bucket) = self.sleepers.wake_at.get_mut((now % LONGEST) as usize) else { return };
        if bucket.is_empty() {
            return;
        }
        let mut due = std::mem::take(bucket);
        let before = self.awake.len();
        for number in due.drain(..) {
            // Who was preempted or left meanwhile was woken then, and may sleep again until another step.
            if self.states.get(number as usize).is_some_and(|s| s.wakes == now) && self.wake(number) {
                self.awake.push(number);
            }
        }
        if let Some(bucket) = self.sleepers.wake_at.get_mut((now % LONGEST) as usize) {
            *bucket = due;
        }
        if self.awake.len() > before {
            let states = &self.states;
            self.awake.sort_unstable_by_key(|n| states.get(*n as usize).map_or(0, |s| s.admitted));
        }
    }

    /// Wakes all of them.
    pub(super) fn wake_all(&mut self) {
        if self.sleepers.count == 0 {
            return;
        }
        for i in 0..self.running.len() {
            if let Some(number) = self.running.get(i).copied() {
                self.wake(number);
            }
        }
        self.awake.clone_from(&self.running);
    }
}
