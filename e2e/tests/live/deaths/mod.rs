//! Deaths that really happen, a few at a time and in front of the agent: the live pod, its bundle and the agent's incident are
//! judged alike and right, and no Event stands on a pod that nothing of the kind happened to. The table is `e2e/deaths`.

mod burst;
pub(crate) mod choice;
mod course;
mod judged;
mod kernel;
mod pods;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use self::choice::{choice, say};
use self::judged::Judged;
use self::pods::Death;
use crate::agent::{Agent, incidents, start_at};
use crate::harness::{Ran, create, kubectl, run, succeeds, until};

/// Deaths that happen at the same time. The kernel prints ten whole records in five seconds, and then only victims.
const SIDE_BY_SIDE: usize = 6;
/// Of all verdicts, as it is asked for.
const CLASS_RIGHT: f64 = 0.98;

/// Nothing happens to them: a server, one whose memory is nearly full, one that did its work.
const HEALTHY: &[(&str, &str)] = &[
    ("healthy", "run = 'say ready then sleep'\nclass = 'not_memory'"),
    ("healthy-nearly-full", "run = 'grow 40 8 20 then sleep'\nclass = 'not_memory'"),
    ("healthy-done", "run = 'say done then exit 0'\nclass = 'not_memory'"),
];

/// A namespace of their own, since other tests count the pods of `serving`. Everything goes, also when the test fails.
struct Namespace(&'static str);

impl Namespace {
    fn new(name: &'static str) -> Self {
        let _ = succeeds(&["delete", "namespace", name, "--ignore-not-found", "--wait"]);
        kubectl(&["create", "namespace", name]);
        let account = || succeeds(&["get", "serviceaccount", "default", "-n", name]).then_some(());
        until("no service account", account);
        Self(name)
    }

    fn list(&self, what: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&kubectl(&["get", what, "-n", self.0, "-o", "json"])).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Pods by the death that they die. A Job's pod has a name of its own.
    fn pods(&self) -> BTreeMap<String, Value> {
        let named = |pod: Value| Some((pod["metadata"]["labels"]["app"].as_str()?.to_owned(), pod));
        self.list("pods").into_iter().filter_map(named).collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if std::env::var_os("KEEP").is_none() {
            let _ = succeeds(&["delete", "namespace", self.0, "--wait=false", "--ignore-not-found"]);
        }
    }
}

fn agent(state: &Path, listen: &str) -> Agent {
    let agent = start_at(state, listen, &[]);
    until("the agent does not answer", || std::net::TcpStream::connect(listen).ok());
    agent
}

/// The agent of another node.
fn agents_url() -> String {
    std::env::var("E2E_SECOND")
        .expect("E2E_SECOND: the address of the second node's agent, see `e2e/run env`")
}

fn served(url: &str) -> Vec<Value> {
    let ran = Ran::of(Command::new("curl").args(["-sS", "--noproxy", "*", &format!("{url}/incidents")]));
    let answer: Value = serde_json::from_slice(&ran.out).unwrap_or_default();
    answer.as_array().cloned().unwrap_or_default()
}

fn healthy() -> Vec<Death> {
    HEALTHY.iter().map(|(name, keys)| Death::of(name, keys.parse().unwrap())).collect()
}

#[test]
fn deaths_are_judged_alike_live_by_bundle_and_by_the_agent() {
    let choice = choice(pods::table());
    let mut dir = tempfile::tempdir().unwrap();
    dir.disable_cleanup(std::env::var_os("KEEP").is_some());
    let state = dir.path().join("state");
    let there = pods::node().map(|_| agents_url());
    let namespace = Namespace::new(if there.is_some() { "deaths-second" } else { "deaths" });
    let _agent = there.is_none().then(|| agent(&state, "127.0.0.1:10983"));
    let kept = || there.as_ref().map_or_else(|| incidents(&state), |url| served(url));
    let began = Instant::now();
    for one in healthy() {
        create(&one.manifest(namespace.0));
    }

    let (alone, beside): (Vec<&Death>, Vec<&Death>) = choice.deaths.iter().partition(|d| d.alone);
    let next = Mutex::new(beside.into_iter());
    let judged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                loop {
                    let Some(death) = next.lock().unwrap().next() else { return };
                    let one = course::die(death, &namespace, dir.path(), &kept);
                    judged.lock().unwrap().push(one);
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap();
    judged.extend(alone.iter().map(|death| course::die(death, &namespace, dir.path(), &kept)));
    judged.sort_by(|a, b| a.name.cmp(&b.name));
    print_table(&judged);
    let false_events = false_events(&namespace, &choice.deaths);
    say(&summary(&judged, &false_events, began));
    check(&judged, &false_events, choice.whole);
    assert!(!choice.whole || judged.len() >= 60, "only {} deaths", judged.len());
}

/// Events of the agent of a class that no container of their pod died of.
fn false_events(namespace: &Namespace, deaths: &[Death]) -> Vec<String> {
    let wrong = |event: &Value| {
        if event["reason"] != "DualplaneVerdict" {
            return None;
        }
        let class = event["metadata"]["labels"]["dualplane.dev/class"].as_str().unwrap_or_default();
        let pod = event["involvedObject"]["name"].as_str().unwrap_or_default();
        let death = deaths.iter().find(|d| d.is_of(pod));
        (!death.is_some_and(|d| d.may_be(class))).then(|| format!("{pod}: {}", event["message"]))
    };
    namespace.list("events").iter().filter_map(wrong).collect()
}

fn print_table(judged: &[Judged]) {
    let show = |c: &Option<String>| c.clone().unwrap_or_else(|| "-".to_owned());
    eprintln!("{:<28} {:<20} {:<20} {:<20} {:<20}", "death", "is", "live", "bundle", "agent");
    for j in judged {
        let mark = if j.faults.is_empty() { "" } else { "  <--" };
        let agent = if j.asks_agent { show(&j.agent) } else { "(no death)".to_owned() };
        eprintln!(
            "{:<28} {:<20} {:<20} {:<20} {agent:<20}{mark}",
            j.name,
            j.wanted,
            show(&j.live),
            show(&j.bundle)
        );
    }
}

fn equal(judged: &[Judged]) -> usize {
    judged.iter().filter(|j| j.equal()).count()
}

fn planes(judged: &[Judged]) -> usize {
    judged.iter().map(Judged::wrong_planes).sum()
}

fn summary(judged: &[Judged], false_events: &[String], began: Instant) -> String {
    let count = |said: fn(&Judged) -> bool| judged.iter().filter(|j| said(j)).count();
    format!(
        "deaths: {} died; right live {}, by bundle {}, by the agent {} of {}; all ways equal {}; wrong plane {}; false Events {}; \
         died again because evidence was lost: {}; {:.0?}",
        judged.len(),
        count(|j| j.is_right(j.live.as_ref())),
        count(|j| j.is_right(j.bundle.as_ref())),
        count(|j| j.asks_agent && j.is_right(j.agent.as_ref())),
        count(|j| j.asks_agent),
        equal(judged),
        planes(judged),
        false_events.len(),
        judged.iter().map(|j| j.again).sum::<u32>(),
        began.elapsed()
    )
}

/// Wrong ones that a sample of twenty may have: it shares its node with all other tests, and what the kernel prints there is
/// cut where kills come thick. They are told; the whole table, run by itself, may have none.
const SAMPLE_MISSES: usize = 2;

fn check(judged: &[Judged], false_events: &[String], whole: bool) {
    let faults: Vec<String> = judged.iter().flat_map(|j| j.faults.clone()).collect();
    for fault in faults.iter().chain(false_events) {
        eprintln!("  {fault}");
    }
    if !whole {
        let wrong = judged.iter().filter(|j| !j.faults.is_empty() || !j.equal()).count() + false_events.len();
        assert!(wrong <= SAMPLE_MISSES, "{wrong} of {} are wrong", judged.len());
        return;
    }
    let verdicts: Vec<bool> = judged.iter().flat_map(Judged::right).collect();
    let right = verdicts.iter().filter(|r| **r).count();
    assert!(false_events.is_empty(), "false Events");
    assert_eq!(planes(judged), 0, "wrong planes");
    assert_eq!(equal(judged), judged.len(), "the three ways differ");
    assert!(right as f64 >= verdicts.len() as f64 * CLASS_RIGHT, "{right} of {} are right", verdicts.len());
    assert!(faults.is_empty(), "what is said besides the class");
}

/// A report as JSON, or why there is none.
fn triage(args: &[&str]) -> Result<Value, String> {
    let ran = run(&[args, &["-o", "json"]].concat());
    if ran.code == Some(0) { Ok(ran.json()) } else { Err(ran.err) }
}
