//! What the recorder gives to the server: a pointer to the last view, nothing rendered.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualplane_base::text::printable;
use dualplane_node::clock::Moment;
use hyper::body::Bytes;

use crate::health::Health;
use crate::publish::{Cost, Counts, metrics};
use crate::view::View;

/// Who may see incidents over HTTP. Their bundles hold logs, in which secrets are masked and much else is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Nobody.
    Never,
    /// Whoever connects from the same network namespace: `kubectl port-forward`, or a user of the machine where the agent
    /// runs outside of a pod.
    #[default]
    Loopback,
    /// Whoever reaches the port (`--serve-incidents`).
    Everybody,
}

/// What is served.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of incidents.
    pub incidents: PathBuf,
    /// Who may see them.
    pub access: Access,
    /// So long after the last round began the agent is not well. Rounds are a second apart.
    pub stale: Duration,
    /// What does not work.
    pub health: Arc<Health>,
}

/// The last view, for the server.
#[derive(Debug)]
pub struct Shared {
    pub(super) options: Options,
    started: Moment,
    last: Mutex<Option<(Arc<View>, Arc<Counts>)>>,
    page: Mutex<Option<(Arc<View>, Bytes)>>,
}

impl Shared {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, started: Moment::now(), last: Mutex::new(None), page: Mutex::new(None) }
    }

    /// Takes a view: costs the thread that samples a lock and two pointers. What was there is dropped by whoever is last.
    pub fn publish(&self, view: Arc<View>, counts: Arc<Counts>) {
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace((view, counts));
        drop(before);
    }

    /// The page, written when it is first asked for and then kept until the next view.
    pub(super) fn page(&self) -> Option<Bytes> {
        let (view, counts) = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, bytes)) = page.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &view)) {
            debug_assert!(of.at == view.at);
            return Some(bytes.clone());
        }
        let mut counts = Counts::clone(&counts);
        counts.cost = Cost::own();
        counts.faults = self.options.health.faults();
        counts.faults_begun = self.options.health.begun();
        let mut text = String::with_capacity(page.as_ref().map_or(64 << 10, |(_, b)| b.len() + 4096));
        metrics::render(&view, &counts, &mut text);
        let bytes = Bytes::from(text);
        *page = Some((view, bytes.clone()));
        Some(bytes)
    }

    /// `Err` says what is wrong.
    pub(super) fn health(&self) -> Result<String, String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let at = last.as_ref().map_or(self.started, |(v, _)| v.at);
        let age = Moment::now().since(at);
        let what = if last.is_some() { "the last round began" } else { "no round yet; the agent started" };
        let text = format!("{what} {:.1} s ago\n", age.as_secs_f64());
        if age <= self.options.stale { Ok(text) } else { Err(text) }
    }

    /// The same, and whether all works that the agent needs for what it is asked to do. `Err` where it does not.
    pub(super) fn readiness(&self) -> Result<String, String> {
        let lives = self.health();
        let ready = lives.is_ok() && !self.options.health.faults().iter().any(|f| f.part.is_needed());
        let mut text = match (lives, ready) {
            (Ok(t), true) => format!("ready; {t}"),
            (Ok(t) | Err(t), _) => format!("not ready; {t}"),
        };
        text.push_str(&self.faults());
        if ready { Ok(text) } else { Err(text) }
    }

    /// A line for each thing that does not work now, and for what did not and does again.
    pub(super) fn faults(&self) -> String {
        let health = &self.options.health;
        let now = Moment::now();
        let mut out = String::new();
        let faults = health.faults();
        for f in &faults {
            let (since, times) = (now.since(f.since).as_secs(), f.times);
            let why = printable(&f.why);
            out.push_str(&format!("fault: {} for {since} s (failed {times}x): {why}\n", f.part));
        }
        for (part, n) in health.begun() {
            if !faults.iter().any(|f| f.part == part) {
                out.push_str(&format!("recovered: {part} ({n}x since the start)\n"));
            }
        }
        out
    }
}
