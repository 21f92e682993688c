//! The sender, on the real program: a channel that fails first, a loop, a restart, an address that leads inside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Server, program};

/// Takes requests and answers them with these, the last one for ever; hands on their paths and bodies.
fn service(answers: &'static [&'static str]) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if lines.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            lines.read_exact(&mut body).unwrap();
            let answer = answers.get(n).or(answers.last()).unwrap();
            let _ = write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            if tell.send((head, String::from_utf8(body).unwrap())).is_err() {
                return;
            }
        }
    });
    (address, told)
}

fn config(home: &Path, address: &str, kind: &str) -> String {
    let secret = home.join("secret");
    std::fs::write(&secret, "s3cret\n").unwrap();
    let path = home.join("notify.toml");
    let text = format!(
        "url = \"https://dualplane.example.com\"\nallow_hosts = [\"127.0.0.1\"]\n\
         [[channel]]\nname = \"oncall\"\nkind = \"{kind}\"\nurl = \"http://{address}/hook\"\nsecret_file = \"{}\"\n",
        secret.display()
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_death_is_told_until_it_is_taken_and_a_loop_once() {
    let home = tempfile::tempdir().unwrap();
    let (address, told) = service(&["500 Oops", "200 OK"]);
    let file = config(home.path(), &address, "webhook");
    let args = ["--notify", file.as_str()];
    let mut s = Server::start(home.path(), &args);
    // The first look comes before the first death, so that it is no past.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(s.put("a", "own").status, 201);
    let first = told.recv_timeout(SOON).unwrap();
    let second = told.recv_timeout(SOON).unwrap();
    assert_eq!(first.1, second.1, "the same again");
    assert!(
        second.0.contains("authorization: Bearer s3cret")
            || second.0.contains("Authorization: Bearer s3cret"),
        "{}",
        second.0
    );
    let body: Value = serde_json::from_str(&second.1).unwrap();
    crate::message::follows(&body);
    assert_eq!(body["incident"]["class"], "cuda_oom_runtime");
    assert_eq!(body["link"], "https://dualplane.example.com/incidents/a");
    // The same cause again, before and behind a kill: the loop was told.
    assert_eq!(s.put("b", "own").status, 201);
    std::thread::sleep(Duration::from_secs(5));
    s.child.kill().unwrap();
    s.child.wait().unwrap();
    let s = Server::start(home.path(), &args);
    assert_eq!(s.put("c", "own").status, 201);
    assert_eq!(s.put("d", "another").status, 201);
    let news: Value = serde_json::from_str(&told.recv_timeout(SOON).unwrap().1).unwrap();
    assert_eq!(news["incident"]["id"], "d", "only what is new is told");
    assert!(told.recv_timeout(Duration::from_secs(3)).is_err(), "and nothing else");
}

#[test]
fn what_is_refused_for_good_is_kept_and_a_redirect_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let (address, told) = service(&["400 Bad Request"]);
    let file = config(home.path(), &address, "alertmanager");
    let s = Server::start(home.path(), &["--notify", &file]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(s.put("a", "own").status, 201);
    let alerts: Value = serde_json::from_str(&told.recv_timeout(SOON).unwrap().1).unwrap();
    assert_eq!(alerts[0]["labels"]["alertname"], "DualplaneIncident");
    let dead = home.path().join("notify-dead.jsonl");
    let began = std::time::Instant::now();
    while !dead.exists() && began.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(100));
    }
    let line: Value = serde_json::from_str(std::fs::read_to_string(dead).unwrap().trim()).unwrap();
    assert_eq!((&line["channel"], &line["incident"]), (&Value::from("oncall"), &Value::from("a")));
}

#[test]
fn a_dry_run_prints_each_message_and_no_secret() {
    let home = tempfile::tempdir().unwrap();
    let file = config(home.path(), "127.0.0.1:9", "slack");
    let out = program().args(["notify", &file, "--dry-run"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && text.contains("# oncall (slack) to http://127.0.0.1:9/hook"), "{text}");
    assert!(text.contains("host_oom_killed") && !text.contains("s3cret"), "{text}");
}

#[test]
fn a_name_that_leads_inside_is_not_connected_to() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let path = home.path().join("notify.toml");
    // https is allowed for any name; this one leads to this machine.
    let text = format!(
        "url = \"https://d.example\"\n[[channel]]\nname = \"x\"\nkind = \"webhook\"\nurl = \"https://localhost:{port}/\"\n"
    );
    std::fs::write(&path, text).unwrap();
    let out = program().args(["notify", path.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && said.contains("is an address of this machine"), "{said}");
    assert!(listener.accept().is_err(), "nobody came");
}

/// Two programs on one database, of which the one that sends is ended and killed in turn: each cause is told once.
fn two_tell_once(home: &Path, database: &[&str]) {
    let (address, told) = service(&["200 OK"]);
    let folders = [home.join("a"), home.join("b")];
    let start = |n: usize| {
        std::fs::create_dir_all(&folders[n]).unwrap();
        let file = config(&folders[n], &address, "webhook");
        let mut args = vec!["--notify", file.as_str()];
        args.extend(database);
        Server::start(&folders[n], &args)
    };
    let mut all = [Some(start(0)), Some(start(1))];
    // Both have looked before the first death, so that it is no past.
    std::thread::sleep(Duration::from_secs(1));
    let heard = |told: &Receiver<(String, String)>| -> String {
        let body: Value = serde_json::from_str(&told.recv_timeout(SOON).unwrap().1).unwrap();
        body["incident"]["id"].as_str().unwrap().to_owned()
    };
    for round in 0..4 {
        let (ends, stays) = (round % 2, 1 - round % 2);
        let id = format!("n{round}");
        assert_eq!(all[stays].as_ref().unwrap().put(&id, &format!("ns{round}")).status, 201);
        assert_eq!(heard(&told), id);
        // What was sent is noted: a kill between the two tells it again.
        std::thread::sleep(Duration::from_millis(700));
        // Once by a signal, after which the other goes on at once; once by a kill, after which it comes back itself.
        let mut server = all[ends].take().unwrap();
        if round < 2 {
            let done =
                std::process::Command::new("kill").arg(server.child.id().to_string()).status().unwrap();
            assert!(done.success());
            server.child.wait().unwrap();
        } else {
            server.child.kill().unwrap();
            server.child.wait().unwrap();
        }
        drop(server);
        all[ends] = Some(start(ends));
    }
    assert!(told.recv_timeout(Duration::from_secs(3)).is_err(), "nothing twice");
}

#[test]
fn two_programs_on_one_database_tell_each_cause_once() {
    let Some(database) = crate::postgres::Postgres::start() else { return };
    let home = tempfile::tempdir().unwrap();
    two_tell_once(home.path(), &["--database-url", &database.url("tell")]);
}

/// Whoever tells stands still (a stopped program, a machine that is moved): another tells after a while, and what the first wakes up
/// with is not told again.
#[test]
fn one_that_hangs_is_followed_and_wakes_up_to_tell_nothing_twice() {
    let Some(database) = crate::postgres::Postgres::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let (address, told) = service(&["200 OK"]);
    let url = database.url("hangs");
    let start = |name: &str| {
        let folder = home.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = config(&folder, &address, "webhook");
        Server::start(&folder, &["--notify", &file, "--database-url", &url])
    };
    let heard = |within: Duration| -> String {
        let body: Value = serde_json::from_str(&told.recv_timeout(within).unwrap().1).unwrap();
        body["incident"]["id"].as_str().unwrap().to_owned()
    };
    let first = start("a");
    assert_eq!(first.put("n0", "ns0").status, 201);
    assert_eq!(heard(SOON), "n0", "the first tells");
    let second = start("b");
    let tell = |signal: &str| {
        let pid = first.child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    };
    // What was sent is noted.
    std::thread::sleep(Duration::from_secs(1));
    tell("-STOP");
    let wakes = Wakes(tell);
    assert_eq!(second.put("n1", "ns1").status, 201);
    assert_eq!(heard(Duration::from_secs(120)), "n1");
    drop(wakes);
    for (n, server) in [&first, &second].into_iter().enumerate() {
        let id = format!("later{n}");
        assert_eq!(server.put(&id, &id).status, 201);
        assert_eq!(heard(SOON), id);
    }
    assert!(told.recv_timeout(Duration::from_secs(5)).is_err(), "nothing twice");
}

/// A stopped program does not end.
struct Wakes<F: Fn(&str)>(F);

impl<F: Fn(&str)> Drop for Wakes<F> {
    fn drop(&mut self) {
        (self.0)("-CONT");
    }
}

/// A clock that was set back, here that of a replica that goes ahead: what comes later is told all the same.
#[test]
fn a_death_behind_one_from_the_future_is_told() {
    let home = tempfile::tempdir().unwrap();
    let (address, told) = service(&["200 OK"]);
    let file = config(home.path(), &address, "webhook");
    let s = Server::start(home.path(), &["--notify", &file]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(s.put("ahead", "a").status, 201);
    let news: Value = serde_json::from_str(&told.recv_timeout(SOON).unwrap().1).unwrap();
    assert_eq!(news["incident"]["id"], "ahead");
    let c = rusqlite::Connection::open(home.path().join("incidents.db")).unwrap();
    let later = dualplane_incidents::Time::from_ms(dualplane_server::app::now().ms() + 3_600_000);
    let at = later.to_string();
    let sql = "UPDATE incidents SET received = ?1, body = json_set(body, '$.received_at', ?2)";
    c.execute(sql, rusqlite::params![later.ms(), at]).unwrap();
    drop(c);
    // The sender has seen the later time.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(s.put("behind", "b").status, 201);
    let news: Value = serde_json::from_str(&told.recv_timeout(SOON).unwrap().1).unwrap();
    assert_eq!(news["incident"]["id"], "behind");
    assert!(
        s.get("/v1/incidents/behind").json()["received_at"].as_str().unwrap()
            >= at.as_str().get(..16).unwrap()
    );
}
