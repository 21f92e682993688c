//! The files below one TARGET under their names, what could not be read, and what reading them may still cost.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use dualplane_core::evidence::Gap;
use dualplane_core::sift::Sifted;

use super::limits::{MAX_ENTRIES, MAX_FILES, MAX_GAPS, MAX_TOTAL, MAX_UNPACKED, SIFTED, WHOLE};
use super::sieve::Sieve;

/// Folders inside one incident, as bundles and people name them; several of them are not several incidents.
const PARTS: &[&str] = &[
    "log",
    "logs",
    "pod",
    "pods",
    "event",
    "events",
    "node",
    "nodes",
    "kernel",
    "metric",
    "metrics",
    "cluster",
    "cgroup",
    "container",
    "containers",
    "previous",
    "current",
    "objects",
    "peers",
    // troubleshoot.sh support bundles and must-gather
    "cluster-info",
    "cluster-resources",
    "host-collectors",
    "namespaces",
    "pod-logs",
    // The pods of one group; see also `MEMBERS`.
    "workers",
    "ranks",
];

/// The pods of one group (LeaderWorkerSet, Ray, ranks), often with a number behind the word.
const MEMBERS: &[&str] = &["leader", "worker", "head", "rank"];

/// The folder is a part of one incident: `logs`, `worker-0`, `rank1`.
pub(super) fn is_part(folder: &str) -> bool {
    let lower = folder.to_lowercase();
    let bare = lower.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '_'));
    PARTS.contains(&lower.as_str()) || MEMBERS.contains(&bare)
}

/// Where a file's bytes are.
#[derive(Debug)]
pub(super) enum Content {
    /// On disk, not read yet.
    Path(PathBuf),
    /// Unpacked.
    Bytes(Vec<u8>),
    /// Unpacked and sifted.
    Sifted(Sifted),
}

/// What all archives below one TARGET may cost together; shared by the piles of archives inside archives.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    /// Bytes that may still be unpacked.
    pub(super) unpack: Rc<Cell<u64>>,
    /// Bytes that may still be kept.
    pub(super) keep: Rc<Cell<u64>>,
    /// Bytes of logs that may still be held whole.
    pub(super) whole: Rc<Cell<u64>>,
    /// Bytes that sifted logs may still keep.
    pub(super) sifted: Rc<Cell<usize>>,
    entries: Rc<Cell<u64>>,
    files: Rc<Cell<usize>>,
}

/// Files and gaps.
pub(super) struct Pile<'k> {
    pub(super) sieve: &'k Sieve<'k>,
    pub(super) files: BTreeMap<String, Content>,
    pub(super) budget: Budget,
    gaps: Vec<Gap>,
    /// Gaps beyond the bound.
    untold: usize,
    /// How often a name came again.
    again: BTreeMap<String, u32>,
}

impl<'k> Pile<'k> {
    pub(super) fn new(sieve: &'k Sieve<'k>) -> Self {
        Self::with(
            sieve,
            Budget {
                unpack: Rc::new(Cell::new(MAX_UNPACKED)),
                keep: Rc::new(Cell::new(MAX_TOTAL)),
                whole: Rc::new(Cell::new(WHOLE)),
                sifted: Rc::new(Cell::new(SIFTED)),
                entries: Rc::new(Cell::new(MAX_ENTRIES)),
                files: Rc::new(Cell::new(MAX_FILES)),
            },
        )
    }

    fn with(sieve: &'k Sieve<'k>, budget: Budget) -> Self {
        Self { sieve, files: BTreeMap::new(), budget, gaps: Vec::new(), untold: 0, again: BTreeMap::new() }
    }

    /// An empty pile for an archive's content, on the same budget.
    pub(super) fn child(&self) -> Self {
        Self::with(self.sieve, self.budget.clone())
    }

    /// Counts an entry of an archive; false where too many were seen.
    pub(super) fn entry(&self) -> bool {
        let left = self.budget.entries.get();
        self.budget.entries.set(left.saturating_sub(1));
        left > 0
    }

    /// Room for one more file?
    pub(super) fn has_room(&self) -> bool {
        self.budget.files.get() > 0
    }

    /// Adds a file. One whose name is taken lies in a folder `2`, `3`, … beside the first.
    pub(super) fn insert(&mut self, name: &str, content: Content) {
        self.budget.files.set(self.budget.files.get().saturating_sub(1));
        self.place(name, content);
    }

    fn place(&mut self, name: &str, content: Content) {
        let mut free = name.to_owned();
        while self.files.contains_key(&free) {
            let n = self.again.entry(name.to_owned()).or_insert(1);
            *n += 1;
            free = match name.rsplit_once('/') {
                Some((folder, base)) => format!("{folder}/{n}/{base}"),
                None => format!("{n}/{name}"),
            };
        }
        self.files.insert(free, content);
    }

    /// Records what could not be read. In the pile of an archive, no name means the archive itself.
    pub(super) fn gap(&mut self, what: &str, why: impl Into<String>) {
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(Gap { what: what.to_owned(), why: why.into(), command: None });
        } else {
            self.untold += 1;
        }
    }

    /// Takes in the content of the archive `archive`, in the folder `folder`.
    pub(super) fn merge(&mut self, archive: &str, folder: &str, mut child: Self) {
        child.strip_top();
        // Unpacked beside its archive: both stay, apart.
        let prefix = format!("{folder}/");
        let taken = self.files.range(prefix.clone()..).next().is_some_and(|(n, _)| n.starts_with(&prefix));
        let folder = if taken { archive } else { folder };
        for gap in child.gaps {
            if gap.what.is_empty() {
                self.gap(archive, gap.why);
            } else {
                self.gap(&format!("{folder}/{}", gap.what), gap.why);
            }
        }
        self.untold += child.untold;
        for (name, content) in child.files {
            self.place(&format!("{folder}/{name}"), content);
        }
    }

    /// Takes off the one top folder that holds everything, unless its name says something about its content.
    pub(super) fn strip_top(&mut self) {
        let top = |n: &str| n.split_once('/').map(|(top, _)| format!("{top}/"));
        let Some(prefix) = self.files.keys().next().and_then(|n| top(n)) else { return };
        let says = is_part(prefix.trim_end_matches('/'));
        if says || !self.files.keys().all(|n| n.starts_with(&prefix)) {
            return;
        }
        self.strip(&prefix);
    }

    /// Takes `prefix` off all names that have it.
    pub(super) fn strip(&mut self, prefix: &str) {
        let bare = |n: String| n.strip_prefix(prefix).map(str::to_owned).unwrap_or(n);
        self.files = std::mem::take(&mut self.files).into_iter().map(|(n, c)| (bare(n), c)).collect();
        for gap in &mut self.gaps {
            gap.what = bare(std::mem::take(&mut gap.what));
        }
    }

    /// The files and the gaps.
    pub(super) fn take(mut self) -> (BTreeMap<String, Content>, Vec<Gap>) {
        if self.untold > 0 {
            let why = format!("{} more files could not be read; the reasons are as above", self.untold);
            self.gaps.push(Gap { what: "…".into(), why, command: None });
        }
        (self.files, self.gaps)
    }
}
