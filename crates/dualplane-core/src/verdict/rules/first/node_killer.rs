//! A killer in user space or a node's own log tells that host RAM ran out.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "node_killer";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "systemd-oomd, earlyoom, Ray's memory monitor or a node log reports a kill for host RAM",
    "the same line about another pod's cgroup or a service of the node",
    "systemd-oomd, earlyoom, Ray src/ray/common/memory_monitor",
    |case| {
        super::judge(
            case,
            ID,
            "no message from systemd-oomd, earlyoom or Ray's memory monitor reports a \
        kill",
        )
    },
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, kernel, near_miss};

    #[test]
    fn oomd_that_killed_a_service_decides() {
        holds(
            &RULE,
            &[kernel(
                "Feb 15 17:10:20 node7 systemd-oomd[949]: Killed /system.slice/vllm.service due to memory pressure for /system.slice being 51.23% > 50.00% for > 20s with reclaim activity\n",
            )],
        );
    }

    #[test]
    fn oomd_that_only_considers_does_not() {
        near_miss(
            &RULE,
            "end_not_shown",
            &[kernel(
                "Feb 15 17:10:20 node7 systemd-oomd[1261]: Considered 60 cgroups for killing, top candidates were:\n",
            )],
        );
    }
}
