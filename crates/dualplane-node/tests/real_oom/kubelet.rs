//! A real kubelet's containers, where one runs.

use std::path::Path;

use dualplane_node::cgroup::{Hierarchy, Wanted, Watch, find};
use dualplane_node::cri::{CopyLimits, Names, copy, pod_folder};

/// What a real cluster on this machine has, where one runs: every container of the kubelet's links is found as a group.
#[test]
fn containers_of_a_real_kubelet_are_found_and_named() {
    let names = Names::read(Path::new("/var/log/containers"), Path::new("/var/log/pods"));
    let Some(h) = Hierarchy::below(Path::new("/sys/fs/cgroup")).filter(|_| !names.is_empty()) else {
        eprintln!("no kubelet runs here; skipped");
        return;
    };
    let found = find(&h, &Wanted::default(), &mut Watch::default());
    let named: Vec<_> = found
        .groups
        .iter()
        .filter_map(|g| Some((g, names.of(g.identity.container_id.as_deref()?)?)))
        .collect();
    eprintln!("{} groups, {} of them named by {} links", found.groups.len(), named.len(), names.len());
    let mut copied = 0;
    for (g, n) in named {
        if let (Some(folder), Some(restart)) = (&n.folder, n.restart) {
            let mut text = Vec::new();
            let done = copy(folder, restart, CopyLimits { head: 4096, tail: 4096 }, &mut text).unwrap();
            assert!(done.bytes <= 8192 && done.unreadable == 0, "{done:?}");
            copied += usize::from(done.files > 0);
        }
        // The path names the pod as the log folder does.
        assert_eq!(g.identity.pod_uid, n.uid, "{g:?} {n:?}");
        let folder = n.folder.as_deref().and_then(Path::parent).and_then(Path::file_name).unwrap();
        assert_eq!(pod_folder(folder.to_str().unwrap()).unwrap().pod, n.pod);
    }
    eprintln!("logs of {copied} of them copied");
}
