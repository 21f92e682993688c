//! The kernel's own record of an OOM kill, as the first error in cause.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "kernel_oom_kill";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostOomKilled, Class::HostNodeOom],
    "the kernel log contains an OOM-killer record of this pod, or of the node near the time of the pod's end",
    "a record that names another pod's cgroup, an earlier instance of a container that ended by itself, another node, or a time far from the end",
    "Linux mm/oom_kill.c: dump_header, oom_kill_process (\"invoked oom-killer\", \"oom-kill:constraint=\")",
    |case| super::judge(case, ID, "the evidence contains no OOM-killer record of this pod"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, kernel, near_miss, pod, pod_with};
    use serde_json::Value;

    fn record(pod: &str, id: char) -> File {
        let (pod, id) = (pod.replace('-', "_"), id.to_string().repeat(64));
        let memcg = format!("/kubepods.slice/kubepods-pod{pod}.slice/cri-containerd-{id}.scope");
        kernel(&format!(
            "[54120.881204] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=903\n\
             [54120.881300] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={memcg},task_memcg={memcg},task=python3,pid=4242,uid=0\n\
             [54120.881400] Memory cgroup out of memory: Killed process 4242 (python3) total-vm:99999999kB, anon-rss:67000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:133000kB oom_score_adj:903\n"
        ))
    }

    #[test]
    fn a_record_of_the_dead_container_decides() {
        holds(&RULE, &[pod(137, "Error"), record("651fc813-479c-4184-8be1-cf5e4ec41ec3", 'b')]);
    }

    /// Where kills come thick, the kernel prints only whom it killed, and not in which cgroup.
    #[test]
    fn a_victim_without_a_cgroup_does_not_where_the_status_says_another_end() {
        let victim_of = |whose: &str, gib: u64| {
            let anon = gib << 20;
            kernel(&format!(
                "[54120.881204] {whose}: Killed process 10962 (python3) total-vm:{anon}kB, anon-rss:{anon}kB, file-rss:0kB, shmem-rss:0kB\n"
            ))
        };
        let victim = |gib| victim_of("Memory cgroup out of memory", gib);
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), victim(60)]);
        holds(&RULE, &[pod(137, "OOMKilled"), victim(60)]);
        near_miss(&RULE, "killed", &[pod(137, "Error"), victim(60)]);
        // Of the machine's shortage the runtime of a cgroup v1 node does not hear.
        let of_machine = |gib| victim_of("Out of memory", gib);
        holds(&RULE, &[pod(137, "Error"), of_machine(60)]);
        let evicted = |p: &mut Value| p["status"]["reason"] = "Evicted".into();
        near_miss(&RULE, "killed", &[pod_with(137, "Error", evicted), of_machine(60)]);
        // More than the container's limit of 64 GiB is somebody else's.
        near_miss(&RULE, "killed", &[pod(137, "Error"), of_machine(70)]);
    }

    /// A log that is read while the kernel writes it, or that lost lines, ends with a head that names nobody.
    #[test]
    fn the_head_of_a_record_does_not_where_the_status_says_another_end() {
        let head = || {
            kernel(
                "[54120.881204] runc:[2:INIT] invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
                 [54120.881210] CPU: 0 UID: 0 PID: 10962 Comm: runc:[2:INIT] Not tainted 6.1.0 #1\n\
                 [54120.881211] Call Trace:\n[54120.881216]  <TASK>\n[54120.881220]  dump_stack_lvl+0x34/0x48\n",
            )
        };
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), head()]);
        near_miss(&RULE, "killed", &[pod(137, "Error"), head()]);
        holds(&RULE, &[pod(137, "OOMKilled"), head()]);
    }

    #[test]
    fn one_of_another_pod_does_not() {
        near_miss(&RULE, "killed", &[pod(137, "Error"), record("0e1d2c3b-479c-4184-8be1-cf5e4ec41ec3", 'c')]);
    }
}
