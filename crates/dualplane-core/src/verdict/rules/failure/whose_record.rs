//! A kernel record, counter or event that nothing ties to this pod, beside a log that explains its own end otherwise.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::verdict::candidates::{Candidate, Weight};
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "whose_record",
    stage: Stage::Failure,
    classes: &[Class::Unknown],
    when: "the log ends with a failure that is not memory, and an OOM kill or an Xid stands beside it of which no object \
    says whether it is of this pod",
    near_miss: "the same record with the pod's object: its UID, container IDs or GPUs say whose it is",
    beats: &[
        Beats::rule("known_failure", "the record may be of this pod, and would then be the first error"),
        Beats::rule("traceback", "the record may be of this pod, and would then be the first error"),
        Beats::stage(Stage::Unexplained, "the log explains its end"),
        Beats::stage(Stage::Life, "something failed after the server was up"),
        Beats::stage(Stage::Nothing, "something failed"),
    ],
    source: "Linux mm/oom_kill.c and the NVIDIA driver name cgroups, PIDs and PCI addresses, no pods",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let record = record(case).ok_or_else(|| {
        unmet("no record stands beside the log of which nothing says whether it is of this pod")
    })?;
    let end = super::explains(case)
        .ok_or_else(|| unmet("the log does not end with a failure that is not memory"))?;
    let summary = format!(
        "the log explains its own end: {}. But {}, and nothing in the evidence says whether that was this pod",
        end.summary.trim_end_matches('.'),
        record.what
    );
    let mut d = decided(Class::Unknown, end.phase, Confidence::Low, summary, end.supports);
    d.supports.extend(record.supports.iter().take(2).cloned());
    d.against.push(Cited::plain(Status::ObjectWouldTell));
    Ok(d)
}

/// The record that was put aside.
fn record<'c>(case: &'c Case<'_>) -> Option<&'c Candidate> {
    case.candidates.iter().find(|c| c.untied && c.weight == Weight::Fatal)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, kernel, log, near_miss, pod};

    const TAKEN: &str = "OSError: [Errno 98] Address already in use\n";

    fn xid() -> File {
        kernel(
            "[54120.881204] NVRM: Xid (PCI:0000:4a:00): 79, pid='<unknown>', name=python3, GPU has fallen off the bus.\n",
        )
    }

    fn kill() -> File {
        let memcg =
            format!("/kubepods.slice/kubepods-pod0e1d2c3b.slice/cri-containerd-{}.scope", "c".repeat(64));
        kernel(&format!(
            "[54120.881204] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=903\n\
             [54120.881300] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={memcg},task_memcg={memcg},task=python3,pid=4242,uid=0\n\
             [54120.881400] Memory cgroup out of memory: Killed process 4242 (python3) total-vm:99999999kB, anon-rss:67000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:133000kB oom_score_adj:903\n"
        ))
    }

    #[test]
    fn a_kill_or_a_fault_of_the_node_may_be_anybody_s() {
        holds(&RULE, &[log(TAKEN), kill()]);
        holds(&RULE, &[log(TAKEN), xid()]);
    }

    #[test]
    fn with_the_pod_s_ids_the_kill_is_another_s() {
        near_miss(&RULE, "known_failure", &[pod(1, "Error"), log(TAKEN), kill()]);
    }
}
