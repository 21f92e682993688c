//! The thread that asks engines: questions go in, answers are taken when they are there.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use dualplane_node::clock::Moment;

use super::detect::Candidate;
use super::poller::Poller;
use crate::view::EngineSample;

/// Engines of one node: eight cards, rarely more than two to a card.
const MAX_ENGINES: usize = 32;

/// Slot of a container and what its engine told.
pub type Answer = (u16, EngineSample);

/// The thread's end here.
#[derive(Debug)]
pub struct Engines {
    ask: SyncSender<Vec<Candidate>>,
    answers: Receiver<Vec<Answer>>,
    busy: bool,
    due: Moment,
    interval: Duration,
    /// Times at which the engines before had not all answered yet.
    pub late: u64,
}

impl Engines {
    /// Starts the thread; each container is asked once in `interval`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(proc_root: PathBuf, interval: Duration) -> std::io::Result<Self> {
        let (ask, questions) = sync_channel::<Vec<Candidate>>(1);
        let (tell, answers) = sync_channel(1);
        thread::Builder::new().name("engines".into()).spawn(move || {
            let mut asker = Poller::new(proc_root);
            while let Ok(candidates) = questions.recv() {
                if tell.send(asker.round(&candidates)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, answers, busy: false, due: Moment::default(), interval, late: 0 })
    }

    /// Answers that came since the last call. Never waits.
    pub fn take(&mut self) -> Vec<Answer> {
        let answers = self.answers.try_recv().ok();
        if answers.is_some() {
            self.busy = false;
        }
        answers.unwrap_or_default()
    }

    /// Whether it is time to ask again.
    #[must_use]
    pub fn is_due(&self, now: Moment) -> bool {
        now >= self.due
    }

    /// Asks, unless the last question is still under way.
    pub fn ask(&mut self, now: Moment, mut candidates: Vec<Candidate>) {
        self.due = now.plus(self.interval);
        candidates.truncate(MAX_ENGINES);
        if self.busy {
            self.late += 1;
            return;
        }
        self.busy = self.ask.try_send(candidates).is_ok();
    }

    /// Waits for the answers of the last question, for as long as told.
    pub fn wait(&mut self, most: Duration) -> Vec<Answer> {
        if !self.busy {
            return Vec::new();
        }
        let answers = self.answers.recv_timeout(most).ok();
        self.busy = answers.is_none();
        answers.unwrap_or_default()
    }
}
