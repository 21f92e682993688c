//! Crash loops of 0.3 s against the real program: killed from outside, by the kernel and by themselves, while logs are
//! rotated, the agent is killed with -9 and its disk is full for seconds. The first death of every loop must be kept.
//!
//! `DUALPLANE_CHAOS` is the number of loops: 40 in CI, 1000 in `bench/chaos.sh`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

#[path = "../../../dualplane-agent/tests/recorder/kubelet.rs"]
mod kubelet;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dualplane_agent::incident::{State, Summary, list};
use dualplane_kube::bundle::unpack;
use kubelet::{Node, Pod};
use serde_json::Value;

/// Loops at once.
const AT_ONCE: u32 = 6;
/// Instances of each loop.
const INSTANCES: u32 = 3;
const LIMIT: u64 = 24 << 20;

/// A disk of its own, so that it can be full.
struct Disk {
    dir: tempfile::TempDir,
    mounted: bool,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args = ["-t", "tmpfs", "-o", "size=112m", "none"];
        let mounted = Command::new("mount").args(args).arg(dir.path()).status().is_ok_and(|s| s.success());
        let required = std::env::var("DUALPLANE_REAL_OOM").is_ok_and(|v| v == "1");
        assert!(mounted || !required, "no tmpfs can be mounted, and DUALPLANE_REAL_OOM=1 asks for it");
        if !mounted {
            eprintln!("no tmpfs can be mounted here: without a full disk");
        }
        Self { dir, mounted }
    }

    /// Fills it to the last byte for some time.
    fn fill(&self, time: Duration) {
        if !self.mounted {
            return;
        }
        let hog = self.dir.path().join("hog");
        let _ = Command::new("dd")
            .args(["if=/dev/zero", "bs=1M", &format!("of={}", hog.display())])
            .stderr(Stdio::null())
            .status();
        wait(time);
        let _ = fs::remove_file(hog);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(self.dir.path()).status();
        }
    }
}

fn wait(time: Duration) {
    std::thread::park_timeout(time);
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn start(node: &Node, state: &Path) -> Child {
    let base = node.base.path();
    let config = node.config(state);
    let own = || env!("CARGO_BIN_EXE_dualplane").into();
    Command::new(std::env::var_os("DUALPLANE").unwrap_or_else(own))
        .args(["agent", "--listen", "none", "--no-cluster", "--node", "node-1", "--state"])
        .arg(state)
        .arg("--cgroups")
        .arg(&config.observe.sample.cgroups)
        .arg("--var-log")
        .arg(base.join("log"))
        .stderr(fs::OpenOptions::new().create(true).append(true).open(base.join("agent.err")).unwrap())
        .spawn()
        .unwrap()
}

/// One loop: three instances of 0.3 s, each ending in its own way. Returns when the first one was killed.
fn crash_loop(node: &Node, number: u32) -> (Pod, u64) {
    let mut pod = node.pod(number);
    let mut first = 0;
    for restart in 0..INSTANCES {
        pod.restart = restart;
        let say =
            format!("echo '2026-11-21T10:00:01.000000000Z stdout F INFO {number}-{restart} serves' >> $LOG");
        // The kernel's kill, a kill from outside, an exit of its own.
        let end = match (number + restart) % 3 {
            0 => "exec tail /dev/zero",
            1 => "exec sleep 60",
            _ => "exit 1",
        };
        let mut instance = node.start(&pod, LIMIT, &format!("{say}; sleep 0.3; {end}"));
        if number.is_multiple_of(5) {
            // The kubelet rotates: the old file gets a stamp, the new one is made.
            wait(Duration::from_millis(150));
            let log = node.log(&pod);
            let rotated = log.with_file_name(format!("{restart}.log.20261121-100001"));
            fs::rename(&log, rotated).unwrap();
            fs::write(&log, "2026-11-21T10:00:02.000000000Z stdout F INFO rotated\n").unwrap();
            wait(Duration::from_millis(150));
        } else {
            wait(Duration::from_millis(300));
        }
        if (number + restart) % 3 == 1 {
            let _ = instance.child.kill();
        }
        let _ = instance.child.wait();
        if restart == 0 {
            first = now_ms();
        }
        node.clean(&pod, instance);
    }
    (pod, first)
}

#[test]
fn the_first_death_of_every_loop_is_kept() {
    let loops: u32 = std::env::var("DUALPLANE_CHAOS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let Some(node) = Node::create("chaos") else { return };
    let disk = Disk::new();
    let state = disk.dir.path().join("state");
    let agent = Mutex::new(start(&node, &state));
    wait(Duration::from_secs(6));
    let (next, done, kills, fills) =
        (AtomicU32::new(1), AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let died: Mutex<BTreeMap<String, (u64, u32)>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                s.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number > loops {
                            return;
                        }
                        let (pod, at) = crash_loop(&node, number);
                        died.lock().unwrap().insert(pod.uid, (at, number));
                    }
                })
            })
            .collect();
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                wait(Duration::from_secs(7));
                let mut a = agent.lock().unwrap();
                a.kill().unwrap();
                a.wait().unwrap();
                *a = start(&node, &state);
                kills.fetch_add(1, Ordering::Relaxed);
            }
        });
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                wait(Duration::from_secs(11));
                disk.fill(Duration::from_secs(1));
                fills.fetch_add(1, Ordering::Relaxed);
            }
        });
        for w in workers {
            w.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    wait(Duration::from_secs(12));
    agent.lock().unwrap().kill().unwrap();
    agent.lock().unwrap().wait().unwrap();
    check(&state, &died.into_inner().unwrap(), loops);
    eprintln!(
        "{loops} loops, {} deaths; the agent was killed {} times, the disk full {} times",
        loops * INSTANCES,
        kills.into_inner(),
        fills.into_inner()
    );
    eprintln!(
        "{}",
        fs::read_to_string(node.base.path().join("agent.err")).unwrap().lines().last().unwrap_or("")
    );
}

fn check(state: &Path, died: &BTreeMap<String, (u64, u32)>, loops: u32) {
    let dir = state.join("incidents");
    let (all, unreadable) = list(&dir).unwrap();
    assert_eq!(unreadable, 0);
    let firsts: BTreeMap<&str, &Summary> =
        all.iter().filter(|s| s.restart == Some(0)).map(|s| (s.uid.as_str(), s)).collect();
    let (mut missing, mut later, mut times, mut bytes) = (Vec::new(), 0, Vec::new(), 0);
    let mut short = Vec::new();
    let (mut empty, mut gone) = (Vec::new(), 0);
    for (uid, (at, number)) in died {
        let path = |s: &&&Summary| -> PathBuf { dir.join(format!("{}.tar.zst", s.id)) };
        let Some(s) = firsts.get(uid.as_str()).filter(|s| path(s).is_file()) else {
            missing.push(*number);
            continue;
        };
        assert!(s.state == State::Kept || s.state == State::Judged, "{s:?}");
        later += u32::from(!s.first);
        let path = path(&s);
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        let written = written.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        times.push(written.saturating_sub(*at));
        bytes += s.bytes;
        let files = unpack(&fs::read(&path).unwrap()).unwrap();
        let log = files.iter().find(|f| f.name.ends_with("logs/vllm.previous.log"));
        let log = log.map(|f| String::from_utf8_lossy(&f.bytes).into_owned()).unwrap_or_default();
        let manifest = files.iter().find(|f| f.name.ends_with("manifest.json")).unwrap();
        // The next but one instance takes the log along: 0.3 s in which no agent may have run.
        let said = String::from_utf8_lossy(&manifest.bytes).contains("its log files were deleted");
        match log.contains(&format!("{number}-0 serves")) {
            true => {}
            false if said && log.is_empty() => gone += 1,
            false => empty.push((*number, *at, s.died_at.clone(), s.durable_ms, s.kind, log.len())),
        }
        if let Err(why) = covers(&files, *at) {
            short.push((*number, why));
        }
    }
    times.sort_unstable();
    let share = |p: usize| times.get((times.len() * p / 100).min(times.len().saturating_sub(1)));
    eprintln!(
        "first deaths kept: {} of {loops}; not called first: {later}; durable after ms: median {:?}, 99 % {:?}, most {:?}; \
         {} bytes a bundle; log gone before the agent was back: {gone}; without the last 5 s of series: {short:?}",
        times.len(),
        share(50),
        share(99),
        times.last(),
        bytes / (times.len() as u64).max(1)
    );
    assert!(empty.is_empty(), "{empty:#?}");
    assert!(missing.is_empty(), "not kept: {missing:?}");
    assert!(short.is_empty(), "{short:?}");
    assert!(gone * 100 <= loops, "{gone}");
    assert!(share(99).is_some_and(|t| *t < 2000));
}

/// The node's series reach from five seconds before the death to within a beat and a restart of it; else where they do,
/// in seconds before it.
fn covers(files: &[dualplane_core::evidence::RawFile], at: u64) -> Result<(), String> {
    let f = files.iter().find(|f| f.name.ends_with("series/node.json")).ok_or("no series")?;
    let v: Value = serde_json::from_slice(&f.bytes).unwrap();
    let mut before: Vec<f64> = Vec::new();
    for series in v["data"]["result"].as_array().unwrap() {
        if series["metric"]["__name__"] == "node_memory_MemAvailable_bytes" {
            let values = series["values"].as_array().unwrap();
            before.extend(values.iter().map(|p| at as f64 / 1000.0 - p[0].as_f64().unwrap()));
        }
    }
    let mut last: Vec<f64> = before.iter().copied().filter(|s| (-1.0..=5.5).contains(s)).collect();
    last.sort_by(f64::total_cmp);
    if last.first().is_some_and(|s| *s <= 1.5) && last.last().is_some_and(|s| *s >= 4.0) {
        return Ok(());
    }
    before.sort_by(f64::total_cmp);
    Err(format!("{:.1?}", before.iter().take(12).collect::<Vec<_>>()))
}
