//! Reads GPUs in a thread of its own: a driver that hangs, as it does when a card falls off the bus, must not stop the other
//! plane. Both planes are read at the same time, and each says when.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::{Device, Driver, Event, GpuGap, GpuProcess, Gpus, Health, Reading};
use crate::clock::{Moment, Span};

/// What to read, and what was read. It goes to the thread and back, so nothing is allocated each time.
#[derive(Debug, Default)]
pub struct Batch {
    /// List devices anew.
    pub want_devices: bool,
    /// Read error counters.
    pub want_health: bool,
    /// Devices, where they were wanted.
    pub devices: Vec<Device>,
    /// The driver, where devices were wanted.
    pub driver: Driver,
    /// Why there are none.
    pub gap: Option<GpuGap>,
    /// Readings.
    pub readings: Vec<Reading>,
    /// Processes.
    pub processes: Vec<GpuProcess>,
    /// Error counters, where they were wanted.
    pub health: Vec<Health>,
    /// Events since the last time.
    pub events: Vec<Event>,
    /// Devices that did not answer.
    pub silent: u32,
    /// When readings and processes were read.
    pub span: Span,
}

/// The thread's end here.
#[derive(Debug)]
pub struct GpuThread {
    ask: SyncSender<Batch>,
    answers: Receiver<Batch>,
    idle: Option<Batch>,
    /// Rounds in which the driver had not answered the question before.
    pub late: u64,
}

impl GpuThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(mut gpus: Box<dyn Gpus>) -> std::io::Result<Self> {
        let (ask, asked) = sync_channel::<Batch>(1);
        let (answer, answers) = sync_channel::<Batch>(1);
        let run = move || {
            let mut before = Moment::now();
            while let Ok(mut batch) = asked.recv() {
                let from = Moment::now();
                gpus.advance(from.since(before));
                before = from;
                if batch.want_devices {
                    batch.gap = gpus.devices(&mut batch.devices).err();
                    batch.driver = gpus.driver();
                }
                batch.span.from = Moment::now();
                batch.silent = gpus.read(&mut batch.readings);
                gpus.processes(&mut batch.processes);
                batch.span.to = Moment::now();
                if batch.want_health {
                    gpus.health(&mut batch.health);
                }
                batch.events.clear();
                gpus.events(&mut batch.events);
                if answer.send(batch).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("gpus".into()).spawn(run)?;
        Ok(Self { ask, answers, idle: Some(Batch::default()), late: 0 })
    }

    /// Asks. `false` where the last question is still open: then waiting is of no use.
    pub fn ask(&mut self, want_devices: bool, want_health: bool) -> bool {
        let Some(mut batch) = self.idle.take() else {
            self.late += 1;
            return false;
        };
        batch.want_devices = want_devices;
        batch.want_health = want_health;
        batch.health.clear();
        // The thread is gone only if the driver took it down with it: then every round is late.
        if let Err(std::sync::mpsc::TrySendError::Full(b)) = self.ask.try_send(batch) {
            self.idle = Some(b);
        }
        true
    }

    /// The answer, waiting at most so long. Give it back with [`Self::done`].
    pub fn answer(&mut self, wait: Duration) -> Option<Batch> {
        self.answers.recv_timeout(wait).ok()
    }

    /// Takes a batch back.
    pub fn done(&mut self, batch: Batch) {
        self.idle = Some(batch);
    }
}
