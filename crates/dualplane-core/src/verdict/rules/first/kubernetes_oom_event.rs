//! Kubernetes says that memory ended it: an eviction, TaskOOM, SystemOOM, an init process killed at its start.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "kubernetes_oom_event";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "an event or status message of this pod, or of its node within five minutes of the end, reports a \
    memory failure",
    "an eviction for another resource; an event of another pod; a SystemOOM hours before the end",
    "kubelet pkg/kubelet/eviction, pkg/kubelet/oom; containerd TaskOOM; runc \"container init was OOM-killed\"",
    |case| {
        super::judge(
            case,
            ID,
            "no event or status message of this pod reports a memory eviction or an OOM kill",
        )
    },
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{event, holds, near_miss, pod};

    #[test]
    fn an_eviction_for_memory_decides() {
        holds(
            &RULE,
            &[
                pod(137, "Error"),
                event(
                    "Evicted",
                    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 83412Ki. Container server was using 117900024Ki, request is 8Gi, has larger consumption of memory. ",
                ),
            ],
        );
    }

    #[test]
    fn one_for_another_resource_does_not() {
        near_miss(
            &RULE,
            "kubernetes_failure",
            &[
                pod(137, "Error"),
                event(
                    "Evicted",
                    "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8Gi. ",
                ),
            ],
        );
    }
}
