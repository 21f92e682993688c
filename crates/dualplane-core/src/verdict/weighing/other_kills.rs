//! OOM kills in other containers of the pod, and in earlier instances, beside a verdict that is none of them.

use super::Weighing;
use crate::evidence::{Container, ContainerStatus, Pod, Termination};
use crate::verdict::case::Case;
use crate::verdict::{Class, Decided, Phase, Plane, Step, Trigger};

/// Kills that are told.
const TOLD: usize = 3;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "other_kills",
    adds: "a step for OOM kills of the pod's other containers and of earlier runs; from the kernel log only if \
    the verdict is not about host RAM",
    because: "they happened, but they did not cause this end",
    source: "Linux mm/oom_kill.c: the victim's cgroup",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let Some(pod) = case.pod() else { return };
    let recorded =
        if decided.class.plane() == Plane::Host { Vec::new() } else { records(case, pod, decided) };
    statuses(case, pod, &recorded, decided);
}

/// Kills that the API tells, of containers and runs of which the kernel log at hand holds no record.
fn statuses(case: &Case<'_>, pod: &Pod, recorded: &[&str], decided: &mut Decided) {
    for c in &pod.containers {
        let ends = c.status.iter().flat_map(ContainerStatus::terminations);
        let judged = |t: &Termination| {
            case.death().is_some_and(|d| {
                (&d.container_id, d.finished, d.exit_code) == (&t.container_id, t.finished, t.exit_code)
            })
        };
        let mut killed = ends.filter(|t| t.oom_killed() && !(case.subject.is_container(c) && judged(t)));
        let Some(end) = killed.next().filter(|_| c.overcame().is_none()) else { continue };
        let whose = if case.subject.is_container(c) {
            "an earlier run of this container".to_owned()
        } else {
            format!("container {}, another container of the pod,", crate::text::name(&c.name))
        };
        let what = format!("{whose} was OOM-killed ({})", end.told(", "));
        if decided.sequence.len() > TOLD
            || !case.subject.is_container(c) && recorded.contains(&c.name.as_str())
        {
            continue;
        }
        decided.sequence.push(Step {
            class: Class::HostOomKilled,
            phase: Phase::Unknown,
            what,
            trigger: None,
            follows: false,
        });
    }
}

/// Kills that the kernel log tells; the containers that it names.
fn records<'p>(case: &Case<'_>, pod: &'p Pod, decided: &mut Decided) -> Vec<&'p str> {
    let uids = [Some(pod.uid.as_str()).filter(|u| !u.is_empty()), pod.config_hash.as_deref()];
    let mut told: Vec<String> = Vec::new();
    let mut named = Vec::new();
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
        named.extend(owner.map(|c| c.name.as_str()));
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
            follows: false,
        });
    }
    named
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, kernel, pod, weighs};

    /// A record of a container of this pod that no status knows, or of another pod's.
    fn record(pod: &str) -> File {
        let (pod, id) = (pod.replace('-', "_"), "e".repeat(64));
        let memcg = format!("/kubepods.slice/kubepods-pod{pod}.slice/cri-containerd-{id}.scope");
        kernel(&format!(
            "[ 4120.881204] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=903\n\
             [ 4120.881300] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={memcg},task_memcg={memcg},task=python3,pid=4242,uid=0\n\
             [ 4120.881400] Memory cgroup out of memory: Killed process 4242 (python3) total-vm:99999999kB, anon-rss:67000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:133000kB oom_score_adj:903\n"
        ))
    }

    #[test]
    fn the_kill_of_an_earlier_instance_is_told() {
        weighs(&RULE, &[pod(139, "Error"), record("651fc813-479c-4184-8be1-cf5e4ec41ec3")]);
    }

    #[test]
    fn the_kill_of_another_pod_is_not() {
        adds_nothing(&RULE, "segfault", &[pod(139, "Error"), record("0e1d2c3b-479c-4184-8be1-cf5e4ec41ec3")]);
    }
}
