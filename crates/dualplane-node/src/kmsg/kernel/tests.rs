//! A hundred thousand Xid lines through a pipe with restarts in between, OOM records over a restart, an overwritten ring.

use std::collections::HashSet;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use super::*;

const LINES: u64 = 100_000;
const BOOT: &str = "b932d0cf-5916-41b7-ae0f-3282d92e7059";
const OOM: &[&str] = &[
    "vllm invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "memory: usage 49152kB, limit 49152kB, failcnt 70",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=vllm,pid=5,uid=0",
    "Memory cgroup out of memory: Killed process 5 (vllm) total-vm:9kB, anon-rss:8kB, file-rss:4kB, shmem-rss:0kB",
];

fn xid(n: u64) -> String {
    let (gpu, code) = (n % 8, [13, 31, 79, 94][(n / 8 % 4) as usize]);
    format!("4,{n},{},-;NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid={n}, name=python3, text {n}\n", n * 10)
}

/// A reader of a pipe into which a thread writes the records `from..to`, as a ring gives them out after it was opened.
fn ring(from: u64, to: u64, line: fn(u64) -> String, state: State) -> (Kernel, JoinHandle<()>) {
    let (read, write) = std::io::pipe().unwrap();
    let writer = thread::spawn(move || {
        let mut w = std::io::BufWriter::new(write);
        for n in from..to {
            // The reader may go away in the middle: that is the restart.
            if w.write_all(line(n).as_bytes()).is_err() {
                return;
            }
        }
        let _ = w.flush();
    });
    (Kernel::new(Source::stream(OwnedFd::from(read)).unwrap(), state), writer)
}

/// Turns until `enough` records came or nothing more comes: a writer that waits for a processor has not ended.
fn run(
    kernel: &mut Kernel,
    writer: &JoinHandle<()>,
    enough: usize,
    mut each: impl FnMut(Vec<KernelMessage>),
) -> usize {
    let mut records = 0;
    let mut last = Moment::now();
    while records < enough && Moment::now().since(last) < QUIET * 3 / 2 {
        let mut out = Vec::new();
        let n = kernel.turn(Duration::from_millis(20), &mut out).unwrap();
        if n > 0 || !writer.is_finished() {
            last = Moment::now();
        }
        if n == 0 {
            // A closed pipe is always ready.
            thread::park_timeout(Duration::from_millis(10));
        }
        records += n;
        each(out);
    }
    records
}

#[test]
fn a_hundred_thousand_xids_over_restarts_none_missed_none_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kmsg.json");
    // What a consumer keeps, which knows records again by their number.
    let mut kept: HashSet<u64> = HashSet::new();
    // The first run saves now and then and is killed behind the last time; the second ends well; the third takes the rest.
    for (enough, save_at) in [(43_217, 40_000), (20_000, usize::MAX), (usize::MAX, usize::MAX)] {
        let (mut kernel, writer) = ring(0, LINES, xid, State::load(&path, BOOT));
        let mut seen = 0;
        let mut fresh = Vec::new();
        run(&mut kernel, &writer, enough, |said| {
            for s in said {
                let KernelMessage::Xid { number, .. } = s else { panic!("{s:?}") };
                fresh.push(number);
            }
            seen = fresh.len();
        });
        if save_at == usize::MAX {
            kernel.save(&path).unwrap();
        } else {
            // Killed: the state on the disk is older than what was said.
            let (mut older, writer) = ring(0, save_at as u64, xid, State::load(&path, BOOT));
            run(&mut older, &writer, save_at, drop);
            older.save(&path).unwrap();
        }
        assert!(seen >= enough.min(1));
        let before = fresh.len();
        fresh.sort_unstable();
        fresh.dedup();
        assert_eq!(fresh.len(), before, "one run says nothing twice");
        kept.extend(fresh);
    }
    assert_eq!(kept.len() as u64, LINES, "none missed");
    let state = State::load(&path, BOOT);
    assert_eq!(state.fold.total(), LINES, "none doubled in the counts");
    assert_eq!(state.fold.kinds().count(), 32);
    assert!(state.fold.kinds().all(|(_, c)| c.count == LINES / 32));
    assert_eq!((state.next, state.lost), (Some(LINES), 0));
    // Another boot begins anew.
    assert_eq!(State::load(&path, "other").next, None);
}

#[test]
fn what_the_ring_overwrote_is_counted() {
    let state = State { boot: BOOT.into(), next: Some(100), ..State::default() };
    let (mut kernel, writer) = ring(350, 400, xid, state);
    let mut lost = 0;
    run(&mut kernel, &writer, 50, |said| {
        lost += said.iter().map(|s| if let KernelMessage::Lost(n) = s { *n } else { 0 }).sum::<u64>();
    });
    assert_eq!((lost, kernel.state().lost, kernel.state().next), (250, 250, Some(400)));
}

fn oom_with_xids(n: u64) -> String {
    // Two OOM records; Xids between their lines.
    match n % 8 {
        i @ (0 | 2 | 4 | 6) => format!("6,{n},{n},-;{}\n SUBSYSTEM=x\n", OOM[(i / 2) as usize]),
        _ => xid(n),
    }
}

#[test]
fn an_oom_record_that_a_restart_cuts_is_said_once_and_whole() {
    for cut in [1, 3, 7, 9, 12] {
        let fresh = State { boot: BOOT.into(), ..State::default() };
        let (mut first, writer) = ring(0, cut, oom_with_xids, fresh);
        let (mut ooms, mut xids) = (Vec::new(), 0);
        let mut take = |said: Vec<KernelMessage>| {
            for s in said {
                match s {
                    KernelMessage::Oom(o) => ooms.push(o),
                    KernelMessage::Xid { .. } => xids += 1,
                    s => panic!("{s:?}"),
                }
            }
        };
        run(&mut first, &writer, cut as usize, &mut take);
        let (mut second, writer) = ring(0, 16, oom_with_xids, first.state());
        run(&mut second, &writer, usize::MAX, &mut take);
        assert_eq!((ooms.len(), xids), (2, 8), "cut at {cut}");
        for o in &ooms {
            assert_eq!((o.invoker.as_deref(), o.victims.len()), (Some("vllm"), 1), "cut at {cut}");
        }
    }
}

#[test]
fn long_and_odd_lines_do_no_harm() {
    let (read, mut write) = std::io::pipe().unwrap();
    let writer = thread::spawn(move || {
        write.write_all(b"no record\n\n4,1,1,-;\xff\xfe\n").unwrap();
        write.write_all(&vec![b'x'; 200_000]).unwrap();
        write.write_all(b"\n").unwrap();
        write.write_all(xid(2).as_bytes()).unwrap();
    });
    let mut kernel = Kernel::new(Source::stream(OwnedFd::from(read)).unwrap(), State::default());
    let mut xids = 0;
    run(&mut kernel, &writer, 2, |said| {
        xids += said.iter().filter(|s| matches!(s, KernelMessage::Xid { .. })).count()
    });
    assert_eq!((xids, kernel.follower.odd, kernel.state().next), (1, 1, Some(3)));
}

#[test]
fn codes_of_one_number_are_told_apart() {
    let event = |detail: &str, code| XidEvent {
        code,
        pci: "0000:4a:00".into(),
        pid: None,
        process: None,
        caused_by: None,
        nonfatal: false,
        detail: detail.into(),
        place: dualplane_base::Place { file: "k".into(), line: None },
        text: String::new(),
        stamp: None,
    };
    let sub = super::super::sub_code;
    assert_eq!(
        sub(&event("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", 154)),
        "Drain and Reset"
    );
    assert_eq!(sub(&event("NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x1)", 149)), "NETIR_LINK_EVT Fatal");
    assert_eq!(
        sub(&event(
            "pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)",
            119
        )),
        "function 76"
    );
    assert_eq!(sub(&event("pid=1, MMU Fault", 31)), "");
}
