//! The runtime could not start the container under its memory limit.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "start_refused";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "an event or status message says that the memory limit is too low to start, or that the new limit is \
    below current use",
    "a container that did not start for another reason",
    "runc libcontainer/init_linux.go, cgroups \"unable to set memory limit\"; dockerd \"Minimum memory limit allowed\"",
    |case| super::judge(case, ID, "no status message says that the limit was too low to start"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{event, holds, near_miss, pod};

    #[test]
    fn a_limit_too_low_to_start_decides() {
        holds(
            &RULE,
            &[
                pod(128, "StartError"),
                event(
                    "Failed",
                    "Error: failed to create containerd task: failed to create shim task: OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: unable to set memory limit to 4194304 (current usage: 8912896, peak usage: 9011200): unknown",
                ),
            ],
        );
    }

    #[test]
    fn a_missing_program_does_not() {
        near_miss(
            &RULE,
            "exit_code",
            &[
                pod(128, "StartError"),
                event(
                    "Failed",
                    "Error: failed to create containerd task: exec: \"vllm\": executable file not found in $PATH: unknown",
                ),
            ],
        );
    }
}
