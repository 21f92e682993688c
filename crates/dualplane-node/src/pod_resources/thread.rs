//! The thread that asks: a kubelet that hangs must not delay a round.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::{KubeletGap, PodDevices, list};
use crate::clock::{Moment, Span};

/// What the kubelet told.
#[derive(Debug)]
pub struct Answer {
    /// From when it was asked until it had answered: what it gave before is in it.
    pub span: Span,
    /// Containers with GPUs.
    pub told: Result<Vec<PodDevices>, KubeletGap>,
}

/// The thread's end here.
#[derive(Debug)]
pub struct PodResources {
    ask: SyncSender<()>,
    answers: Receiver<Answer>,
    busy: bool,
}

impl PodResources {
    /// Starts the thread. Nothing is asked yet.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(socket: PathBuf) -> std::io::Result<Self> {
        let (ask, questions) = sync_channel::<()>(1);
        let (tell, answers) = sync_channel(1);
        thread::Builder::new().name("pod-resources".into()).spawn(move || {
            while questions.recv().is_ok() {
                let from = Moment::now();
                let told = list(&socket);
                if tell.send(Answer { span: Span { from, to: Moment::now() }, told }).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, answers, busy: false })
    }

    /// Asks. `false` where the last question is still open.
    pub fn ask(&mut self) -> bool {
        if self.busy {
            return false;
        }
        self.busy = self.ask.try_send(()).is_ok();
        self.busy
    }

    /// Whether an answer is still to come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.busy
    }

    /// The answer, where it has come. Never waits.
    pub fn take(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv().ok();
        self.busy &= answer.is_none();
        answer
    }
}
