//! The runtime calls the end OOMKilled.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "oom_killed_status";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "the container's last termination reason is OOMKilled",
    "exit code 137 with reason Error: SIGKILL from an unknown sender",
    "Kubernetes ContainerStateTerminated.reason; containerd and CRI-O read the cgroup's oom_kill",
    |case| super::judge(case, ID, "no container has OOMKilled as its last termination reason"),
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
