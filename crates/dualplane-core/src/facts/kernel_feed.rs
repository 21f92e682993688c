//! Kernel lines one at a time, as a follower of `/dev/kmsg` gets them: OOM records and Xid events as they become whole.
//!
//! `scan.rs` goes over a log that has ended. Here nothing has: a record is whole when the next one begins, or when the
//! kernel has been quiet for a while, which only the caller's clock can tell.

use super::kernel_oom::{OomBuilder, OomRecord};
use super::{Place, XidEvent, xid};
use crate::time::Stamp;

/// Assembles what a stream of kernel lines says.
#[derive(Debug, Default)]
pub struct KernelFeed {
    ooms: OomBuilder,
}

/// A line that stands alone.
#[derive(Debug, Clone)]
pub enum KernelEvent {
    /// `NVRM: Xid`.
    Xid(XidEvent),
    /// The driver reports a failure of its own or of a link.
    Driver,
}

impl KernelFeed {
    /// Takes one line in. `text` is the message, `raw` the record as it was read, for quoting.
    ///
    /// What it says for itself comes back; what is part of an OOM record waits for [`Self::take`].
    pub fn line(
        &mut self,
        source: &str,
        number: u64,
        raw: &str,
        text: &str,
        stamp: Option<Stamp>,
    ) -> Option<KernelEvent> {
        let place = || Place { file: source.to_owned(), line: Some(number) };
        if super::lines::is_of_driver(text) {
            if let Some(event) = xid::parse(&place(), raw, text, stamp) {
                return Some(KernelEvent::Xid(event));
            }
            return super::lines::is_alarm(text, true).then_some(KernelEvent::Driver);
        }
        self.ooms.line(&place(), raw, text, stamp);
        None
    }

    /// Number of the first line of a record that was not given out yet: who starts again must start there.
    #[must_use]
    pub fn pending(&self) -> Option<u64> {
        self.ooms.pending()
    }

    /// The record that is not given out yet because more may come, if it names somebody who was killed.
    #[must_use]
    pub fn growing(&self) -> Option<&OomRecord> {
        self.ooms.growing()
    }

    /// The OOM records that are whole. With `quiet` the one that may still grow is taken too.
    pub fn take(&mut self, quiet: bool) -> Vec<OomRecord> {
        self.ooms.take(quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[&str] = &[
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "memory: usage 49152kB, limit 49152kB, failcnt 70",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=tail,pid=5,uid=0",
        "Memory cgroup out of memory: Killed process 5 (tail) total-vm:9kB, anon-rss:8kB, file-rss:4kB, shmem-rss:0kB",
    ];

    #[test]
    fn a_record_is_given_out_once_and_only_when_whole() {
        let mut feed = KernelFeed::default();
        for (i, line) in LINES.iter().enumerate() {
            assert!(feed.line("kmsg", i as u64, line, line, None).is_none());
            assert!(feed.take(false).is_empty(), "{line}");
            assert_eq!(feed.growing().is_some(), i == LINES.len() - 1, "{line}");
        }
        assert_eq!(feed.growing().and_then(|r| r.place.line), Some(0));
        // The next one begins: the first is whole.
        feed.line("kmsg", 9, LINES[0], LINES[0], None);
        let whole = feed.take(false);
        assert_eq!((whole.len(), whole[0].victims[0].pid, whole[0].place.line), (1, 5, Some(0)));
        for line in &LINES[1..] {
            feed.line("kmsg", 10, line, line, None);
        }
        assert!(feed.take(false).is_empty());
        assert_eq!(feed.pending(), Some(9));
        assert_eq!(feed.take(true).len(), 1);
        assert_eq!(feed.pending(), None);
        assert!(feed.take(true).is_empty());
    }

    #[test]
    fn xids_and_alarms_come_at_once() {
        let mut feed = KernelFeed::default();
        let mut ask = |t: &str| feed.line("kmsg", 1, t, t, None);
        let xid = ask("NVRM: Xid (PCI:0000:4a:00): 79, pid=1, name=a, GPU has fallen off the bus.");
        assert!(matches!(xid, Some(KernelEvent::Xid(x)) if x.code == 79));
        assert!(matches!(ask("NVRM: GPU0 rpc timeout"), Some(KernelEvent::Driver)));
        assert!(ask("NVRM: loading NVIDIA UNIX x86_64 Kernel Module").is_none());
        assert!(ask("eth0: link up").is_none());
    }
}
