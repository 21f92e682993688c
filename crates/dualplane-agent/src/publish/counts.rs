//! What the agent counts besides the view: verdicts, and what it could not do.

use std::collections::BTreeMap;
use std::sync::Arc;
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
    /// What the incidents were. Shared: they change with a death, and a view comes each second.
    pub verdicts: Arc<Verdicts>,
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

/// Class, plane and kind of an incident.
type Verdict = (String, String, &'static str);

/// The incidents of the folder by their verdicts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// By class, plane and kind.
    pub incidents: BTreeMap<Verdict, u64>,
    /// The last verdict of each container, by namespace, pod and container.
    pub last: BTreeMap<(String, String, String), Verdict>,
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

impl Verdicts {
    /// Of these incidents, the newest first: of more containers than are told of, those that died long ago are left out.
    pub fn of<'s>(newest_first: impl Iterator<Item = &'s Summary>) -> Self {
        let mut out = Self::default();
        newest_first.for_each(|s| out.add(s));
        out
    }

    /// Counts an incident once it is judged, or when it is clear that it will not be.
    fn add(&mut self, s: &Summary) {
        let kind = match s.kind {
            Kind::Death => "death",
            Kind::Kill => "kill",
            Kind::End => "end",
        };
        let class = s.class.clone().unwrap_or_else(|| UNJUDGED.into());
        let key = (class, s.plane.clone().unwrap_or_else(|| "none".into()), kind);
        if s.kind != Kind::End && self.last.len() < MAX_LAST {
            let who = (s.namespace.clone(), s.pod.clone(), s.container.clone());
            self.last.entry(who).or_insert_with(|| key.clone());
        }
        if self.incidents.len() < MAX_VERDICTS || self.incidents.contains_key(&key) {
            *self.incidents.entry(key).or_insert(0) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{SCHEMA, State};

    fn summary(n: usize, pod: &str, kind: Kind, class: Option<&str>) -> Summary {
        let text = serde_json::json!({"schema": SCHEMA, "id": format!("{n:08}"), "kind": kind, "state": State::Judged,
            "died_at": "", "node": "n", "namespace": "s", "pod": pod, "container": "c", "first": true, "class": class,
            "plane": class.map(|_| "host"), "bytes": 1});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn the_last_verdict_of_each_container_is_told_of_the_newest() {
        let all = [
            summary(1, "a", Kind::Death, Some("host_oom_killed")),
            summary(2, "a", Kind::End, None),
            summary(3, "a", Kind::Death, Some("shm_exhausted")),
            summary(4, "b", Kind::Kill, None),
        ];
        let v = Verdicts::of(all.iter().rev());
        let last = |pod: &str| v.last.get(&("s".into(), pod.into(), "c".into())).cloned();
        assert_eq!(last("a"), Some(("shm_exhausted".into(), "host".into(), "death")));
        assert_eq!(last("b"), Some((UNJUDGED.into(), "none".into(), "kill")));
        assert_eq!(v.incidents.values().sum::<u64>(), 4);
    }

    #[test]
    fn of_too_many_containers_the_newest_are_told() {
        let all: Vec<Summary> = (0..MAX_LAST + 10)
            .map(|n| summary(n, &format!("p{n}"), Kind::Death, Some("host_oom_killed")))
            .collect();
        let v = Verdicts::of(all.iter().rev());
        let told = |n: usize| v.last.contains_key(&("s".into(), format!("p{n}"), "c".into()));
        assert_eq!((v.last.len(), told(9), told(10), told(MAX_LAST + 9)), (MAX_LAST, false, true, true));
        assert_eq!(v.incidents.values().copied().collect::<Vec<_>>(), [(MAX_LAST + 10) as u64]);
    }
}
