//! The processes of a container, from `cgroup.procs` and `/proc/PID`. Read at a death or on demand, not each second.

use std::fs;
use std::io::Read;
use std::path::Path;

use dualplane_base::order::Order as _;
use dualplane_base::process::{Process, process};
use dualplane_base::units::Bytes;

use crate::number::kilobytes;

/// Processes that are listed of one container.
const MAX_PROCESSES: usize = 512;
/// Groups below a container that are looked into: systemd in a container makes some.
const MAX_BELOW: usize = 64;
/// Bytes of a command line: vLLM's longest with JSON inside are below 4 KiB.
const MAX_CMDLINE: u64 = 16 << 10;

/// One process. Its command line may hold secrets: mask it (`dualplane_core::redact`) before it is written anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proc {
    /// Pid of the host.
    pub pid: u32,
    /// Its parent.
    pub parent: Option<u32>,
    /// Name, at most 15 characters.
    pub comm: String,
    /// Words of the command line.
    pub words: Vec<String>,
    /// Anonymous memory.
    pub anon: Option<Bytes>,
    /// File pages.
    pub file: Option<Bytes>,
    /// Shared memory, where pinned host memory is too.
    pub shmem: Option<Bytes>,
    /// Swapped out.
    pub swap: Option<Bytes>,
    /// The most that was ever resident.
    pub peak: Option<Bytes>,
    /// Its share of what it shares: sums up to the container where RSS counts twice.
    pub pss: Option<Bytes>,
}

/// The processes of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// By resident memory, the largest first.
    pub processes: Vec<Proc>,
    /// Beyond the limit.
    pub left_out: usize,
}

/// Pids of a group and those below it. A pid that ended meanwhile is not in the list.
#[must_use]
pub fn processes(dir: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut open = vec![dir.to_owned()];
    let mut looked = 0;
    while let Some(d) = open.pop() {
        looked += 1;
        let text = fs::read_to_string(d.join("cgroup.procs")).unwrap_or_default();
        // 0 is a process of another pid namespace: without hostPID nothing can be said of it.
        pids.extend(text.lines().filter_map(|l| l.trim().parse::<u32>().ok()).filter(|p| *p != 0));
        let below = fs::read_dir(&d).into_iter().flatten().filter_map(Result::ok);
        let below = below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path());
        open.extend(below.take(MAX_BELOW.saturating_sub(looked + open.len())));
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Lists the processes of a group. `pss` costs a walk over each process's page tables: only where a death is looked at.
#[must_use]
pub fn list(dir: &Path, proc_root: &Path, pss: bool) -> Listing {
    let pids = processes(dir);
    let mut listing = Listing { left_out: pids.len().saturating_sub(MAX_PROCESSES), ..Listing::default() };
    listing.processes = pids.iter().take(MAX_PROCESSES).filter_map(|p| one(proc_root, *p, pss)).collect();
    let resident = |p: &Proc| [p.anon, p.file, p.shmem].into_iter().flatten().map(|b| b.0).sum::<u64>();
    listing.processes.order_by_key(|p| (std::cmp::Reverse(resident(p)), p.pid));
    listing
}

/// The group, pod and container of a pid. `None` where the process ended.
#[must_use]
pub fn cgroup_of(proc_root: &Path, pid: u32) -> Option<Process> {
    let dir = proc_root.join(pid.to_string());
    let text = bounded(&dir.join("cgroup"), 64 << 10)?;
    let comm = bounded(&dir.join("comm"), 64).unwrap_or_default();
    Some(process(pid, &String::from_utf8_lossy(&comm), &String::from_utf8_lossy(&text)))
}

fn one(proc_root: &Path, pid: u32, pss: bool) -> Option<Proc> {
    let dir = proc_root.join(pid.to_string());
    let status = bounded(&dir.join("status"), 16 << 10)?;
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    let comm = bounded(&dir.join("comm"), 64).map(text).unwrap_or_default();
    let line = bounded(&dir.join("cmdline"), MAX_CMDLINE).unwrap_or_default();
    let words =
        line.split(|b| *b == 0).filter(|w| !w.is_empty()).map(|w| String::from_utf8_lossy(w).into_owned());
    let mut p = Proc { pid, comm: comm.trim_end().to_owned(), words: words.collect(), ..Proc::default() };
    for (key, bytes) in kilobytes(&status) {
        let field = match key {
            b"RssAnon" => &mut p.anon,
            b"RssFile" => &mut p.file,
            b"RssShmem" => &mut p.shmem,
            b"VmSwap" => &mut p.swap,
            b"VmHWM" => &mut p.peak,
            _ => continue,
        };
        *field = Some(bytes);
    }
    p.parent = String::from_utf8_lossy(&status)
        .lines()
        .find_map(|l| l.strip_prefix("PPid:"))
        .and_then(|n| n.trim().parse().ok());
    if pss {
        let rollup = bounded(&dir.join("smaps_rollup"), 8 << 10).unwrap_or_default();
        p.pss = kilobytes(&rollup).find(|(k, _)| *k == b"Pss").map(|(_, b)| b);
    }
    Some(p)
}

fn bounded(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_a_group_and_below_it() {
        let d = tempfile::tempdir().unwrap();
        let me = std::process::id();
        fs::write(d.path().join("cgroup.procs"), format!("0\n{me}\n4194304999\n")).unwrap();
        fs::create_dir(d.path().join("init")).unwrap();
        fs::write(d.path().join("init/cgroup.procs"), format!("{me}\n1\n")).unwrap();
        assert_eq!(processes(d.path()), [1, me, 4_194_304_999]);
        let listing = list(d.path(), Path::new("/proc"), true);
        let own = listing.processes.iter().find(|p| p.pid == me).unwrap();
        assert!(own.words[0].contains("dualplane_node"), "{:?}", own.words);
        assert!(own.anon.unwrap() > Bytes(0) && own.peak.is_some() && own.pss.is_some());
        assert!(own.parent.unwrap() > 0);
        assert_eq!(listing.left_out, 0);
    }

    #[test]
    fn a_pid_leads_to_its_group() {
        let p = cgroup_of(Path::new("/proc"), std::process::id()).unwrap();
        assert!(p.path.starts_with('/'), "{p:?}");
        assert_eq!(cgroup_of(Path::new("/proc"), u32::MAX), None);
    }
}
