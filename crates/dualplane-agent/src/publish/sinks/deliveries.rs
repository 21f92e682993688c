//! A thread for each sink: a slow one holds up neither the others nor the recorder.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dualplane_node::clock::Moment;

use super::Sink;
use super::worker::{Next, Worker};
use crate::health::{Health, Level, Part, line_of};
use crate::publish::SinkCounts;

/// Without being woken the folder is looked at so often: an incident that is never judged has an age, not an event.
const LOOK: Duration = Duration::from_secs(30);

/// Deliveries under way.
#[derive(Debug)]
pub struct Deliveries {
    common: Arc<SharedState>,
}

#[derive(Debug)]
struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    /// Grows with each [`Deliveries::wake`].
    call: u64,
    sinks: Vec<SinkCounts>,
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deliveries {
    /// Starts a thread for each sink. `state` is a folder of the agent's own for markers, `incidents` the folder of bundles.
    ///
    /// # Errors
    /// Markers cannot be read, or no thread can be started.
    pub fn start(
        state: &Path,
        incidents: &Path,
        sinks: Vec<Box<dyn Sink>>,
        health: &Arc<Health>,
    ) -> io::Result<Self> {
        let common = Arc::new(SharedState { state: Mutex::new(State::default()), changed: Condvar::new() });
        let all = Self { common: Arc::clone(&common) };
        for (place, sink) in sinks.into_iter().enumerate() {
            let worker = Worker::open(sink, state, incidents)?;
            common.lock().sinks.push(worker.counts.clone());
            let (common, health) = (Arc::clone(&common), Arc::clone(health));
            let name = format!("sink-{place}");
            std::thread::Builder::new().name(name).spawn(move || run(worker, place, &common, &health))?;
        }
        Ok(all)
    }

    /// Says that the folder of incidents changed. Costs a lock.
    pub fn wake(&self) {
        self.common.lock().call += 1;
        self.common.changed.notify_all();
    }

    /// Counts of each sink.
    #[must_use]
    pub fn counts(&self) -> Vec<SinkCounts> {
        self.common.lock().sinks.clone()
    }
}

impl Drop for Deliveries {
    /// Asks the threads to end and waits for none: one may be inside of a request of two minutes, and a delivery that is
    /// cut off is made again.
    fn drop(&mut self) {
        self.common.lock().stop = true;
        self.common.changed.notify_all();
    }
}

fn run(mut worker: Worker, place: usize, common: &SharedState, health: &Health) {
    let part = Part::Sink(worker.counts.name.clone());
    loop {
        let call = {
            let now = common.lock();
            if now.stop {
                return;
            }
            now.call
        };
        let next = worker.step(Moment::now());
        health.report(&part, worker.trouble.clone().map_or(Ok(()), Err));
        if let Some((incident, why)) = worker.refusal.take() {
            let line = line_of(Level::Warn, "refused").with("sink", &worker.counts.name);
            health.say(line.with("incident", &incident).with("why", &why));
        }
        let mut now = common.lock();
        if let Some(slot) = now.sinks.get_mut(place) {
            *slot = worker.counts.clone();
        }
        let wait = match next {
            Next::At(at) => at.since(Moment::now()).min(LOOK),
            Next::Idle => LOOK,
        };
        // While a failed sink waits, a new incident is no reason to try sooner.
        let woken = |n: &mut State| !n.stop && (n.call == call || matches!(next, Next::At(_)));
        if !wait.is_zero() {
            drop(common.changed.wait_timeout_while(now, wait, woken));
        }
    }
}
