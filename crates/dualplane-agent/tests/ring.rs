//! The ring where it hurts: a writer that is killed with SIGKILL again and again, and a disk that is really full.
//!
//! The full disk is a small tmpfs; it needs root. Where CI sets `DUALPLANE_REAL_OOM=1`, its absence is a failure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dualplane_agent::ring::{Note, Recovered, Ring, RingLimits, Window};
use dualplane_base::process::of_path;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::{Depth, Group, Kind, Memory};
use dualplane_node::clock::{Moment, Span};
use dualplane_node::sample::Record;

const BOOT: &str = "b932d0cf-5916-41b7-ae0f-3282d92e7059";
const SECOND: u64 = 1_000_000_000;
const CONTAINERS: u16 = 12;

fn note(slot: u16) -> Note {
    let path = format!("/kubepods/pod9ebd9238-4ea3-417e-975f-{slot:012x}/{slot:064x}");
    Note::Container {
        slot,
        group: Group { kind: Kind::Container, identity: of_path(&path, 2) },
        named: None,
        command: Vec::new(),
    }
}

/// The round of a second: values follow from its number, so that what comes back can be checked.
fn round(number: u64) -> Vec<Record> {
    let at = Moment(number * SECOND);
    let mut out: Vec<Record> = (0..CONTAINERS)
        .map(|slot| {
            let value = |n: u64| Some(Bytes(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_003 * n));
            let m = Memory { current: value(4096), anon: value(1024), file: value(77), ..Memory::default() };
            Record::container(slot, at, Depth::Full, &m)
        })
        .collect();
    let span = Span { from: at, to: at };
    out.push(Record::round(number, 0, span, span, None));
    out
}

fn numbers(w: &Window) -> Vec<u64> {
    w.rounds.iter().map(|r| r.field(0).unwrap()).collect()
}

/// All rounds from the first that is kept to this one are there, whole. Returns how many.
fn complete(ring: &Ring, last: u64) -> u64 {
    let w = ring.window(Moment(0), Moment(u64::MAX), &|_| true);
    let got = numbers(&w);
    assert!(got.windows(2).all(|p| p[1] == p[0] + 1), "a hole in {got:?}");
    assert_eq!(got.last(), Some(&last));
    let wanted: Vec<Option<Memory>> = got.iter().map(|n| round(*n)[0].memory()).collect();
    for c in w.containers.values() {
        assert!(c.records.iter().map(Record::memory).eq(wanted.iter().copied()));
    }
    assert_eq!(w.containers.len(), usize::from(CONTAINERS));
    got.len() as u64
}

/// The writer: this test started by the other one in a process of its own. Alone it has nothing to do.
#[test]
fn writer() {
    let Ok(dir) = std::env::var("DUALPLANE_TEST_RING") else { return };
    let dir = Path::new(&dir);
    let done = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("done")).unwrap();
    let (mut ring, recovered) = Ring::open(&dir.join("ring"), RingLimits::default(), BOOT).unwrap();
    let first = recovered.last.map_or(1, |m| m.0 / SECOND + 1);
    let notes: Vec<Note> = (0..CONTAINERS).map(note).collect();
    for number in first.. {
        ring.append(&round(number), if number == first { &notes } else { &[] });
        done.write_all_at(&number.to_le_bytes(), 0).unwrap();
    }
}

#[test]
fn kills_lose_the_round_that_was_being_written_at_most() {
    let d = tempfile::tempdir().unwrap();
    let last = || fs::read(d.path().join("done")).map_or(0, |b| b.try_into().map_or(0, u64::from_le_bytes));
    let mut torn = 0;
    for kill in 0..20_u64 {
        let before = last();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--test-threads=1"])
            .env("DUALPLANE_TEST_RING", d.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while last() <= before {
            assert!(child.try_wait().unwrap().is_none(), "the writer ended");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        // Each at another place of a segment.
        std::thread::park_timeout(Duration::from_micros(kill * 977));
        child.kill().unwrap();
        child.wait().unwrap();
        let done = last();
        let (ring, recovered) = Ring::open(&d.path().join("ring"), RingLimits::default(), BOOT).unwrap();
        torn += recovered.torn;
        let kept = recovered.last.unwrap().0 / SECOND;
        assert!(kept == done || kept == done + 1, "{done} was kept, {kept} is there");
        assert_eq!(recovered.containers.len(), usize::from(CONTAINERS));
        complete(&ring, kept);
    }
    eprintln!("{} rounds in 20 runs, torn tails read {torn} times", last());
}

/// A disk of its own, gone with the test.
struct Disk(PathBuf, #[allow(dead_code, reason = "holds the folder")] tempfile::TempDir);

impl Disk {
    fn mount(size: &str) -> Option<Self> {
        let d = tempfile::tempdir().unwrap();
        let at = d.path().join("disk");
        fs::create_dir(&at).unwrap();
        let options = format!("size={size},huge=never");
        let o =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output().ok()?;
        o.status.success().then_some(Self(at, d))
    }

    /// Takes all room that is left.
    fn fill(&self) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.0.join("stranger")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("stranger")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Opens what was just closed: a program that another test is starting holds the lock's file until its exec.
fn opened(dir: &Path) -> (Ring, Recovered) {
    let from = Instant::now();
    loop {
        match Ring::open(dir, RingLimits::default(), BOOT) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy && from.elapsed() < Duration::from_secs(10) => {
                std::thread::yield_now();
            }
            done => return done.unwrap(),
        }
    }
}

#[test]
fn a_full_disk_costs_the_oldest_and_nothing_new() {
    let Some(disk) = Disk::mount("384k") else {
        assert!(
            std::env::var_os("DUALPLANE_REAL_OOM").is_none(),
            "no tmpfs can be mounted here, and DUALPLANE_REAL_OOM=1 asks for it"
        );
        eprintln!("no tmpfs can be mounted here (it needs root); skipped");
        return;
    };
    let dir = disk.0.join("ring");
    let (mut ring, _) = Ring::open(&dir, RingLimits::default(), BOOT).unwrap();
    let notes: Vec<Note> = (0..CONTAINERS).map(note).collect();
    let mut number = 0;
    let mut go = |ring: &mut Ring, rounds: u64, each: &dyn Fn()| {
        for _ in 0..rounds {
            ring.append(&round(number), if number == 0 { &notes } else { &[] });
            number += 1;
            each();
        }
        complete(ring, number - 1)
    };
    // The budget is larger than the disk: the oldest goes, the rest stays whole.
    let kept = go(&mut ring, 2500, &|| ());
    let counts = ring.counts();
    assert!(kept >= 600 && counts.full_disk > 0 && counts.given_up > 0, "{kept} {counts:?}");
    assert_eq!((counts.dropped_records, counts.failed_writes), (0, 0));
    // Somebody takes each byte that becomes free, for ten minutes.
    disk.fill();
    let kept = go(&mut ring, 600, &|| disk.fill());
    let counts = ring.counts();
    assert!(kept >= 900, "one segment is given up for a new one: {kept} {counts:?}");
    assert_eq!((counts.dropped_records, counts.failed_writes), (0, 0));
    disk.free();
    go(&mut ring, 1, &|| ());
    assert_eq!(ring.counts().waiting_bytes, 0);
    drop(ring);
    let (ring, recovered) = opened(&dir);
    assert_eq!((recovered.torn, recovered.containers.len()), (0, usize::from(CONTAINERS)));
    complete(&ring, 3100);
    drop(ring);
    // A disk that is full from the start: all in memory.
    fs::remove_dir_all(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    disk.fill();
    let (mut ring, _) = Ring::open(&dir, RingLimits::default(), BOOT).unwrap();
    ring.append(&round(0), &notes);
    (1..300).for_each(|n| ring.append(&round(n), &[]));
    assert_eq!(complete(&ring, 299), 300);
    let counts = ring.counts();
    assert!(counts.waiting_bytes > 0 && counts.dropped_records == 0, "{counts:?}");
    assert!(ring.sync().is_err(), "what waits is not on the disk");
    // There is room again: what waited is written, and a new run has it.
    disk.free();
    ring.append(&round(300), &[]);
    assert_eq!(ring.counts().waiting_bytes, 0);
    ring.sync().unwrap();
    drop(ring);
    let (ring, _) = opened(&dir);
    assert_eq!(complete(&ring, 300), 301);
}
