//! A node's kernel log, read once for all of its pods.
//!
//! Most of what a scan does is the same whose ever the log is read for: only at the end it asks of each line whose it is. So
//! the lines that say something are kept with what they say, and each pod takes its own of them. Where what one line says
//! depends on whether another counts, nothing is shared: [`All::depends`].

use std::collections::VecDeque;

use super::found::Found;
use super::xids::Xids;
use crate::evidence::LogSource;
use crate::facts::owner::{Owners, Whose};
use crate::facts::{Exception, Facts, Hit, LogSummary, OomRecord};
use crate::knowledge::{Knowledge, SigId};

/// Logs that are kept: pods come in the order of their names, from many nodes at once.
const KEPT: usize = 8;
/// Lines that say something, of one log; what is read of a log of a node holds a tenth of it.
const MAX_HITS: usize = 20_000;

/// Kernel logs that were read for one pod, for the next one of the same node.
#[derive(Debug, Default)]
pub struct NodeLogs {
    /// The oldest first; without what was read, where that cannot be shared.
    read: VecDeque<(LogSource, Option<NodeLog>)>,
}

/// What a kernel log says, whosever it is.
#[derive(Debug)]
pub(super) struct NodeLog {
    hits: Vec<(SigId, Hit)>,
    exceptions: Vec<Exception>,
    ooms: Vec<OomRecord>,
    xids: Xids,
    summary: LogSummary,
}

/// Everything that a scan found, before it is asked whose it is.
#[derive(Debug, Default)]
pub(super) struct All {
    pub(super) hits: Vec<(SigId, Hit)>,
    /// What a line says hangs on whether another one counts: of such a log each pod reads its own lines only.
    pub(super) depends: bool,
}

impl All {
    pub(super) fn hit(&mut self, id: SigId, hit: Hit) {
        self.depends |= self.hits.len() >= MAX_HITS || Found::opens_sizes(&hit);
        if !self.depends {
            self.hits.push((id, hit));
        }
    }
}

impl NodeLog {
    /// `None` where each pod has to read it for itself.
    pub(super) fn of(
        all: Option<All>,
        found: Found,
        ooms: Vec<OomRecord>,
        xids: Xids,
        summary: LogSummary,
    ) -> Option<Self> {
        let All { hits, .. } = all.filter(|a| !a.depends)?;
        Some(Self { hits, exceptions: found.into_exceptions(), ooms, xids, summary })
    }

    /// What of it is not somebody else's.
    fn told_to(&self, owners: &Owners, knowledge: &Knowledge, facts: &mut Facts) {
        let mut found = Found::default();
        for (id, hit) in &self.hits {
            // Not even counted: many lines of a neighbour must not crowd out the pod's own.
            if owners.of_hit(hit) != Whose::Another {
                found.hit(*id, hit.clone());
            }
        }
        self.exceptions.iter().for_each(|e| found.exception(e.clone()));
        found.finish(knowledge, facts);
        facts.ooms.extend(self.ooms.iter().cloned());
        facts.xids.extend(self.xids.kept.iter().cloned());
        facts.logs.push(self.summary.clone());
    }
}

impl NodeLogs {
    /// Scans a kernel log into the facts, or takes what an earlier scan of the same log found.
    pub(in crate::facts) fn scan(
        &mut self,
        log: &LogSource,
        knowledge: &Knowledge,
        owners: &Owners,
        facts: &mut Facts,
    ) {
        if !self.read.iter().any(|(known, _)| same(known, log)) {
            if self.read.len() >= KEPT {
                self.read.pop_front();
            }
            self.read.push_back((log.clone(), super::whole_node(log, knowledge)));
        }
        match self.read.iter().find(|(known, _)| same(known, log)).and_then(|(_, read)| read.as_ref()) {
            Some(read) => read.told_to(owners, knowledge, facts),
            None => super::scan(log, knowledge, owners, facts),
        }
    }
}

fn same(a: &LogSource, b: &LogSource) -> bool {
    a.name == b.name
        && (a.role, a.kernel, a.prefix, a.sifted, a.written)
            == (b.role, b.kernel, b.prefix, b.sifted, b.written)
        && a.numbers == b.numbers
        && a.bytes == b.bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Bundle, RawFile};
    use crate::facts::{extract, extract_shared};

    const KILL: &str = "\
        [1.0] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
        [1.3] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/kubepods/pod3eeee5db-6611-4802-9456-dfd27caa2b83,task_memcg=/kubepods/pod3eeee5db-6611-4802-9456-dfd27caa2b83,task=a,pid=5,uid=0\n\
        [1.4] Memory cgroup out of memory: Killed process 5 (a) total-vm:9kB, anon-rss:8kB, file-rss:4kB, shmem-rss:8kB\n\
        [1.5] cgroup: fork rejected by pids controller in /kubepods/pod9ebd9238-4ea3-417e-975f-99e0d23c5718\n";

    fn pod(uid: &str, log: &str) -> Bundle {
        let pod = format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p", "namespace": "n", "uid": "{uid}"}}, "spec": {{"containers": [{{"name": "c"}}]}},
            "status": {{"phase": "Running", "containerStatuses": [{{"name": "c", "restartCount": 1, "state": {{"running": {{}}}},
            "lastState": {{"terminated": {{"exitCode": 137, "reason": "OOMKilled"}}}}}}]}}}}"#
        );
        Bundle::from_files(vec![RawFile::new("pod.json", pod), RawFile::new("kernel.log", log)])
    }

    #[test]
    fn it_is_read_once_and_each_pod_takes_its_own() {
        let knowledge = Knowledge::embedded().unwrap();
        let mut shared = NodeLogs::default();
        for (uid, killed) in
            [("3eeee5db-6611-4802-9456-dfd27caa2b83", 1), ("9ebd9238-4ea3-417e-975f-99e0d23c5718", 0)]
        {
            let facts = extract_shared(&pod(uid, KILL), &knowledge, &mut shared);
            let alone = extract(&pod(uid, KILL), &knowledge);
            assert_eq!((facts.ooms.len(), facts.hits.len()), (killed, alone.hits.len()), "{uid}");
            assert_eq!(format!("{facts:?}"), format!("{alone:?}"));
        }
        assert_eq!(shared.read.len(), 1);
        assert!(shared.read[0].1.as_ref().is_some_and(|log| !log.hits.is_empty()));
    }

    #[test]
    fn a_log_whose_lines_hang_on_each_other_is_read_by_each_pod() {
        let knowledge = Knowledge::embedded().unwrap();
        // An engine's own lines have come among the kernel's.
        let log = format!(
            "{KILL}[1.6] torch.OutOfMemoryError: CUDA out of memory.\n[1.7] Tried to allocate 2.00 GiB.\n"
        );
        let mut shared = NodeLogs::default();
        let bundle = pod("3eeee5db-6611-4802-9456-dfd27caa2b83", &log);
        let facts = extract_shared(&bundle, &knowledge, &mut shared);
        assert!(shared.read[0].1.is_none());
        assert_eq!(format!("{facts:?}"), format!("{:?}", extract(&bundle, &knowledge)));
    }

    #[test]
    fn logs_of_a_few_nodes_are_kept() {
        let knowledge = Knowledge::embedded().unwrap();
        let mut shared = NodeLogs::default();
        for i in 0..KEPT + 3 {
            let log = format!("{KILL}[9.{i}] eth{i}: link up\n");
            let _ =
                extract_shared(&pod("9ebd9238-4ea3-417e-975f-99e0d23c5718", &log), &knowledge, &mut shared);
        }
        assert_eq!(shared.read.len(), KEPT);
    }
}
