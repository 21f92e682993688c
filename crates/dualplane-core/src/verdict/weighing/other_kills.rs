//! OOM kills in other containers of the pod, and in earlier instances, beside a verdict that is none of them.

use super::Weighing;
use crate::evidence::{Container, ContainerStatus};
use crate::verdict::case::Case;
use crate::verdict::{Class, Decided, Plane, Step, Trigger};

/// Kills that are told.
const TOLD: usize = 3;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "other_kills",
    adds: "a step for kernel records of the pod's other containers and earlier instances, if the verdict \
    is not about host RAM",
    because: "the kernel log shows them, but they did not cause this end",
    source: "Linux mm/oom_kill.c: the victim's cgroup",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() == Plane::Host {
        return;
    }
    let Some(pod) = case.pod() else { return };
    let uids = [Some(pod.uid.as_str()).filter(|u| !u.is_empty()), pod.config_hash.as_deref()];
    let mut told: Vec<String> = Vec::new();
    for oom in &case.facts.ooms {
        let id = oom.container_id();
        let of = |c: &&Container| {
            let ids = c.status.iter().flat_map(ContainerStatus::instance_ids);
            id.as_deref().is_some_and(|id| ids.into_iter().any(|i| i == id))
        };
        let owner = pod.containers.iter().find(of);
        let known = |s: &Step| s.trigger.as_ref().is_some_and(|t| t.place == oom.place);
        if decided.sequence.iter().any(known)
            || owner.is_some_and(|c| c.overcame().is_some())
            || owner.is_none() && !oom.pod_uid().is_some_and(|u| uids.contains(&Some(u.as_str())))
        {
            continue;
        }
        let whose = match owner {
            Some(c) if Some(&c.name) != case.subject.container.as_ref() => {
                format!("container {}, another container of the pod", crate::text::name(&c.name))
            }
            Some(_) => "this container".to_owned(),
            None => "an earlier container of the pod".to_owned(),
        };
        if told.contains(&whose) || told.len() >= TOLD {
            continue;
        }
        let stamp = oom.stamp;
        let what = format!("the kernel OOM-killed a process of {whose}");
        told.push(whose);
        let trigger = Trigger {
            place: oom.place.clone(),
            text: oom.text.clone(),
            stamp,
            signature: "kernel.oom_killer".into(),
            sizes: None,
        };
        decided.sequence.push(Step {
            class: Class::HostOomKilled,
            phase: decided.phase,
            what,
            trigger: Some(trigger),
        });
    }
}
