//! Tables of `kubectl get pods [-o wide] [-A]` and `kubectl get events`: rows below a heading, and single rows of pods as
//! `kubectl get pods | grep NAME` leaves them.
//!
//! A row tells a pod's state, not its limits, exit code or containers: its extent is [`Extent::Row`].

use crate::evidence::describe::{container_in, repeats};
use crate::evidence::kube_model::{Container, ContainerStatus, Event, Extent, Pod, State, Termination};
use crate::evidence::{Bundle, describe};

/// Rows of one text; a list of all pods of a large cluster fits.
const MAX_ROWS: usize = 20_000;
/// Words of the STATUS column that tell of a death or a start that failed.
const BAD: &[&str] = &[
    "OOMKilled",
    "CrashLoopBackOff",
    "Error",
    "ContainerStatusUnknown",
    "RunContainerError",
    "CreateContainerError",
    "StartError",
    "ContainerCannotRun",
];
/// Words of it that are the reason of the pod and not of a container: it ended as a whole, or was never let in.
const OF_POD: &[&str] = &[
    "Evicted",
    "DeadlineExceeded",
    "NodeAffinity",
    "NodeLost",
    "NodePorts",
    "NodeShutdown",
    "Preempting",
    "Shutdown",
    "SysctlForbidden",
    "Terminated",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
];
/// The other words of it that a row without a heading may have.
const PLAIN: &[&str] = &["Running", "Completed", "Pending", "Terminating", "ContainerCreating", "Unknown"];

/// A heading: the byte offset and name of each column.
pub(in crate::evidence) type Heading = Vec<(usize, String)>;

/// Reads rows into the bundle; returns the lines they take, as (start, end).
pub(in crate::evidence) fn read(
    bundle: &mut Bundle,
    lines: &[&str],
    first: u64,
    file: &str,
) -> Vec<(usize, usize)> {
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut heading: Option<Heading> = None;
    let headless = ["NAME", "READY", "STATUS", "RESTARTS", "AGE"];
    for (i, line) in lines.iter().enumerate() {
        if taken.len() >= MAX_ROWS {
            break;
        }
        if let Some(h) = heading_of(line) {
            heading = Some(h);
            taken.push((i, i + 1));
            continue;
        }
        let used = match &heading {
            Some(h) => {
                let cells = cells(h, line);
                let get = |name: &str| cells.iter().find(|(n, _)| *n == name).map_or("", |(_, c)| *c);
                if get("MESSAGE").is_empty() && get("REASON").is_empty() {
                    pod(bundle, &get, file)
                } else {
                    event(bundle, &get, first + i as u64, file)
                }
            }
            None => {
                let words = words(line);
                let get = |name: &str| {
                    headless.iter().position(|h| *h == name).and_then(|i| words.get(i).copied()).unwrap_or("")
                };
                let status = get("STATUS").trim_start_matches("Init:");
                (BAD.contains(&status) || PLAIN.contains(&status) || of_pod(status))
                    && pod(bundle, &get, file)
            }
        };
        if used {
            taken.push((i, i + 1));
        } else {
            heading = None;
        }
    }
    taken
}

fn heading_of(line: &str) -> Option<Heading> {
    let trimmed = line.trim();
    let pods = trimmed.contains("NAME ") && trimmed.contains(" READY ") && trimmed.contains(" STATUS");
    // Custom columns may leave out the object.
    let events = trimmed.contains("REASON") && trimmed.contains("MESSAGE");
    if !(pods || events) || trimmed.len() > 400 || trimmed.bytes().any(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let mut out: Heading = Vec::new();
    for cell in describe::cells(line) {
        out.push((cell.as_ptr() as usize - line.as_ptr() as usize, cell.to_owned()));
    }
    (out.len() > 1).then_some(out)
}

/// Cells by the columns of the heading where the row is aligned to it; else by runs of blanks.
pub(in crate::evidence) fn cells<'a, 'h>(heading: &'h Heading, line: &'a str) -> Vec<(&'h str, &'a str)> {
    let aligned = heading.iter().skip(1).all(|(at, _)| {
        line.len() <= *at || line.get(..*at).is_some_and(|l| l.ends_with(' ')) && line.get(*at..).is_some()
    });
    let ends = heading.iter().skip(1).map(|(at, _)| *at).chain([line.len()]);
    if aligned {
        let cell = |from: usize, to: usize| line.get(from.min(line.len())..to.min(line.len()));
        return heading
            .iter()
            .zip(ends)
            .map(|((at, name), end)| (name.as_str(), cell(*at, end).unwrap_or_default().trim()))
            .collect();
    }
    let mut rest = line.trim();
    let mut out = Vec::new();
    for (i, (_, name)) in heading.iter().enumerate() {
        let last = i + 1 == heading.len();
        let (cell, behind) = if last { (rest, "") } else { rest.split_once("  ").unwrap_or((rest, "")) };
        out.push((name.as_str(), cell.trim()));
        rest = behind.trim_start();
    }
    out
}

/// Words of a row; `5 (2m ago)` is one.
fn words(line: &str) -> Vec<&str> {
    if line.len() > 1000 {
        return Vec::new();
    }
    line.split_whitespace().filter(|w| !w.starts_with('(') && *w != "ago)").take(8).collect()
}

/// `OutOfmemory`, `OutOfnvidia.com/gpu`: the kubelet names the resource that it has too little of.
fn of_pod(word: &str) -> bool {
    OF_POD.contains(&word) || word.strip_prefix("OutOf").is_some_and(|r| !r.is_empty())
}

fn is_ready(text: &str) -> bool {
    let number = |t: &str| !t.is_empty() && t.len() < 4 && t.bytes().all(|b| b.is_ascii_digit());
    text.split_once('/').is_some_and(|(a, b)| number(a) && number(b))
}

fn pod<'a>(bundle: &mut Bundle, get: &impl Fn(&str) -> &'a str, file: &str) -> bool {
    let (name, ready, status) = (get("NAME"), get("READY"), get("STATUS"));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let restarts: Option<u64> = get("RESTARTS").split(' ').next().and_then(|r| r.parse().ok());
    let (Some(restarts), true) = (restarts, is_ready(ready) && !name.is_empty() && name.chars().all(plain))
    else {
        return false;
    };
    let some = |text: &str| (!text.is_empty() && !text.starts_with('<')).then(|| text.to_owned());
    let word = status.trim_start_matches("Init:");
    let ended = |exit_code: Option<i64>, reason: &str| {
        State::Terminated(Termination { exit_code, reason: reason.to_owned(), ..Termination::default() })
    };
    let state = match word {
        "OOMKilled" => ended(None, word),
        "Completed" => ended(Some(0), word),
        "Running" => State::Running { started: None },
        w => match w.strip_prefix("ExitCode:").and_then(|c| c.parse().ok()) {
            Some(code) => ended(Some(code), "Error"),
            None => State::Waiting { reason: w.to_owned(), message: String::new() },
        },
    };
    let (up, all) = ready.split_once('/').unwrap_or_default();
    bundle.pasted.push(Pod {
        file: file.to_owned(),
        name: name.to_owned(),
        namespace: get("NAMESPACE").to_owned(),
        node: some(get("NODE")),
        phase: match word {
            w if of_pod(w) => "Failed",
            "Completed" => "Succeeded",
            "Pending" => "Pending",
            _ => "Running",
        }
        .to_owned(),
        reason: of_pod(word).then(|| word.to_owned()),
        deleting: word == "Terminating",
        containers: vec![Container {
            // Of one pod with several containers the row does not tell which one it was.
            status: Some(ContainerStatus {
                restarts: Some(restarts),
                ready: Some(up == all),
                state,
                ..ContainerStatus::default()
            }),
            ..Container::default()
        }],
        extent: Extent::Row,
        ..Pod::default()
    });
    true
}

fn event<'a>(bundle: &mut Bundle, get: &impl Fn(&str) -> &'a str, line: u64, file: &str) -> bool {
    let (kind, reason, message) = (get("TYPE"), get("REASON"), get("MESSAGE"));
    let (object, name) = get("OBJECT").split_once('/').unwrap_or_default();
    let typed = matches!(kind, "Normal" | "Warning");
    let row = if get("OBJECT").is_empty() { kind.is_empty() || typed } else { typed && !name.is_empty() };
    if !row || reason.is_empty() || message.is_empty() {
        return false;
    }
    let kind_name = match object {
        "pod" => "Pod",
        "node" => "Node",
        "replicaset" => "ReplicaSet",
        "statefulset" => "StatefulSet",
        "deployment" => "Deployment",
        "job" => "Job",
        other => other,
    };
    let field = get("SUBOBJECT").split_once('{').and_then(|(_, c)| c.split_once('}'));
    let seen = repeats(get("LAST SEEN"));
    bundle.events.push(Event {
        file: file.to_owned(),
        line: Some(line),
        reason: reason.to_owned(),
        message: message.to_owned(),
        warning: kind != "Normal",
        object: (kind_name.to_owned(), name.to_owned(), String::new()),
        namespace: get("NAMESPACE").to_owned(),
        container: field.map(|(c, _)| c.to_owned()).or_else(|| container_in(message)),
        first: None,
        last: None,
        count: get("COUNT").parse().unwrap_or(seen),
    });
    true
}
