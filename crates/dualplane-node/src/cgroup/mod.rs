//! Container cgroups: where the hierarchy is, which groups are containers, what the kernel counts for each.
//!
//! `find.rs` walks, `watch.rs` notices that a walk is due, `read.rs` reads one group through descriptors that stay open,
//! `memory.rs` is what was read.

mod find;
mod memory;
mod read;
mod watch;

use std::path::{Path, PathBuf};

use dualplane_base::process::Process;

pub use find::{Found, Wanted, find};
pub use memory::{Limit, Memory, Pressure};
pub use read::{Depth, Reader, Vanished};
pub use watch::Watch;

/// Which generation of cgroups counts memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy of its own for the memory controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Where groups are.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// Generation of the memory controller.
    pub version: Version,
    /// Its root.
    pub memory: PathBuf,
    /// The unified hierarchy beside v1: there the kernel keeps pressure, which v1 has not.
    pub unified: Option<PathBuf>,
}

impl Hierarchy {
    /// Looks below `/sys/fs/cgroup`, or where a DaemonSet has it mounted. `None` where no memory controller is there.
    #[must_use]
    pub fn below(base: &Path) -> Option<Self> {
        let v1 = base.join("memory");
        if v1.join("memory.usage_in_bytes").is_file() {
            let unified = Some(base.join("unified")).filter(|u| u.join("cgroup.controllers").is_file());
            return Some(Self { version: Version::V1, memory: v1, unified });
        }
        // The root of v2 has no memory.current; its list of controllers says whether groups below have.
        let controllers = std::fs::read_to_string(base.join("cgroup.controllers")).ok()?;
        controllers.split_whitespace().any(|c| c == "memory").then(|| Self {
            version: Version::V2,
            memory: base.to_owned(),
            unified: None,
        })
    }

    /// Directory of a group.
    #[must_use]
    pub fn dir(&self, group: &Group) -> PathBuf {
        self.memory.join(group.path().trim_start_matches('/'))
    }
}

/// Why a group is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A container of a pod, or of docker or podman without Kubernetes. A pod's sandbox ("pause") is one too.
    Container,
    /// A unit of systemd that was asked for by name.
    Service,
}

/// One group that is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Why.
    pub kind: Kind,
    /// What its path says: pod UID, container id, QoS, driver, runtime.
    pub identity: Process,
}

impl Group {
    /// Path below the hierarchy's root, as `/proc/PID/cgroup` and the kernel's OOM records write it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.identity.path
    }
}

#[cfg(test)]
mod tests;
