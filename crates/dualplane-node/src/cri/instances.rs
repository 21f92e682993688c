//! Notices new and gone instances of containers by their log files, looking only into folders that changed.
//!
//! Polled, not by inotify: a node has some hundred folders, and a `stat` of each costs less a second than one sample; a
//! watch that overflowed would have to fall back on the same. An end is noticed sooner by the group that vanishes
//! (`cgroup::Vanished`); this here still sees it when that was missed, and says the restart count.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::folders::{PodFolder, instance_of, pod_folder};

/// Containers that are followed.
const MAX_CONTAINERS: usize = 8192;

/// What happened to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An instance has begun to write; those before it have ended.
    Started {
        /// Pod.
        pod: PodFolder,
        /// Container.
        container: String,
        /// Which restart.
        restart: u32,
        /// The instance before it, where its log is still there.
        ended: Option<u32>,
        /// Folder of its logs.
        folder: PathBuf,
    },
    /// The folder is gone: the pod was removed, its logs are lost to everybody.
    Removed {
        /// Pod.
        pod: PodFolder,
        /// Container.
        container: String,
        /// The last instance that was seen.
        last: Option<u32>,
    },
}

#[derive(Debug, Clone)]
struct TrackedContainer {
    pod: PodFolder,
    container: String,
    stamp: Stamp,
    newest: Option<u32>,
}

type Stamp = (i64, i64, u64);

/// State of the log folders.
#[derive(Debug, Default)]
pub struct Instances {
    root: PathBuf,
    pods: BTreeMap<PathBuf, Stamp>,
    containers: BTreeMap<PathBuf, TrackedContainer>,
    root_stamp: Option<Stamp>,
    /// Folders beyond the limit.
    pub left_out: u64,
}

impl Instances {
    /// Follows `/var/log/pods`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), ..Self::default() }
    }

    /// What changed since the last look. The first look gives what is there as started.
    pub fn look(&mut self, out: &mut Vec<Change>) {
        let now = stamp(&self.root);
        if now != self.root_stamp {
            self.root_stamp = now.map(settled);
            self.list_pods();
        }
        let changed: Vec<PathBuf> =
            self.pods.iter().filter(|(p, s)| stamp(p) != Some(**s)).map(|(p, _)| p.clone()).collect();
        for pod in changed {
            self.list_containers(&pod);
        }
        let changed: Vec<PathBuf> = self
            .containers
            .iter()
            .filter(|(p, s)| stamp(p) != Some(s.stamp))
            .map(|(p, _)| p.clone())
            .collect();
        for folder in changed {
            self.list_instances(&folder, out);
        }
    }

    fn list_pods(&mut self) {
        for dir in directories(&self.root) {
            // A stamp that no folder has: it is listed at this look.
            self.pods.entry(dir).or_insert((0, 0, 0));
        }
    }

    fn list_containers(&mut self, dir: &Path) {
        let Some(now) = stamp(dir) else {
            self.pods.remove(dir);
            return;
        };
        let Some(pod) = dir.file_name().and_then(|n| n.to_str()).and_then(pod_folder) else {
            self.pods.insert(dir.to_owned(), settled(now));
            return;
        };
        self.pods.insert(dir.to_owned(), settled(now));
        for folder in directories(dir) {
            let Some(name) = folder.file_name().and_then(|n| n.to_str()).map(str::to_owned) else { continue };
            if self.containers.len() >= MAX_CONTAINERS && !self.containers.contains_key(&folder) {
                self.left_out += 1;
                continue;
            }
            self.containers.entry(folder).or_insert_with(|| TrackedContainer {
                pod: pod.clone(),
                container: name,
                stamp: (0, 0, 0),
                newest: None,
            });
        }
    }

    fn list_instances(&mut self, folder: &Path, out: &mut Vec<Change>) {
        let Some(now) = stamp(folder) else {
            if let Some(s) = self.containers.remove(folder) {
                out.push(Change::Removed { pod: s.pod, container: s.container, last: s.newest });
            }
            return;
        };
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut numbers: Vec<u32> =
            entries.filter_map(|e| e.file_name().to_str().and_then(instance_of).map(|(n, _, _)| n)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let Some(s) = self.containers.get_mut(folder) else { return };
        s.stamp = settled(now);
        let Some(newest) = numbers.last().copied().filter(|n| Some(*n) > s.newest) else { return };
        s.newest = Some(newest);
        out.push(Change::Started {
            pod: s.pod.clone(),
            container: s.container.clone(),
            restart: newest,
            ended: numbers.iter().rev().nth(1).copied(),
            folder: folder.to_owned(),
        });
    }
}

/// When a folder last got or lost an entry.
fn stamp(path: &Path) -> Option<Stamp> {
    let m = fs::metadata(path).ok()?;
    Some((m.mtime(), m.mtime_nsec(), m.ino()))
}

/// A stamp to compare with later. File systems stamp by the tick of the kernel, 1 to 10 ms: what comes within the tick in
/// which a folder is listed would never be seen, so a folder that is so fresh is listed once more.
fn settled(stamp: Stamp) -> Stamp {
    const TICK_NS: i64 = 50_000_000;
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(wall.as_secs()).unwrap_or(i64::MAX).saturating_sub(stamp.0);
    let age = seconds.saturating_mul(1_000_000_000) + i64::from(wall.subsec_nanos()) - stamp.1;
    if age.unsigned_abs() < TICK_NS.unsigned_abs() { (0, 0, 0) } else { stamp }
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    // A pod's folder may be a link to another disk.
    entries.map(|e| e.path()).filter(|p| p.is_dir()).collect()
}
