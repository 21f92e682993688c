//! A killer in user space or a node's own log tells that host RAM ran out.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "node_killer";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "systemd-oomd, earlyoom, Ray's memory monitor or a node's log says that it killed for host RAM",
    "the same line about another pod's cgroup or a service of the node",
    "systemd-oomd, earlyoom, Ray src/ray/common/memory_monitor",
    |case| {
        super::judge(case, ID, "no line of systemd-oomd, earlyoom or Ray's memory monitor tells of a kill")
    },
);
