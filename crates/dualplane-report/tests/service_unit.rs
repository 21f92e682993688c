//! A systemd unit as the agent records it: it has no pod, no id of a container and no exit code, only its group. The kernel's
//! record of that group is its own, one of another group is not, and all that is advised is for the host.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::triage;
use dualplane_base::Class;
use dualplane_core::evidence::RawFile;
use dualplane_report::Report;
use serde_json::json;

const UNIT: &str = "/system.slice/vllm.service";
const POD: &str = "/kubepods/burstable/pod64dd15af-e06e-4c22-bf81-31f9e0cae991/1bf0acb9a2e3ee38724e67432929fec67f8dd3c1add016ae92b08d6736189754";

fn record(number: u64, group: &str, task: &str, pid: u32) -> String {
    let us = number * 1000;
    format!(
        "4,{number},{us},-;{task} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
         6,{},{us},-;memory: usage 49152kB, limit 49152kB, failcnt 32\n\
         6,{},{us},-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={group},task_memcg={group},task={task},pid={pid},uid=0\n\
         3,{},{us},-;Memory cgroup out of memory: Killed process {pid} ({task}) total-vm:51748kB, anon-rss:48896kB, file-rss:1544kB, shmem-rss:0kB, UID:0 pgtables:136kB oom_score_adj:0\n",
        number + 1,
        number + 2,
        number + 3
    )
}

fn of(kind: &str, kernel: &str) -> Report {
    let group = UNIT.trim_start_matches('/');
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": group, "namespace": "", "uid": "", "labels": {"dualplane.dev/unit": "vllm.service"}},
        "spec": {"nodeName": "n1", "containers": [{"name": group, "resources": {"limits": {"memory": "50331648"}}}]},
        "status": {"containerStatuses": [{"name": group}]}});
    let manifest = json!({"schema": "dualplane.bundle/v1", "died_at": "2026-11-23T06:05:58.902Z", "incident": {
        "kind": kind, "container": group, "container_id": "", "restart": null, "kills": 0}});
    triage(vec![
        RawFile::new("pod.json", pod.to_string()),
        RawFile::new("manifest.json", manifest.to_string()),
        RawFile::new("node/kernel/kmsg.log", kernel.to_owned()),
    ])
    .remove(0)
}

#[test]
fn the_record_of_its_group_is_its_own_among_those_of_pods() {
    let kernel =
        record(10, POD, "tail", 500) + &record(20, UNIT, "python3", 600) + &record(30, POD, "tail", 700);
    let report = of("death", &kernel);
    assert_eq!(report.verdict.class, Class::HostOomKilled);
    assert!(report.verdict.summary.contains("python3"), "{}", report.verdict.summary);
    let said = dualplane_report::json::render(std::slice::from_ref(&report)).unwrap();
    assert!(said.contains("systemctl set-property vllm.service"), "{said}");
    assert!(!said.contains("kubectl") && !said.contains("kube_pod_container"), "{said}");
}

#[test]
fn a_record_of_another_group_is_not() {
    for other in [POD, "/system.slice/vllm.service2", "/system.slice/ssh.service"] {
        let report = of("end", &record(10, other, "python3", 500));
        assert_eq!(report.verdict.class, Class::Unknown, "{other}: {}", report.verdict.summary);
        // The agent saw it end: it is no server that lives.
        assert!(!report.verdict.summary.contains("nothing has ended"), "{}", report.verdict.summary);
    }
}
