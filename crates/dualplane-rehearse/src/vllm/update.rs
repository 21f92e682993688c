//! What a step brought: tokens, and requests that are done.

use super::{Brought, Phase, Scheduler, Step};

impl Scheduler<'_> {
    /// Takes in what a step brought, and tells it.
    pub fn update(&mut self, step: &Step, mut tell: impl FnMut(Brought)) {
        let mut stopped = std::mem::take(&mut self.skipped);
        let all = self.took_part(step);
        for e in &all {
            let longest = self.set.max_model_len;
            let Some(s) = self.states.get_mut(e.request as usize) else { continue };
            s.in_flight = s.in_flight.saturating_sub(e.tokens);
            let stale = s.stale > 0;
            if stale {
                s.stale = s.stale.saturating_sub(e.tokens);
            }
            let runs = s.phase == Phase::Running;
            if !e.samples || !(runs || s.phase == Phase::Preempted) {
                continue;
            }
            s.generated += 1;
            if !runs {
                self.waiting_tokens += 1;
            }
            if s.generated == 1 {
                tell(Brought::First(e.request));
            }
            if s.generated >= s.output || s.tokens() >= longest {
                s.phase = Phase::Finished;
                if runs {
                    stopped.push(e.request);
                } else {
                    self.waiting_tokens = self.waiting_tokens.saturating_sub(u64::from(s.tokens()));
                    self.waiting.leave();
                }
            }
            if s.generated == s.enough && s.phase != Phase::Finished {
                tell(Brought::Enough(e.request));
            }
            let (seat, finished) = (s.seat, s.phase == Phase::Finished);
            if self.set.asynchronous {
                if !stale {
                    s.placeholders = s.placeholders.saturating_sub(1);
                }
                if runs {
                    let certain = s.computed.saturating_sub(s.placeholders);
                    if certain > 0 && certain >= s.quiet {
                        self.name(e.request, seat, certain);
                    }
                }
            }
            if finished {
                self.somebody_is_done();
                self.free(e.request);
                tell(Brought::Last(e.request));
            }
        }
        self.sleepers.taken_in();
        for number in stopped.drain(..) {
            self.leave(number);
        }
        self.skipped = stopped;
        self.taken = all;
    }
}
