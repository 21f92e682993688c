//! Groups as a kubelet makes them, what reads them, and the way from a kill to its record and its verdict.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dualplane_base::Class;
use dualplane_core::evidence::RawFile;
use dualplane_core::facts::OomRecord;
use dualplane_core::knowledge::Knowledge;
use dualplane_node::cgroup::Memory;
use dualplane_node::clock::{Moment, boot_id};
use dualplane_node::gpu::{GpuGap, NoGpus};
use dualplane_node::kmsg::{Kernel, KernelMessage, Source, State};
use dualplane_node::node;
use dualplane_node::sample::{Config, Record, SampleEvent, Sampler};

pub(crate) const LIMIT: u64 = 48 << 20;
pub(crate) const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";
/// The pod beside it.
pub(crate) const OTHER_UID: &str = "1f4c7d0e-6a55-4b1c-8f0e-0a6f2f1c9b77";

/// A virtual machine on a busy host takes its time; where all goes well nothing waits for this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which group has the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    Container,
    Pod,
    Nothing,
}

/// A root of our own with one container below it, and a folder that shows it as `/sys/fs/cgroup` does.
pub(crate) struct Machine {
    pub(crate) root: PathBuf,
    pub(crate) container: PathBuf,
    pub(crate) v1: bool,
    base: tempfile::TempDir,
}

impl Machine {
    fn create(name: &str, limited: Limited) -> Option<Self> {
        let name = format!("dualplane-node-{name}-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory").is_dir();
        let top = Path::new(if v1 { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" });
        let root = top.join(name);
        let container = path_of(&root, UID, 'a');
        let machine = Self { root, container, v1, base: tempfile::tempdir().unwrap() };
        if !v1 {
            let _ = fs::write(top.join("cgroup.subtree_control"), "+memory");
        }
        machine.make(&machine.container)?;
        let group = match limited {
            Limited::Container => Some(machine.container.as_path()),
            Limited::Pod => machine.container.parent(),
            Limited::Nothing => None,
        };
        if let Some(group) = group {
            let (limit, swap) = if v1 {
                ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
            } else {
                ("memory.max", "memory.swap.max")
            };
            fs::write(group.join(limit), LIMIT.to_string()).ok()?;
            let _ = fs::write(group.join(swap), if v1 { LIMIT.to_string() } else { "0".into() });
        }
        if v1 {
            symlink(&machine.root, machine.base.path().join("memory")).unwrap();
        }
        Some(machine)
    }

    /// Makes a group and those above it, with the memory controller on the way.
    fn make(&self, group: &Path) -> Option<()> {
        let above: Vec<_> = group.ancestors().skip(1).take_while(|d| d.starts_with(&self.root)).collect();
        for dir in above.into_iter().rev() {
            fs::create_dir_all(dir).ok()?;
            if !self.v1 {
                fs::write(dir.join("cgroup.subtree_control"), "+memory").ok()?;
            }
        }
        fs::create_dir(group).ok()
    }

    /// A container of another pod, without a limit.
    pub(crate) fn neighbour(&self) -> PathBuf {
        let group = path_of(&self.root, OTHER_UID, 'b');
        self.make(&group).unwrap();
        group
    }

    fn config(&self) -> Config {
        let cgroups = if self.v1 { self.base.path().to_owned() } else { self.root.clone() };
        let mut config = Config { cgroups, ..Config::default() };
        config.rate.calm = Duration::ZERO;
        config
    }

    pub(crate) fn sampler(&self) -> Sampler {
        Sampler::new(self.config(), Box::new(NoGpus(GpuGap::NoDriver("none here".into())))).unwrap()
    }

    /// Reads where an agent does: all of `/sys/fs/cgroup`.
    pub(crate) fn sampler_of_all(&self) -> Sampler {
        let mut config = Config { cgroups: "/sys/fs/cgroup".into(), ..self.config() };
        config.wanted.roots = vec![self.root.file_name().unwrap().to_str().unwrap().to_owned()];
        Sampler::new(config, Box::new(NoGpus(GpuGap::NoDriver("none here".into())))).unwrap()
    }

    /// Runs a script whose shell is the first process of the container.
    pub(crate) fn run(&self, script: &str) -> Child {
        run_in(&self.container, script)
    }
}

/// Runs a script whose shell is the first process of a group.
pub(crate) fn run_in(group: &Path, script: &str) -> Child {
    let script = format!("echo $$ > {}/cgroup.procs && {script}", group.display());
    Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

fn path_of(root: &Path, uid: &str, id: char) -> PathBuf {
    root.join(format!("kubepods/burstable/pod{uid}/{}", id.to_string().repeat(64)))
}

impl Drop for Machine {
    fn drop(&mut self) {
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
        remove(&self.root);
    }
}

/// Removes a group and those below it.
fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

pub(crate) fn machine(name: &str, limited: Limited) -> Option<(Machine, Kernel)> {
    let required = std::env::var("DUALPLANE_REAL_OOM").is_ok_and(|v| v == "1");
    let made = Machine::create(name, limited).and_then(|m| {
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

/// The record of our containers' kill; other kills may come between.
pub(crate) fn record(m: &Machine, kernel: &mut Kernel) -> OomRecord {
    let own = format!("/{}/kubepods", m.root.file_name().unwrap().to_str().unwrap());
    for _ in 0..4 {
        let began = Moment::now();
        while Moment::now().since(began) < Duration::from_secs(3) {
            let mut said = Vec::new();
            kernel.turn(Duration::from_millis(100), &mut said).unwrap();
            for s in said {
                if let KernelMessage::Oom(r) = s
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
        // What was started by a process that is spared would be spared too.
        m.run("echo 0 > /proc/self/oom_score_adj; tail /dev/zero; true").wait().unwrap();
    }
    panic!("the kernel's record of the kill did not come");
}

/// What the core makes of the lines that the follower kept of this kill.
pub(crate) fn verdict(r: &OomRecord, kernel: &Kernel) -> Class {
    let first = r.place.line.unwrap();
    let text: String = kernel.recent().from(first).map(|(_, l)| format!("{l}\n")).collect();
    let file = RawFile { name: "kernel.log".into(), bytes: text.into_bytes(), sifted: None };
    let knowledge = Knowledge::embedded().unwrap();
    let reports = dualplane_report::triage_all("real", vec![file], vec![], &knowledge);
    reports[0].verdict.class
}

/// Rounds until something is noticed.
pub(crate) fn until(s: &mut Sampler, what: impl Fn(&SampleEvent) -> bool) -> (SampleEvent, Vec<Record>) {
    let mut all = Vec::new();
    let found = rounds(s, |records, noticed| {
        all.extend_from_slice(records);
        noticed.iter().find(|n| what(n)).cloned()
    });
    (found.expect("nothing was noticed"), all)
}

/// Rounds until a record is there that says what it must.
pub(crate) fn until_record<T>(s: &mut Sampler, what: impl Fn(&Record) -> Option<T>) -> T {
    rounds(s, |records, _| records.iter().find_map(&what)).expect("no record said so")
}

/// Rounds until the memory of a container is as it must become.
pub(crate) fn until_memory(s: &mut Sampler, what: impl Fn(&Memory) -> bool) -> Memory {
    until_record(s, |r| r.memory().filter(&what))
}

fn rounds<T>(s: &mut Sampler, mut what: impl FnMut(&[Record], &[SampleEvent]) -> Option<T>) -> Option<T> {
    let began = Moment::now();
    while Moment::now().since(began) < PATIENCE {
        let (mut records, mut noticed) = (Vec::new(), Vec::new());
        s.round(&mut records, &mut noticed);
        if let Some(found) = what(&records, &noticed) {
            return Some(found);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    None
}
