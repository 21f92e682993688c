//! Words for what Kubernetes says.

use dualplane_base::text::name;
use dualplane_core::verdict::proof::Status;

pub(super) fn sentence(proof: &Status) -> String {
    match proof {
        Status::OomKilled { container, exit_code } => {
            let whose = match container {
                Some(container) => format!("container {}", name(container)),
                None => "the container".to_owned(),
            };
            let code = exit_code.map_or(String::new(), |c| format!(", exit code {c}"));
            format!("{whose}: reason OOMKilled{code}")
        }
        Status::OtherExitCode(code) => format!(
            "exit code {code}: the killed process did not end the container, or the container ended by itself \
            afterwards"
        ),
        Status::MemoryLimit(limit) => format!("memory limit {}", limit.k8s()),
        Status::Ended(end) => end.told(", "),
        Status::EndedAsAfterFailure(end) => {
            format!("{}; an API server may also exit so after its engine failed", end.told(", "))
        }
        Status::EndedOtherwise(end) => {
            // A cut-out that lacks the reason may lack that one.
            let not = if end.reason.is_empty() { "" } else { ", not OOMKilled" };
            format!("{}{not}", end.told(" with "))
        }
        Status::EndedNotOomKilled(end) => {
            format!("the container ended with {}, not OOMKilled", end.told(" and "))
        }
        Status::WaitsForRestart(reason) => {
            format!("{reason}; the status does not say how the container ended")
        }
        Status::Restarted(times) => {
            format!("restart count {times}; the status does not say how the container ended")
        }
        Status::ProbeKills { message, count, restarts } => {
            format!("{message} ({count} times, of {restarts} restarts)")
        }
        Status::Disruption { reason, message } => {
            format!("condition DisruptionTarget, reason {reason}: {message}")
        }
        Status::MemoryVolume { path, size } => {
            let size = size.map_or(String::new(), |s| format!(" of {}", s.k8s()));
            format!("{path} is an emptyDir with medium Memory{size}")
        }
        Status::SharedGpu(resource) => {
            format!("the pod requests {resource}: the GPU is time-sliced, without memory isolation")
        }
        Status::Changed { revision, change } => {
            format!("revision {revision} changed {} ({})", change.field, change.how())
        }
        Status::Blurred => {
            "letters of it had to be guessed, as in a text that was read from a picture".to_owned()
        }
        Status::NoMemoryLimit => {
            "no container of the pod has a memory limit, so the node (or a limit on the pod itself) ran out"
                .to_owned()
        }
        Status::SystemOom => {
            "the node has a SystemOOM event, so the node may have run out instead".to_owned()
        }
        Status::EarlierOomKill => {
            "reason OOMKilled: a process of the container was OOM-killed earlier in its lifetime; the kernel \
            log shows which one and when"
                .to_owned()
        }
        Status::MayMissOomKill => {
            "the status says Error, not OOMKilled; the runtime can miss an OOM kill, so check the kernel log"
                .to_owned()
        }
        Status::CleanAfterFailure => {
            "an API server may also exit with code 0 after its engine failed; its log would show that"
                .to_owned()
        }
        Status::Ready => "running, ready, restartCount 0".to_owned(),
        Status::NoEventNearEnd => {
            "no event is close to the last end itself: in a crash loop, the kubelet suppresses events"
                .to_owned()
        }
        Status::Deleted => {
            "the pod has a deletionTimestamp: it was deleted, and the grace period ends with SIGKILL"
                .to_owned()
        }
        Status::ObjectWouldTell => {
            "the pod's object (kubectl get pod -o json) shows its UID, its containers' IDs and its GPUs: they say \
            whose the record is"
                .to_owned()
        }
        Status::Unconfirmed => "no status, event or log confirms it".to_owned(),
    }
}
