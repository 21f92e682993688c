//! Names of the kubelet's log folders and files.
//!
//! Source: kubelet `pkg/kubelet/kuberuntime/helpers.go` (`BuildPodLogsDirectory`, `BuildContainerLogsDirectory`) and
//! `pkg/kubelet/logs/container_log_manager.go` (rotation).

use dualplane_base::order::Order as _;
use std::fs;
use std::path::{Path, PathBuf};

/// `NAMESPACE_POD_UID`. None of the first two may hold an underscore.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodFolder {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// UID; of a static pod the hash of its manifest.
    pub uid: String,
}

/// Reads the name of a pod's folder.
#[must_use]
pub fn pod_folder(name: &str) -> Option<PodFolder> {
    let mut parts = name.split('_');
    let (namespace, pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let hex = uid.bytes().filter(u8::is_ascii_hexdigit).count() == 32;
    (parts.next().is_none() && !namespace.is_empty() && !pod.is_empty() && hex).then(|| PodFolder {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        uid: uid.to_owned(),
    })
}

/// A file of one instance's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where.
    pub path: PathBuf,
    /// Rotated at (`20261121-195801`); the file that is written to has none.
    pub rotated: Option<String>,
    /// Packed by the kubelet.
    pub gzip: bool,
}

/// Restart count and rotation of `N.log`, `N.log.20261121-195801`, `N.log.20261121-195801.gz`; none of `….tmp`.
#[must_use]
pub fn instance_of(name: &str) -> Option<(u32, Option<&str>, bool)> {
    let (number, rest) = name.split_once(".log")?;
    let number = number.parse().ok()?;
    if rest.is_empty() {
        return Some((number, None, false));
    }
    let rest = rest.strip_prefix('.')?;
    let (stamp, gzip) = rest.strip_suffix(".gz").map_or((rest, false), |s| (s, true));
    let valid = stamp.len() == 15 && stamp.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    valid.then_some((number, Some(stamp), gzip))
}

/// The files of one instance in a container's folder, the oldest first.
#[must_use]
pub fn segments(folder: &Path, restart: u32) -> Vec<Segment> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut all: Vec<Segment> = entries
        .filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            let (n, rotated, gzip) = instance_of(&name)?;
            (n == restart).then(|| Segment { path: e.path(), rotated: rotated.map(str::to_owned), gzip })
        })
        .collect();
    // While the kubelet packs a file both forms are there for a moment.
    all.order_by(|a, b| {
        (a.rotated.is_none(), &a.rotated, a.gzip).cmp(&(b.rotated.is_none(), &b.rotated, b.gzip))
    });
    all.dedup_by(|b, a| b.rotated == a.rotated);
    all
}
