//! Whether a pid is still a process, and since when: a GPU may hold the memory of one that is not.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Ticks of `/proc/PID/stat` in a second: `USER_HZ`, 100 on every architecture that a GPU driver exists for.
const TICKS: u64 = 100;
/// The kernel's number of the first pid namespace (`PROC_PID_INIT_INO` of `include/linux/proc_ns.h`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// … and of the first cgroup namespace (`PROC_CGROUP_INIT_INO`).
const FIRST_CGROUPS: &str = "cgroup:[4026531835]";
/// Descriptors of a process that are looked at.
const MAX_DESCRIPTORS: usize = 4096;

/// What has become of a pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs, or waits.
    Running,
    /// It ended and its parent has not asked for its end, or its last thread is still in the kernel.
    Ended,
    /// There is none.
    Gone,
}

/// A pid and its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStatus {
    /// State.
    pub life: ProcessState,
    /// Time since it was started.
    pub age: Option<Duration>,
}

/// What has become of a pid below this `/proc`; `None` where it is there and cannot be read.
#[must_use]
pub fn life(proc_root: &Path, pid: u32) -> Option<ProcessStatus> {
    let dir = proc_root.join(pid.to_string());
    let text = match fs::read(dir.join("stat")) {
        Ok(text) => text,
        Err(_) if fs::symlink_metadata(&dir).is_err() => {
            return Some(ProcessStatus { life: ProcessState::Gone, age: None });
        }
        Err(_) => return None,
    };
    let since_boot = clock_gettime(ClockId::Boottime);
    let now = Duration::from_secs(u64::try_from(since_boot.tv_sec).unwrap_or_default());
    parse(&String::from_utf8_lossy(&text), now)
}

/// `PID (NAME) STATE …`, the start as the 22nd word. The name may hold blanks and brackets.
fn parse(stat: &str, now: Duration) -> Option<ProcessStatus> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let life = match words.next()? {
        "Z" | "X" | "x" => ProcessState::Ended,
        _ => ProcessState::Running,
    };
    let ticks: Option<u64> = words.nth(18).and_then(|w| w.parse().ok());
    let age = ticks.map(|t| now.saturating_sub(Duration::from_millis(t.saturating_mul(1000 / TICKS))));
    Some(ProcessStatus { life, age })
}

/// Whether the pids that a driver tells are those of this `/proc`: this is the machine's first pid namespace, and nothing is
/// hidden in it. `None` where that cannot be told.
#[must_use]
pub fn host_pids(proc_root: &Path) -> Option<bool> {
    let namespace = fs::read_link(proc_root.join("self/ns/pid")).ok()?;
    if namespace.as_os_str() != FIRST_NAMESPACE {
        return Some(false);
    }
    // With hidepid others' processes look as if they had ended.
    fs::symlink_metadata(proc_root.join("1")).ok().map(|_| true)
}

/// Whether the paths of groups below this `/proc` are those that the kernel prints. `None` where that cannot be told.
#[must_use]
pub fn host_cgroups(proc_root: &Path) -> Option<bool> {
    Some(fs::read_link(proc_root.join("self/ns/cgroup")).ok()?.as_os_str() == FIRST_CGROUPS)
}

/// Whether a process has a GPU's device file open; `None` where its descriptors may not be read.
#[must_use]
pub fn uses_gpu(proc_root: &Path, pid: u32) -> Option<bool> {
    let entries = fs::read_dir(proc_root.join(pid.to_string()).join("fd")).ok()?;
    let mut links =
        entries.filter_map(Result::ok).take(MAX_DESCRIPTORS).filter_map(|e| fs::read_link(e.path()).ok());
    Some(links.any(|l| l.as_os_str().as_encoded_bytes().starts_with(b"/dev/nvidia")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_an_age() {
        let me = life(Path::new("/proc"), std::process::id()).unwrap();
        assert_eq!(me.life, ProcessState::Running);
        assert!(me.age.unwrap() < Duration::from_secs(600), "{me:?}");
        let first = life(Path::new("/proc"), 1).unwrap();
        assert!(first.age.unwrap() >= me.age.unwrap());
        let gone = Some(ProcessStatus { life: ProcessState::Gone, age: None });
        assert_eq!(life(Path::new("/proc"), u32::MAX), gone);
        assert!(uses_gpu(Path::new("/proc"), std::process::id()).is_some());
        assert_eq!(uses_gpu(Path::new("/nonexistent"), 1), None);
    }

    #[test]
    fn one_that_ended_is_seen_until_its_parent_asks() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let proc_root = Path::new("/proc");
        let state = || life(proc_root, child.id()).unwrap().life;
        // Its end needs no more than its start; the state is asked for until it is there.
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while state() != ProcessState::Ended && std::time::Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        assert_eq!(state(), ProcessState::Ended);
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(life(proc_root, pid).unwrap().life, ProcessState::Gone);
    }

    #[test]
    fn hostile_names_and_odd_files() {
        let now = Duration::from_secs(100);
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4000 0 0";
        let of = |name: &str, state: &str| parse(&format!("7 ({name}) {state} {rest}"), now);
        assert_eq!(
            of("a) Z (b", "S"),
            Some(ProcessStatus { life: ProcessState::Running, age: Some(Duration::from_secs(60)) })
        );
        assert_eq!(of("x", "Z").unwrap().life, ProcessState::Ended);
        assert_eq!(parse("7 (x) S 1", now).unwrap().age, None);
        assert_eq!(parse("", now), None);
        assert_eq!(parse("7 (x", now), None);
        let d = tempfile::tempdir().unwrap();
        assert_eq!(host_pids(d.path()), None);
        fs::create_dir_all(d.path().join("self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[4026532000]", d.path().join("self/ns/pid")).unwrap();
        assert_eq!(host_pids(d.path()), Some(false));
        fs::create_dir_all(d.path().join("9")).unwrap();
        assert_eq!(life(d.path(), 9), None, "it is there and tells nothing");
    }
}
