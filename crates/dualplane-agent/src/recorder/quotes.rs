//! The kernel's lines around a death, as `/dev/kmsg` printed them: the container's own record in any case.

use std::collections::{BTreeSet, VecDeque};

use dualplane_base::time::Stamp;
use dualplane_core::facts::{Constraint, OomRecord};
use dualplane_node::kmsg::Kernel;

/// Records of the OOM killer that are remembered.
const MAX_RECORDS: usize = 512;
/// Bytes of one quote.
const BYTES: usize = 192 << 10;
/// Bytes of the own record, where others came after it: with a table of 500 processes it has 60 KiB.
const OWN_BYTES: usize = 64 << 10;
/// Lines of before the death: a card that falls off the bus complains for a minute.
const BEFORE_US: u64 = 120 * 1_000_000;

/// A record by the container that it names.
///
/// Of more than ten kills in five seconds the kernel prints one line each, with a pid and no cgroup (`oom_rs` in
/// `mm/oom_kill.c`). Whose that was is told by the list of processes, where one was taken in time.
#[derive(Debug, Clone)]
pub(super) struct OomKill {
    pub(super) container_id: Option<String>,
    pub(super) pod_uid: Option<String>,
    /// Number of its first line.
    pub(super) number: u64,
    /// When, microseconds since boot.
    pub(super) us: Option<u64>,
    /// It is one of those lines.
    pub(super) held_back: bool,
    /// A cgroup reached its limit; the machine had memory left.
    pub(super) at_limit: bool,
    /// Path of the cgroup of the task that was killed.
    pub(super) path: Option<String>,
    /// A process that was killed came into the container from outside (`kubectl exec`); `None` where that is not known.
    pub(super) from_exec: Option<bool>,
}

impl OomKill {
    fn of(r: &OomRecord, known: &impl PidsKnown) -> Self {
        let us = match r.stamp {
            Some(Stamp::Boot { us }) => u64::try_from(us).ok(),
            _ => None,
        };
        let held_back = r.headless() && r.task_memcg.is_none() && r.oom_memcg.is_none();
        let pids = || r.victims.iter().filter_map(|v| u32::try_from(v.pid).ok());
        let by_pid = || if held_back { pids().find_map(|p| known.owner(p)) } else { None };
        Self {
            container_id: r.container_id().or_else(by_pid),
            pod_uid: r.pod_uid(),
            number: r.place.line.unwrap_or(0),
            us,
            held_back,
            at_limit: r.constraint == Constraint::Memcg,
            path: r.task_memcg.clone(),
            from_exec: pids().find_map(|p| known.came_by_exec(p)),
        }
    }
}

/// What is known of processes by their pids on the host.
pub(super) trait PidsKnown {
    /// Id of the container that had the process when its processes were listed.
    fn owner(&self, pid: u32) -> Option<String>;
    /// Whether it came into its container from outside.
    fn came_by_exec(&self, pid: u32) -> Option<bool>;
}

/// What the OOM killer did, the last records.
#[derive(Debug, Default)]
pub(super) struct RecentOomKills {
    all: VecDeque<OomKill>,
    /// One that may still grow: it is told half a second later, and its container is gone long before that.
    growing: Option<OomKill>,
}

impl RecentOomKills {
    /// A record that is whole.
    pub(super) fn add(&mut self, r: &OomRecord, known: &impl PidsKnown) {
        let mut kill = OomKill::of(r, known);
        // It grew for half a second; the processes may have been listed anew since, without the one that was killed.
        if let Some(before) = self.growing.take_if(|g| g.number == kill.number) {
            kill.from_exec = before.from_exec.or(kill.from_exec);
            kill.container_id = kill.container_id.or(before.container_id);
        }
        self.all.push_back(kill);
        if self.all.len() > MAX_RECORDS {
            self.all.pop_front();
        }
    }

    /// The record that may still grow, as it stands now.
    pub(super) fn grows(&mut self, r: Option<&OomRecord>, known: &impl PidsKnown) {
        // Of one that has just become whole, what was known is taken by `add`.
        if let Some(r) = r {
            self.growing = Some(OomKill::of(r, known));
        }
    }

    /// No record grows any more.
    pub(super) fn settled(&mut self) {
        self.growing = None;
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &OomKill> {
        self.all.iter().chain(&self.growing)
    }

    /// The last record that names a container.
    pub(super) fn of(&self, container_id: &str) -> Option<&OomKill> {
        self.iter().rev().find(|r| r.container_id.as_deref() == Some(container_id))
    }

    /// The last record of a group outside of Kubernetes: a service unit, since a time.
    pub(super) fn of_path(&self, path: &str, since_us: u64) -> Option<&OomKill> {
        let below =
            |p: &str| p.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let own =
            |r: &&OomKill| r.path.as_deref().is_some_and(below) && r.us.is_some_and(|us| us >= since_us);
        self.iter().rev().find(own)
    }

    /// The last record of a pod that names none of its containers, since a time.
    pub(super) fn of_pod(&self, uid: &str, since_us: u64) -> Option<&OomKill> {
        self.iter().rev().find(|r| {
            r.container_id.is_none()
                && r.pod_uid.as_deref() == Some(uid)
                && r.us.is_some_and(|us| us >= since_us)
        })
    }

    /// Numbers of held-back lines that are not of this container: they name nobody, and would be taken for its own.
    pub(super) fn of_others(&self, container_id: &str) -> BTreeSet<u64> {
        let others = |r: &&OomKill| r.held_back && r.container_id.as_deref() != Some(container_id);
        self.iter().filter(others).map(|r| r.number).collect()
    }

    /// Numbers at which records of other instances of the pod begin: how an earlier one ended says nothing of this end.
    pub(super) fn of_earlier(&self, container_id: &str, uid: &str) -> BTreeSet<u64> {
        let earlier = |r: &&OomKill| {
            !r.held_back
                && !container_id.is_empty()
                && r.pod_uid.as_deref() == Some(uid)
                && r.container_id.as_deref().is_some_and(|id| id != container_id)
        };
        self.iter().filter(earlier).map(|r| r.number).collect()
    }

    /// Numbers at which records begin of others that died at a limit of their own: that they did is all that matters here.
    pub(super) fn of_foreign(&self, container_id: &str, uid: &str) -> BTreeSet<u64> {
        let foreign = |r: &&OomKill| {
            let other_pod = r.pod_uid.as_deref().map(|p| p != uid);
            let other = other_pod.or(r.container_id.as_deref().map(|c| c != container_id));
            r.at_limit && !r.held_back && other == Some(true)
        };
        self.iter().filter(foreign).map(|r| r.number).collect()
    }

    /// Numbers of held-back lines that are of this container.
    pub(super) fn of_own(&self, container_id: &str) -> BTreeSet<u64> {
        let own = |r: &&OomKill| r.held_back && r.container_id.as_deref() == Some(container_id);
        self.iter().filter(own).map(|r| r.number).collect()
    }

    /// Held-back lines since a time of which nobody knows whose they are.
    pub(super) fn unowned(&self, since_us: u64) -> usize {
        let unowned =
            |r: &&OomKill| r.held_back && r.container_id.is_none() && r.us.is_some_and(|us| us >= since_us);
        self.iter().filter(unowned).count()
    }
}

/// Held-back lines by whose they are, and where records begin that are not of this end.
#[derive(Debug, Default)]
pub(super) struct LineOwners {
    pub(super) of_earlier: BTreeSet<u64>,
    pub(super) of_own: BTreeSet<u64>,
    pub(super) of_others: BTreeSet<u64>,
    pub(super) foreign: BTreeSet<u64>,
}

/// The lines of the two minutes before; where they are too many, the last ones, and the own record before them.
pub(super) fn quote(kernels: &[&Kernel], own: Option<u64>, at_us: u64, lines: &LineOwners) -> String {
    let since = at_us.saturating_sub(BEFORE_US);
    let told = told(kernels, lines);
    let mut bytes = 0;
    let fits = |&&(_, line): &&(u64, &str)| {
        bytes += line.len() + 1;
        bytes <= BYTES && us_of(line).is_none_or(|us| us >= since)
    };
    let (before, last) = told.split_at(told.len() - told.iter().rev().take_while(fits).count());
    // Where the quote begins in the middle of a record, the rest of it names nobody: it would be taken for this one's.
    let whole = last.iter().position(|(_, l)| begins(l)).unwrap_or(last.len());
    let nobodys = |at: usize, n: u64, l: &str| {
        at < whole && (ends(l) || l.contains("oom-kill:")) && !lines.of_own.contains(&n)
    };
    let mut out = String::new();
    let own = own.and_then(|own| before.get(before.partition_point(|(n, _)| *n < own)..)).unwrap_or_default();
    for (_, line) in own {
        if out.len() + line.len() >= OWN_BYTES {
            break;
        }
        out.push_str(line);
        out.push('\n');
    }
    for (_, (_, line)) in last.iter().enumerate().filter(|(at, (n, l))| !nobodys(*at, *n, l)) {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// All lines that are remembered, without what concerns others only.
fn told<'a>(kernels: &[&'a Kernel], lines: &LineOwners) -> Vec<(u64, &'a str)> {
    let mut next = 0;
    // Whose record it is that the line stands in.
    let (mut earlier, mut foreign) = (false, false);
    let all = kernels.iter().flat_map(|k| k.recent().lines());
    all.filter(|(n, line)| {
        // One who looks back and one who follows have some lines in common.
        if *n < next || lines.of_others.contains(n) {
            return false;
        }
        next = n + 1;
        if begins(line) {
            (earlier, foreign) = (lines.of_earlier.contains(n), lines.foreign.contains(n));
        }
        let kept = !(earlier || foreign && is_detail(line));
        if ends(line) {
            (earlier, foreign) = (false, false);
        }
        kept
    })
    .collect()
}

fn begins(line: &str) -> bool {
    line.contains("invoked oom-killer")
}

fn ends(line: &str) -> bool {
    line.contains("Killed process")
}

/// A line of a record that tells no more than who was killed where: stack and registers, statistics, the table of
/// processes. Whatever else the kernel says meanwhile (an Xid, a machine check) is none.
fn is_detail(line: &str) -> bool {
    let text = line.split_once(';').map_or(line, |(_, text)| text);
    let text = text.split_once("\\x0a").map_or(text, |(first, _)| first);
    let known = [
        " ",
        "[ ",
        "CPU: ",
        "Hardware name: ",
        "Call Trace:",
        "RIP: ",
        "Code: ",
        "RSP: ",
        "RAX: ",
        "RDX: ",
        "RBP: ",
        "R10: ",
        "R13: ",
        "kmem: ",
        "swap: ",
        "memory+swap: ",
        "Memory cgroup stats for ",
        "Tasks state ",
    ];
    let mut words = text.split(' ');
    let is_number = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit());
    let is_key = |w: &str| {
        !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'0'..=b'9'))
    };
    let statistic =
        words.next().is_some_and(is_key) && words.next().is_some_and(is_number) && words.next().is_none();
    statistic || known.iter().any(|k| text.starts_with(k))
}

/// `6,1234,5678901,-;text`: the third field.
fn us_of(line: &str) -> Option<u64> {
    line.split(',').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_node::kmsg::{Source, State};
    use std::fmt::Write;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    fn kernel(text: &str) -> Kernel {
        let f = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(f.path(), text).unwrap();
        let source = Source::stream(OwnedFd::from(std::fs::File::open(f.path()).unwrap())).unwrap();
        let mut k = Kernel::new(source, State::default());
        while k.turn(Duration::ZERO, &mut Vec::new()).unwrap() > 0 {}
        k
    }

    /// One process is known, of the container `aa…`, started with `kubectl exec`.
    struct OnePid(u32);

    impl PidsKnown for OnePid {
        fn owner(&self, pid: u32) -> Option<String> {
            (pid == self.0).then(|| "a".repeat(64))
        }
        fn came_by_exec(&self, pid: u32) -> Option<bool> {
            (pid == self.0).then_some(true)
        }
    }

    #[test]
    fn a_line_without_a_group_is_of_the_container_that_had_the_pid() {
        let line = |n: u64, pid: u32| {
            format!(
                "4,{n},{n},-;Memory cgroup out of memory: Killed process {pid} (python3) total-vm:9kB, anon-rss:8kB\n"
            )
        };
        let f = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(f.path(), format!("{}{}", line(1, 70), line(2, 80))).unwrap();
        let source = Source::stream(OwnedFd::from(std::fs::File::open(f.path()).unwrap())).unwrap();
        let (mut k, mut said, mut records) =
            (Kernel::new(source, State::default()), Vec::new(), RecentOomKills::default());
        for _ in 0..8 {
            k.turn(Duration::from_millis(100), &mut said).unwrap();
            std::thread::park_timeout(Duration::from_millis(100));
        }
        for s in said {
            if let dualplane_node::kmsg::KernelMessage::Oom(r) = s {
                records.add(&r, &OnePid(70));
            }
        }
        assert_eq!(records.of(&"a".repeat(64)).unwrap().number, 1);
        assert_eq!(records.of(&"a".repeat(64)).unwrap().from_exec, Some(true));
        assert_eq!(records.of_others(&"a".repeat(64)), BTreeSet::from([2]));
        assert_eq!(records.of_others("b"), BTreeSet::from([1, 2]));
        assert_eq!(records.unowned(0), 1);
    }

    #[test]
    fn the_rest_of_a_record_that_is_cut_is_left_out() {
        let mut text = String::new();
        let mut say = |n: u64, what: &str| writeln!(text, "4,{n},{},-;{what}", n * 10_000_000).unwrap();
        say(1, "a invoked oom-killer: gfp_mask=0xcc0");
        say(2, "Memory cgroup out of memory: Killed process 7 (a) total-vm:9kB");
        say(3, "NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.");
        say(4, "Memory cgroup out of memory: Killed process 8 (own) total-vm:9kB");
        say(5, "b invoked oom-killer: gfp_mask=0xcc0");
        say(6, "Memory cgroup out of memory: Killed process 9 (b) total-vm:9kB");
        let k = kernel(&text);
        let own = LineOwners { of_own: BTreeSet::from([4]), ..LineOwners::default() };
        let numbers =
            |q: &str| q.lines().map(|l| l.split(',').nth(1).unwrap().to_owned()).collect::<Vec<_>>();
        // 120 s before 135 s: the quote begins behind the first record's head.
        assert_eq!(numbers(&quote(&[&k], None, 135_000_000, &own)), ["3", "4", "5", "6"]);
        assert_eq!(numbers(&quote(&[&k], None, 135_000_000, &LineOwners::default())), ["3", "5", "6"]);
        assert_eq!(numbers(&quote(&[&k], None, 125_000_000, &own)), ["1", "2", "3", "4", "5", "6"]);
        let earlier = LineOwners { of_earlier: BTreeSet::from([1]), ..own };
        assert_eq!(numbers(&quote(&[&k], None, 125_000_000, &earlier)), ["3", "4", "5", "6"]);
    }

    #[test]
    fn of_others_at_their_limits_only_who_was_killed_stays() {
        let (own, other) = ("a".repeat(64), "b".repeat(64));
        let mut text = String::new();
        let mut n = 0;
        let mut say = |what: &str| {
            n += 1;
            writeln!(text, "4,{n},{},-;{what}", n * 1000).unwrap();
        };
        for id in [&other, &own] {
            say("python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0");
            say("CPU: 1 PID: 7 Comm: python3 Not tainted 6.1.0");
            say("Call Trace:");
            say(" dump_header+0x4a/0x21e");
            say("RAX: ffffffffffffffda RBX: 0000000000000000 RCX: 00007fa1463992ad");
            say("memory: usage 24576kB, limit 24576kB, failcnt 9");
            say("NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.");
            say(&format!("Memory cgroup stats for /kubepods/{id}:"));
            say("anon 25047040\\x0afile 4096\\x0akernel 81920");
            say("Tasks state (memory values in pages):");
            say("[  13589]     0 13589     6803     6500    90112        0             0 tail");
            say(&format!(
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/{id},task_memcg=/{id},task=tail,pid=7,uid=0"
            ));
            say("Memory cgroup out of memory: Killed process 7 (tail) total-vm:27212kB, anon-rss:24448kB");
        }
        let f = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(f.path(), &text).unwrap();
        let source = Source::stream(OwnedFd::from(std::fs::File::open(f.path()).unwrap())).unwrap();
        let (mut k, mut said, mut records) =
            (Kernel::new(source, State::default()), Vec::new(), RecentOomKills::default());
        while said.len() < 4 {
            k.turn(Duration::from_millis(100), &mut said).unwrap();
        }
        for s in said {
            if let dualplane_node::kmsg::KernelMessage::Oom(r) = s {
                records.add(&r, &OnePid(0));
            }
        }
        let lines = LineOwners { foreign: records.of_foreign(&own, ""), ..LineOwners::default() };
        assert_eq!(lines.foreign, BTreeSet::from([1]));
        // Read by two, as after a restart of the agent: each line once.
        let q = quote(&[&k, &k], records.of(&own).map(|r| r.number), 26_000, &lines);
        let numbers: Vec<u64> = q.lines().map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
        assert_eq!(numbers, [vec![1, 6, 7, 12, 13], (14..=26).collect()].concat());
    }

    #[test]
    fn old_lines_stay_out_and_the_own_record_stays_in() {
        let mut text = String::new();
        for n in 0..4000_u64 {
            writeln!(text, "4,{n},{},-;{}", n * 100_000, "x".repeat(100)).unwrap();
        }
        let k = kernel(&text);
        let q = quote(&[&k], None, 399_900_000, &LineOwners::default());
        let first = q.lines().next().unwrap();
        assert!(q.len() <= BYTES && q.ends_with(&format!("{}\n", "x".repeat(100))));
        assert!(us_of(first).unwrap() >= 279_900_000, "{first}");
        assert!(q.contains("4,3999,"));
        let q = quote(&[&k], Some(1000), 399_900_000, &LineOwners::default());
        assert!(q.starts_with("4,1000,") && q.contains("4,3999,"), "{}", q.lines().next().unwrap());
        assert!(
            q.len() <= BYTES + OWN_BYTES && q.contains("\n4,1400,") && !q.contains("\n4,1900,"),
            "{}",
            q.len()
        );
        let q = quote(
            &[&k],
            Some(3990),
            399_900_000,
            &LineOwners { of_others: BTreeSet::from([3999]), ..LineOwners::default() },
        );
        assert_eq!((q.matches("4,3990,").count(), q.contains("4,3999,")), (1, false));
        assert_eq!(quote(&[], None, 0, &LineOwners::default()), "");
    }
}
