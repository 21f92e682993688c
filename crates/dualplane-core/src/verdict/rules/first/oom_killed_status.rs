//! The runtime calls the end OOMKilled.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "oom_killed_status";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "the reason of the container's last end is OOMKilled",
    "exit code 137 with the reason Error: a SIGKILL of any sender",
    "Kubernetes ContainerStateTerminated.reason; containerd and CRI-O read the cgroup's oom_kill",
    |case| super::judge(case, ID, "no container's last end has the reason OOMKilled"),
);
