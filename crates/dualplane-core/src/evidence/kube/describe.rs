//! `kubectl describe pod` and `describe node` as text: finds the blocks of one or several objects in a file and reads
//! nodes, conditions and the events table. `describe_pod` reads what only pods have.
//!
//! kubectl indents by two spaces a level and separates columns by two or more. What a person cut off is simply missing.

use crate::evidence::Bundle;
use crate::evidence::describe_pod;
use crate::evidence::kube_model::{Condition, Event, Node, Pod};
use crate::evidence::status;
use crate::time::Stamp;
use crate::units::parse_k8s_memory;
use dualplane_base::order::Order as _;

/// Objects in one file; nobody pastes more.
const MAX_OBJECTS: usize = 1000;
/// How far below `Name:` the keys must stand that tell what it describes.
const LOOK_AHEAD: usize = 400;

/// A list in a chat or an issue moves a paste to the right, but not further than this.
const DEEPEST: usize = 32;

/// First-level keys of pods and nodes, in all versions since 1.20, each between bars.
const KEYS: &str = "|Addresses|Allocatable|Allocated resources|Annotations|Capacity|Conditions|Containers|Controlled By\
     |CreationTimestamp|Ephemeral Containers|Events|IP|IPs|Init Containers|Labels|Lease|Message\
     |Namespace|Node|Node-Selectors|NominatedNodeName|Non-terminated Pods|PodCIDR|PodCIDRs|Priority\
     |Priority Class Name|ProviderID|QoS Class|Readiness Gates|Reason|Resource Claims|Resources|Roles\
     |Runtime Class Name|SeccompProfile|Service Account|Start Time|Status|System Info|Taints\
     |Termination Grace Period|Tolerations|Topology Spread Constraints|Unschedulable|Volumes|";

/// A described object: its lines, and whether it is a node.
struct Block {
    start: usize,
    end: usize,
    node: bool,
}

/// Reads every described pod and node of a text into the bundle; returns the lines they take, as (start, end).
pub(in crate::evidence) fn read(
    bundle: &mut Bundle,
    lines: &[&str],
    first: u64,
    file: &str,
) -> Vec<(usize, usize)> {
    let mut taken = Vec::new();
    let mut at = 0;
    while let Some(block) = next(lines, at).filter(|_| taken.len() < MAX_OBJECTS) {
        let base = lines.get(block.start).map_or(0, |l| indent(l));
        let body: Vec<&str> = lines
            .get(block.start..block.end)
            .unwrap_or_default()
            .iter()
            .map(|l| l.get(base.min(indent(l))..).unwrap_or_default().trim_end())
            .collect();
        let line = first + block.start as u64;
        if block.node {
            let node = node(&body);
            events(bundle, &body, line, file, ("Node", &node.name));
            bundle.nodes.push(node);
        } else {
            // Only the tolerant reader tells which state a line belongs to.
            let pod = describe_pod::pod(&body, file);
            if flat(&body) || lost(&body, &pod) {
                at = block.end;
                continue;
            }
            events(bundle, &body, line, file, ("Pod", &pod.name));
            bundle.pasted.push(pod);
        }
        taken.push((block.start, block.end));
        at = block.end;
    }
    // What is left may hold pieces of a description.
    let mut rest = lines.to_vec();
    for (start, end) in &taken {
        rest.get_mut(*start..*end).unwrap_or_default().fill("");
    }
    for (start, end, body) in status::described(&rest) {
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        let pod = describe_pod::pod(&body, file);
        if !lost(&body, &pod) {
            bundle.pasted.push(pod);
            taken.push((start, end));
        }
    }
    taken.order();
    taken
}

fn next(lines: &[&str], from: usize) -> Option<Block> {
    (from..lines.len()).find_map(|start| {
        let first = lines.get(start)?;
        if !first.trim_start().starts_with("Name:") {
            return None;
        }
        let base = indent(first);
        if base > DEEPEST {
            return None;
        }
        let end = end(lines, start, base);
        let has = |key: &str| {
            lines.get(start..end.min(start + LOOK_AHEAD)).is_some_and(|l| {
                l.iter().any(|l| indent(l) == base && key_value(l).is_some_and(|(k, _)| k == key))
            })
        };
        let node = has("Roles") && (has("Capacity") || has("Conditions"));
        let pod = has("Namespace") && (has("Containers") || has("Init Containers") || has("Status"));
        (node || pod).then_some(Block { start, end, node })
    })
}

/// What belongs to a state stands deeper than it, unless the indentation is lost.
fn flat(body: &[&str]) -> bool {
    let state = |l: &str| key_value(l).is_some_and(|(k, _)| matches!(k, "State" | "Last State"));
    let below = |l: &str| key_value(l).is_some_and(|(k, _)| matches!(k, "Reason" | "Started" | "Exit Code"));
    body.iter().zip(body.iter().skip(1)).any(|(a, b)| state(a) && below(b) && indent(b) <= indent(a))
}

/// The text tells of ends that the pod does not: the container's name or the state above them was cut out.
fn lost(body: &[&str], pod: &Pod) -> bool {
    let ends = || pod.containers.iter().filter_map(|c| c.status.as_ref()).flat_map(|s| s.terminations());
    let pairs = || body.iter().filter_map(|l| key_value(l));
    let codes = pairs().filter(|(k, _)| *k == "Exit Code").count();
    let kills = pairs().filter(|(k, v)| *k == "Reason" && *v == "OOMKilled").count();
    ends().count() < codes || ends().filter(|t| t.oom_killed()).count() < kills
}

/// A block goes on while lines are indented or begin with a known key. The text of a termination message may stand
/// anywhere; it ends with the exit code.
fn end(lines: &[&str], start: usize, base: usize) -> usize {
    let mut events = false;
    let mut at = start + 1;
    while let Some(line) = lines.get(at) {
        let known = indent(line) == base
            && key_value(line).is_some_and(|(k, _)| is_key(k))
            && !line.trim_start().starts_with("Name:");
        if events && !known {
            if !is_event_row(line) {
                return at;
            }
        } else if line.trim().is_empty() {
            let after = lines.get(at + 1).is_some_and(|l| {
                !l.trim().is_empty() && (indent(l) > base || key_value(l).is_some_and(|(k, _)| is_key(k)))
            });
            if !after {
                return at;
            }
        } else if !known && indent(line) <= base {
            let rest = lines.get(at..(at + 200).min(lines.len())).unwrap_or_default();
            let stops = |l: &&str| ["Exit Code:", "Name:"].iter().any(|w| l.trim_start().starts_with(w));
            match rest
                .iter()
                .position(stops)
                .filter(|c| rest.get(*c).is_some_and(|l| l.trim_start().starts_with("Exit Code:")))
            {
                Some(code) => at += code,
                None => return at,
            }
        }
        events |= known && line.trim_start().starts_with("Events:");
        at += 1;
    }
    at
}

fn is_key(word: &str) -> bool {
    KEYS.split('|').any(|k| k == word && !k.is_empty())
}

fn is_event_row(line: &str) -> bool {
    ["Type ", "---- ", "Normal ", "Warning "].iter().any(|w| line.trim_start().starts_with(w))
}

pub(in crate::evidence) fn indent(line: &str) -> usize {
    line.bytes().take_while(|b| *b == b' ').count()
}

/// `Key:   value`; the value may be empty.
pub(in crate::evidence) fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim().split_once(':')?;
    (value.is_empty() || value.starts_with(' ')).then(|| (key.trim(), value.trim()))
}

/// Cells of a row: separated by two or more spaces.
pub(in crate::evidence) fn cells(row: &str) -> Vec<&str> {
    row.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect()
}

/// `Fri, 03 Jul 2026 22:40:06 +0200`
pub(in crate::evidence) fn stamp(text: &str) -> Option<Stamp> {
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    // "Mon, 01 Jan 0001" is Go's zero time: nothing was recorded.
    (at.as_second() > 0).then_some(Stamp::Wall { ms: at.as_millisecond(), zoned: true, year: true })
}

/// Rows below a first-level key, up to the next one.
pub(in crate::evidence) fn section<'a>(
    body: &'a [&'a str],
    key: &str,
) -> impl Iterator<Item = (usize, &'a str)> {
    let start = body.iter().position(|l| indent(l) == 0 && key_value(l).is_some_and(|(k, _)| k == key));
    let from = start.map_or(body.len(), |s| s + 1);
    (from..body.len())
        .filter_map(|i| Some((i, *body.get(i)?)))
        .take_while(|(_, l)| l.trim().is_empty() || indent(l) > 0)
}

/// The value of a first-level key, without `<none>`.
pub(in crate::evidence) fn value<'a>(body: &[&'a str], key: &str) -> Option<&'a str> {
    body.iter()
        .filter(|l| indent(l) == 0)
        .filter_map(|l| key_value(l))
        .find(|(k, v)| *k == key && !v.is_empty() && !v.starts_with('<'))
        .map(|(_, v)| v)
}

pub(in crate::evidence) fn conditions(body: &[&str]) -> Vec<Condition> {
    section(body, "Conditions")
        .filter_map(|(_, row)| {
            let cells = cells(row);
            let status = *cells.get(1)?;
            // Nodes print two times before the reason.
            let text = |i: usize| cells.get(i).map(|c| (*c).to_owned()).unwrap_or_default();
            matches!(status, "True" | "False" | "Unknown").then(|| Condition {
                kind: text(0),
                holds: status == "True",
                reason: text(4),
                message: text(5),
            })
        })
        .collect()
}

fn events(bundle: &mut Bundle, body: &[&str], first: u64, file: &str, object: (&str, &str)) {
    for (i, row) in section(body, "Events") {
        let cells = cells(row);
        let (Some(kind @ ("Normal" | "Warning")), Some(reason), Some(age), Some(from)) =
            (cells.first().copied(), cells.get(1), cells.get(2), cells.get(3))
        else {
            continue;
        };
        // The message keeps the blanks it has inside.
        let behind = (from.as_ptr() as usize - row.as_ptr() as usize) + from.len();
        let message = row.get(behind..).unwrap_or_default().trim();
        bundle.events.push(Event {
            file: file.to_owned(),
            line: Some(first + i as u64),
            reason: (*reason).to_owned(),
            message: message.to_owned(),
            warning: kind == "Warning",
            object: (object.0.to_owned(), object.1.to_owned(), String::new()),
            namespace: String::new(),
            container: container_in(message),
            first: None,
            last: None,
            count: repeats(age),
        });
    }
}

/// `2m9s (x25 over 10m)`: 25.
pub(in crate::evidence) fn repeats(age: &str) -> u64 {
    age.split_once("(x")
        .and_then(|(_, r)| r.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .unwrap_or(1)
}

/// Events as text have no field path; some messages name the container.
pub(in crate::evidence) fn container_in(message: &str) -> Option<String> {
    let rest = ["Container ", "Stopping container ", "Started container ", "restarting failed container "]
        .iter()
        .find_map(|p| message.split_once(p).map(|(_, r)| r))?;
    let name = rest.split([' ', ',', ':', '=']).next()?;
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    // "Container image …", "Container runtime …" name none.
    (plain && !name.is_empty() && !matches!(name, "image" | "runtime" | "failed")).then(|| name.to_owned())
}

fn node(body: &[&str]) -> Node {
    let memory = |key: &str| {
        section(body, key)
            .find_map(|(_, l)| key_value(l).filter(|(k, _)| *k == "memory"))
            .and_then(|(_, v)| parse_k8s_memory(v))
    };
    let label = |l: &str| l.trim().split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    Node {
        name: value(body, "Name").unwrap_or_default().to_owned(),
        conditions: conditions(body),
        labels: value(body, "Labels")
            .into_iter()
            .chain(section(body, "Labels").map(|(_, l)| l))
            .filter_map(label)
            .collect(),
        memory_capacity: memory("Capacity"),
        memory_allocatable: memory("Allocatable"),
    }
}
