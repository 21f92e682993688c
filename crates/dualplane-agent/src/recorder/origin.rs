//! Whether a process of a container was started by its server or came in from outside (`kubectl exec`, `docker exec`).
//!
//! The runtime's shim is the parent of the container's first process, and of each process that is started in it later. All
//! else descends from those.

use dualplane_node::node::Proc;

/// Steps up to a root; deeper trees are none of a server's.
const MAX_DEPTH: usize = 64;

/// `None` where the process is not listed, or its tree does not tell: an orphan of a pod that sees the host's processes
/// has the host's first process as its parent.
pub(super) fn from_exec(processes: &[Proc], pid: u32) -> Option<bool> {
    let by_pid = |pid: u32| processes.iter().find(|p| p.pid == pid);
    let mut root = by_pid(pid)?;
    for _ in 0..MAX_DEPTH {
        match root.parent.and_then(by_pid) {
            Some(parent) if parent.pid != root.pid => root = parent,
            _ => break,
        }
    }
    let is_root = |p: &&Proc| p.parent.is_none_or(|parent| by_pid(parent).is_none());
    let first = processes.iter().filter(is_root).min_by_key(|p| p.pid)?;
    match () {
        () if root.pid == first.pid => Some(false),
        () if root.parent.is_some() && root.parent == first.parent => Some(true),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_tells_who_came_in_later() {
        let p = |pid, parent| Proc { pid, parent: Some(parent), ..Proc::default() };
        // The shim is 50, the server 100 with a worker, an exec'd shell 300 with a script, 400 an orphan of the host.
        let all = [p(100, 50), p(101, 100), p(300, 50), p(301, 300), p(400, 1)];
        assert_eq!(from_exec(&all, 101), Some(false));
        assert_eq!(from_exec(&all, 100), Some(false));
        assert_eq!(from_exec(&all, 301), Some(true));
        assert_eq!(from_exec(&all, 300), Some(true));
        assert_eq!(from_exec(&all, 400), None);
        assert_eq!(from_exec(&all, 999), None);
        // A tree that a race between two reads has closed to a ring.
        let ring = [p(1, 2), p(2, 1)];
        assert_eq!(from_exec(&ring, 1), None);
    }
}
