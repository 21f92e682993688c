//! What `kubectl top pod` shows of the container.

use super::Weighing;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::pressure::thresholds::HOST_HIGH;
use crate::verdict::proof::Snapshot;
use crate::verdict::{Cited, Decided, Plane};

/// Rows that are told of.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "pod_top",
    adds: "a working set of 90 % of the limit or more in kubectl top",
    because: "the kubelet uses the working set; the output has no timestamp",
    source: "kubectl top, metrics-server",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Host {
        return;
    }
    let (bundle, subject) = (case.bundle, &case.subject);
    let limit = subject.memory_limit;
    for t in bundle
        .tops
        .iter()
        .filter(|t| {
            Some(&t.pod) == subject.pod.as_ref()
                && t.container.as_ref().zip(subject.container.as_ref()).is_none_or(|(a, b)| a == b)
                && t.namespace.as_ref().zip(subject.namespace.as_ref()).is_none_or(|(a, b)| a == b)
        })
        .take(TOLD)
    {
        let Some(limit) = limit.filter(|l| l.0 > 0) else { continue };
        let share = t.memory.share_of(limit);
        let place = Place { file: t.file.clone(), line: Some(t.line) };
        if share >= HOST_HIGH {
            let proof = Snapshot::NearLimit { tool: t.tool, used: t.memory, limit };
            decided.supports.push(Cited::at(proof, &place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, pod, weighs};

    fn top(pod: &str, used: &str) -> File {
        file(
            "top.txt",
            &format!("POD     NAME   CPU(cores)   MEMORY(bytes)\n{pod}   vllm   4021m        {used}\n"),
        )
    }

    #[test]
    fn a_working_set_at_the_limit_supports_the_kill() {
        weighs(&RULE, &[pod(137, "OOMKilled"), top("llm-0", "64102Mi")]);
    }

    #[test]
    fn a_small_one_and_another_pod_s_do_not() {
        adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled"), top("llm-0", "9102Mi")]);
        adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled"), top("llm-1", "64102Mi")]);
    }
}
