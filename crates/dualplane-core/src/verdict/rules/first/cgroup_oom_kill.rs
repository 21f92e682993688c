//! The cgroup's own counters of OOM kills.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "cgroup_oom_kill";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "memory.events of a cgroup that may be the dead container's counts an OOM kill",
    "the counters of another pod or of the running instance; a kill with an exit code other than SIGKILL",
    "Linux Documentation/admin-guide/cgroup-v2.rst: memory.events, oom and oom_kill",
    |case| super::judge(case, ID, "no counter of a cgroup that may be this container's shows an OOM kill"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, file, holds, near_miss, pod};

    fn events(id: char) -> [File; 2] {
        const DEAD: [&str; 2] = [
            "cgroup/kubepods.slice/kubepods-pod651fc813_479c_4184_8be1_cf5e4ec41ec3.slice/cri-containerd-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.scope/memory.events",
            "cgroup/kubepods.slice/kubepods-pod651fc813_479c_4184_8be1_cf5e4ec41ec3.slice/cri-containerd-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.scope/memory.events",
        ];
        let name = if id == 'b' { DEAD[0] } else { DEAD[1] };
        [file(name, "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n"), pod(137, "Error")]
    }

    #[test]
    fn the_dead_instance_s_counter_decides() {
        holds(&RULE, &events('b'));
    }

    #[test]
    fn that_of_the_running_one_does_not() {
        near_miss(&RULE, "killed", &events('a'));
    }
}
