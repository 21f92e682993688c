//! How a server's end gets its name: by the page of its node's agent, as the agent itself prints it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dualplane_agent::View;
use dualplane_agent::incident::{SCHEMA, Summary};
use dualplane_agent::publish::{Counts, Tally, metrics};
use serde_json::json;

use super::backend::Backend;
use super::client::send;
use super::*;

/// The page of an agent, and how often it was asked.
#[derive(Default)]
struct Agent {
    page: Mutex<String>,
    asked: AtomicUsize,
}

impl Agent {
    /// On a port of its own.
    fn start() -> (Arc<Self>, String) {
        let agent = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let its = Arc::clone(&agent);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let head = BufReader::new(stream.try_clone().unwrap());
                for _ in head.lines().map_while(Result::ok).take_while(|l| !l.is_empty()) {}
                let page = its.page.lock().unwrap().clone();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
                    page.len()
                );
                its.asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        (agent, url)
    }

    /// It keeps these incidents, the newest last: when they were, of which container, and their class.
    fn tells(&self, incidents: &[(&str, &str, Option<&str>)]) {
        let summary = |(n, (at, container, class)): (usize, &(&str, &str, Option<&str>))| -> Summary {
            let state = if class.is_some() { "judged" } else { "kept" };
            serde_json::from_value(json!({"schema": SCHEMA, "id": format!("{n}"), "kind": "death", "state": state,
                "died_at": at, "node": "n", "namespace": "s", "pod": "p", "container": container, "first": n == 0,
                "class": class, "plane": class.map(|_| "host"), "bytes": 1}))
            .unwrap()
        };
        let folder: Vec<Summary> = incidents.iter().enumerate().map(summary).collect();
        let verdicts = Arc::new(Tally::new([].into_iter()).look(folder.iter().rev()));
        let mut page = String::new();
        metrics::render(
            &View::default(),
            &Counts { node: "n".into(), verdicts, ..Counts::default() },
            &mut page,
        );
        *self.page.lock().unwrap() = page;
    }

    /// Until it was asked anew from beginning to end.
    fn hear(&self) {
        let (begun, before) = (Instant::now(), self.asked.load(Ordering::Relaxed));
        while self.asked.load(Ordering::Relaxed) < before + 2 {
            assert!(begun.elapsed() < LONG, "the agent is not asked");
            std::thread::yield_now();
        }
    }
}

fn deaths(guard: &Guard) -> Vec<String> {
    let page = String::from_utf8(send(&guard.admin, "GET", "/metrics", "", b"").body).unwrap();
    let told = page.lines().filter(|l| l.starts_with("dualplane_guard_server_deaths_total{"));
    told.map(|l| l.split_once("class=").unwrap().1.to_owned()).collect()
}

#[test]
fn the_agent_of_the_node_names_a_server_s_end() {
    let (agent, url) = Agent::start();
    // An end of before, and one of another container, are not this one's.
    let old = ("2026-11-27T01:00:00.000Z", "c", Some("cuda_oom_load"));
    agent.tells(&[old]);
    let backend = Backend::start(1000);
    let text = format!("[[server]]\nurl = \"{}\"\nagent = \"{url}\"\ncontainer = \"s/p/c\"\n", backend.url());
    let folder = dir(&[("guard.toml", text.as_bytes())]);
    let path = folder.path().join("guard.toml");
    let guard = Guard::start(&["--config", path.to_str().unwrap()]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    agent.hear();
    drop(backend);
    guard.until(|s| s["servers"][0]["up"] == false && s["servers"][0]["last_death"] == "unknown");
    let other = ("2026-11-27T02:00:01.000Z", "sidecar", Some("host_oom_killed"));
    let (kept, judged) = (
        ("2026-11-27T02:00:00.500Z", "c", None),
        ("2026-11-27T02:00:00.500Z", "c", Some("cuda_oom_runtime")),
    );
    agent.tells(&[old, kept, other]);
    agent.hear();
    assert_eq!(deaths(&guard), Vec::<String>::new(), "it is counted once it has its name");
    assert_eq!(guard.status()["servers"][0]["last_death"], "unknown");
    agent.tells(&[old, judged, other]);
    guard.until(|s| s["servers"][0]["last_death"] == "cuda_oom_runtime");
    assert_eq!(deaths(&guard), ["\"cuda_oom_runtime\"} 1"]);
    let answer = guard.chat("answer", 100, 10);
    let (status, code) = error(&answer);
    assert!(status >= 500, "{code}: {answer:?}");
}

/// A pod that dies is no longer ready, so it leaves the list of its Service before the agent has judged it.
#[test]
fn an_end_gets_its_name_after_the_server_has_left() {
    let (agent, url) = Agent::start();
    agent.tells(&[]);
    let (backend, other) = (Backend::start(1000), Backend::start(1000));
    let stays = format!("[[server]]\nurl = \"{}\"\n", other.url());
    let dies = format!(
        "[[server]]\nurl = \"{}\"\nname = \"a\"\nagent = \"{url}\"\ncontainer = \"s/p/c\"\n",
        backend.url()
    );
    let folder = dir(&[("guard.toml", format!("{dies}{stays}").as_bytes())]);
    let path = folder.path().join("guard.toml");
    let guard = Guard::start(&["--config", path.to_str().unwrap()]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    agent.hear();
    drop(backend);
    guard.until(|s| s["servers"][0]["up"] == false);
    std::fs::write(&path, stays).unwrap();
    guard.signal("-HUP");
    guard.until(|s| s["servers"].as_array().unwrap().len() == 1);
    agent.tells(&[("2026-11-27T02:00:00.500Z", "c", Some("host_node_oom"))]);
    guard.until(|_| deaths(&guard) == ["\"host_node_oom\"} 1"]);
}
