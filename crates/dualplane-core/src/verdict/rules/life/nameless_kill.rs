//! The kernel killed a process at some cgroup's limit while the pod ran, and does not say whose it was.

use dualplane_base::cgroup_path::container_id;

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::evidence::host_model::Cgroup;
use crate::evidence::metrics::Sample;
use crate::evidence::{Bundle, Pod};
use crate::facts::OomRecord;
use crate::time::Stamp;
use crate::units::{Bytes, MIB};
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
    near_miss: "a victim larger than the container's limit, a counter of the container's own cgroup that shows no kill, or a pod \
    that never came near a limit",
    beats: &[
        Beats::rule("stays_ready", "the status tells of a container's first process alone"),
        Beats::rule("lived_on", "a server outlives a child that is killed"),
        Beats::rule("stopped_in_order", "a server outlives a child that is killed"),
        Beats::stage(Stage::Nothing, "a kill is shown"),
    ],
    source: "Linux mm/oom_kill.c: dump_header is rate-limited, the line of the victim is not; Kubernetes reports only the end \
    of a container's first process; cAdvisor container_memory_max_usage_bytes of the pod's cgroup and of those above it",
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
    let late = case.facts.nameless_kills.iter();
    if case.pod().is_some_and(|pod| late.clone().all(|kill| never_at_a_limit(case.bundle, pod, kill))) {
        return Err(unmet("behind the kills the pod's cgroup had never come near a limit"));
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

/// cAdvisor's peak of a cgroup, and its limit; 0 is none.
const PEAK: &str = "container_memory_max_usage_bytes";
const LIMIT: &str = "container_spec_memory_limit_bytes";
/// A charge that fails at a limit is of 32 KiB at most (`PAGE_ALLOC_COSTLY_ORDER` pages of 4 KiB; of 64 KiB: 512 KiB): who
/// stayed further below it was never refused.
const NEAR: Bytes = Bytes(MIB);

/// Measured behind the kill: the pod's cgroup, with all in it, never came near a limit in it, nor did those above it.
fn never_at_a_limit(bundle: &Bundle, pod: &Pod, kill: &OomRecord) -> bool {
    // It may have run at another limit.
    if pod.edited {
        return false;
    }
    let of_group = |s: &&Sample| {
        s.about("container").is_none() && s.label("id").is_some_and(|id| container_id(id).is_none())
    };
    let peaks = || bundle.metrics.iter().filter(|s| s.name == PEAK && s.value > 0.0).filter(of_group);
    // A kernel log may count in whole seconds, and print no zone: then it may have been hours later.
    let behind = |s: &&Sample| {
        let late = |(k, s): (Stamp, Stamp)| k.ms_until(s).is_some_and(|ms| ms >= k.slack_ms(1000));
        kill.stamp.zip(s.stamp).is_some_and(late)
    };
    let below = |s: &Sample, limit: Bytes| Bytes::from_f64(s.value).saturating_add(NEAR) < limit;
    let of_pod = |s: &&Sample| {
        s.about("pod") == Some(&pod.name) && s.about("namespace").is_none_or(|n| n == pod.namespace)
    };
    let Some(own) = peaks().filter(of_pod).find(behind) else { return false };
    let limits = pod.containers.iter().map(|c| c.memory_limit).chain([pod.memory_limit]).flatten();
    let own_path = own.label("id").unwrap_or_default();
    let above = |s: &&Sample| {
        let id = s.label("id").unwrap_or_default();
        // The machine's own shortage has words of its own.
        !id.is_empty() && id != "/" && own_path.strip_prefix(id).is_some_and(|rest| rest.starts_with('/'))
    };
    let limit_of = |s: &Sample| {
        let same =
            |l: &&Sample| l.name == LIMIT && l.label("id") == s.label("id") && l.about("container").is_none();
        bundle.metrics.iter().find(same).map(|l| Bytes::from_f64(l.value))
    };
    let mut groups = peaks().filter(above).peekable();
    limits.into_iter().all(|limit| below(own, limit))
        && groups.peek().is_some()
        && groups.all(|s| limit_of(s).is_some_and(|l| l.0 == 0 || behind(&s) && below(s, l)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LIMIT, PEAK, RULE};
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

    /// cAdvisor's rows of the pod's cgroup and of all pods', with the peak of each.
    fn peaks(own: f64, all: f64, at: i64) -> File {
        let row = |name: &str, id: &str, pod: &str, value: f64| {
            let of = if pod.is_empty() { "" } else { "serve" };
            format!("{name}{{container=\"\",id=\"{id}\",namespace=\"{of}\",pod=\"{pod}\"}} {value} {at}\n")
        };
        let path = "/kubepods/burstable/pod42ff0e71-725f-4f0b-84a9-76ebb9c9cfc7";
        let mut text = row(PEAK, path, "llm-0", own);
        text += &row(PEAK, "/kubepods", "", all);
        text += &row(LIMIT, "/kubepods", "", 5e11);
        file("cadvisor.prom", &text)
    }

    #[test]
    fn who_never_came_near_a_limit_was_not_killed_at_it() {
        let kill = || kill("2026-11-20T10:40:00+00:00", 48_512);
        let after = 1_795_171_260_000; // 10:41
        near_miss(&RULE, "stays_ready", &[living(), kill(), peaks(3e9, 9e10, after)]);
        // Its own limit is 64 GiB, and the peak lies at it; or the pods of the node were at theirs.
        holds(&RULE, &[living(), kill(), peaks(68_719_476_736.0, 9e10, after)]);
        holds(&RULE, &[living(), kill(), peaks(3e9, 5e11, after)]);
        // A clock without a zone may stand hours before.
        let local = || {
            kernel(
                "Nov 20 10:40:00 gpu-1 kernel: Memory cgroup out of memory: Killed process 7563 (python3) total-vm:90000000kB, \
                anon-rss:48512kB, file-rss:656kB, shmem-rss:0kB, UID:0 pgtables:136kB oom_score_adj:999\n",
            )
        };
        holds(&RULE, &[living(), local(), peaks(3e9, 9e10, after)]);
        near_miss(&RULE, "stays_ready", &[living(), local(), peaks(3e9, 9e10, after + 14 * 3_600_000)]);
        // Its limit was another once.
        let resized = pod_with(0, "", |p| {
            *p = serde_json::from_str(&living().1).unwrap();
            p["metadata"]["generation"] = 2.into();
        });
        holds(&RULE, &[resized, kill(), peaks(3e9, 9e10, after)]);
        // Measured before the kill.
        holds(&RULE, &[living(), kill(), peaks(3e9, 9e10, after - 61_000)]);
    }
}
