//! The kernel killed a process at some cgroup's limit while the pod ran, and does not say whose it was.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::evidence::host_model::Cgroup;
use crate::verdict::case::Case;
use crate::verdict::memory::{Whose, whose};
use crate::verdict::proof::Kernel;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const ID: &str = "nameless_kill";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Life,
    classes: &[Class::Unknown],
    when: "a container runs, and the kernel killed a process that it could hold at the limit of a cgroup whose name was lost",
    near_miss: "a victim larger than the container's limit, or a counter of the container's own cgroup that shows no kill",
    beats: &[
        Beats::rule("stays_ready", "the status tells of a container's first process alone"),
        Beats::rule("lived_on", "a server outlives a child that is killed"),
        Beats::rule("stopped_in_order", "a server outlives a child that is killed"),
        Beats::stage(Stage::Nothing, "a kill is shown"),
    ],
    source: "Linux mm/oom_kill.c: dump_header is rate-limited, the line of the victim is not; Kubernetes reports only the end \
    of a container's first process",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.death().is_some() {
        return Err(unmet("a container of the pod ended"));
    }
    let kill =
        case.facts.nameless_kills.first().ok_or_else(|| {
            unmet("each kill in the kernel log has a name, or the pod cannot hold its victim")
        })?;
    if none_counted(case) {
        return Err(unmet("the container's own cgroup counts no OOM kill"));
    }
    let supports =
        kill.victims.iter().take(1).map(|v| Cited::at(Kernel::Nameless(v.clone()), &kill.place)).collect();
    let summary = "the server runs, but the kernel killed a process at a cgroup's limit and did not name the cgroup: it may \
        be a process of this pod";
    Ok(decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, supports))
}

/// The pod's cgroup counts no kill, or those of all its containers.
fn none_counted(case: &Case<'_>) -> bool {
    let none = |c: &&Cgroup| c.oom_kill.as_ref().is_some_and(|k| k.count == 0);
    let whose: Vec<Whose> =
        case.bundle.cgroups.iter().filter(none).map(|c| whose(c, case.bundle, &case.subject)).collect();
    let containers = case.pod().map_or(1, |p| p.containers.iter().filter(|c| c.status.is_some()).count());
    whose.contains(&Whose::Pod) || whose.iter().filter(|w| **w != Whose::Other).count() >= containers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RULE;
    use crate::verdict::rules::testing::{File, file, holds, kernel, near_miss, pod_with};

    fn living() -> File {
        pod_with(0, "", |p| {
            p["status"]["containerStatuses"][0]["state"] =
                json!({"running": {"startedAt": "2026-11-20T10:30:10Z"}});
            p["status"]["containerStatuses"][0]["lastState"] = json!({});
            p["status"]["containerStatuses"][0]["ready"] = true.into();
            p["status"]["containerStatuses"][0]["restartCount"] = 0.into();
        })
    }

    fn kill(time: &str, anon_kb: u64) -> File {
        kernel(&format!(
            "{time} gpu-1 kernel: Memory cgroup out of memory: Killed process 7563 (python3) total-vm:90000000kB, \
             anon-rss:{anon_kb}kB, file-rss:656kB, shmem-rss:0kB, UID:0 pgtables:136kB oom_score_adj:999\n"
        ))
    }

    #[test]
    fn whose_child_it_was_is_open() {
        holds(&RULE, &[living(), kill("2026-11-20T10:40:00+00:00", 48_512)]);
    }

    #[test]
    fn a_process_that_it_could_not_hold_is_of_another() {
        near_miss(&RULE, "stays_ready", &[living(), kill("2026-11-20T10:40:00+00:00", 70_000_000)]);
    }

    #[test]
    fn before_it_began_it_had_no_process() {
        near_miss(&RULE, "stays_ready", &[living(), kill("2026-11-20T10:20:00+00:00", 48_512)]);
    }

    #[test]
    fn its_own_counter_settles_it() {
        let events = |count: u64| {
            file("memory.events", &format!("low 0\nhigh 0\nmax 9\noom {count}\noom_kill {count}\n"))
        };
        let kill = || kill("2026-11-20T10:40:00+00:00", 48_512);
        near_miss(&RULE, "stays_ready", &[living(), kill(), events(0)]);
        near_miss(&RULE, "cgroup_oom_kill", &[living(), kill(), events(1)]);
    }
}
