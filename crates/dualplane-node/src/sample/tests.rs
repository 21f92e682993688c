//! Rounds over a fixture machine of v2 with fake GPUs, the rate, and records as bytes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dualplane_base::units::Bytes;

use super::*;
use crate::cgroup::{Depth, Limit, Memory, Wanted};
use crate::clock::Moment;
use crate::gpu::{Batch, Device, Event, Fake, GpuGap, GpuProcess, Gpus, Health, NoGpus, Reading};

const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";

fn container(root: &Path, letter: char, current: u64, kills: u64) -> String {
    let path = format!("kubepods/burstable/pod{UID}/{}", letter.to_string().repeat(64));
    let d = root.join("cgroup").join(&path);
    fs::create_dir_all(&d).unwrap();
    fs::write(d.join("memory.current"), format!("{current}\n")).unwrap();
    fs::write(d.join("memory.max"), format!("{}\n", 1_u64 << 30)).unwrap();
    fs::write(d.join("memory.events"), format!("low 0\nhigh 0\nmax 0\noom {kills}\noom_kill {kills}\n"))
        .unwrap();
    fs::write(d.join("memory.stat"), "anon 100\nfile 200\nshmem 50\ninactive_file 0\n").unwrap();
    format!("/{path}")
}

/// A machine with two containers; the process 77 on the GPU is of the first.
fn machine(root: &Path) -> Config {
    fs::create_dir_all(root.join("cgroup")).unwrap();
    fs::write(root.join("cgroup/cgroup.controllers"), "memory\n").unwrap();
    let a = container(root, 'a', 100 << 20, 0);
    container(root, 'b', 10 << 20, 0);
    fs::create_dir_all(root.join("proc/77")).unwrap();
    fs::write(root.join("proc/77/cgroup"), format!("0::{a}/init\n")).unwrap();
    fs::write(root.join("proc/meminfo"), "MemTotal: 1000 kB\nMemAvailable: 500 kB\n").unwrap();
    Config {
        cgroups: root.join("cgroup"),
        proc_root: root.join("proc"),
        wanted: Wanted::default(),
        rate: RateLimits { calm: Duration::ZERO, ..RateLimits::default() },
    }
}

fn gpus() -> Box<dyn Gpus> {
    Box::new(
        Fake::from_json(
            r#"{"devices": [{"uuid": "GPU-a", "pci": "0000:4a:00"}], "steps": [{"at_ms": 0,
            "readings": [{"device": 0, "total": 100, "used": 60}],
            "processes": [{"device": 0, "pid": 77, "used": 50}, {"device": 0, "pid": 78}], "xids": [[0, 79]]}]}"#,
        )
        .unwrap(),
    )
}

#[test]
fn a_round_reads_both_planes_and_joins_them() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Sampler::new(machine(d.path()), gpus()).unwrap();
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    let round = s.round(&mut out, &mut noticed);
    assert_eq!((round.number, round.scope), (0, Scope::Whole));
    assert!(round.skew().unwrap() < Duration::from_millis(50), "{round:?}");
    let appeared = noticed.iter().filter(|n| matches!(n, SampleEvent::Appeared { .. })).count();
    let devices = noticed.iter().any(|n| matches!(n, SampleEvent::Devices(d) if d.len() == 1));
    let xid = noticed.iter().any(|n| matches!(n, SampleEvent::Gpu(e) if e.xid == Some(79)));
    assert_eq!((appeared, devices, xid, noticed.len()), (2, true, true, 4), "{noticed:?}");
    let kinds: Vec<RecordKind> = out.iter().map(|r| r.kind).collect();
    use RecordKind as K;
    assert_eq!(kinds, [K::Container, K::Container, K::Node, K::Gpu, K::GpuProcess, K::GpuProcess, K::Round]);
    let m = out[0].memory().unwrap();
    assert_eq!(
        (m.current, m.limit, m.anon),
        (Some(Bytes(100 << 20)), Some(Limit::At(Bytes(1 << 30))), Some(Bytes(100)))
    );
    assert_eq!((m.peak, m.pressure.some_us), (None, None));
    assert_eq!(out[4].process(), Some((77, Some(Bytes(50)), Some(out[0].slot))));
    assert_eq!(out[5].process(), Some((78, None, None)));
    for r in &out {
        assert_eq!(Record::decode(&r.encode()).as_ref(), Some(r));
    }
    assert_eq!(Record::decode(&[9; SIZE]), None);
}

/// Of a pod with a cgroup namespace of its own `/proc/PID/cgroup` is written from there.
#[test]
fn a_process_is_known_from_within_a_cgroup_namespace() {
    let d = tempfile::tempdir().unwrap();
    let config = machine(d.path());
    let a = fs::read_to_string(d.path().join("proc/77/cgroup")).unwrap();
    let a = a.trim().trim_start_matches("0::/kubepods/burstable/");
    fs::write(d.path().join("proc/77/cgroup"), format!("0::/../../{a}\n")).unwrap();
    let mut s = Sampler::new(config, gpus()).unwrap();
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    s.round(&mut out, &mut noticed);
    assert_eq!(out[4].process(), Some((77, Some(Bytes(50)), Some(out[0].slot))));
}

#[test]
fn kills_new_and_gone_containers_are_noticed() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Sampler::new(machine(d.path()), Box::new(NoGpus(GpuGap::NoDriver("none".into())))).unwrap();
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    s.round(&mut out, &mut noticed);
    assert!(noticed.contains(&SampleEvent::NoGpus(GpuGap::NoDriver("none".into()))));
    container(d.path(), 'a', 90 << 20, 2);
    container(d.path(), 'c', 1 << 20, 5);
    s.round(&mut out, &mut noticed);
    // The new one had its kills before anybody looked.
    assert!(noticed.contains(&SampleEvent::OomKills { slot: 0, kills: 2 }), "{noticed:?}");
    assert_eq!(noticed.len(), 2);
    fs::remove_dir_all(d.path().join(format!("cgroup/kubepods/burstable/pod{UID}/{}", "a".repeat(64))))
        .unwrap();
    s.round(&mut out, &mut noticed);
    let [SampleEvent::Vanished { slot: 0, last, .. }] = noticed.as_slice() else { panic!("{noticed:?}") };
    assert_eq!((last.current, last.oom_kill), (Some(Bytes(90 << 20)), Some(2)));
    assert_eq!(s.containers().slots().len(), 2);
    s.round(&mut out, &mut noticed);
    assert!(noticed.is_empty());
}

#[test]
fn what_is_still_is_read_less_and_says_so() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Sampler::new(machine(d.path()), Box::new(NoGpus(GpuGap::NoDriver("none".into())))).unwrap();
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    let mut whole = 0;
    for _ in 0..11 {
        s.round(&mut out, &mut noticed);
        let of_a = out.iter().find(|r| r.kind == RecordKind::Container && r.slot == 0).unwrap();
        let m = of_a.memory().unwrap();
        assert!(m.current.is_some());
        assert_eq!(m.oom_kill.is_some(), m.anon.is_some(), "the same to the byte: no kill");
        whole += usize::from(m.anon.is_some());
    }
    assert_eq!(whole, 3, "the first, then each fifth");
}

#[test]
fn fast_rounds_are_paid_from_an_account() {
    let ms = Duration::from_millis;
    let start = Moment(1_000_000_000);
    let limits = RateLimits::default();
    let mut rate = Rate::new(limits, start);
    let mut now = start;
    let mut fast = 0;
    // Something moves all the time for an hour.
    while now < start.plus(Duration::from_secs(3600)) {
        let scope = rate.scope(now);
        fast += u32::from(scope == Scope::Hot);
        rate.took(scope, now, true);
        assert!(rate.due() > now && rate.due() <= now.plus(limits.calm));
        now = rate.due();
    }
    // 60 s at once, then one tenth of an hour, nine fast rounds a second.
    assert!((3000..=4200).contains(&fast), "{fast}");
    // Nothing moves: a second each, on the beat.
    let mut rate = Rate::new(limits, start);
    rate.took(Scope::Whole, start, false);
    assert_eq!(rate.due(), start.plus(limits.calm));
    rate.took(Scope::Whole, start.plus(ms(1020)), false);
    assert_eq!(rate.due(), start.plus(ms(2000)));
    // A beat was missed: the next one is a whole second on.
    rate.took(Scope::Whole, start.plus(ms(5000)), false);
    assert_eq!(rate.due(), start.plus(ms(6000)));
}

/// A driver that hangs, as one does whose card fell off the bus.
#[derive(Debug)]
struct Hangs;

impl Gpus for Hangs {
    fn devices(&mut self, _: &mut Vec<Device>) -> Result<(), GpuGap> {
        // The channel that brought the question may have left a wake-up behind.
        let began = Moment::now();
        while Moment::now().since(began) < Duration::from_secs(30) {
            std::thread::park_timeout(Duration::from_secs(30));
        }
        Ok(())
    }
    fn read(&mut self, _: &mut Vec<Reading>) -> u32 {
        0
    }
    fn processes(&mut self, _: &mut Vec<GpuProcess>) {}
    fn health(&mut self, _: &mut Vec<Health>) {}
    fn events(&mut self, _: &mut Vec<Event>) {}
}

#[test]
fn a_driver_that_hangs_does_not_stop_the_other_plane() {
    let d = tempfile::tempdir().unwrap();
    let mut s = Sampler::new(machine(d.path()), Box::new(Hangs)).unwrap();
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    let began = Moment::now();
    for _ in 0..3 {
        let round = s.round(&mut out, &mut noticed);
        assert_eq!(round.gpus, None);
        assert!(out.iter().any(|r| r.kind == RecordKind::Container));
    }
    assert!(Moment::now().since(began) < Duration::from_secs(2));
    assert_eq!(s.gpu_late(), 2);
    let _ = Batch::default();
}

#[test]
fn a_record_of_a_quick_reading_has_no_old_values() {
    let m = Memory { current: Some(Bytes(5)), anon: Some(Bytes(3)), oom_kill: Some(0), ..Memory::default() };
    let quick = Record::container(1, Moment(7), Depth::Quick, &m).memory().unwrap();
    assert_eq!((quick.current, quick.anon, quick.oom_kill), (Some(Bytes(5)), None, Some(0)));
    let usage = Record::container(1, Moment(7), Depth::Usage, &m).memory().unwrap();
    assert_eq!((usage.current, usage.oom_kill), (Some(Bytes(5)), None));
    let full = Record::container(1, Moment(7), Depth::Full, &m).memory().unwrap();
    assert_eq!(full, m);
}
