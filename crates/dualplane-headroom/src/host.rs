//! Host RAM as the kernel counts it against this process: its own memory cgroup and every group above that has a limit, else
//! the machine. `psutil.virtual_memory()` shows the machine in a container, too, and a pod dies at 4 GiB of its 512.

use std::path::Path;

use dualplane_base::process::of_path;
use dualplane_node::cgroup::{Depth, Group, Hierarchy, Kind, Limit, Memory, Reader};
use dualplane_node::node::{Machine, NodeReader, cgroup_of};

/// Bytes of a file of a cgroup or of `/proc`.
const BUFFER: usize = 64 << 10;
/// Groups above the own one: Kubernetes makes four.
const MAX_ABOVE: usize = 16;

/// What limits this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A limit of a cgroup.
    Cgroup,
    /// No cgroup limits it: the machine's memory does.
    Machine,
}

impl Scope {
    /// As people and programs read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Machine => "machine",
        }
    }
}

/// Host RAM at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// What limits it.
    pub scope: Scope,
    /// Bytes of that limit.
    pub limit: u64,
    /// What the kernel cannot take back: usage without page cache. tmpfs and pinned memory are in it.
    pub held: u64,
    /// Page cache included.
    pub used: u64,
    /// Share of the last 10 s in which every task waited for memory, in percent; `None` where the kernel does not tell.
    pub stalled: Option<f64>,
    /// Kills by the OOM killer in the group so far.
    pub kills: Option<u64>,
}

/// The files, open.
#[derive(Debug)]
pub struct HostReader {
    /// The own group and those above it, the own one first.
    groups: Vec<Reader>,
    machine: NodeReader,
    buffer: Vec<u8>,
    /// The group whose limit is the nearest, with that limit, as of the last whole look.
    nearest: Option<(usize, u64)>,
}

impl HostReader {
    /// Opens what `/proc/self/cgroup` names below `cgroups` (`/sys/fs/cgroup`).
    #[must_use]
    pub fn open(proc_root: &Path, cgroups: &Path, pid: u32) -> Self {
        let groups = Hierarchy::below(cgroups).map_or_else(Vec::new, |h| chain(&h, proc_root, pid));
        let machine = NodeReader::open(proc_root);
        Self { groups, machine, buffer: vec![0; BUFFER], nearest: None }
    }

    /// A whole look; `None` where neither a cgroup nor `/proc/meminfo` can be read.
    pub fn read(&mut self) -> Option<Host> {
        let mut nearest: Option<(usize, Host)> = None;
        for (at, reader) in self.groups.iter().enumerate() {
            let mut memory = Memory::default();
            if reader.read(Depth::Full, &mut self.buffer, &mut memory).is_err() {
                continue;
            }
            let Some(host) = of_group(&memory) else { continue };
            let room = |h: &Host| h.limit.saturating_sub(h.held);
            if nearest.is_none_or(|(_, n)| room(&host) < room(&n)) {
                nearest = Some((at, host));
            }
        }
        self.nearest = nearest.map(|(at, host)| (at, host.limit));
        let machine = self.machine();
        match (nearest, machine) {
            // A limit above what the machine has left is no protection.
            (Some((_, group)), Some(machine)) => {
                let room = |h: &Host| h.limit.saturating_sub(h.held);
                Some(if room(&machine) < room(&group) { machine } else { group })
            }
            (Some((_, group)), None) => Some(group),
            (None, machine) => machine,
        }
    }

    /// Usage with page cache of the nearest group and its limit: one read of one number, for every call.
    pub fn usage(&mut self) -> Option<(u64, u64)> {
        let (at, limit) = self.nearest?;
        let mut memory = Memory::default();
        self.groups.get(at)?.read(Depth::Usage, &mut self.buffer, &mut memory).ok()?;
        Some((memory.current?.0, limit))
    }

    fn machine(&mut self) -> Option<Host> {
        let mut m = Machine::default();
        self.machine.read(false, &mut self.buffer, &mut m);
        let (total, available) = (m.total?.0, m.available?.0);
        let free = m.free.map_or(available, |f| f.0);
        Some(Host {
            scope: Scope::Machine,
            limit: total,
            held: total.saturating_sub(available),
            used: total.saturating_sub(free),
            stalled: percent(m.pressure.full_avg10),
            kills: None,
        })
    }
}

/// Readers of the group of a process and of all groups above it that are visible here.
fn chain(hierarchy: &Hierarchy, proc_root: &Path, pid: u32) -> Vec<Reader> {
    let Some(own) = cgroup_of(proc_root, pid) else { return Vec::new() };
    let open = |path: &str| {
        let group = Group { kind: Kind::Container, identity: of_path(path, own.version) };
        Reader::open(hierarchy, &group).ok()
    };
    let above = Path::new(&own.path).ancestors().filter_map(Path::to_str);
    let mut found: Vec<Reader> = above.take(MAX_ABOVE).filter_map(open).collect();
    if found.is_empty() {
        // In a cgroup namespace the own group is the root that is seen, whatever path the host has for it.
        found.extend(open("/"));
    }
    found
}

fn of_group(memory: &Memory) -> Option<Host> {
    let Some(Limit::At(limit)) = memory.limit else { return None };
    let used = memory.current?.0;
    let cache = memory.inactive_file.map_or(0, |b| b.0) + memory.active_file.map_or(0, |b| b.0);
    Some(Host {
        scope: Scope::Cgroup,
        limit: limit.0,
        held: used.saturating_sub(cache),
        used,
        stalled: percent(memory.pressure.full_avg10),
        kills: memory.oom_kill,
    })
}

#[allow(clippy::cast_precision_loss, reason = "hundredths of a percent are below 10,000")]
fn percent(hundredths: Option<u64>) -> Option<f64> {
    hundredths.map(|h| h as f64 / 100.0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine of files: a pod group of v2 with two containers; this process is in the first.
    fn pod(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    fn reader(root: &tempfile::TempDir) -> HostReader {
        HostReader::open(&root.path().join("proc"), &root.path().join("cg"), 7)
    }

    const MEMINFO: &str = "MemTotal: 4194304 kB\nMemFree: 1048576 kB\nMemAvailable: 2097152 kB\n";

    #[test]
    fn the_nearest_limit_counts_and_not_the_own_one() {
        let root = pod(&[
            ("proc/7/cgroup", "0::/pod/one\n"),
            ("proc/meminfo", MEMINFO),
            ("cg/cgroup.controllers", "memory"),
            ("cg/pod/memory.max", "1000000000\n"),
            ("cg/pod/memory.current", "950000000\n"),
            ("cg/pod/memory.stat", "inactive_file 0\nactive_file 0\n"),
            ("cg/pod/one/memory.max", "max\n"),
            ("cg/pod/one/memory.current", "100000000\n"),
            ("cg/pod/one/memory.stat", "inactive_file 40000000\nactive_file 10000000\n"),
        ]);
        let host = reader(&root).read().unwrap();
        assert_eq!((host.scope, host.limit, host.held), (Scope::Cgroup, 1_000_000_000, 950_000_000));
    }

    #[test]
    fn page_cache_is_not_held() {
        let root = pod(&[
            ("proc/7/cgroup", "0::/one\n"),
            ("proc/meminfo", MEMINFO),
            ("cg/cgroup.controllers", "memory"),
            ("cg/one/memory.max", "1000\n"),
            ("cg/one/memory.current", "990\n"),
            ("cg/one/memory.stat", "inactive_file 600\nactive_file 200\n"),
            (
                "cg/one/memory.pressure",
                "some avg10=0.00 total=1\nfull avg10=12.34 avg60=0 avg300=0 total=1\n",
            ),
        ]);
        let mut reader = reader(&root);
        let host = reader.read().unwrap();
        assert_eq!((host.used, host.held, host.stalled), (990, 190, Some(12.34)));
        assert_eq!(reader.usage(), Some((990, 1000)));
    }

    #[test]
    fn without_a_limit_the_machine_counts() {
        let root = pod(&[
            ("proc/7/cgroup", "0::/one\n"),
            ("proc/meminfo", MEMINFO),
            ("cg/cgroup.controllers", "memory"),
            ("cg/one/memory.max", "max\n"),
            ("cg/one/memory.current", "990\n"),
        ]);
        let host = reader(&root).read().unwrap();
        assert_eq!((host.scope, host.limit, host.held), (Scope::Machine, 4 << 30, 2 << 30));
    }

    #[test]
    fn a_namespace_shows_its_root_alone() {
        let root = pod(&[
            ("proc/7/cgroup", "0::/kubepods.slice/pod/one\n"),
            ("proc/meminfo", MEMINFO),
            ("cg/memory/memory.usage_in_bytes", "500\n"),
            (
                "cg/memory/memory.stat",
                "hierarchical_memory_limit 800\ntotal_inactive_file 50\ntotal_active_file 50\n",
            ),
        ]);
        let host = reader(&root).read().unwrap();
        assert_eq!((host.scope, host.limit, host.held), (Scope::Cgroup, 800, 400));
    }

    #[test]
    fn nothing_to_read_is_nothing_known() {
        let root = pod(&[("proc/7/cgroup", "0::/one\n")]);
        assert_eq!(reader(&root).read(), None);
    }
}
