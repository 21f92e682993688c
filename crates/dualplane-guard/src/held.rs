//! What a request holds of the guard, each given back when it is dropped: bytes of its body, a place in the queue, leave to send.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dualplane_admission::admission::Outcome;
use dualplane_admission::{Grant, Ms, Refusal, Ticket};
use tokio::sync::oneshot;

use crate::config::Target;
use crate::refuse::Reply;
use crate::state::{Gate, State};

/// A place among the bodies that are held; given back when it is dropped.
pub struct Room {
    pub(crate) state: Arc<State>,
    pub(crate) bytes: u64,
    /// Of all bodies together.
    pub(crate) most: u64,
}

impl Room {
    /// Makes it so large; `false`, and as it was, where there is no room.
    pub fn grow(&mut self, to: u64) -> bool {
        let more = to.saturating_sub(self.bytes);
        let taken = self.state.buffered.fetch_add(more, Ordering::Relaxed);
        if taken.saturating_add(more) > self.most {
            self.state.buffered.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.state.buffered.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One that waits for leave.
pub(crate) struct Waiting {
    pub(crate) state: Arc<State>,
    pub(crate) ticket: Ticket,
    pub(crate) told: oneshot::Receiver<Result<Grant, Refusal>>,
    pub(crate) over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Its caller went away.
        let now = self.state.now();
        let mut gate = self.state.gate();
        gate.counters.cancelled += 1;
        if gate.waiters.remove(&self.ticket).is_some() {
            gate.admission.cancel(self.ticket);
        } else if let Ok(Ok(grant)) = self.told.try_recv() {
            gate.admission.release(now, grant.ticket, Outcome::Broken);
        }
        gate.pump(now);
    }
}

/// Leave to send one request; what it holds is given back when this ends, once.
pub struct Permit {
    state: Arc<State>,
    ticket: Ticket,
    server: usize,
    target: Option<Arc<Target>>,
    over: bool,
}

impl Permit {
    pub(crate) fn new(state: &Arc<State>, gate: &Gate, grant: Grant) -> Self {
        let (ticket, server) = (grant.ticket, grant.server);
        let target = gate.targets.get(server).cloned();
        Self { state: Arc::clone(state), ticket, server, target, over: false }
    }

    /// To which server.
    pub(crate) fn at(&self) -> Result<(usize, Arc<Target>), Reply> {
        let target = self.target.clone().ok_or_else(|| Reply::new(503, "no_server", "no server is up"))?;
        Ok((self.server, target))
    }

    /// The server did not get it: another, where one can take it now.
    pub fn move_on(&mut self) -> bool {
        let now = self.state.now();
        let mut gate = self.state.gate();
        match gate.admission.move_on(now, self.ticket) {
            Some(server) => {
                gate.counters.moved += 1;
                self.server = server;
                self.target = gate.targets.get(server).cloned();
                true
            }
            None => {
                self.over = true;
                gate.pump(now);
                false
            }
        }
    }

    /// It has generated so many tokens so far.
    pub fn progress(&self, tokens: u64) {
        self.state.gate().admission.progress(self.ticket, tokens);
    }

    /// It is answered, with so many tokens; under the lock that somebody has.
    pub(crate) fn done(mut self, gate: &mut Gate, now: Ms, tokens: Option<u64>) {
        self.over = true;
        gate.release(now, self.ticket, Outcome::Done(tokens));
    }

    fn end(&mut self, outcome: Outcome) {
        if !self.over {
            self.over = true;
            let now = self.state.now();
            self.state.gate().release(now, self.ticket, outcome);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.end(Outcome::Broken);
    }
}
