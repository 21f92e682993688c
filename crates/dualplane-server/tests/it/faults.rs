//! Nothing that was acknowledged is lost, and nothing is kept twice: real kills, a real disk that is full, a real database
//! that goes away.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Server, upload};

/// Sends until it is told to stop; what was acknowledged, and how often an answer was missing.
pub(crate) fn storm(server: &Server, stop: &AtomicBool, round: usize, senders: usize) -> BTreeSet<String> {
    let acknowledged = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for sender in 0..senders {
            let acknowledged = &acknowledged;
            scope.spawn(move || {
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let id = format!("r{round}-s{sender}-{n}");
                    let path = format!("/v1/incidents/{id}");
                    match server.try_ask("PUT", &path, &[], &upload(&id, "serving")) {
                        Ok(a) if a.status == 201 => drop(acknowledged.lock().unwrap().insert(id)),
                        Ok(a) => assert!(matches!(a.status, 429 | 503), "{}", a.text()),
                        // The server is gone: whether it was kept is not known.
                        Err(_) if stop.load(Ordering::Relaxed) => return,
                        Err(_) => std::thread::sleep(Duration::from_millis(5)),
                    }
                }
            });
        }
    });
    acknowledged.into_inner().unwrap()
}

/// Ends the senders also where the test fails.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is listed, each once; the statistics say the same.
pub(crate) fn held(s: &Server) -> BTreeSet<String> {
    let ids = s.ids();
    let set: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(ids.len(), set.len(), "each death once");
    let fleet = s.get("/v1/fleet").json();
    assert_eq!(fleet["incidents"].as_u64(), Some(ids.len() as u64), "the counts are those of the list");
    let newest = s.get("/v1/incidents").json();
    if !ids.is_empty() {
        assert_eq!(newest["items"][0]["occurrences"].as_u64(), Some(ids.len() as u64));
    }
    set
}

fn killed_again_and_again(data: &Path, args: &[&str], rounds: usize) {
    let mut acknowledged = BTreeSet::new();
    for round in 0..rounds {
        let server = Server::start(data, args);
        let stop = AtomicBool::new(false);
        let pid = server.child.id();
        std::thread::scope(|scope| {
            let stop = &stop;
            let end = Stop(stop);
            let sending = scope.spawn(|| storm(&server, stop, round, 4));
            std::thread::sleep(Duration::from_millis(700));
            let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
            assert!(killed.success());
            std::thread::sleep(Duration::from_millis(50));
            drop(end);
            acknowledged.extend(sending.join().unwrap());
        });
    }
    assert!(acknowledged.len() > rounds * 3, "{}", acknowledged.len());
    let server = Server::start(data, args);
    let held = held(&server);
    let lost: Vec<&String> = acknowledged.difference(&held).collect();
    assert!(lost.is_empty(), "{} acknowledged and lost of {}: {lost:?}", lost.len(), acknowledged.len());
    // What was sent without an answer is sent again by its sender: that changes nothing where it was kept.
    let one = acknowledged.first().unwrap();
    assert_eq!(server.put(one, "serving").status, 200);
}

#[test]
fn killed_while_it_takes_uploads_it_loses_nothing_with_sqlite() {
    let home = tempfile::tempdir().unwrap();
    killed_again_and_again(home.path(), &[], 3);
}

#[test]
fn killed_while_it_takes_uploads_it_loses_nothing_with_postgres_which_is_killed_as_well() {
    let Some(mut database) = crate::postgres::Postgres::start() else { return };
    let url = database.url("kills");
    let home = tempfile::tempdir().unwrap();
    let args = ["--database-url", &url];
    killed_again_and_again(home.path(), &args, 2);
    let server = Server::start(home.path(), &args);
    let before = held(&server);
    let stop = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let sending = scope.spawn(|| storm(&server, &stop, 9, 4));
        let end = Stop(&stop);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(server.get("/readyz").status, 200);
        database.kill();
        let away = server.get("/readyz");
        assert_eq!((away.status, away.header("retry-after")), (503, "5"), "{}", away.text());
        database.go();
        let began = Instant::now();
        while server.get("/readyz").status != 200 {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not find the database again");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(500));
        drop(end);
        sending.join().unwrap()
    });
    let after = held(&server);
    assert!(before.is_subset(&after) && acknowledged.is_subset(&after));
    assert!(acknowledged.len() > 4);
}

/// A small file system in memory; `None` where this machine lets nobody mount one.
pub(crate) fn small(at: &Path, size: &str) -> Option<()> {
    std::fs::create_dir_all(at).unwrap();
    let done =
        Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).output();
    done.is_ok_and(|d| d.status.success()).then_some(())
}

#[test]
fn a_full_disk_is_said_and_what_was_acknowledged_stays() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("small");
    if small(&data, "6m").is_none() {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        let server = Server::start(&data, &[]);
        let mut answers: BTreeMap<u16, usize> = BTreeMap::new();
        let mut acknowledged = BTreeSet::new();
        let mut n = 0;
        while answers.get(&503).copied().unwrap_or(0) < 5 {
            let id = format!("n{n}");
            let a = server.put(&id, "serving");
            *answers.entry(a.status).or_default() += 1;
            match a.status {
                201 => drop(acknowledged.insert(id)),
                503 => assert!(!a.header("retry-after").is_empty(), "{}", a.text()),
                other => panic!("{other}: {}", a.text()),
            }
            n += 1;
            // The rest of the disk goes to somebody else.
            if n == 50 {
                let _ = std::fs::write(data.join("somebody"), vec![0_u8; 16 << 20]);
            }
            assert!(n < 5000, "{answers:?}");
        }
        let held_now = held(&server);
        assert!(acknowledged.is_subset(&held_now), "what was acknowledged can be read from a full disk");
        std::fs::remove_file(data.join("somebody")).unwrap();
        assert_eq!(server.put("later", "serving").status, 201, "with room again it goes on by itself");
        drop(server);
        let server = Server::start(&data, &[]);
        assert!(acknowledged.is_subset(&held(&server)));
    });
    let gone = Command::new("umount").arg(&data).status().unwrap();
    assert!(gone.success());
    if let Err(e) = result {
        std::panic::resume_unwind(e);
    }
}

/// Postgres may end on a full disk, and comes back only with room. Uploads and pages are answered meanwhile.
#[test]
fn a_full_disk_of_postgres_is_said_and_what_was_acknowledged_stays() {
    let Some(mut database) = crate::postgres::Postgres::small("160m") else { return };
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &["--database-url", &database.url("brim")]);
    let (mut acknowledged, mut refused, mut n) = (BTreeSet::new(), 0, 0);
    while refused < 5 {
        if n == 20 {
            database.fill(true);
        }
        let id = format!("n{n}");
        let a = server.put(&id, "serving");
        match a.status {
            201 => drop(acknowledged.insert(id)),
            503 => {
                assert!(!a.header("retry-after").is_empty(), "{}", a.text());
                refused += 1;
            }
            other => panic!("{other}: {}", a.text()),
        }
        for path in ["/", "/v1/incidents", "/v1/fleet"] {
            let a = server.get(path);
            assert!(matches!(a.status, 200 | 503), "{path}: {}: {}", a.status, a.text());
        }
        n += 1;
        assert!(n < 20_000, "the disk is never full");
    }
    assert!(acknowledged.len() >= 20);
    database.fill(false);
    if database.has_ended() {
        database.go();
    }
    let began = Instant::now();
    while server.put("later", "serving").status == 503 {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not go on with room again");
        std::thread::sleep(Duration::from_millis(100));
    }
    let held = held(&server);
    let lost: Vec<&String> = acknowledged.difference(&held).collect();
    assert!(lost.is_empty() && held.contains("later"), "lost of {}: {lost:?}", acknowledged.len());
}

/// The library that tells a program another time; `None` where this machine has none.
fn faketime() -> Option<std::path::PathBuf> {
    let dirs = std::fs::read_dir("/usr/lib").ok()?.filter_map(|e| Some(e.ok()?.path()));
    dirs.map(|d| d.join("faketime/libfaketime.so.1")).find(|p| p.exists())
}

/// What is told to one who listens, until this is set.
fn listen(address: &str, done: &AtomicBool) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    write!(stream, "GET /v1/events HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let (mut got, mut buffer) = (Vec::new(), [0; 65536]);
    while !done.load(Ordering::Relaxed) {
        if let Ok(n) = stream.read(&mut buffer) {
            assert!(n > 0, "the stream ended");
            got.extend_from_slice(&buffer[..n]);
        }
    }
    String::from_utf8_lossy(&got).into_owned()
}

/// Ahead by 200 days, right again, and back by 200 days while the server runs: what was acknowledged stays, each once, and whoever
/// listens misses none.
#[test]
fn a_clock_that_jumps_loses_nothing() {
    let Some(library) = faketime() else {
        eprintln!("skipped: no libfaketime here (Debian's package faketime)");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let clock = home.path().join("clock");
    // A rename is seen whole.
    let jump = |by: &str| {
        let next = home.path().join("next");
        std::fs::write(&next, format!("{by}\n")).unwrap();
        std::fs::rename(&next, &clock).unwrap();
    };
    jump("+0d");
    let data = home.path().join("data");
    let mut c = crate::harness::program();
    c.args(["serve", "--listen", "127.0.0.1:0", "--keep-days", "30", "--data"]).arg(&data);
    c.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &clock).env("FAKETIME_NO_CACHE", "1");
    c.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let server = Server::of(c);
    let (mut sent, mut months) = (BTreeSet::new(), BTreeSet::new());
    let (address, done) = (server.url.trim_start_matches("http://").to_owned(), AtomicBool::new(false));
    let heard = std::thread::scope(|scope| {
        let listening = scope.spawn(|| listen(&address, &done));
        let end = Stop(&done);
        // A first look, so that whoever listens is there.
        std::thread::sleep(Duration::from_millis(1500));
        for (n, by) in ["+0d", "+200d", "+0d", "-200d", "+0d"].iter().enumerate() {
            jump(by);
            for k in 0..3 {
                let id = format!("n{n}-{k}");
                assert_eq!(server.put(&id, "serving").status, 201);
                let received = server.get(&format!("/v1/incidents/{id}")).json()["received_at"].clone();
                months.insert(received.as_str().unwrap().chars().take(7).collect::<String>());
                sent.insert(id);
            }
            assert_eq!(held(&server), sent, "after {by}");
            // Long enough that a look comes between two jumps.
            std::thread::sleep(Duration::from_millis(1500));
        }
        drop(end);
        listening.join().unwrap()
    });
    assert!(months.len() >= 2, "the clock did not jump: {months:?}");
    for id in &sent {
        let times = heard.matches(&format!("\"id\":\"{id}\"")).count();
        assert_eq!(times, 1, "{id} was told {times} times");
    }
    drop(server);
    let server = Server::start(&data, &[]);
    assert_eq!(held(&server), sent);
}

#[test]
fn what_is_too_old_goes_with_its_bundle_and_the_rest_stays() {
    let home = tempfile::tempdir().unwrap();
    {
        let server = Server::start(home.path(), &[]);
        assert_eq!(server.put("old", "serving").status, 201);
        assert_eq!(server.put("new", "serving").status, 201);
        let sum = crate::api::digest(b"x");
        let path = "/v1/incidents/old/bundle";
        assert_eq!(server.ask("PUT", path, &[("repr-digest", &sum)], b"x").status, 201);
    }
    let long_ago = 1_000_000_000_000_i64;
    let c = rusqlite::Connection::open(home.path().join("incidents.db")).unwrap();
    c.execute("UPDATE incidents SET died = ?1, received = ?1 WHERE id = 'old'", [long_ago]).unwrap();
    drop(c);
    assert!(home.path().join("bundles/old.bundle").exists());
    let server = Server::start(home.path(), &["--keep-days", "30"]);
    let began = Instant::now();
    while server.ids().len() > 1 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.ids(), ["new"]);
    assert_eq!(server.get("/v1/incidents/old").status, 404);
    let began = Instant::now();
    while home.path().join("bundles/old.bundle").exists() {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
}
