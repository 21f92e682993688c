//! Programs that really leak, and programs that do not, each in a memory cgroup of its own: who is called growing.
//!
//! Needs root, a memory cgroup and time: it runs with `DUALPLANE_REAL_LEAK=1`.
//! `DUALPLANE_LEAK_SECONDS` is how long it watches: 1800 is the whole figure, 50 MiB an hour for half an hour; by default the
//! same 25 MiB leak in 45 seconds. `e2e/leak/run` runs either.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stderr
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dualplane_stats::drift::{Ask, Drift, Sample, drift};
use dualplane_stats::random::Random;

const MIB: usize = 1 << 20;
const HALF_AN_HOUR: f64 = 1800.0;
const SAMPLES: f64 = 180.0;

/// What a program does beside its leak.
const KINDS: [&str; 4] = ["still", "noise", "garbage", "cache"];

/// The program, when this test binary is started as one. It ends when its parent does.
#[test]
fn program() {
    let Ok(kind) = std::env::var("DUALPLANE_LEAKER") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<f64>().unwrap();
    let (seconds, leak, folder) = (
        number("DUALPLANE_LEAK_SECONDS"),
        number("DUALPLANE_LEAK_MIB"),
        std::env::var("DUALPLANE_FOLDER").unwrap(),
    );
    let mut r = Random::new(leak.to_bits() ^ kind.len() as u64);
    let began = Instant::now();
    let mut kept: Vec<Vec<u8>> = vec![touched(64 * MIB)];
    let mut garbage: Vec<Vec<u8>> = Vec::new();
    let mut noise: Vec<u8> = Vec::new();
    let (mut leaked, mut written, mut collected) = (0.0, 0_usize, 0.0);
    let parent = std::os::unix::process::parent_id();
    while began.elapsed().as_secs_f64() < seconds + 60.0 && std::os::unix::process::parent_id() == parent {
        let t = began.elapsed().as_secs_f64();
        while leaked + 0.25 <= leak * t / seconds {
            kept.push(touched(MIB / 4));
            leaked += 0.25;
        }
        match kind.as_str() {
            "noise" => noise = touched(MIB / 4 + r.below(6 * MIB)),
            // Collected at once, some 20 times.
            "garbage" => {
                if t - collected > seconds / 20.0 * (0.7 + 0.6 * r.unit()) {
                    garbage.clear();
                    collected = t;
                }
                garbage.push(touched(MIB / 2 + r.below(MIB / 2)));
            }
            // Page cache grows as a log that is written and read does.
            "cache" if written < 400 * MIB => {
                let path = Path::new(&folder).join("file");
                let mut all = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
                std::io::Write::write_all(&mut all, &vec![7_u8; 2 * MIB]).unwrap();
                written += 2 * MIB;
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_secs_f64(seconds / SAMPLES));
    }
    drop((kept, garbage, noise));
}

/// Memory that is really there. Blocks of this size come from and go back to the kernel.
fn touched(bytes: usize) -> Vec<u8> {
    let mut all = vec![0_u8; bytes];
    for i in (0..bytes).step_by(4096) {
        all[i] = 1;
    }
    all
}

struct Group {
    path: PathBuf,
    folder: PathBuf,
    child: Child,
    samples: Vec<Sample>,
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
        for _ in 0..50 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What the kernel cannot take back: anonymous memory and tmpfs.
fn held(group: &Path) -> Option<f64> {
    let stat = std::fs::read_to_string(group.join("memory.stat")).ok()?;
    let get = |names: [&str; 2]| {
        stat.lines().find_map(|l| {
            let (name, value) = l.split_once(' ')?;
            names.contains(&name).then(|| value.parse::<f64>().ok())?
        })
    };
    Some(get(["total_rss", "anon"])? + get(["total_shmem", "shmem"]).unwrap_or_default())
}

fn start(root: &Path, kind: &str, leak: f64, seconds: f64) -> Option<Group> {
    let name = format!("dualplane-leak-{}-{kind}-{leak}", std::process::id());
    let path = root.join(&name);
    std::fs::create_dir(&path).ok()?;
    held(&path)?;
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    // The shell moves itself into the group and becomes the program: all of its memory is charged there.
    let child = Command::new("sh")
        .args(["-c", "echo $$ > \"$1/cgroup.procs\" && exec \"$2\" --exact program", "sh"])
        .arg(&path)
        .arg(std::env::current_exe().unwrap())
        .env("DUALPLANE_LEAKER", kind)
        .env("DUALPLANE_LEAK_MIB", leak.to_string())
        .env("DUALPLANE_LEAK_SECONDS", seconds.to_string())
        .env("DUALPLANE_FOLDER", &folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Some(Group { path, folder, child, samples: Vec::new() })
}

#[test]
fn leaks_are_seen_and_nothing_else() {
    let needed = std::env::var_os("DUALPLANE_REAL_LEAK").is_some();
    let seconds: f64 =
        std::env::var("DUALPLANE_LEAK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(45.0);
    if std::env::var_os("DUALPLANE_LEAKER").is_some() || !needed {
        return;
    }
    // By the clock that is watched, 25 MiB are 50 MiB an hour for half an hour.
    let faster = HALF_AN_HOUR / seconds;
    let ask = Ask { least_per_hour: Ask::default().least_per_hour, ..Ask::default() };
    let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(PathBuf::from);
    let Some(root) =
        roots.iter().find(|r| r.join("memory.stat").exists() || r.join("memory.limit_in_bytes").exists())
    else {
        panic!("no memory cgroup");
    };
    let mut groups: Vec<(&str, f64, Group)> = Vec::new();
    for kind in KINDS {
        for leak in [0.0, 25.0] {
            let Some(group) = start(root, kind, leak, seconds) else {
                panic!("no group can be made below {}", root.display());
            };
            groups.push((kind, leak, group));
        }
    }
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(Duration::from_secs_f64(seconds / SAMPLES));
        for (_, _, g) in &mut groups {
            let at = began.elapsed().as_secs_f64() * faster;
            if let Some(value) = held(&g.path) {
                g.samples.push(Sample { seconds: at, value, load: None });
            }
        }
    }
    let mut wrong = Vec::new();
    for (kind, leak, g) in &groups {
        let d: Option<Drift> = drift(&g.samples, &ask);
        let by_hour = |v: f64| v / MIB as f64;
        let said = d.map(|d| {
            format!(
                "{:.1} MiB/h ({:.1} to {:.1}), {:?}, {} samples",
                by_hour(d.per_hour),
                by_hour(d.low),
                by_hour(d.high),
                d.because,
                d.samples
            )
        });
        eprintln!("{kind}, leaks {} MiB/h: {}", leak * 2.0, said.as_deref().unwrap_or("too short"));
        // The C library gives 12 MiB of such buffers back at once, every ten minutes or so: half an hour has too few of these
        // teeth to tell a leak of 25 MiB below them. It must not be called one where there is none.
        let hidden = *kind == "noise" && *leak > 0.0;
        if !hidden && d.is_some_and(|d| d.grows()) != (*leak > 0.0) {
            wrong.push(format!("{kind} {leak}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
