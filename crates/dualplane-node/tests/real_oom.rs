//! Real kills by the real kernel in a group of our own that looks like a container's: the counters that the sampler sees,
//! the record that the follower gets, and what the core makes of it.
//!
//! Needs root, a memory cgroup and /dev/kmsg. Where CI sets `DUALPLANE_REAL_OOM=1`, their absence is a failure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dualplane_core::evidence::RawFile;
use dualplane_core::facts::{Constraint, OomRecord};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::units::Bytes;
use dualplane_core::verdict::Class;
use dualplane_node::cgroup::{Limit, Memory};
use dualplane_node::clock::{Moment, boot_id};
use dualplane_node::gpu::{GpuGap, NoGpus};
use dualplane_node::kmsg::{Kernel, Said, Source, State};
use dualplane_node::node;
use dualplane_node::sample::{Config, Noticed, Record, Sampler};

const LIMIT: u64 = 48 << 20;
const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";

/// A root of our own with one container below it, and a folder that shows it as `/sys/fs/cgroup` does.
struct Machine {
    root: PathBuf,
    container: PathBuf,
    base: tempfile::TempDir,
    v1: bool,
}

impl Machine {
    fn create(name: &str) -> Option<Self> {
        let name = format!("dualplane-node-{name}-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory").is_dir();
        let top = Path::new(if v1 { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" });
        let root = top.join(name);
        let container = root.join(format!("kubepods/burstable/pod{UID}/{}", "a".repeat(64)));
        let base = tempfile::tempdir().unwrap();
        let machine = Self { root, container, base, v1 };
        let groups = machine.container.ancestors().skip(1).take_while(|d| *d != top);
        if !v1 {
            let _ = fs::write(top.join("cgroup.subtree_control"), "+memory");
        }
        for dir in groups.collect::<Vec<_>>().into_iter().rev() {
            fs::create_dir(dir).ok()?;
            if !v1 {
                fs::write(dir.join("cgroup.subtree_control"), "+memory").ok()?;
            }
        }
        fs::create_dir(&machine.container).ok()?;
        let (limit, swap) = if v1 {
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        } else {
            ("memory.max", "memory.swap.max")
        };
        fs::write(machine.container.join(limit), LIMIT.to_string()).ok()?;
        let _ = fs::write(machine.container.join(swap), if v1 { LIMIT.to_string() } else { "0".into() });
        if v1 {
            symlink(&machine.root, machine.base.path().join("memory")).unwrap();
        }
        Some(machine)
    }

    fn config(&self) -> Config {
        let cgroups = if self.v1 { self.base.path().to_owned() } else { self.root.clone() };
        let mut config = Config { cgroups, ..Config::default() };
        config.rate.calm = Duration::ZERO;
        config
    }

    /// Runs a script whose shell is the first process of the container.
    fn run(&self, script: &str) -> Child {
        let script = format!("echo $$ > {}/cgroup.procs && {script}", self.container.display());
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let top = self.root.parent().unwrap().to_owned();
        // Where a test failed, its processes are still there.
        for pid in node::processes(&self.root) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        for _ in 0..50 {
            if node::processes(&self.root).is_empty() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        for dir in self.container.ancestors().take_while(|d| *d != top) {
            let _ = fs::remove_dir(dir);
        }
    }
}

fn machine(name: &str) -> Option<(Machine, Kernel)> {
    let required = std::env::var("DUALPLANE_REAL_OOM").is_ok_and(|v| v == "1");
    let made = Machine::create(name).and_then(|m| {
        let source = Source::device(Path::new("/dev/kmsg")).ok()?;
        let boot = boot_id(Path::new("/proc"))?;
        let mut kernel = Kernel::new(source, State { boot, ..State::default() });
        // What was before is not ours.
        let mut old = Vec::new();
        while kernel.turn(Duration::from_millis(1), &mut old).ok()? > 0 {}
        Some((m, kernel))
    });
    assert!(
        made.is_some() || !required,
        "no memory cgroup or kernel log here, and DUALPLANE_REAL_OOM=1 asks for them"
    );
    if made.is_none() {
        eprintln!("no memory cgroup can be made here, or no kernel log be read; skipped");
    }
    made
}

/// The record of our container's kill; other kills may come between.
fn record(m: &Machine, kernel: &mut Kernel) -> OomRecord {
    let own = format!("/{}/kubepods", m.root.file_name().unwrap().to_str().unwrap());
    for _ in 0..4 {
        let began = Moment::now();
        while Moment::now().since(began) < Duration::from_secs(3) {
            let mut said = Vec::new();
            kernel.turn(Duration::from_millis(100), &mut said).unwrap();
            for s in said {
                if let Said::Oom(r) = s
                    && r.task_memcg.as_deref().is_some_and(|p| p.contains(&own))
                {
                    return r;
                }
            }
        }
        // The kernel prints ten records in five seconds (`oom_rs` in mm/oom_kill.c), of further kills one line only: where
        // others were killed just now, wait that out and let one more die.
        eprintln!("no record of this kill: the kernel's rate limit; once more");
        std::thread::park_timeout(Duration::from_secs(6));
        m.run("tail /dev/zero; true").wait().unwrap();
    }
    panic!("the kernel's record of the kill did not come");
}

/// Rounds until something is noticed.
fn until(s: &mut Sampler, what: impl Fn(&Noticed) -> bool) -> (Noticed, Vec<Record>) {
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    let began = Moment::now();
    while Moment::now().since(began) < Duration::from_secs(20) {
        s.round(&mut out, &mut noticed);
        if let Some(n) = noticed.iter().find(|n| what(n)) {
            return (n.clone(), out);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("nothing was noticed");
}

fn check(r: &OomRecord, kernel: &Kernel) {
    assert_eq!((r.constraint, r.limit), (Constraint::Memcg, Some(Bytes(LIMIT))), "{r:?}");
    assert_eq!(r.pod_uid().as_deref(), Some(UID));
    assert_eq!(r.container_id(), Some("a".repeat(64)));
    // The lines as they were kept for an incident.
    let first = r.place.line.unwrap();
    let text: String = kernel.recent().from(first).map(|(_, l)| format!("{l}\n")).collect();
    let file = RawFile { name: "kernel.log".into(), bytes: text.into_bytes(), sifted: None };
    let knowledge = Knowledge::embedded().unwrap();
    let reports = dualplane_core::report::triage_all("real", vec![file], vec![], &knowledge);
    assert_eq!(reports[0].verdict.class, Class::HostOomKilled, "{:?}", reports[0].verdict);
}

fn sampler(m: &Machine) -> Sampler {
    Sampler::new(m.config(), Box::new(NoGpus(GpuGap::NoDriver("none here".into())))).unwrap()
}

#[test]
fn the_first_process_of_a_container_outgrows_it() {
    let Some((m, mut kernel)) = machine("first") else { return };
    let mut s = sampler(&m);
    until(&mut s, |n| matches!(n, Noticed::Appeared { .. }));
    let mut child = m.run("exec tail /dev/zero");
    let (noticed, _) = until(&mut s, |n| matches!(n, Noticed::OomKills { .. }));
    assert_eq!(noticed, Noticed::OomKills { slot: 0, kills: 1 });
    child.wait().unwrap();
    let r = record(&m, &mut kernel);
    assert_eq!(r.victims[0].comm, "tail");
    check(&r, &kernel);
    // The runtime removes the group of a container that ended: the last values stay with us.
    fs::remove_dir(&m.container).unwrap();
    let (noticed, _) = until(&mut s, |n| matches!(n, Noticed::Vanished { .. }));
    let Noticed::Vanished { group, last, .. } = noticed else { unreachable!() };
    assert_eq!(group.identity.pod_uid.as_deref(), Some(UID));
    let Memory { peak, limit, oom_kill, .. } = *last;
    assert_eq!(limit, Some(Limit::At(Bytes(LIMIT))));
    assert!(oom_kill >= Some(1));
    assert!(peak.is_none_or(|p| p.0 > LIMIT * 9 / 10), "{peak:?}");
}

#[test]
fn a_child_outgrows_the_container_which_lives_on() {
    let Some((m, mut kernel)) = machine("child") else { return };
    let mut s = sampler(&m);
    // The server waits for its worker, then for us.
    let mut server = m.run("tail /dev/zero; read line");
    let (noticed, records) = until(&mut s, |n| matches!(n, Noticed::OomKills { .. }));
    assert!(matches!(noticed, Noticed::OomKills { kills: 1, .. }));
    let memory = records.iter().find_map(Record::memory).unwrap();
    assert_eq!(memory.oom_kill, Some(1));
    assert!(memory.working_set().is_some() && memory.anon.is_some() && memory.shmem.is_some());
    let r = record(&m, &mut kernel);
    assert_ne!(r.victims[0].pid, u64::from(server.id()), "the child died, not the server");
    check(&r, &kernel);
    let listing = node::list(&m.container, Path::new("/proc"), true);
    assert_eq!(listing.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [server.id()]);
    let of = node::cgroup_of(Path::new("/proc"), server.id()).unwrap();
    assert_eq!(of.pod_uid.as_deref(), Some(UID));
    drop(server.stdin.take());
    server.wait().unwrap();
}

/// What a real cluster on this machine has, where one runs: every container of the kubelet's links is found as a group.
#[test]
fn containers_of_a_real_kubelet_are_found_and_named() {
    use dualplane_node::cgroup::{Hierarchy, Wanted, Watch, find};
    use dualplane_node::cri::{CopyLimits, Names, copy, pod_folder};
    let names = Names::read(Path::new("/var/log/containers"), Path::new("/var/log/pods"));
    let Some(h) = Hierarchy::below(Path::new("/sys/fs/cgroup")).filter(|_| !names.is_empty()) else {
        eprintln!("no kubelet runs here; skipped");
        return;
    };
    let found = find(&h, &Wanted::default(), &mut Watch::default());
    let named: Vec<_> = found
        .groups
        .iter()
        .filter_map(|g| Some((g, names.of(g.identity.container_id.as_deref()?)?)))
        .collect();
    eprintln!("{} groups, {} of them named by {} links", found.groups.len(), named.len(), names.len());
    let mut copied = 0;
    for (g, n) in named {
        if let (Some(folder), Some(restart)) = (&n.folder, n.restart) {
            let mut text = Vec::new();
            let done = copy(folder, restart, CopyLimits { head: 4096, tail: 4096 }, &mut text).unwrap();
            assert!(done.bytes <= 8192 && done.unreadable == 0, "{done:?}");
            copied += usize::from(done.files > 0);
        }
        // The path names the pod as the log folder does.
        assert_eq!(g.identity.pod_uid, n.uid, "{g:?} {n:?}");
        let folder = n.folder.as_deref().and_then(Path::parent).and_then(Path::file_name).unwrap();
        assert_eq!(pod_folder(folder.to_str().unwrap()).unwrap().pod, n.pod);
    }
    eprintln!("logs of {copied} of them copied");
}
