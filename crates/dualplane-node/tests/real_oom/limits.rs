//! Kills at a limit: of the container's first process, of a child, of the whole group, at the pod's limit.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use dualplane_base::Class;
use dualplane_base::units::Bytes;
use dualplane_core::facts::{Constraint, OomRecord};
use dualplane_node::cgroup::{Limit, Memory};
use dualplane_node::kmsg::Kernel;
use dualplane_node::node;
use dualplane_node::sample::{Record, SampleEvent};

use crate::machine::{LIMIT, Limited, Machine, UID, machine, record, until, until_memory, verdict};

fn check(r: &OomRecord, kernel: &Kernel) {
    assert_eq!((r.constraint, r.limit), (Constraint::Memcg, Some(Bytes(LIMIT))), "{r:?}");
    assert_eq!(r.pod_uid().as_deref(), Some(UID));
    assert_eq!(r.container_id(), Some("a".repeat(64)));
    let anon = r.stat.iter().find(|(key, _)| key == "anon" || key == "total_rss");
    assert!(anon.is_some_and(|(_, b)| b.0 > LIMIT / 2), "{:?}", r.stat);
    assert_eq!(verdict(r, kernel), Class::HostOomKilled);
}

/// What the kernel counts at a kill: only v2 tells a failed allocation and a killed group apart from a kill.
fn check_counts(m: &Machine, memory: &Memory, groups: u64) {
    assert_eq!(memory.limit, Some(Limit::At(Bytes(LIMIT))));
    assert_eq!(memory.oom_group_kill, (!m.v1).then_some(groups));
    // On v1 the limit of RAM and swap together was in the way first, and has a count of its own.
    assert!(m.v1 || (memory.at_limit > Some(0) && memory.oom > Some(0)), "{memory:?}");
    // v1 always has one, v2 from Linux 5.19 on.
    assert_eq!(memory.peak.is_some(), m.v1 || m.container.join("memory.peak").exists());
    assert!(memory.peak.is_none_or(|p| p.0 > LIMIT * 9 / 10 && p.0 <= LIMIT), "{memory:?}");
}

#[test]
fn the_first_process_of_a_container_outgrows_it() {
    let Some((m, mut kernel)) = machine("first", Limited::Container) else { return };
    let mut s = m.sampler();
    until(&mut s, |n| matches!(n, SampleEvent::Appeared { .. }));
    let mut child = m.run("exec tail /dev/zero");
    let (noticed, records) = until(&mut s, |n| matches!(n, SampleEvent::OomKills { .. }));
    assert_eq!(noticed, SampleEvent::OomKills { slot: 0, kills: 1 });
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let seen = records.iter().rev().find_map(Record::memory).unwrap();
    assert_eq!(seen.oom_kill, Some(1));
    check_counts(&m, &seen, 0);
    let r = record(&m, &mut kernel);
    assert_eq!(r.victims[0].comm, "tail");
    assert!(!r.group);
    check(&r, &kernel);
    // The runtime removes the group of a container that ended: the last values stay with us.
    fs::remove_dir(&m.container).unwrap();
    let (noticed, _) = until(&mut s, |n| matches!(n, SampleEvent::Vanished { .. }));
    let SampleEvent::Vanished { group, last, .. } = noticed else { unreachable!() };
    assert_eq!(group.identity.pod_uid.as_deref(), Some(UID));
    assert_eq!((last.limit, last.peak), (Some(Limit::At(Bytes(LIMIT))), seen.peak));
    assert!(last.oom_kill >= Some(1));
}

#[test]
fn a_child_outgrows_the_container_which_lives_on() {
    let Some((m, mut kernel)) = machine("child", Limited::Container) else { return };
    let mut s = m.sampler();
    // The server waits for its worker, then for us.
    let mut server = m.run("tail /dev/zero; read line");
    let (noticed, records) = until(&mut s, |n| matches!(n, SampleEvent::OomKills { .. }));
    assert!(matches!(noticed, SampleEvent::OomKills { kills: 1, .. }));
    let memory = records.iter().rev().find_map(Record::memory).unwrap();
    assert_eq!(memory.oom_kill, Some(1));
    assert!(memory.working_set().is_some() && memory.anon.is_some() && memory.shmem.is_some());
    check_counts(&m, &memory, 0);
    let r = record(&m, &mut kernel);
    assert_ne!(r.victims[0].pid, u64::from(server.id()), "the child died, not the server");
    check(&r, &kernel);
    let listing = node::list(&m.container, Path::new("/proc"), true);
    assert_eq!(listing.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [server.id()]);
    let of = node::cgroup_of(Path::new("/proc"), server.id()).unwrap();
    assert_eq!(of.pod_uid.as_deref(), Some(UID));
    // The kernel sums waiting up every two seconds. v1 has no pressure of a group.
    if m.container.join("memory.pressure").exists() {
        let waited = until_memory(&mut s, |m| m.pressure.some_us > Some(0)).pressure;
        assert!(waited.full_us <= waited.some_us && waited.full_avg10.is_some(), "{waited:?}");
    } else {
        assert_eq!(memory.pressure.some_us, None);
    }
    drop(server.stdin.take());
    server.wait().unwrap();
}

#[test]
fn a_group_that_is_killed_as_one() {
    let Some((m, mut kernel)) = machine("group", Limited::Container) else { return };
    if m.v1 {
        eprintln!("cgroup v1 kills single processes only; skipped");
        return;
    }
    // What the kubelet sets on v2 unless it is told `singleProcessOOMKill`.
    fs::write(m.container.join("memory.oom.group"), "1").unwrap();
    let mut s = m.sampler();
    // The server would live on.
    let mut server = m.run("tail /dev/zero; read line");
    let memory = until_memory(&mut s, |m| m.oom_kill >= Some(2));
    assert_eq!(server.wait().unwrap().signal(), Some(9));
    // The process that was chosen is killed with its group once more, where it has not given its memory back by then.
    assert!(memory.oom_kill <= Some(3), "{memory:?}");
    check_counts(&m, &memory, 1);
    let r = record(&m, &mut kernel);
    assert!(r.group, "{r:?}");
    assert_eq!(r.victims.len(), 2, "{r:?}");
    assert!(r.victims.iter().any(|v| v.pid == u64::from(server.id())) && r.victims[0].comm == "tail");
    check(&r, &kernel);
}

#[test]
fn the_pod_s_limit_is_the_container_s() {
    let Some((m, mut kernel)) = machine("pod", Limited::Pod) else { return };
    let mut s = m.sampler();
    let mut server = m.run("tail /dev/zero; read line");
    let memory = until_memory(&mut s, |m| m.oom_kill == Some(1));
    assert_eq!(memory.limit, Some(Limit::At(Bytes(LIMIT))), "the tightest of the group and those above it");
    // The allocation failed at the pod's limit: that count stands with the pod.
    assert_eq!(memory.oom, (!m.v1).then_some(0));
    let r = record(&m, &mut kernel);
    assert!(r.pod_level(), "{r:?}");
    check(&r, &kernel);
    drop(server.stdin.take());
    server.wait().unwrap();
}
