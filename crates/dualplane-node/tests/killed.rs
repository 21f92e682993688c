//! A follower that is killed with SIGKILL again and again while it counts: the kept counts are exact at every moment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use std::fmt::Write;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use dualplane_node::kmsg::{Kernel, Source, State};

const LINES: u64 = 100_000;
const BOOT: &str = "b932d0cf-5916-41b7-ae0f-3282d92e7059";

/// The follower: this test started by the other one in a process of its own. Alone it has nothing to do.
#[test]
fn follower() {
    let Ok(dir) = std::env::var("DUALPLANE_TEST_FOLLOW") else { return };
    let state = Path::new(&dir).join("state.json");
    let source = Source::stream(OwnedFd::from(File::open(Path::new(&dir).join("kmsg")).unwrap())).unwrap();
    let mut kernel = Kernel::new(source, State::load(&state, BOOT));
    let mut said = Vec::new();
    while kernel.turn(Duration::ZERO, &mut said).unwrap() > 0 {
        said.clear();
        kernel.save(&state).unwrap();
    }
}

#[test]
fn kills_neither_lose_nor_double_a_line() {
    let d = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for n in 0..LINES {
        writeln!(text, "4,{n},{n},-;NVRM: Xid (PCI:0000:4a:00): 13, pid={n}, name=a, Graphics Exception")
            .unwrap();
    }
    fs::write(d.path().join("kmsg"), text).unwrap();
    let state = || State::load(&d.path().join("state.json"), BOOT);
    let (mut kills, mut last) = (0_u64, 0);
    loop {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "follower", "--test-threads=1"])
            .env("DUALPLANE_TEST_FOLLOW", d.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Each lives a little longer than the one before, or it would never get on.
        std::thread::park_timeout(Duration::from_millis(20 + kills * 15));
        let ended = child.try_wait().unwrap().is_some();
        if !ended {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        let s = state();
        assert_eq!(s.fold.total(), s.next.unwrap_or(0), "the counts are those of the lines below the number");
        assert!(s.fold.total() >= last);
        last = s.fold.total();
        if ended {
            break;
        }
    }
    eprintln!("{kills} kills");
    assert_eq!((last, state().lost), (LINES, 0));
    assert!(kills > 0);
}
