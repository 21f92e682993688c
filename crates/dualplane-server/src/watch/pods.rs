//! Of what a cluster tells of its pods, the deaths: each is handed out once, however often it is told.

use std::collections::HashMap;

use dualplane_base::hash::fnv1a;
use dualplane_base::incident_id::id_of;
use dualplane_base::json::str_at;
use dualplane_kube::ends::{self, End};
use dualplane_kube::follow::News;
use dualplane_report::map::{asks_for_gpu, has_engine};
use jiff::Timestamp;
use serde_json::Value;

/// A death to look at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Death {
    /// Name of the incident: the same whoever hears of the death, and whenever.
    pub(super) id: String,
    /// UID of the pod.
    pub(super) uid: String,
    /// Namespace.
    pub(super) namespace: String,
    /// Pod.
    pub(super) name: String,
    /// When, where somebody saw it.
    pub(super) at: Option<Timestamp>,
    /// The pod as it was told.
    pub(super) pod: Value,
}

impl Death {
    /// The last end of a pod.
    fn of(pod: Value, end: &End) -> Self {
        let of = |at: &str| str_at(&pod, at).to_owned();
        let (uid, namespace, name) = (of("/metadata/uid"), of("/metadata/namespace"), of("/metadata/name"));
        Self { id: id(&pod, end), uid, namespace, name, at: end.at, pod }
    }

    /// This is the same pod as it is now, and this end is still its last one.
    pub(super) fn is_last_of(&self, pod: &Value) -> bool {
        ends::last(pod).is_some_and(|end| id(pod, &end) == self.id)
    }
}

fn id(pod: &Value, end: &End) -> String {
    let of = |at| str_at(pod, at);
    let at = end.at.map_or_else(|| of("/metadata/creationTimestamp").to_owned(), |at| at.to_string());
    let sum = format!("{:016x}", sum(of("/metadata/uid"), end));
    id_of(&at, &[&sum, of("/metadata/namespace"), of("/metadata/name"), &end.container])
}

/// What tells an end from each other one.
fn sum(uid: &str, end: &End) -> u64 {
    let at = end.at.map(|at| at.to_string()).unwrap_or_default();
    fnv1a(format!("{uid}\n{}\n{}\n{at}", end.container, end.instance).bytes())
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    end: u64,
    /// The list in which the pod was last told of.
    list: u64,
}

/// What is known of a cluster's pods: of each that has an end, which it was. Others take no memory.
#[derive(Debug, Default)]
pub(super) struct Pods {
    seen: HashMap<String, Seen>,
    list: u64,
}

impl Pods {
    /// The death that is new in this, if any. `oldest`: whatever ended before is left alone.
    pub(super) fn hear(&mut self, news: News, oldest: Timestamp) -> Option<Death> {
        match news {
            News::Begins => self.list += 1,
            News::Whole => self.seen.retain(|_, s| s.list == self.list),
            News::Is(pod) => return self.look(pod, oldest),
            News::Gone(pod) => {
                let uid = str_at(&pod, "/metadata/uid").to_owned();
                let death = self.look(pod, oldest);
                self.seen.remove(&uid);
                return death;
            }
        }
        None
    }

    /// Hands out the death of this pod again when it is told of again.
    pub(super) fn forget(&mut self, uid: &str) {
        self.seen.remove(uid);
    }

    fn look(&mut self, pod: Value, oldest: Timestamp) -> Option<Death> {
        let end = ends::last(&pod)?;
        let created = || str_at(&pod, "/metadata/creationTimestamp").parse().ok();
        if end.at.or_else(created).is_some_and(|at: Timestamp| at < oldest) {
            // Not remembered: by a clock that is set right again it may not be old.
            return None;
        }
        let uid = str_at(&pod, "/metadata/uid");
        let now = Seen { end: sum(uid, &end), list: self.list };
        if self.seen.insert(uid.to_owned(), now).is_some_and(|before| before.end == now.end) {
            return None;
        }
        let wanted = !end.was_asked_for(&pod) && (asks_for_gpu(&pod) || has_engine(&pod));
        wanted.then(|| Death::of(pod, &end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    const MINUTE: i64 = 60;
    /// 2026-11-21T10:00:00Z.
    const START: i64 = 1_795_255_200;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(START + minute * MINUTE).unwrap()
    }

    /// Pod `n` after `deaths` deaths, one a minute.
    fn pod(n: usize, deaths: i64) -> Value {
        let last = (deaths > 0).then(|| {
            json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": at(deaths).to_string(),
                "containerID": format!("containerd://{n}-{deaths}")}})
        });
        json!({"metadata": {"name": format!("vllm-{n}"), "namespace": "serving", "uid": format!("uid-{n}"), "creationTimestamp": at(0).to_string()},
            "spec": {"containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.11.0"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "vllm", "restartCount": deaths, "state": {"running": {}},
                "lastState": last.unwrap_or_else(|| json!({}))}]}})
    }

    fn hear(pods: &mut Pods, news: News) -> Option<String> {
        pods.hear(news, at(0)).map(|d| d.id)
    }

    #[test]
    fn a_name_is_one_that_a_sender_may_give() {
        let mut pods = Pods::default();
        let id = hear(&mut pods, News::Is(pod(1, 1))).unwrap();
        assert!(id.starts_with("20261121T100100Z-") && id.ends_with("-serving-vllm-1-vllm"), "{id}");
        let mut lost = pod(1, 0);
        lost["status"] = json!({"phase": "Failed", "reason": "Evicted"});
        lost["metadata"]["namespace"] = json!("n".repeat(63));
        lost["metadata"]["name"] = json!("../\u{1b}".repeat(60));
        let other = hear(&mut pods, News::Is(lost)).unwrap();
        assert!(dualplane_incidents::is_sent_id(&id) && dualplane_incidents::is_sent_id(&other), "{other}");
    }

    #[test]
    fn whose_deaths_are_not_looked_at() {
        let mut other = pod(1, 1);
        other["spec"]["containers"][0]["image"] = json!("nginx:1.27");
        assert_eq!(hear(&mut Pods::default(), News::Is(other.clone())), None);
        other["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/mig-1g.10gb": "1"}});
        assert!(hear(&mut Pods::default(), News::Is(other.clone())).is_some());
        other["spec"]["containers"][0] =
            json!({"name": "vllm", "image": "registry/own:1", "command": ["sh", "-c", "exec vllm serve /m"]});
        assert!(hear(&mut Pods::default(), News::Is(other)).is_some());
        assert_eq!(Pods::default().hear(News::Is(pod(1, 1)), at(2)), None, "older than what is kept");
    }

    #[test]
    fn what_does_not_die_takes_no_memory() {
        let mut pods = Pods::default();
        for n in 0..10_000 {
            assert_eq!(hear(&mut pods, News::Is(pod(n, 0))), None);
        }
        assert_eq!(pods.seen.capacity(), 0);
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// The pod dies, and is told of so often.
        Dies(usize, usize),
        /// The watch breaks off: all is told of again.
        List,
        /// The server starts anew and knows nothing.
        Restart,
        Gone(usize),
        /// There was no room for its death.
        Forget(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let one = prop_oneof![
            4 => (0..4_usize, 0..3_usize).prop_map(|(n, times)| Step::Dies(n, times)),
            2 => Just(Step::List),
            1 => Just(Step::Restart),
            1 => (0..4_usize).prop_map(Step::Gone),
            1 => (0..4_usize).prop_map(Step::Forget),
        ];
        prop::collection::vec(one, 0..40)
    }

    proptest! {
        /// Whatever happens between: each death that was told of is handed out, under one name, and only what started anew or was
        /// forgotten hands one out twice.
        #[test]
        fn each_death_is_handed_out(steps in steps()) {
            let (mut pods, mut deaths, mut there) = (Pods::default(), [0_i64; 4], [true; 4]);
            let (mut told, mut got) = (BTreeSet::new(), BTreeSet::new());
            let mut twice_is_fine = BTreeSet::new();
            for step in steps {
                let mut out = Vec::new();
                match step {
                    Step::Dies(n, times) if there[n] => {
                        deaths[n] += 1;
                        for _ in 0..times {
                            told.insert((n, deaths[n]));
                            out.push((n, hear(&mut pods, News::Is(pod(n, deaths[n])))));
                        }
                    }
                    Step::List | Step::Restart => {
                        if matches!(step, Step::Restart) {
                            pods = Pods::default();
                            twice_is_fine.extend((0..4).map(|n| (n, deaths[n])));
                        }
                        hear(&mut pods, News::Begins);
                        for n in (0..4).filter(|n| there[*n]) {
                            told.insert((n, deaths[n]));
                            out.push((n, hear(&mut pods, News::Is(pod(n, deaths[n])))));
                        }
                        hear(&mut pods, News::Whole);
                    }
                    Step::Gone(n) if there[n] => {
                        there[n] = false;
                        told.insert((n, deaths[n]));
                        out.push((n, hear(&mut pods, News::Gone(pod(n, deaths[n])))));
                        let uid = format!("uid-{n}");
                        prop_assert!(!pods.seen.contains_key(&uid));
                    }
                    Step::Forget(n) => {
                        pods.forget(&format!("uid-{n}"));
                        twice_is_fine.insert((n, deaths[n]));
                    }
                    _ => {}
                }
                for (n, id) in out {
                    let Some(id) = id else { continue };
                    let new = got.insert((n, deaths[n], id));
                    prop_assert!(new || twice_is_fine.contains(&(n, deaths[n])));
                }
            }
            told.retain(|(_, deaths)| *deaths > 0);
            let names: BTreeSet<(usize, i64)> = got.iter().map(|(n, d, _)| (*n, *d)).collect();
            prop_assert_eq!(&names, &told);
            // One name for one death, and another for each other one.
            prop_assert_eq!(got.iter().map(|(_, _, id)| id).collect::<BTreeSet<_>>().len(), told.len());
            prop_assert_eq!(got.len(), told.len());
        }
    }
}
