//! The OOM killer's record in the kernel log, over its several lines and kernel generations.
//!
//! Source of the formats: Linux `mm/oom_kill.c` (`dump_header`, `dump_oom_summary`, `__oom_kill_process`) and
//! `mm/memcontrol.c` (`mem_cgroup_print_oom_meminfo`); before 5.0 `Task in … killed as a result of limit of …`.

use serde::Serialize;

use dualplane_base::cgroup_path::{container_id, of_a_pod, of_all_pods, pod_uid};

use super::Place;
use super::kernel_tasks::{Task, Tasks};
use super::openings::{BEHIND_AN_ERROR, Opening};
use crate::evidence::in_group;
use crate::time::Stamp;
use crate::units::{Bytes, KIB};

/// Why the killer ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// A memory cgroup reached its limit.
    Memcg,
    /// The whole machine ran out.
    Global,
    /// The NUMA nodes of a cpuset or policy ran out.
    Numa,
    /// The lines that say so are missing.
    Unsaid,
}

/// A process that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Victim {
    /// Host pid.
    pub pid: u64,
    /// At most 15 characters of its name.
    pub comm: String,
    /// Anonymous memory.
    pub anon: Option<Bytes>,
    /// File pages.
    pub file: Option<Bytes>,
    /// Shared memory, tmpfs and pinned host memory.
    pub shmem: Option<Bytes>,
}

/// One run of the OOM killer.
#[derive(Debug, Clone)]
pub struct OomRecord {
    /// The line that opens the record.
    pub place: Place,
    /// That line.
    pub text: String,
    /// When.
    pub stamp: Option<Stamp>,
    /// Who asked for the page that was not there; not the victim.
    pub invoker: Option<String>,
    /// Scope.
    pub constraint: Constraint,
    /// The cgroup whose limit was hit.
    pub oom_memcg: Option<String>,
    /// The victim's cgroup.
    pub task_memcg: Option<String>,
    /// Usage at the kill.
    pub usage: Option<Bytes>,
    /// The limit.
    pub limit: Option<Bytes>,
    /// Anonymous, file and shared memory of the cgroup, where its statistics were printed.
    pub stat: Vec<(String, Bytes)>,
    /// Who was killed, in order.
    pub victims: Vec<Victim>,
    /// `memory.oom.group`: all tasks of the cgroup were killed.
    pub group: bool,
    /// All tasks of the cgroup (of the machine, where it ran out), the largest first.
    pub tasks: Vec<Task>,
}

impl OomRecord {
    fn new(place: &Place, text: &str, stamp: Option<Stamp>) -> Self {
        Self {
            place: place.clone(),
            text: text.to_owned(),
            stamp,
            invoker: None,
            constraint: Constraint::Unsaid,
            oom_memcg: None,
            task_memcg: None,
            usage: None,
            limit: None,
            stat: Vec::new(),
            victims: Vec::new(),
            group: false,
            tasks: Vec::new(),
        }
    }

    /// `anon 1048576`: bytes.
    fn statistic(&mut self, line: &str) {
        if let Some((key, value)) = line.trim().split_once(' ')
            && matches!(
                key,
                "anon"
                    | "file"
                    | "shmem"
                    | "kernel"
                    | "inactive_file"
                    | "active_file"
                    | "total_rss"
                    | "total_cache"
                    | "total_shmem"
            )
            && self.stat.len() < 32
            && let Ok(bytes) = value.trim().parse::<u64>()
        {
            self.stat.push((key.to_owned(), Bytes(bytes)));
        }
    }

    /// Anonymous memory, shared memory (tmpfs, pinned) and all pages of files (those of tmpfs among them) of the cgroup
    /// whose limit was hit, where its statistics were printed: v2's names, or v1's, which count the groups below.
    #[must_use]
    pub fn held(&self) -> Option<(Bytes, Bytes, Bytes)> {
        let of = |keys: [&str; 2]| {
            keys.iter().find_map(|key| self.stat.iter().find(|(k, _)| k == key).map(|(_, bytes)| *bytes))
        };
        let anon = of(["anon", "total_rss"])?;
        let shmem = of(["shmem", "total_shmem"])?;
        Some((anon, shmem, of(["file", "total_cache"])?))
    }

    /// Pod UID in the victim's cgroup path (or the limiting one's).
    #[must_use]
    pub fn pod_uid(&self) -> Option<String> {
        [&self.task_memcg, &self.oom_memcg].into_iter().flatten().find_map(|p| pod_uid(p))
    }

    /// Container id (64 hex digits) in the victim's cgroup path.
    #[must_use]
    pub fn container_id(&self) -> Option<String> {
        self.task_memcg.as_deref().and_then(container_id)
    }

    /// The victim was in this group, or its limit was the one that was hit.
    #[must_use]
    pub fn in_group(&self, group: &str) -> bool {
        [&self.task_memcg, &self.oom_memcg].into_iter().flatten().any(|p| in_group(p, group))
    }

    /// The record's first lines are lost (a ring buffer's edge): it has no "invoked oom-killer" line.
    #[must_use]
    pub fn headless(&self) -> bool {
        self.invoker.is_none()
    }

    /// The container had not started: the runtime's own init was killed while it set the limit up.
    #[must_use]
    pub fn before_start(&self) -> bool {
        self.victims.iter().any(|v| v.comm.starts_with("runc:["))
            || self.invoker.as_deref().is_some_and(|i| i.starts_with("runc:["))
    }

    /// The limit was that of all pods of the node together (node allocatable), not of one pod: `/kubepods`, a QoS slice.
    #[must_use]
    pub fn node_allocatable(&self) -> bool {
        self.oom_memcg.as_deref().is_some_and(of_all_pods)
    }

    /// The limit was that of the pod's cgroup, not of the container's.
    #[must_use]
    pub fn pod_level(&self) -> bool {
        self.oom_memcg.as_deref().is_some_and(of_a_pod)
    }

    /// A cgroup of Kubernetes or a container runtime is involved.
    #[must_use]
    pub fn in_container(&self) -> bool {
        let inside = |p: &String| p.contains("kubepods") && !of_all_pods(p);
        let mut paths = [&self.task_memcg, &self.oom_memcg].into_iter().flatten();
        self.pod_uid().is_some() || self.container_id().is_some() || paths.any(inside)
    }
}

/// What opens or ends a record, in all spellings. The tasks of a node stand between the opening and the kill.
pub(crate) const RECORDS: &[Opening] = &[
    Opening::new(" invoked oom-killer: ", 3, 600),
    Opening::new("oom-kill:constraint=", 3, BEHIND_AN_ERROR),
    Opening::new("ut of memory: Kill", 3, BEHIND_AN_ERROR),
    Opening::new("Killed process ", 3, BEHIND_AN_ERROR),
    Opening::new(" killed as a result of limit of ", 3, 600),
    Opening::new("are going to be killed due to memory.oom.group set", 3, BEHIND_AN_ERROR),
];

/// Assembles records from lines.
#[derive(Debug, Default)]
pub(super) struct OomBuilder {
    records: Vec<OomRecord>,
    open: bool,
    tasks: Tasks,
}

/// A crash loop on a busy node writes some thousands; more than this is somebody's attack on our memory.
const MAX_RECORDS: usize = 10_000;

impl OomBuilder {
    pub(super) fn line(&mut self, place: &Place, raw: &str, text: &str, stamp: Option<Stamp>) {
        // Statistics inside of a record are any words; of what opens or ends one, all lines hold one of these, and most
        // lines of most logs hold none.
        if !(self.open
            || text.contains("oom")
            || text.contains("OOM")
            || text.contains("memory")
            || text.contains("illed process")
            || text.contains("Kill process")
            || text.contains("Task in "))
        {
            return;
        }
        if let Some(i) = text.find(" invoked oom-killer: ") {
            self.start(place, raw, stamp);
            if let Some(r) = self.records.last_mut() {
                r.invoker = text.get(..i).map(|c| c.rsplit("kernel: ").next().unwrap_or(c).trim().to_owned());
            }
            return;
        }
        if let Some(rest) = after(text, "oom-kill:constraint=") {
            self.ensure(place, raw, stamp);
            self.summary(rest);
        } else if let Some(victim) = victim(text) {
            let goes_on = |r: &OomRecord| {
                // Kernels before 5.0 say it twice, the second time of a child perhaps, and without the reason.
                r.group
                    || !text.contains("ut of memory: Kill")
                    || r.victims.iter().any(|v| v.pid == victim.pid)
            };
            // Else it is a kill whose own lines the kernel has held back (it prints ten records in five seconds), maybe
            // of another pod.
            if !self.open && !self.records.last().is_some_and(goes_on) {
                self.start(place, raw, stamp);
            }
            if let Some(r) = self.records.last_mut() {
                if r.tasks.is_empty() {
                    r.tasks = std::mem::take(&mut self.tasks).finish();
                }
                if r.constraint == Constraint::Unsaid {
                    let memcg = text.contains("Memory cgroup out of memory");
                    let global = !memcg && text.contains("Out of memory");
                    if memcg {
                        r.constraint = Constraint::Memcg;
                    } else if global {
                        r.constraint = Constraint::Global;
                    }
                }
                if r.victims.iter().all(|v| v.pid != victim.pid) && r.victims.len() < 1000 {
                    r.victims.push(victim);
                }
            }
            self.open = false;
        } else if !self.open && text.contains(" killed as a result of limit of ") {
            // Kernels before 5.0, the first line lost: this one opens what is left.
            self.start(place, raw, stamp);
            self.detail(text);
        } else if self.open {
            self.detail(text);
        } else if text.contains("are going to be killed due to memory.oom.group set")
            && let Some(r) = self.records.last_mut()
        {
            r.group = true;
        }
    }

    fn start(&mut self, place: &Place, raw: &str, stamp: Option<Stamp>) {
        self.open = true;
        self.tasks = Tasks::default();
        if self.records.len() < MAX_RECORDS {
            self.records.push(OomRecord::new(place, raw, stamp));
        }
    }

    fn ensure(&mut self, place: &Place, raw: &str, stamp: Option<Stamp>) {
        if !self.open {
            self.start(place, raw, stamp);
        }
    }

    /// `CONSTRAINT_MEMCG,nodemask=…,oom_memcg=…,task_memcg=…,task=…,pid=…`
    fn summary(&mut self, rest: &str) {
        let Some(r) = self.records.last_mut() else { return };
        r.constraint = match rest.split(',').next().unwrap_or_default() {
            "CONSTRAINT_MEMCG" => Constraint::Memcg,
            "CONSTRAINT_NONE" => Constraint::Global,
            "CONSTRAINT_CPUSET" | "CONSTRAINT_MEMORY_POLICY" => Constraint::Numa,
            _ => Constraint::Unsaid,
        };
        r.oom_memcg = after(rest, ",oom_memcg=").map(|p| p.split(',').next().unwrap_or(p).to_owned());
        r.task_memcg = after(rest, ",task_memcg=").map(|p| p.split(',').next().unwrap_or(p).to_owned());
    }

    fn detail(&mut self, text: &str) {
        if self.tasks.line(text) {
            return;
        }
        let Some(r) = self.records.last_mut() else { return };
        if let Some(rest) = after(text, "memory: usage ") {
            if r.usage.is_none() {
                r.usage = kilobytes(rest);
                r.limit = after(rest, "limit ").and_then(kilobytes);
            }
        } else if let Some(rest) = after(text, "Task in ") {
            // Kernels before 5.0.
            r.constraint = Constraint::Memcg;
            let mut parts = rest.splitn(2, " killed as a result of limit of ");
            r.task_memcg = parts.next().map(|p| p.trim().to_owned());
            r.oom_memcg = parts.next().map(|p| p.trim().to_owned());
        } else {
            // memory.stat, one key a line. `/dev/kmsg` gives all of v2's in one record, its line ends escaped.
            text.split("\\x0a").for_each(|line| r.statistic(line));
        }
    }

    /// Takes the records that no later line can belong to; with `quiet`, all: the kernel has stopped writing.
    pub(super) fn take(&mut self, quiet: bool) -> Vec<OomRecord> {
        if quiet {
            self.open = false;
            return std::mem::take(&mut self.records);
        }
        let last = self.records.len().saturating_sub(1);
        self.records.drain(..last).collect()
    }

    /// Number of the first line of what was not taken yet.
    pub(super) fn pending(&self) -> Option<u64> {
        self.records.first().and_then(|r| r.place.line)
    }

    /// The last record, if it was not taken yet and names somebody who was killed.
    pub(super) fn growing(&self) -> Option<&OomRecord> {
        self.records.last().filter(|r| !r.victims.is_empty())
    }

    pub(super) fn finish(self) -> Vec<OomRecord> {
        self.records
    }
}

fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split_once(word).map(|(_, rest)| rest)
}

fn kilobytes(text: &str) -> Option<Bytes> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u64>().ok().map(|k| Bytes(k.saturating_mul(KIB)))
}

/// `Killed process 59311 (tritonserver) total-vm:…kB, anon-rss:…kB, …`, also the older spellings.
fn victim(text: &str) -> Option<Victim> {
    let rest = after(text, "Killed process ")
        .or_else(|| after(text, "Memory cgroup out of memory: Kill process "))
        .or_else(|| after(text, "Out of memory: Kill process "))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let pid = digits.parse().ok()?;
    let named = after(rest, "(").and_then(|r| r.split_once(") ").or_else(|| r.split_once(')')));
    let comm = named.map(|(c, _)| c.to_owned()).unwrap_or_default();
    let field = |key: &str| after(text, key).and_then(kilobytes);
    Some(Victim { pid, comm, anon: field("anon-rss:"), file: field("file-rss:"), shmem: field("shmem-rss:") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Vec<OomRecord> {
        let mut b = OomBuilder::default();
        for (i, line) in text.lines().enumerate() {
            let u = crate::evidence::framing::unwrap_kernel(line);
            b.line(&Place { file: "k".into(), line: Some(i as u64 + 1) }, line, &u.text, u.stamp);
        }
        b.finish()
    }

    #[test]
    fn a_memcg_record() {
        let all = records(
            "[1.0] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
             [1.1] memory: usage 104857600kB, limit 104857600kB, failcnt 81204\n\
             [1.2] anon 1048576\n\
             [1.3] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods/burstable/pod3eeee5db-6611-4802-9456-dfd27caa2b83,task_memcg=/kubepods/burstable/pod3eeee5db-6611-4802-9456-dfd27caa2b83/07385b4036959bf50d7f051f5cf6a27c66fc5676f92c477869f3b181b625f6e3,task=a,pid=5,uid=0\n\
             [1.4] Memory cgroup out of memory: Killed process 5 (a b) total-vm:9kB, anon-rss:98544kB, file-rss:4kB, shmem-rss:8kB, UID:0\n\
             [4.0] Memory cgroup out of memory: Killed process 6 (a) total-vm:9kB, anon-rss:1kB, file-rss:4kB, shmem-rss:8kB\n",
        );
        let r = &all[0];
        assert_eq!(r.place.line, Some(1));
        assert_eq!(r.constraint, Constraint::Memcg);
        assert_eq!(r.invoker.as_deref(), Some("python3"));
        assert_eq!(r.limit, Some(Bytes(100 << 30)));
        assert_eq!(r.pod_uid().as_deref(), Some("3eeee5db-6611-4802-9456-dfd27caa2b83"));
        assert_eq!(r.container_id().unwrap().len(), 64);
        assert!(r.pod_level());
        assert_eq!(r.victims.len(), 1);
        assert_eq!(r.victims[0].comm, "a b");
        // A kill whose record the kernel held back may be of any pod.
        assert_eq!((all.len(), all[1].victims[0].pid, all[1].in_container()), (2, 6, false));
        assert_eq!(r.victims[0].anon, Some(Bytes(98544 << 10)));
        assert_eq!(r.stat, [("anon".to_owned(), Bytes(1 << 20))]);
    }

    #[test]
    fn statistics_are_read_whatever_their_name() {
        let all = records(
            "[1.0] rank1 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
             [1.1] rss 100241408\n[1.2] total_cache 4096\n[1.3] total_rss 100241408\n[1.4] shmem 8192\n\
             [1.5] Memory cgroup out of memory: Killed process 5 (rank1) total-vm:9kB, anon-rss:98544kB\n\
             [9.9] shmem 1\n",
        );
        let stat: Vec<_> = all[0].stat.iter().map(|(k, b)| (k.as_str(), b.0)).collect();
        assert_eq!(stat, [("total_cache", 4096), ("total_rss", 100_241_408), ("shmem", 8192)]);
    }

    #[test]
    fn the_statistics_of_v2_are_one_record_of_the_device() {
        // Linux 6.1, a Memory-medium volume that filled its container.
        let all = records(concat!(
            "4,542,25562973,-;vllm invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985\n",
            r"6,596,25563843,-;anon 1110016\x0afile 99254272\x0akernel 299008\x0akernel_stack 0\x0ashmem 99254272\x0afile_mapped 0\x0ainac",
            "\n3,601,25563989,-;Memory cgroup out of memory: Killed process 327 (vllm) total-vm:2244kB, anon-rss:996kB\n",
        ));
        let stat: Vec<_> = all[0].stat.iter().map(|(k, b)| (k.as_str(), b.0)).collect();
        let wanted = [("anon", 1_110_016), ("file", 99_254_272), ("kernel", 299_008), ("shmem", 99_254_272)];
        assert_eq!(stat, wanted);
    }

    #[test]
    fn global_and_old_kernels() {
        let r = records(
            "Jul 03 22:40:06 n kernel: kube-apiserver invoked oom-killer: gfp_mask=0x140cca\n\
             Jul 03 22:40:06 n kernel: oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=a,mems_allowed=0,global_oom,task_memcg=/x,task=python3,pid=61288,uid=0\n\
             Jul 03 22:40:06 n kernel: Out of memory: Killed process 61288 (python3) total-vm:74110248kB, anon-rss:17120332kB\n\
             [9.0] java invoked oom-killer: gfp_mask=0x1\n\
             [9.1] Task in /docker/abc killed as a result of limit of /docker/abc\n\
             [9.2] Memory cgroup out of memory: Kill process 7 (java) score 1 or sacrifice child\n\
             [9.3] Killed process 7 (java) total-vm:1kB, anon-rss:2kB, file-rss:3kB\n",
        );
        assert_eq!(r.len(), 2);
        assert_eq!((r[0].constraint, r[0].invoker.as_deref()), (Constraint::Global, Some("kube-apiserver")));
        assert_eq!((r[1].constraint, r[1].victims.len()), (Constraint::Memcg, 1));
        assert_eq!(r[1].oom_memcg.as_deref(), Some("/docker/abc"));
    }
}
