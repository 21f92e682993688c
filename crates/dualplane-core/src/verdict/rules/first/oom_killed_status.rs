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

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod};

    #[test]
    fn the_reason_decides() {
        holds(&RULE, &[pod(137, "OOMKilled")]);
    }

    #[test]
    fn the_exit_code_alone_does_not() {
        near_miss(&RULE, "killed", &[pod(137, "Error")]);
    }
}
