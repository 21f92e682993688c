//! Metrics remember an OOM kill where nothing else does.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "metrics_oom_kill";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled],
    "kube-state-metrics reports OOMKilled as the last termination reason, or cAdvisor's OOM event counter \
    increased",
    "the metric of another container; a counter that did not increase",
    "kube-state-metrics kube_pod_container_status_last_terminated_reason; cAdvisor container_oom_events_total",
    |case| super::judge(case, ID, "no metric of this container shows an OOM kill"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{file, holds, near_miss, pod};

    #[test]
    fn the_reason_in_metrics_decides() {
        holds(
            &RULE,
            &[
                pod(137, "Error"),
                file(
                    "m.prom",
                    "kube_pod_container_status_last_terminated_reason{namespace=\"serve\",pod=\"llm-0\",container=\"vllm\",reason=\"OOMKilled\"} 1\n",
                ),
            ],
        );
    }

    #[test]
    fn that_of_another_pod_does_not() {
        near_miss(
            &RULE,
            "killed",
            &[
                pod(137, "Error"),
                file(
                    "m.prom",
                    "kube_pod_container_status_last_terminated_reason{namespace=\"serve\",pod=\"llm-9\",container=\"vllm\",reason=\"OOMKilled\"} 1\n",
                ),
            ],
        );
    }
}
