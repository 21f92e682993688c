//! Walks to the containers: below kubepods of both drivers, docker, podman, and services by name.
//!
//! Only directories that can lead to one are entered: a host has thousands of groups, a walk costs some 10 µs each.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dualplane_base::cgroup_path::container_id;
use dualplane_base::order::Order as _;
use dualplane_base::process::of_path;

use super::{Group, Hierarchy, Kind, Version, Watch};

/// Deepest way that is known: kind in docker, `/system.slice/docker-ID.scope/kubelet.slice/kubelet-kubepods.slice/…/ID.scope`.
const MAX_DEPTH: usize = 10;
/// Kubernetes allows 110 pods a node by default, large ones run 500.
const MAX_GROUPS: usize = 4096;
/// Directories that are looked into.
const MAX_DIRS: usize = 20_000;

/// What is looked for besides containers.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Units of systemd by name: `vllm.service`.
    pub services: Vec<String>,
    /// Roots of groups where the kubelet runs with `--cgroup-root`: names below the hierarchy's root.
    pub roots: Vec<String>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Found {
    /// Groups, sorted by path.
    pub groups: Vec<Group>,
    /// Groups and directories beyond the limits.
    pub left_out: u64,
}

/// Walks the hierarchy. Only directories that `watch` has not, or that changed, are looked into.
#[must_use]
pub fn find(hierarchy: &Hierarchy, wanted: &Wanted, watch: &mut Watch) -> Found {
    let mut found = Found::default();
    let mut looked = 0;
    watch.begin();
    let mut open = vec![(hierarchy.memory.clone(), String::new(), Place::Root, 0_usize)];
    while let Some((dir, path, place, depth)) = open.pop() {
        if looked >= MAX_DIRS {
            found.left_out += 1;
            continue;
        }
        looked += 1;
        for name in watch.names(&dir) {
            let child = format!("{path}/{name}");
            match judge(place, name, &child, wanted) {
                Step::Skip => {}
                Step::Take(kind) if found.groups.len() < MAX_GROUPS => {
                    // A node in a container (kind, k3d): the pods are below its own group.
                    if let Some(inner) = inner_root(&dir.join(name)) {
                        let below = dir.join(name).join(inner);
                        open.push((below, format!("{child}/{inner}"), Place::Pods, depth + 2));
                    }
                    let version = if hierarchy.version == Version::V1 { 1 } else { 2 };
                    found.groups.push(Group { kind, identity: of_path(&child, version) });
                }
                Step::Enter(next) if depth < MAX_DEPTH => {
                    open.push((dir.join(name), child, next, depth + 1));
                }
                Step::Take(_) | Step::Enter(_) => found.left_out += 1,
            }
        }
    }
    watch.end();
    found.groups.order_by(|a, b| a.path().cmp(b.path()));
    found
}

/// Where the walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// `system.slice`: hundreds of services, few of interest.
    System,
    /// Below a root of pods or containers: everything leads to one.
    Pods,
}

enum Step {
    Skip,
    Take(Kind),
    Enter(Place),
}

fn judge(place: Place, name: &str, path: &str, wanted: &Wanted) -> Step {
    if wanted.services.iter().any(|s| s == name) {
        return Step::Take(Kind::Service);
    }
    // conmon watches a container of CRI-O or podman; its own scope carries the same id.
    if name.contains("conmon-") {
        return Step::Skip;
    }
    if container_id(name).is_some() {
        return Step::Take(Kind::Container);
    }
    match place {
        Place::Pods => Step::Enter(Place::Pods),
        Place::Root if name == "system.slice" => Step::Enter(Place::System),
        Place::Root | Place::System if leads_to_pods(name) => Step::Enter(Place::Pods),
        // Roots of the kubelet may be several names deep.
        _ if wanted.roots.iter().any(|r| {
            let r = r.trim_matches('/');
            let p = path.trim_matches('/');
            r == p || r.strip_prefix(p).is_some_and(|rest| rest.starts_with('/'))
        }) =>
        {
            Step::Enter(if wanted.roots.iter().any(|r| r.trim_matches('/') == path.trim_matches('/')) {
                Place::Pods
            } else {
                Place::Root
            })
        }
        _ => Step::Skip,
    }
}

/// `containerd.service` holds pods where its systemd driver is off and the kubelet's is on.
fn leads_to_pods(name: &str) -> bool {
    name.contains("kubepods")
        || matches!(
            name,
            "kubelet.slice" | "kubelet" | "docker" | "libpod_parent" | "machine.slice" | "containerd.service"
        )
}

fn inner_root(dir: &Path) -> Option<&'static str> {
    // A group counts those below it in its links; where it has none, as nearly all containers, nothing is asked for by name.
    if fs::symlink_metadata(dir).is_ok_and(|m| m.nlink() == 2) {
        return None;
    }
    ["kubelet.slice", "kubelet", "kubepods.slice", "kubepods"].into_iter().find(|n| dir.join(n).is_dir())
}
