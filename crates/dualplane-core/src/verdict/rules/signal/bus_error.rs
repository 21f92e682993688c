//! Exit code 135 is SIGBUS: a mapped page could not be backed, in containers nearly always a full /dev/shm.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::evidence::Pod;
use crate::verdict::case::Case;
use crate::verdict::proof::{SharedMemory, Signal};
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "bus_error",
    stage: Stage::Signal,
    classes: &[Class::HostAllocFailure],
    when: "the exit code is 135 (128 + SIGBUS)",
    near_miss: "a SIGBUS reported only by a log line: that line decides",
    beats: &[
        Beats::stage(Stage::Symptom, "memory pressure that the server survived does not raise SIGBUS"),
        Beats::stage(Stage::Failure, "errors around a bus error are consequences of the missing page"),
        Beats::stage(Stage::Unexplained, "the signal names its cause"),
        Beats::stage(Stage::Life, "the end is explained"),
        Beats::stage(Stage::Nothing, "the end is explained"),
    ],
    source: "Linux tmpfs: SIGBUS where a page of a full file system is touched; container runtimes' 64 MiB of /dev/shm",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    case.death().filter(|d| d.ended_with(135)).ok_or_else(|| unmet("the exit code is not 135 (SIGBUS)"))?;
    let container = case
        .pod()
        .and_then(|p| {
            let name = case.subject.container.as_deref().unwrap_or_default();
            p.containers.iter().find(|c| c.name == name)
        })
        .ok_or_else(|| unmet("the pod object does not contain the container"))?;
    let place = case.pod_place();
    let mut supports = vec![Cited::at(Signal::BusError, &place)];
    let has_shm = container.mounts.iter().any(|(_, p)| p == "/dev/shm");
    let shm = match (has_shm, case.pod().is_some_and(Pod::whole)) {
        (true, _) => SharedMemory::Mounted,
        (false, true) => SharedMemory::Default,
        (false, false) => SharedMemory::Unknown,
    };
    supports.push(Cited::at(Signal::SharedMemory(shm), &place));
    let summary = "the process died from SIGBUS: a shared memory page could not be backed";
    let confidence = if has_shm { Confidence::Low } else { Confidence::Medium };
    let mut d = decided(Class::HostAllocFailure, case.end_phase(), confidence, summary, supports);
    d.against.push(Cited::plain(Signal::CutFile));
    Ok(d)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod};

    #[test]
    fn sigbus_is_a_page_without_backing() {
        holds(&RULE, &[pod(135, "Error")]);
    }

    #[test]
    fn sigsegv_is_not() {
        near_miss(&RULE, "segfault", &[pod(139, "Error")]);
    }
}
