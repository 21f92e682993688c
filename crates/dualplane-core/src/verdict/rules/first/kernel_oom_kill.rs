//! The kernel's own record of an OOM kill, as the first error in cause.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "kernel_oom_kill";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "the kernel log holds an OOM-killer record of this pod, or of the node near the pod's end",
    "a record that names another pod's cgroup, an earlier instance of a container that ended by itself, another node, or a time far from the end",
    "Linux mm/oom_kill.c: dump_header, oom_kill_process (\"invoked oom-killer\", \"oom-kill:constraint=\")",
    |case| super::judge(case, ID, "no OOM-killer record of this pod stands in the evidence"),
);
