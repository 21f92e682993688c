//! What all requests share.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dualplane_incidents::{Incident, Time};
use tokio::sync::{broadcast, watch};

use crate::audit::Audit;
use crate::auth::Auth;
use crate::ingest::Ingest;
use crate::ingest::bundle::Bundles;
use crate::ingest::judge::Judge;
use crate::rehearse::Rehearse;
use crate::store::Store;

/// Incidents that a slow reader of events may be behind.
const EVENTS: usize = 1024;
/// Bytes of an unpacked report.
const REPORT: u64 = 32 << 20;

/// Tells people of what happens, a line each.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The parts of the server.
pub struct App {
    /// Database.
    pub store: Arc<dyn Store>,
    /// Way in.
    pub ingest: Ingest,
    /// Bundles.
    pub bundles: Bundles,
    /// Judge of bundles.
    pub judge: Judge,
    /// Rehearsals of fixes.
    pub rehearse: Rehearse,
    /// Who may what.
    pub auth: Auth,
    /// Log of changes and refusals.
    pub audit: Option<Audit>,
    /// New incidents.
    pub events: broadcast::Sender<Arc<Incident>>,
    /// Bytes of a bundle.
    pub max_bundle: u64,
    /// Days that a death is kept.
    pub keep_days: u32,
    /// Becomes true when the server ends; who listens has something to end before.
    pub ending: watch::Sender<bool>,
    /// For people.
    pub say: Say,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A channel for new incidents.
#[must_use]
pub fn events() -> broadcast::Sender<Arc<Incident>> {
    broadcast::channel(EVENTS).0
}

/// The time of this machine.
#[must_use]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A report as the database keeps it.
#[must_use]
pub fn pack(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to memory does not fail.
    let _ = out.write_all(text);
    out.finish().unwrap_or_default()
}

/// The report again.
#[must_use]
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    flate2::read::DeflateDecoder::new(packed).take(REPORT).read_to_end(&mut out).ok()?;
    Some(out)
}
