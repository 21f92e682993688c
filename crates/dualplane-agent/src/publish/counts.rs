//! What the agent counts besides the view: verdicts, and what it could not do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dualplane_base::Class;
use dualplane_base::time::{Stamp, parse_rfc3339};

use super::Cost;
use crate::health::{Fault, Part};
use crate::incident::{self, Kind, State, Summary};

/// Class, plane and kind that are counted apart: there are 12 classes, 4 planes and 3 kinds.
const MAX_VERDICTS: usize = 256;
/// Containers whose last verdict is told: as many as are sampled.
const MAX_LAST: usize = 1024;
/// The kind of a container's end that was not wanted.
const DEATH: &str = "death";
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
pub type Verdict = (String, String, &'static str);

/// Incidents by their verdicts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// By class, plane and kind, since the agent started: they never go back.
    pub incidents: BTreeMap<Verdict, u64>,
    /// The last incident of each container, by namespace, pod and container.
    pub last: BTreeMap<(String, String, String), Last>,
}

/// The last incident of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Last {
    /// What it was.
    pub verdict: Verdict,
    /// When it died, milliseconds since 1970: two of one verdict are told apart by it.
    pub died_ms: Option<i64>,
}

/// Follows the folder of incidents from look to look.
///
/// The folder alone is no counter: an incident leaves it when its bundle must make room or a kill turns out to be a
/// part of a death, and its verdict comes seconds after it. A counter that went back would look like a restart of the
/// agent, and `increase()` would count all of it anew.
#[derive(Debug)]
pub struct Tally {
    /// Incidents of the folder that are counted.
    counted: BTreeSet<String>,
    incidents: BTreeMap<Verdict, u64>,
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

impl Tally {
    /// Begins at none: what the folder holds of earlier runs was counted by them.
    pub fn new<'s>(folder: impl Iterator<Item = &'s Summary>) -> Self {
        let none = |class: &Class| ((class.to_string(), class.plane().to_string(), DEATH), 0);
        // From none to one is an increase; from nothing to one is none.
        let incidents = Class::ALL.iter().map(none).collect();
        Self { counted: folder.filter(|s| is_settled(s)).map(|s| s.id.clone()).collect(), incidents }
    }

    /// Looks at the folder, the newest first: of more containers than are told of, those that died long ago are left
    /// out.
    pub fn look<'s>(&mut self, newest_first: impl Iterator<Item = &'s Summary>) -> Verdicts {
        let mut last = BTreeMap::new();
        let before = std::mem::take(&mut self.counted);
        for s in newest_first {
            let verdict = verdict(s);
            if s.kind != Kind::End && last.len() < MAX_LAST {
                let who = (s.namespace.clone(), s.pod.clone(), s.container.clone());
                let died_ms = match parse_rfc3339(&s.died_at) {
                    Some(Stamp::Wall { ms, .. }) => Some(ms),
                    _ => None,
                };
                last.entry(who).or_insert_with(|| Last { verdict: verdict.clone(), died_ms });
            }
            let counted = before.contains(&s.id);
            if !counted && !is_settled(s) {
                continue;
            }
            self.counted.insert(s.id.clone());
            if !counted && (self.incidents.len() < MAX_VERDICTS || self.incidents.contains_key(&verdict)) {
                *self.incidents.entry(verdict).or_insert(0) += 1;
            }
        }
        Verdicts { incidents: self.incidents.clone(), last }
    }
}

/// It is judged, or it is clear that it will not be.
fn is_settled(s: &Summary) -> bool {
    s.kind == Kind::End || matches!(s.state, State::Judged | State::Dropped)
}

fn verdict(s: &Summary) -> Verdict {
    let kind = match s.kind {
        Kind::Death => DEATH,
        Kind::Kill => "kill",
        Kind::End => "end",
    };
    let class = s.class.clone().unwrap_or_else(|| UNJUDGED.into());
    (class, s.plane.clone().unwrap_or_else(|| "none".into()), kind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::incident::SCHEMA;

    fn summary(n: usize, pod: &str, kind: Kind, state: State, class: Option<&str>) -> Summary {
        let text = serde_json::json!({"schema": SCHEMA, "id": format!("{n:08}"), "kind": kind, "state": state,
            "died_at": "", "node": "n", "namespace": "s", "pod": pod, "container": "c", "first": true, "class": class,
            "plane": class.map(|_| "host"), "bytes": 1});
        serde_json::from_value(text).unwrap()
    }

    fn total(v: &Verdicts) -> u64 {
        v.incidents.values().sum()
    }

    #[test]
    fn the_last_verdict_of_each_container_is_told_of_the_newest() {
        let all = [
            summary(1, "a", Kind::Death, State::Judged, Some("host_oom_killed")),
            summary(2, "a", Kind::End, State::Kept, None),
            summary(3, "a", Kind::Death, State::Judged, Some("shm_exhausted")),
            summary(4, "b", Kind::Kill, State::Kept, None),
        ];
        let v = Tally::new([].into_iter()).look(all.iter().rev());
        let last = |pod: &str| v.last.get(&("s".into(), pod.into(), "c".into())).map(|l| l.verdict.clone());
        assert_eq!(last("a"), Some(("shm_exhausted".into(), "host".into(), "death")));
        assert_eq!(last("b"), Some((UNJUDGED.into(), "none".into(), "kill")));
        assert_eq!(total(&v), 3, "the kill may yet be judged");
    }

    #[test]
    fn a_folder_of_earlier_runs_counts_as_none_and_each_class_stands_at_none() {
        let old = [summary(1, "a", Kind::Death, State::Judged, Some("host_oom_killed"))];
        let v = Tally::new(old.iter()).look(old.iter());
        assert_eq!((total(&v), v.incidents.len()), (0, Class::ALL.len()));
    }

    #[test]
    fn of_too_many_containers_the_newest_are_told() {
        let all: Vec<Summary> = (0..MAX_LAST + 10)
            .map(|n| summary(n, &format!("p{n}"), Kind::Death, State::Judged, Some("host_oom_killed")))
            .collect();
        let v = Tally::new([].into_iter()).look(all.iter().rev());
        let told = |n: usize| v.last.contains_key(&("s".into(), format!("p{n}"), "c".into()));
        assert_eq!((v.last.len(), told(9), told(10), told(MAX_LAST + 9)), (MAX_LAST, false, true, true));
        assert_eq!(total(&v), (MAX_LAST + 10) as u64);
    }

    /// What the folder holds of one incident at one look: nothing yet or no more, or how far it is.
    fn looks() -> impl Strategy<Value = Vec<Vec<Option<State>>>> {
        let state = prop_oneof![
            Just(None),
            Just(Some(State::Begun)),
            Just(Some(State::Kept)),
            Just(Some(State::Judged)),
            Just(Some(State::Dropped)),
        ];
        proptest::collection::vec(proptest::collection::vec(state, 4), 1..8)
    }

    proptest! {
        #[test]
        fn counts_never_go_back_and_an_unfinished_incident_counts_nowhere(looks in looks()) {
            let mut tally = Tally::new([].into_iter());
            let mut before = BTreeMap::new();
            for look in looks {
                let folder: Vec<Summary> = look
                    .iter()
                    .enumerate()
                    .filter_map(|(n, state)| {
                        let class = matches!(state, Some(State::Judged)).then_some("cuda_oom_load");
                        Some(summary(n, "a", Kind::Death, (*state)?, class))
                    })
                    .collect();
                let v = tally.look(folder.iter().rev());
                let settled = folder.iter().filter(|s| is_settled(s)).count() as u64;
                prop_assert!(total(&v) >= settled);
                let of = |v: &BTreeMap<Verdict, u64>, of: &Verdict| v.get(of).copied().unwrap_or(0);
                for (what, n) in &before {
                    prop_assert!(of(&v.incidents, what) >= *n, "{:?}", what);
                }
                prop_assert!(total(&v) <= before.values().sum::<u64>() + settled);
                before = v.incidents;
            }
        }
    }
}
