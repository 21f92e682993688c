//! Names of containers from the kubelet's links, read anew only when a container has none and the links changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dualplane_node::cri::{Named, Names};

/// File systems stamp by the tick of the kernel, 1 to 10 ms: a stamp that is so fresh does not tell what comes next.
const TICK: Duration = Duration::from_millis(50);

/// The links, and when they were read.
#[derive(Debug)]
pub(super) struct NameCache {
    links: PathBuf,
    pods: PathBuf,
    names: Names,
    stamp: Option<SystemTime>,
}

impl NameCache {
    pub(super) fn new(links: &Path, pods: &Path) -> Self {
        Self { links: links.to_owned(), pods: pods.to_owned(), names: Names::default(), stamp: None }
    }

    /// Reads the links again where they changed. Call it only where a name is wanted.
    pub(super) fn refresh(&mut self) {
        let now = fs::metadata(&self.links).and_then(|m| m.modified()).ok();
        if self.stamp.is_none() || now != self.stamp {
            // Where the clock went back, the stamp is of the future, and is not trusted either.
            self.stamp = now.filter(|t| t.elapsed().is_ok_and(|age| age > TICK));
            self.names = Names::read(&self.links, &self.pods);
        }
    }

    pub(super) fn of(&self, id: &str) -> Option<&Named> {
        self.names.of(id)
    }
}
