//! From the pids that the driver lists to processes and pods, as far as this pid namespace shows them.

use std::path::{Path, PathBuf};

use dualplane_base::units::Bytes;
use dualplane_node::cri;
use dualplane_node::node::{self, cgroup_of, host_pids, life, uses_gpu};
use dualplane_plan::preflight::{Holder, Life, Names, Pids};

const LINKS: &str = "/var/log/containers";
const FOLDERS: &str = "/var/log/pods";

/// Which pids can be looked at.
pub(super) fn pids(host_proc: Option<&Path>) -> Pids {
    match host_proc {
        // Mounted by who asks; a folder that is no /proc shows nothing.
        Some(root) if root.join("1").is_dir() => Pids::Host,
        Some(_) => Pids::Unknown,
        None => match host_pids(Path::new("/proc")) {
            Some(true) => Pids::Host,
            Some(false) => Pids::Own,
            None => Pids::Unknown,
        },
    }
}

/// Looks processes up. The names of pods are read when the first container is met.
pub(super) struct ContainerLookup {
    root: PathBuf,
    pids: Pids,
    names: Option<cri::Names>,
}

impl ContainerLookup {
    pub(super) fn new(host_proc: Option<&Path>) -> Self {
        let root = host_proc.unwrap_or(Path::new("/proc")).to_owned();
        Self { root, pids: pids(host_proc), names: None }
    }

    pub(super) fn holder(&mut self, pid: u32, used: Option<Bytes>) -> Holder {
        let mut h = Holder {
            pid,
            used,
            life: Life::NotVisible,
            comm: None,
            age_seconds: None,
            names: None,
            pod_uid: None,
            container_id: None,
        };
        let seen = life(&self.root, pid);
        let known = match self.pids {
            Pids::Host => true,
            // Some drivers tell a container its own pids. One that is here and has a GPU open is meant.
            Pids::Own => {
                seen.is_some_and(|l| l.life == node::ProcessState::Running)
                    && uses_gpu(&self.root, pid) == Some(true)
            }
            Pids::Unknown => false,
        };
        if !known {
            return h;
        }
        h.life = match seen.map(|l| l.life) {
            Some(node::ProcessState::Gone) => Life::Gone,
            Some(node::ProcessState::Ended) => Life::Ended,
            Some(node::ProcessState::Running) | None => Life::Runs,
        };
        h.age_seconds = seen.and_then(|l| l.age).map(|a| a.as_secs());
        if let Some(p) = cgroup_of(&self.root, pid) {
            h.comm = Some(p.comm).filter(|c| !c.is_empty());
            h.names = p.container_id.as_deref().and_then(|id| self.names_of(id));
            h.pod_uid = p.pod_uid;
            h.container_id = p.container_id;
        }
        h
    }

    fn names_of(&mut self, id: &str) -> Option<Names> {
        let all = self.names.get_or_insert_with(|| cri::Names::read(Path::new(LINKS), Path::new(FOLDERS)));
        let n = all.of(id)?;
        Some(Names { namespace: n.namespace.clone(), pod: n.pod.clone(), container: n.container.clone() })
    }
}
