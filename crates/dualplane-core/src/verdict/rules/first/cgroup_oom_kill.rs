//! The cgroup's own counters of OOM kills.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "cgroup_oom_kill";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "memory.events of a cgroup that can be the dead container's counts an OOM kill",
    "the counters of another pod, of the instance that runs now, or of a kill beside an exit code that is no SIGKILL",
    "Linux Documentation/admin-guide/cgroup-v2.rst: memory.events, oom and oom_kill",
    |case| super::judge(case, ID, "no counter of a cgroup that can be this container's tells of an OOM kill"),
);
