//! Waits for the next round, the kernel's next message, or a group that came or went, whichever is first.
//!
//! The kernel tells of groups that come and go through inotify on their parent's directory, as of any directory. It only
//! makes the next look come sooner: a watch that could not be set, or a queue that overflowed, costs a second at most.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Directories that are watched: one a pod, and those above.
const MAX_WATCHES: usize = 2048;

/// What woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WakeReason {
    /// The kernel said something.
    pub(super) kernel: bool,
    /// A group came or went.
    pub(super) groups: bool,
}

/// Watches on directories of groups.
#[derive(Debug, Default)]
pub(super) struct Waker {
    inotify: Option<OwnedFd>,
    watched: HashMap<PathBuf, i32>,
    /// Watches that the kernel ended, as their directory is gone: one of the same name needs another.
    ended: HashSet<i32>,
}

impl Waker {
    pub(super) fn new() -> Self {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Self { inotify, watched: HashMap::new(), ended: HashSet::new() }
    }

    /// Watches these directories. The kernel forgets those that are gone by itself. `true` where one is new: what came
    /// into it before the watch is not told.
    pub(super) fn watch<'a>(&mut self, dirs: impl Iterator<Item = &'a Path>) -> bool {
        let Some(fd) = &self.inotify else { return false };
        let mut now = HashMap::with_capacity(self.watched.len());
        let mut new = false;
        for dir in dirs.take(MAX_WATCHES) {
            let known = self.watched.remove_entry(dir).filter(|(_, watch)| !self.ended.contains(watch));
            if let Some((dir, watch)) = known {
                now.insert(dir, watch);
                continue;
            }
            let flags =
                WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ONLYDIR | WatchFlags::DELETE_SELF;
            if let Ok(watch) = inotify::add_watch(fd, dir, flags) {
                new = true;
                now.insert(dir.to_owned(), watch);
            }
        }
        self.ended.clear();
        self.watched = now;
        new
    }

    /// Directories that are watched.
    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.watched.len()
    }

    /// Waits, at most so long.
    pub(super) fn wait(&mut self, kernel: Option<&File>, most: Duration) -> io::Result<WakeReason> {
        let time = Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        let files = [kernel.map(AsFd::as_fd), self.inotify.as_ref().map(AsFd::as_fd)];
        let open: Vec<BorrowedFd<'_>> = files.iter().flatten().copied().collect();
        let mut fds: Vec<PollFd<'_>> =
            open.iter().map(|f| PollFd::from_borrowed_fd(*f, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&time)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(WakeReason::default()),
            Err(e) => return Err(e.into()),
        }
        let mut ready = fds.iter().map(|f| !f.revents().is_empty());
        let kernel = kernel.is_some() && ready.next() == Some(true);
        let groups = self.inotify.is_some() && ready.next() == Some(true);
        if groups {
            self.drain();
        }
        Ok(WakeReason { kernel, groups })
    }

    /// What exactly happened is seen by looking; the queue only has to be empty again. After one that overflowed, all
    /// watches are set again: some may have ended without a word.
    fn drain(&mut self) {
        let Some(fd) = &self.inotify else { return };
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = inotify::Reader::new(fd, &mut buffer);
        while let Ok(e) = reader.next() {
            if e.events().contains(ReadFlags::IGNORED) {
                self.ended.insert(e.wd());
            }
            if e.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.watched.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_node::clock::Moment;

    #[test]
    fn a_new_directory_wakes_at_once_and_nothing_wakes_later() {
        let d = tempfile::tempdir().unwrap();
        let mut w = Waker::new();
        assert!(w.watch([d.path(), Path::new("/nonexistent")].into_iter()));
        assert!(!w.watch([d.path()].into_iter()));
        assert_eq!(w.watched(), 1);
        assert_eq!(w.wait(None, Duration::from_millis(5)).unwrap(), WakeReason::default());
        std::fs::create_dir(d.path().join("group")).unwrap();
        let began = Moment::now();
        assert_eq!(
            w.wait(None, Duration::from_secs(10)).unwrap(),
            WakeReason { kernel: false, groups: true }
        );
        assert!(Moment::now().since(began) < Duration::from_secs(5));
        assert!(w.watch([d.path(), &d.path().join("group")].into_iter()));
        std::fs::remove_dir(d.path().join("group")).unwrap();
        assert!(w.wait(None, Duration::from_secs(10)).unwrap().groups);
        std::fs::create_dir(d.path().join("group")).unwrap();
        while w.wait(None, Duration::from_millis(50)).unwrap().groups {}
        let both = || [d.path().to_owned(), d.path().join("group")];
        assert!(w.watch(both().iter().map(PathBuf::as_path)), "another of its name is another directory");
        assert!(!w.watch(both().iter().map(PathBuf::as_path)));
        std::fs::create_dir(d.path().join("group/below")).unwrap();
        assert!(w.wait(None, Duration::from_secs(10)).unwrap().groups);
        assert_eq!(
            w.wait(None, Duration::from_millis(5)).unwrap(),
            WakeReason::default(),
            "the queue is empty again"
        );
    }
}
