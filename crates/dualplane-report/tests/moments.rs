//! A restart has moments: the container has just ended, it waits for its next try, it runs again. The status moves the end
//! from `state` to `lastState`, and the end's log from the current file to the previous one. As long as nothing new died,
//! each moment has the same verdict.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::{copies, small_incidents, triage};
use dualplane_core::evidence::RawFile;
use serde_json::{Value, json};

/// The pod's object in its file, and the one container that ended.
struct Loop {
    files: Vec<RawFile>,
    pod_at: usize,
    pod: Value,
    container: usize,
    end: Value,
    log: Option<RawFile>,
}

fn end_of(c: &Value) -> Option<&Value> {
    ["state", "lastState"].iter().map(|s| &c[*s]["terminated"]).find(|t| t.is_object())
}

impl Loop {
    /// Incidents of a container that is started again, of which at most its own log is there.
    fn of(files: &[RawFile]) -> Option<Self> {
        let parsed = |f: &RawFile| serde_json::from_slice::<Value>(&f.bytes).ok();
        let pods: Vec<usize> =
            (0..files.len()).filter(|i| parsed(&files[*i]).is_some_and(|v| v["kind"] == "Pod")).collect();
        let [pod_at] = *pods.as_slice() else { return None };
        let pod = parsed(&files[pod_at])?;
        let status = &pod["status"];
        if pod["spec"]["restartPolicy"] == "Never"
            || matches!(status["phase"].as_str(), Some("Failed" | "Succeeded"))
            || !pod["metadata"]["deletionTimestamp"].is_null()
        {
            return None;
        }
        let all = status["containerStatuses"].as_array()?;
        let dead: Vec<usize> = (0..all.len())
            .filter(|i| end_of(&all[*i]).is_some_and(|t| t["exitCode"] != 0 && t["finishedAt"].is_string()))
            .collect();
        let [container] = *dead.as_slice() else { return None };
        let end = end_of(&all[container])?.clone();
        let mut rest = copies(files);
        let logs: Vec<usize> = (0..files.len()).filter(|i| is_log(&files[*i].name)).collect();
        let log = match *logs.as_slice() {
            [] => None,
            [at] => Some(rest.remove(at)),
            _ => return None,
        };
        let pod_at = rest.iter().position(|f| f.name == files[pod_at].name)?;
        Some(Self { files: rest, pod_at, pod, container, end, log })
    }

    fn at(&self, moment: &Moment) -> Vec<RawFile> {
        let mut pod = self.pod.clone();
        let c = &mut pod["status"]["containerStatuses"][self.container];
        (c["state"], c["lastState"], c["ready"], c["restartCount"]) =
            ((moment.state)(&self.end), (moment.last)(&self.end), false.into(), moment.restarts.into());
        let mut files = copies(&self.files);
        files[self.pod_at] = RawFile::new(files[self.pod_at].name.clone(), pod.to_string());
        let dead = self.log.as_ref().map(|f| f.bytes.clone());
        for (name, log) in [("previous.log", &moment.previous), ("current.log", &moment.current)] {
            let text = match log {
                Log::None => None,
                Log::Dead => dead.clone(),
                // Where no log of the dead one is at hand, nobody asked for the next one's either.
                Log::Next => dead.as_deref().map(beginning),
                Log::Empty => dead.as_ref().map(|_| Vec::new()),
            };
            files.extend(text.map(|t| RawFile::new(name, t)));
        }
        files
    }
}

fn is_log(name: &str) -> bool {
    matches!(name, "previous.log" | "current.log")
}

/// What the next instance has said by then: its log begins as that of the last one.
fn beginning(log: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = log.split_inclusive(|b| *b == b'\n').collect();
    // A few lines are all but the end itself, and a piece of a log may begin with an error.
    let begins =
        lines.len() >= 8 && !lines[..2].concat().windows(5).any(|w| w.eq_ignore_ascii_case(b"error"));
    if begins { lines[..2].concat() } else { Vec::new() }
}

enum Log {
    None,
    /// That of the instance that died.
    Dead,
    /// That of the one after it.
    Next,
    Empty,
}

struct Moment {
    name: &'static str,
    state: fn(&Value) -> Value,
    last: fn(&Value) -> Value,
    restarts: u64,
    previous: Log,
    current: Log,
}

fn ended(end: &Value) -> Value {
    json!({"terminated": end})
}

fn nothing(_: &Value) -> Value {
    json!({})
}

fn waiting(_: &Value) -> Value {
    json!({"waiting": {"reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container=c pod=p_ns(u)"}})
}

fn creating(_: &Value) -> Value {
    json!({"waiting": {"reason": "ContainerCreating"}})
}

fn running(end: &Value) -> Value {
    json!({"running": {"startedAt": end["finishedAt"]}})
}

/// The instance before it ended the same way.
fn alike(end: &Value) -> Value {
    let id = format!("containerd://{}", "0f".repeat(32));
    json!({"terminated": {"exitCode": end["exitCode"], "reason": end["reason"], "containerID": id,
        "startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-01T00:01:00Z"}})
}

/// In order; the API server answers for a log with the last one that ended while the container waits.
const MOMENTS: &[Moment] = &[
    Moment {
        name: "ended",
        state: ended,
        last: nothing,
        restarts: 0,
        previous: Log::None,
        current: Log::Dead,
    },
    Moment {
        name: "waits",
        state: waiting,
        last: ended,
        restarts: 1,
        previous: Log::Dead,
        current: Log::None,
    },
    Moment {
        name: "waits, asked for both logs",
        state: waiting,
        last: ended,
        restarts: 1,
        previous: Log::Dead,
        current: Log::Dead,
    },
    Moment {
        name: "is made",
        state: creating,
        last: ended,
        restarts: 1,
        previous: Log::Dead,
        current: Log::None,
    },
    Moment {
        name: "runs",
        state: running,
        last: ended,
        restarts: 1,
        previous: Log::Dead,
        current: Log::Empty,
    },
    Moment {
        name: "starts",
        state: running,
        last: ended,
        restarts: 1,
        previous: Log::Dead,
        current: Log::Next,
    },
    Moment {
        name: "ended again",
        state: ended,
        last: alike,
        restarts: 2,
        previous: Log::Dead,
        current: Log::Dead,
    },
];

#[test]
fn each_moment_of_a_restart_has_the_same_verdict() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, files) in small_incidents() {
        let Some(one) = Loop::of(&files) else { continue };
        let said = |moment: &Moment| {
            let verdict = triage(one.at(moment)).remove(0).verdict;
            let code = verdict.subject.death.as_ref().and_then(|d| d.exit_code);
            (verdict.class, verdict.subject.container, code)
        };
        let first = said(&MOMENTS[0]);
        seen += 1;
        for moment in &MOMENTS[1..] {
            let then = said(moment);
            if then != first {
                wrong.push(format!("{name}: {} {first:?}, {} {then:?}", MOMENTS[0].name, moment.name));
            }
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(wrong.is_empty(), "{} of {seen}: {wrong:#?}", wrong.len());
}
