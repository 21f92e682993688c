//! GPUs that the kubelet gave to containers: when it is asked, and whose an answer is.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dualplane_base::device_id::{is_uuid, read as device_id};
use dualplane_node::clock::Moment;
use dualplane_node::pod_resources::{Device, KubeletGap, PodDevices, PodResources};

use crate::view::{AllocatedDevice, ContainerView, View};

/// Between two questions while containers come that nobody has told of.
const CHANGED_EVERY: Duration = Duration::from_secs(10);
/// Between two questions otherwise: what a container was given stays its own for as long as its pod lives.
const EVERY: Duration = Duration::from_secs(60);

/// Namespace, pod, container.
type Names = (String, String, String);

#[derive(Debug)]
struct Known {
    uid: String,
    given: Arc<[AllocatedDevice]>,
}

/// What the kubelet told last.
#[derive(Debug)]
pub(super) struct Allocations {
    kubelet: PodResources,
    known: HashMap<Names, Known>,
    /// Somebody came of whom it has not told.
    changed: bool,
    asked: Option<Moment>,
}

impl Allocations {
    pub(super) fn start(socket: PathBuf) -> std::io::Result<Self> {
        let kubelet = PodResources::start(socket)?;
        Ok(Self { kubelet, known: HashMap::new(), changed: false, asked: None })
    }

    /// Looks up a container that just got its name. A later instance has what its pod was given; the pod's UID tells that
    /// it is not another pod of this name.
    pub(super) fn named(&mut self, c: &mut ContainerView) {
        let Some((names, uid)) = who(c) else { return };
        match self.known.get(&names).filter(|k| k.uid == uid) {
            Some(k) => c.given = Arc::clone(&k.given),
            None => self.changed = true,
        }
    }

    /// Takes the answer, where it has come, and asks again when it is time.
    pub(super) fn turn(&mut self, now: Moment, view: &mut View) {
        if let Some(answer) = self.kubelet.take() {
            view.kubelet = Some(match answer.told {
                Ok(told) => {
                    self.take(told, answer.span.from, view);
                    Ok(())
                }
                Err(gap) => {
                    // A kubelet that restarts is back in seconds; one that has no such socket will not get it.
                    self.changed |= !matches!(gap, KubeletGap::NoSocket(_) | KubeletGap::NoV1);
                    Err(gap)
                }
            });
        }
        let due = self.asked.is_none_or(|a| {
            let age = now.since(a);
            age >= EVERY || (self.changed && age >= CHANGED_EVERY)
        });
        if due && self.kubelet.ask() {
            (self.asked, self.changed) = (Some(now), false);
        }
    }

    /// Whether an answer is still to come.
    pub(super) fn waits(&self) -> bool {
        self.kubelet.is_open()
    }

    /// `from` is when it was asked: a container that came later may be of a pod that took over a name meanwhile.
    fn take(&mut self, told: Vec<PodDevices>, from: Moment, view: &mut View) {
        let mut known: HashMap<Names, Known> = HashMap::new();
        for t in told {
            let names = (t.namespace, t.pod, t.container);
            // It need not run at this moment: between two lives of a crash loop it keeps what it was given.
            let uid = self.known.remove(&names).map(|k| k.uid).unwrap_or_default();
            known.insert(names, Known { uid, given: given(&t.devices) });
        }
        for c in view.containers.values_mut().filter(|c| c.since <= from) {
            let Some((names, uid)) = who(c) else { continue };
            c.given = match known.get_mut(&names) {
                Some(k) => {
                    k.uid = uid;
                    Arc::clone(&k.given)
                }
                None => Arc::default(),
            };
        }
        self.known = known;
    }
}

fn who(c: &ContainerView) -> Option<(Names, String)> {
    let n = c.named.as_ref()?;
    let uid = n.uid.as_ref().or(c.group.identity.pod_uid.as_ref())?;
    Some(((n.namespace.clone(), n.pod.clone(), n.container.clone()), uid.clone()))
}

/// Devices one by one. Only a UUID of the driver's is certain to be one GPU: an index or a name may count otherwise than
/// the driver does.
fn given(devices: &[Device]) -> Arc<[AllocatedDevice]> {
    let mut all: Vec<AllocatedDevice> = Vec::new();
    for d in devices {
        for raw in &d.ids {
            let id = device_id(raw);
            let uuid = is_uuid(&id.id).then_some(id.id);
            all.push(AllocatedDevice { resource: d.resource.clone(), id: raw.clone(), uuid });
        }
    }
    all.sort();
    all.dedup();
    all.into()
}

#[cfg(test)]
mod tests {
    use dualplane_base::process::Process;
    use dualplane_node::cgroup::{Group, Kind};
    use dualplane_node::cri::Named;

    use super::*;

    const GPU: &str = "GPU-5fd4f087-86f3-7a43-b711-4771313afc50";

    fn container(slot: u16, uid: &str, since: u64) -> ContainerView {
        let named = Named {
            namespace: "serving".into(),
            pod: "llm-0".into(),
            uid: Some(uid.into()),
            container: "vllm".into(),
            restart: Some(0),
            folder: None,
        };
        ContainerView {
            named: Some(named),
            ..ContainerView::new(
                slot,
                Group { kind: Kind::Container, identity: Process::default() },
                Moment(since),
            )
        }
    }

    fn told(id: &str) -> Vec<PodDevices> {
        let devices = vec![Device { resource: "nvidia.com/gpu".into(), ids: vec![id.into()] }];
        vec![PodDevices {
            namespace: "serving".into(),
            pod: "llm-0".into(),
            container: "vllm".into(),
            devices,
        }]
    }

    fn ids(c: &ContainerView) -> Vec<&str> {
        c.given.iter().map(|g| g.id.as_str()).collect()
    }

    #[test]
    fn a_later_life_has_what_its_pod_was_given_and_another_pod_of_the_name_has_not() {
        let mut book = Allocations::start("/nowhere/kubelet.sock".into()).unwrap();
        let mut view = View::default();
        view.containers.insert(1, container(1, "uid-1", 10));
        book.take(told(GPU), Moment(20), &mut view);
        assert_eq!(ids(&view.containers[&1]), [GPU]);
        // It restarts: known at once, and while it is between two lives.
        view.containers.clear();
        book.take(told(GPU), Moment(30), &mut view);
        let mut again = container(2, "uid-1", 40);
        book.named(&mut again);
        assert_eq!((ids(&again), book.changed), (vec![GPU], false));
        // A new pod of a StatefulSet has the name, and maybe another card: an answer from before it came is not its own.
        let mut other = container(3, "uid-2", 50);
        book.named(&mut other);
        assert_eq!((ids(&other), book.changed), (vec![], true));
        view.containers.insert(3, other);
        book.take(told(GPU), Moment(45), &mut view);
        assert!(view.containers[&3].given.is_empty());
        book.take(told("GPU-9c1b0f7e-2d3a"), Moment(60), &mut view);
        assert_eq!(ids(&view.containers[&3]), ["GPU-9c1b0f7e-2d3a"]);
        book.take(Vec::new(), Moment(70), &mut view);
        assert!(view.containers[&3].given.is_empty() && book.known.is_empty());
    }

    #[test]
    fn it_is_asked_at_once_then_once_a_minute_and_sooner_for_newcomers() {
        let mut book = Allocations::start("/nowhere/kubelet.sock".into()).unwrap();
        let mut view = View::default();
        let second = |n: u64| Moment(n * 1_000_000_000);
        let mut asked = Vec::new();
        for n in 100..300 {
            if n == 210 {
                book.named(&mut container(1, "uid-1", 1));
            }
            let before = book.asked;
            book.turn(second(n), &mut view);
            if book.asked != before {
                asked.push(n);
            }
            let until = std::time::Instant::now() + Duration::from_secs(10);
            while book.waits() {
                assert!(std::time::Instant::now() < until);
                // The same second: nothing is due.
                book.turn(second(n), &mut view);
            }
        }
        assert_eq!(asked, [100, 160, 210, 270]);
        assert!(matches!(view.kubelet, Some(Err(KubeletGap::NoSocket(_)))));
    }

    #[test]
    fn only_uuids_name_a_gpu() {
        let ids = [
            "GPU-5fd4f087-86f3::3",
            "MIG-GPU-5fd4f087/1/0",
            "nvidia0",
            "3",
            "0000:83:00.0",
            "GPU-5fd4f087-86f3::3",
        ];
        let d =
            Device { resource: "nvidia.com/gpu".into(), ids: ids.iter().map(|i| (*i).to_owned()).collect() };
        let all = given(&[d]);
        let uuid = |id: &str| all.iter().find(|g| g.id == id).unwrap().uuid.clone();
        assert_eq!(all.len(), 5, "each once");
        assert_eq!(uuid("GPU-5fd4f087-86f3::3").as_deref(), Some("GPU-5fd4f087-86f3"));
        assert_eq!(uuid("MIG-GPU-5fd4f087/1/0").as_deref(), Some("MIG-GPU-5fd4f087/1/0"));
        assert!(["nvidia0", "3", "0000:83:00.0"].into_iter().all(|id| uuid(id).is_none()));
    }
}
