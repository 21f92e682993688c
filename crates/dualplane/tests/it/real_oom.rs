//! A real kill by the real kernel: a memory cgroup of our own, a process that outgrows it, the kernel's own lines.
//!
//! Needs root and a memory cgroup (v1 or v2). Where CI sets `DUALPLANE_REAL_OOM=1`, their absence is a failure.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{class, dir, triage_json};

pub(crate) const LIMIT: u64 = 48 << 20;

pub(crate) struct Group {
    pub(crate) path: PathBuf,
    limit_file: &'static str,
}

impl Group {
    /// A group of our own below the root of the hierarchy, v1 or v2.
    fn create() -> Option<Self> {
        Self::named("test")
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = format!("dualplane-{name}-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (path, limit_file) = if v1.is_dir() {
            (v1.join(name), "memory.limit_in_bytes")
        } else {
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
            (Path::new("/sys/fs/cgroup").join(name), "memory.max")
        };
        fs::create_dir(&path).ok()?;
        let group = Self { path, limit_file };
        fs::write(group.path.join(group.limit_file), LIMIT.to_string()).ok()?;
        // Without this a machine with swap would not kill.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        let _ = fs::write(group.path.join("memory.memsw.limit_in_bytes"), LIMIT.to_string());
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// All records of the kernel's ring that are there now.
fn kmsg() -> Option<String> {
    // `dmesg` reads what the container's view of /dev/kmsg allows; without it, there is no kernel log to judge.
    let o = Command::new("dmesg").output().ok()?;
    let mut text = String::new();
    o.stdout.as_slice().read_to_string(&mut text).ok()?;
    (!text.is_empty()).then_some(text)
}

#[test]
fn a_process_that_outgrows_its_cgroup_is_named_from_the_kernels_own_record() {
    let required = std::env::var("DUALPLANE_REAL_OOM").is_ok_and(|v| v == "1");
    let Some(group) = Group::create() else {
        assert!(!required, "no memory cgroup can be made here, and DUALPLANE_REAL_OOM=1 asks for one");
        eprintln!("no memory cgroup can be made here; skipped");
        return;
    };
    // The shell enters the group and becomes the process that grows: tail keeps one endless line in memory.
    let script = format!("echo $$ > {}/cgroup.procs && exec tail /dev/zero", group.path.display());
    let child =
        Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let status = { child }.wait().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "the kernel kills with SIGKILL");
    let Some(log) =
        kmsg().filter(|l| l.contains(&format!("pid={pid}")) || l.contains(&format!("process {pid} ")))
    else {
        assert!(!required, "the kernel log does not show the kill of pid {pid}");
        eprintln!("the kernel log cannot be read here; skipped");
        return;
    };
    // Only what belongs to this kill: the ring may hold others'.
    let lines: Vec<&str> = log.lines().collect();
    let killed = lines.iter().rposition(|l| l.contains(&format!("process {pid} "))).unwrap();
    let start = lines[..=killed].iter().rposition(|l| l.contains("invoked oom-killer")).unwrap();
    let record = lines[start..=killed].join("\n");
    let d = dir(&[("kernel.log", record.as_bytes())]);
    let v = triage_json(d.path());
    assert_eq!(class(&v), "host_oom_killed", "{v:#}");
    assert_eq!(v["verdict"]["plane"], "host");
    assert_eq!(v["trigger"]["text"].as_str(), Some(lines[start]));
    assert!(v["verdict"]["summary"].as_str().unwrap().contains("48.00 MiB"), "{}", v["verdict"]["summary"]);
}
