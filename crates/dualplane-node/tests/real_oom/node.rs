//! The machine itself runs out, with no limit anywhere. It takes down whatever is largest, so only a machine that holds
//! nothing else may do it: `DUALPLANE_NODE_OOM=1` says that this is one. One at a time: `--test-threads=1`.

use std::fs;

use dualplane_base::Class;
use dualplane_base::units::Bytes;
use dualplane_core::facts::Constraint;
use dualplane_node::cgroup::Limit;
use dualplane_node::sample::{Record, RecordKind, SampleEvent};

use crate::machine::{
    Limited, OTHER_UID, UID, machine, record, run_in, until, until_memory, until_record, verdict,
};

/// Fields of a node's record.
const TOTAL: usize = 0;
const AVAILABLE: usize = 1;
const OOM_KILL: usize = 11;

/// Takes this process out of the killer's choice, as a node's own services are. What it starts inherits that.
fn alone() -> bool {
    if std::env::var("DUALPLANE_NODE_OOM").is_ok_and(|v| v == "1") {
        fs::write("/proc/self/oom_score_adj", "-1000").unwrap();
        return true;
    }
    eprintln!("this machine is not ours to exhaust (DUALPLANE_NODE_OOM=1); skipped");
    false
}

/// What a container without requests has is 1000; the less, the more it asked for.
const GROWS: &str = "echo 0 > /proc/self/oom_score_adj && exec tail /dev/zero";

#[test]
fn a_process_without_a_limit_outgrows_the_machine() {
    if !alone() {
        return;
    }
    let Some((m, mut kernel)) = machine("node", Limited::Nothing) else { return };
    let mut s = m.sampler_of_all();
    until(&mut s, |n| matches!(n, SampleEvent::Appeared { .. }));
    let mut child = m.run(GROWS);
    let (noticed, records) = until(&mut s, |n| matches!(n, SampleEvent::OomKills { .. }));
    assert_eq!(noticed, SampleEvent::OomKills { slot: 0, kills: 1 });
    child.wait().unwrap();

    let nodes: Vec<_> = records.iter().filter(|r| r.kind == RecordKind::Node).collect();
    let total = nodes[0].field(TOTAL).unwrap();
    let least = nodes.iter().filter_map(|r| r.field(AVAILABLE)).min().unwrap();
    assert!(least < total / 8, "{least} of {total} left at the worst");
    // Not every round asks for it.
    let kills = |r: &Record| r.field(OOM_KILL).filter(|_| r.kind == RecordKind::Node);
    let before = records.iter().find_map(kills).unwrap();
    assert_eq!(until_record(&mut s, |r| kills(r).filter(|k| *k != before)), before + 1);

    let last = until_memory(&mut s, |m| m.peak.is_some());
    assert_eq!(last.limit, Some(Limit::Unlimited));
    // No limit was touched: the group only has a death.
    assert_eq!((last.oom_kill, last.oom.unwrap_or(0), last.at_limit), (Some(1), 0, Some(0)));
    assert!(last.peak.is_some_and(|p| p.0 > total / 3), "{:?} of {total}", last.peak);

    let r = record(&m, &mut kernel);
    assert_eq!((r.constraint, r.limit, r.oom_memcg.as_deref()), (Constraint::Global, None, None), "{r:?}");
    assert_eq!((r.pod_uid().as_deref(), r.victims[0].comm.as_str()), (Some(UID), "tail"));
    assert!(r.victims[0].anon.is_some_and(|a| a > Bytes(total / 3)), "{r:?}");
    assert_eq!(verdict(&r, &kernel), Class::HostNodeOom);
}

#[test]
fn a_neighbour_that_stands_still_is_killed_in_its_place() {
    if !alone() {
        return;
    }
    let Some((m, mut kernel)) = machine("neighbour", Limited::Nothing) else { return };
    // It goes first, however little it holds.
    let still = m.neighbour();
    let mut idle = run_in(&still, "echo 1000 > /proc/self/oom_score_adj && read line");
    let mut s = m.sampler_of_all();
    let is_still = |n: &SampleEvent| matches!(n, SampleEvent::Appeared { group, .. } if group.identity.pod_uid.as_deref() == Some(OTHER_UID));
    let (SampleEvent::Appeared { slot, .. }, _) = until(&mut s, is_still) else { unreachable!() };
    let mut grows = m.run(GROWS);
    let (_, records) = until(&mut s, |n| matches!(n, SampleEvent::OomKills { slot: of, .. } if *of == slot));
    idle.wait().unwrap();
    grows.wait().unwrap();
    let peak =
        records.iter().filter(|r| r.slot == slot).filter_map(Record::memory).filter_map(|m| m.peak).max();
    assert!(peak < Some(Bytes(32 << 20)), "it held next to nothing: {peak:?}");

    let r = record(&m, &mut kernel);
    assert_eq!((r.constraint, r.pod_uid().as_deref()), (Constraint::Global, Some(OTHER_UID)), "{r:?}");
    assert_eq!(r.invoker.as_deref(), Some("tail"), "who asked for the page is not who died");
    assert_ne!(r.victims[0].comm, "tail");
    assert_eq!(verdict(&r, &kernel), Class::HostNodeOom);
}
