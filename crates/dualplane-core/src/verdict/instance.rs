//! Which of the ends that the API knows of a container is judged: it keeps those of two instances at most.

use super::{Class, Plane};
use crate::evidence::{ContainerStatus, Judged, State, Termination};
use crate::facts::{Facts, Hit};
use crate::knowledge::Mark;

/// Without a record of which it is: an OOM kill before other ends, unless the life after it tells why it ended itself. A second
/// start that finds its port taken is no OOM kill, and it is what keeps the container down now.
pub(super) fn of_two<'a>(status: &'a ContainerStatus, facts: &Facts) -> Option<&'a Termination> {
    let latest = status.terminations().next().filter(|t| !t.clean());
    latest.filter(|t| tells_why(t, facts)).or_else(|| worst(status.terminations()))
}

/// Its own log names the cause of an end within its life, and no answer after that.
fn tells_why(end: &Termination, facts: &Facts) -> bool {
    let within = |hit: &Hit| {
        let (began, ended) = (end.started.zip(hit.stamp), end.finished.zip(hit.stamp));
        began.and_then(|(b, at)| b.reaches(at)) == Some(true)
            && ended.and_then(|(e, at)| at.reaches(e)) == Some(true)
    };
    let answered =
        |hit: &Hit| facts.logs.iter().any(|l| l.file == hit.place.file && l.last_served > hit.place.line);
    let memory = |hit: &Hit| hit.class.map(Class::plane).is_some_and(|p| p != Plane::None);
    let names = |hit: &Hit| match hit.mark {
        Mark::Fatal => memory(hit),
        // SIGKILL comes from outside: no failure that the log tells of sent it.
        Mark::Failure => !end.ended_with(137),
        _ => false,
    };
    facts.hits.iter().any(|hit| !hit.kernel && names(hit) && within(hit) && !answered(hit))
}

/// The end of the recorded instance. The API may hold that of an earlier or a later one as well, or only those.
pub(super) fn recorded(status: &ContainerStatus, judged: &Judged) -> Option<Termination> {
    let Some(id) = judged.container_id.as_deref().filter(|id| !id.is_empty()) else {
        // A systemd unit has no id, and no API that keeps its end.
        return worst(status.terminations()).cloned().or_else(|| unseen(None, judged));
    };
    let same = |known: &str| known.ends_with(id);
    let ends = || status.terminations();
    if let Some(own) = ends().find(|t| t.container_id.as_deref().is_some_and(same)) {
        return Some(own.clone());
    }
    // Without ids the count of restarts tells which instance an end is of: the running one is the latest.
    let nameless = || ends().filter(|t| t.container_id.is_none());
    if nameless().next().is_some() {
        let latest = status.restarts.zip(judged.restart).map(|(now, then)| now == then);
        let of = match (latest, &status.state, &status.last) {
            (Some(true), State::Terminated(t), _)
            | (Some(true), State::Waiting { .. }, State::Terminated(t)) => Some(t),
            (Some(true), ..) => None,
            (Some(false), State::Terminated(_) | State::Running { .. }, State::Terminated(t))
                if status.restarts == judged.restart.map(|n| n + 1) =>
            {
                Some(t)
            }
            (Some(false), ..) => None,
            (None, ..) => return worst(nameless()).cloned(),
        };
        return of.cloned().or_else(|| unseen(Some(id), judged));
    }
    ends().next().and_then(|_| unseen(Some(id), judged))
}

/// The instance ended, and the API holds no word of it any more: neither its exit code nor its reason is that of another.
fn unseen(id: Option<&str>, judged: &Judged) -> Option<Termination> {
    let finished = judged.ended?;
    Some(Termination {
        container_id: id.map(str::to_owned),
        finished: Some(finished),
        ..Termination::default()
    })
}

/// Of the (at most two) ends the API knows: an OOM kill before others, else the latest.
fn worst<'a>(ends: impl Iterator<Item = &'a Termination>) -> Option<&'a Termination> {
    let ends: Vec<&Termination> = ends.collect();
    ends.iter()
        .find(|t| t.oom_killed())
        .or_else(|| ends.iter().find(|t| !t.clean()))
        .or(ends.first())
        .copied()
}

#[cfg(test)]
mod tests {
    use crate::verdict::Class;
    use crate::verdict::rules::testing::{File, event, file, judged, pod_with};
    use serde_json::json;

    /// OOM-killed at 10:30:00, then a life from 10:30:05 to 10:31:00 that ended with this code.
    fn killed_then(code: i64) -> File {
        pod_with(137, "OOMKilled", |p| {
            p["status"]["containerStatuses"][0]["state"] = json!({"terminated": {
                "exitCode": code, "reason": "Error", "containerID": format!("containerd://{}", "a".repeat(64)),
                "startedAt": "2026-11-20T10:30:05Z", "finishedAt": "2026-11-20T10:31:00Z"
            }});
        })
    }

    fn class(code: i64, log: &str) -> Class {
        judged(&[killed_then(code), file("logs/vllm.current.log", log)]).class
    }

    const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use.\n";

    #[test]
    fn the_latest_is_judged_where_its_own_memory_ran_out() {
        let of_it =
            format!("2026-11-20T10:30:59.100Z Starting to load model\n2026-11-20T10:30:59.900Z {OOM}");
        assert_eq!(class(1, &of_it), Class::CudaOomLoad);
    }

    #[test]
    fn a_port_that_is_taken_is_no_oom_kill() {
        let log = "2026-11-20T10:30:59.900Z OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n";
        assert_eq!(class(1, log), Class::NotMemory);
        // Whoever sent SIGKILL, the port did not.
        assert_eq!(class(137, log), Class::HostOomKilled);
    }

    #[test]
    fn else_the_oom_kill_is() {
        for log in [
            "2026-11-20T10:30:59.900Z INFO starting\n".to_owned(),
            // It answered requests after it.
            format!("2026-11-20T10:30:09.900Z {OOM}")
                + &"2026-11-20T10:30:50.000Z INFO:     10.0.0.7:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n"
                    .repeat(30),
        ] {
            assert_eq!(class(1, &log), Class::HostOomKilled, "{log}");
        }
    }

    /// Our own agent's Event on the pod quotes the first error of one instance.
    #[test]
    fn what_our_agent_said_of_the_life_before_is_not_of_this_one() {
        let class = |of: &str| {
            let said = format!(
                "the container was OOM-killed over its host RAM limit (host_oom_killed, host plane); first line: Memory \
                 cgroup out of memory: Killed process 7563 (vllm) total-vm:50376kB, anon-rss:48512kB, file-rss:656kB, \
                 shmem-rss:0kB, UID:0 pgtables:136kB oom_score_adj:999; incident \
                 20261120T102948.731Z-serve-llm-0-vllm-7-{of} on node gpu-1"
            );
            judged(&[pod_with(1, "Error", |_| {}), event("DualplaneVerdict", &said)]).class
        };
        assert_eq!(class("bbbbbbbb"), Class::HostOomKilled);
        assert_eq!(class("5b094902"), Class::Unknown);
    }
}
