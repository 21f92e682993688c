//! Kubernetes says that memory ended it: an eviction, TaskOOM, SystemOOM, an init process killed at its start.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "kubernetes_oom_event";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "an event or status text of this pod, or of its node within five minutes of the end, says that memory ended it",
    "an eviction for another resource; an event of another pod; a SystemOOM hours before the end",
    "kubelet pkg/kubelet/eviction, pkg/kubelet/oom; containerd TaskOOM; runc \"container init was OOM-killed\"",
    |case| {
        super::judge(
            case,
            ID,
            "no event or status text of this pod tells of a memory eviction or an OOM kill",
        )
    },
);
