//! A node of our own: groups below a root of our own, and log folders as the kubelet keeps them: a link by container id, one
//! dead instance's log at most.
//!
//! Another test takes this file in as its own, and does not use all of it.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dualplane_agent::observe;
use dualplane_agent::recorder::Config;
use dualplane_node::node;

/// A node in a folder, with groups of the real kernel.
pub(crate) struct Node {
    pub(crate) base: tempfile::TempDir,
    root: PathBuf,
    top: PathBuf,
    v1: bool,
}

/// One pod with one container.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) container: String,
    pub(crate) restart: u32,
    number: u32,
}

/// One instance.
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) child: Child,
    group: PathBuf,
}

/// The kernel remembers the kills of earlier runs: ids are of this one.
fn id_of(pod: &Pod, restart: u32) -> String {
    format!("{:08x}{:048x}{:08x}", std::process::id(), pod.number, restart + 1)
}

impl Node {
    /// `None` where no memory cgroup can be made.
    pub(crate) fn create(name: &str) -> Option<Self> {
        let required = std::env::var("DUALPLANE_REAL_OOM").is_ok_and(|v| v == "1");
        let made = Self::try_create(name);
        assert!(made.is_some() || !required, "no memory cgroup here, and DUALPLANE_REAL_OOM=1 asks for it");
        if made.is_none() {
            eprintln!("no memory cgroup can be made here; skipped");
        }
        made
    }

    fn try_create(name: &str) -> Option<Self> {
        let v1 = Path::new("/sys/fs/cgroup/memory").is_dir();
        let top = PathBuf::from(if v1 { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" });
        let root = top.join(format!("dualplane-agent-{name}-{}", std::process::id()));
        fs::create_dir(&root).ok()?;
        let base = tempfile::tempdir().unwrap();
        let node = Self { base, root, top, v1 };
        node.group("kubepods")?;
        node.group("kubepods/burstable")?;
        if v1 {
            fs::create_dir(node.base.path().join("cgroup")).unwrap();
            symlink(&node.root, node.base.path().join("cgroup/memory")).unwrap();
        }
        for d in ["log/pods", "log/containers"] {
            fs::create_dir_all(node.base.path().join(d)).unwrap();
        }
        Some(node)
    }

    fn group(&self, path: &str) -> Option<PathBuf> {
        let dir = self.root.join(path);
        let parent = dir.parent()?;
        if !self.v1 {
            if parent == self.root {
                let _ = fs::write(self.top.join("cgroup.subtree_control"), "+memory");
                let _ = fs::write(self.root.join("cgroup.subtree_control"), "+memory");
            }
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
        }
        if !dir.is_dir() {
            fs::create_dir(&dir).ok()?;
        }
        Some(dir)
    }

    pub(crate) fn config(&self, state: &Path) -> Config {
        let cgroups = if self.v1 { self.base.path().join("cgroup") } else { self.root.clone() };
        let mut observe = observe::Config {
            pod_logs: self.base.path().join("log/pods"),
            links: self.base.path().join("log/containers"),
            ..observe::Config::default()
        };
        observe.sample.cgroups = cgroups;
        Config {
            observe,
            state: state.to_owned(),
            disk: 64 << 20,
            kmsg: "/dev/kmsg".into(),
            node: "node-1".into(),
            tool: "dualplane test".into(),
        }
    }

    pub(crate) fn pod(&self, number: u32) -> Pod {
        Pod {
            name: format!("llm-{number}"),
            // As ids, UIDs are of this run.
            uid: format!("9ebd9238-4ea3-417e-975f-{:06x}{number:06x}", std::process::id() & 0xff_ffff),
            container: "vllm".into(),
            restart: 0,
            number,
        }
    }

    fn pod_dir(&self, pod: &Pod) -> PathBuf {
        self.base.path().join(format!("log/pods/serving_{}_{}", pod.name, pod.uid))
    }

    pub(crate) fn log(&self, pod: &Pod) -> PathBuf {
        self.pod_dir(pod).join(&pod.container).join(format!("{}.log", pod.restart))
    }

    /// Starts an instance: group with a limit, log, link, and a shell whose every word runs inside of the group.
    pub(crate) fn start(&self, pod: &Pod, limit: u64, script: &str) -> Instance {
        let id = id_of(pod, pod.restart);
        self.group(&format!("kubepods/burstable/pod{}", pod.uid)).unwrap();
        let group = self.group(&format!("kubepods/burstable/pod{}/{id}", pod.uid)).unwrap();
        let (file, swap) = if self.v1 {
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        } else {
            ("memory.max", "memory.swap.max")
        };
        fs::write(group.join(file), limit.to_string()).unwrap();
        let _ = fs::write(group.join(swap), if self.v1 { limit.to_string() } else { "0".into() });
        let log = self.log(pod);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        let mut out = fs::File::create(&log).unwrap();
        writeln!(
            out,
            "2026-11-21T10:00:00.000000000Z stdout F INFO instance {} of {} begins",
            pod.restart, pod.name
        )
        .unwrap();
        // What the kubelet keeps: the log of the living instance and of the last dead one.
        if let Some(old) = pod.restart.checked_sub(2) {
            let _ = fs::remove_file(log.with_file_name(format!("{old}.log")));
        }
        let link = format!("log/containers/{}_serving_{}-{id}.log", pod.name, pod.container);
        let target =
            format!("/var/log/pods/serving_{}_{}/{}/{}.log", pod.name, pod.uid, pod.container, pod.restart);
        symlink(target, self.base.path().join(link)).unwrap();
        let script = format!("echo $$ > {}/cgroup.procs && {script}", group.display());
        let child = Command::new("sh")
            .args(["-c", &script])
            .env("LOG", &log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Instance { id, child, group }
    }

    /// Starts another process in a running instance, as `kubectl exec` does: beside its first process, not below it.
    pub(crate) fn exec(&self, instance: &Instance, script: &str) -> Child {
        let script = format!("echo $$ > {}/cgroup.procs && {script}", instance.group.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// What the runtime does when the last process is gone: the group goes, the links of dead containers too.
    pub(crate) fn clean(&self, pod: &Pod, mut instance: Instance) {
        instance.child.wait().unwrap();
        for _ in 0..500 {
            if fs::remove_dir(&instance.group).is_ok() || !instance.group.exists() {
                break;
            }
            for pid in node::processes(&instance.group) {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
        if let Some(old) = pod.restart.checked_sub(1) {
            let id = id_of(pod, old);
            let link = format!("log/containers/{}_serving_{}-{id}.log", pod.name, pod.container);
            let _ = fs::remove_file(self.base.path().join(link));
        }
    }

    /// The pod is deleted: its group and its logs go. The kernel may still hold the group for one that was in it.
    pub(crate) fn delete(&self, pod: &Pod) {
        let group = self.root.join(format!("kubepods/burstable/pod{}", pod.uid));
        for _ in 0..500 {
            if fs::remove_dir(&group).is_ok() || !group.exists() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
        assert!(!group.exists(), "{} cannot be removed", group.display());
        fs::remove_dir_all(self.pod_dir(pod)).unwrap();
        assert!(!self.pod_dir(pod).exists());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for pid in node::processes(&self.root) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        for _ in 0..100 {
            if node::processes(&self.root).is_empty() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let mut dirs = vec![self.root.clone()];
        let mut at = 0;
        while let Some(dir) = dirs.get(at).cloned() {
            at += 1;
            let below = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok).map(|e| e.path());
            dirs.extend(below.filter(|p| p.is_dir()));
        }
        for d in dirs.iter().rev() {
            let _ = fs::remove_dir(d);
        }
    }
}
