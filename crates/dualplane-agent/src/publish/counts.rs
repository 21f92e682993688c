//! What the agent counts besides the view: verdicts, and what it could not do.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Cost;
use crate::health::{Fault, Part};
use crate::incident::{self, Kind, Summary};

/// Class, plane and kind that are counted apart: there are 12 classes, 4 planes and 3 kinds.
const MAX_VERDICTS: usize = 256;
/// Containers whose last verdict is told: as many as are sampled.
const MAX_LAST: usize = 1024;
/// The class of an incident that is not judged.
const UNJUDGED: &str = "unjudged";

/// Counts of a running agent. All of them only grow, but for those that say otherwise.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Name of the node: the label `node` of everything.
    pub node: String,
    /// Incidents by class, plane and kind; see [`Counts::add_incident`].
    pub incidents: BTreeMap<(String, String, &'static str), u64>,
    /// The last verdict of each container: namespace, pod, container → class, plane, kind.
    pub last: BTreeMap<(String, String, String), (String, String, &'static str)>,
    /// The folder of incidents.
    pub store: incident::Counts,
    /// Total time spent in sampling rounds.
    pub round_time: Duration,
    /// Rounds in which the GPU driver did not answer in time.
    pub gpu_late: u64,
    /// Bytes of the ring on the disk; may shrink.
    pub ring_bytes: Option<u64>,
    /// How far back the ring reaches; may shrink.
    pub ring_span: Option<Duration>,
    /// Records that the kernel overwrote before they could be read.
    pub kernel_lost: u64,
    /// What could not be kept, by what it was: `log`, `bundle`, `ring`, …
    pub lost: BTreeMap<&'static str, u64>,
    /// What does not work now.
    pub faults: Vec<Fault>,
    /// Faults that began since the start, by part.
    pub faults_begun: BTreeMap<Part, u64>,
    /// What was handed on.
    pub sinks: Vec<SinkCounts>,
    /// What the agent costs. [`super::Server`] reads it anew for each page.
    pub cost: Cost,
}

/// Deliveries to one sink.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SinkCounts {
    /// Its name.
    pub name: String,
    /// Incidents delivered.
    pub delivered: u64,
    /// Attempts that failed and are repeated.
    pub failed: u64,
    /// Incidents that it refused for good.
    pub refused: u64,
    /// Incidents whose bundle was deleted before delivery.
    pub lost: u64,
    /// Incidents that wait; no counter.
    pub pending: u64,
}

impl Counts {
    /// Counts an incident once it is judged, or when it is clear that it will not be.
    pub fn add_incident(&mut self, s: &Summary) {
        let kind = match s.kind {
            Kind::Death => "death",
            Kind::Kill => "kill",
            Kind::End => "end",
        };
        let class = s.class.clone().unwrap_or_else(|| UNJUDGED.into());
        let key = (class, s.plane.clone().unwrap_or_else(|| "none".into()), kind);
        if s.kind != Kind::End && self.last.len() < MAX_LAST {
            let who = (s.namespace.clone(), s.pod.clone(), s.container.clone());
            self.last.insert(who, key.clone());
        }
        if self.incidents.len() < MAX_VERDICTS || self.incidents.contains_key(&key) {
            *self.incidents.entry(key).or_insert(0) += 1;
        }
    }
}
