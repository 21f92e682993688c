//! Rows of `-o custom-columns` and rows of events, with or without the heading above them.

use super::field::{Field, Word, field, word};
use super::piece::is_name;
use crate::evidence::kube_model::Event;
use crate::evidence::{describe, tables};

/// Kinds that an event's row writes before the name of its object.
const KINDS: &[(&str, &str)] = &[
    ("pod", "Pod"),
    ("node", "Node"),
    ("replicaset", "ReplicaSet"),
    ("statefulset", "StatefulSet"),
    ("deployment", "Deployment"),
    ("job", "Job"),
];

/// Columns of a table of statuses: where each begins, and its field.
pub(super) type Columns = Vec<(usize, String)>;

/// A heading of custom columns that tells of an end.
pub(super) fn columns(line: &str) -> Option<Columns> {
    let trimmed = line.trim();
    if trimmed.len() > 400 || trimmed.bytes().any(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let columns: Columns = describe::cells(line)
        .into_iter()
        .map(|cell| (cell.as_ptr() as usize - line.as_ptr() as usize, cell.to_owned()))
        .collect();
    let tells = |(_, c): &(usize, String)| {
        matches!(field(c), Some(Field::Reason | Field::ExitCode | Field::State | Field::LastState))
    };
    // Events have reasons of their own.
    let events = columns.iter().any(|(_, c)| matches!(c.as_str(), "MESSAGE" | "NOTE" | "OBJECT"));
    (columns.len() > 1 && !events && columns.iter().any(tells)).then_some(columns)
}

/// The cells of a row with their labels; nothing where it is no row of the table.
pub(super) fn cells<'a>(columns: &Columns, line: &'a str) -> Vec<(Field, &'a str)> {
    if line.trim().is_empty() || describe::cells(line).len() != columns.len() {
        return Vec::new();
    }
    let known =
        tables::cells(columns, line).into_iter().filter_map(|(label, cell)| Some((field(label)?, cell)));
    known.filter(|(_, cell)| !cell.is_empty() && !cell.starts_with('<')).collect()
}

/// A row of a pod in a frame or a list: its name before `0/1`, its status behind it, and its restarts.
pub(super) fn pod(line: &str) -> Option<(&str, Word, &str)> {
    let cells: Vec<&str> = line.split([' ', '|']).filter(|c| !c.is_empty()).take(12).collect();
    let ready = |c: &&str| {
        c.split_once('/').is_some_and(|(a, b)| a.parse::<u16>().is_ok() && b.parse::<u16>().is_ok())
    };
    let at = cells.iter().position(ready)?;
    let status = word(cells.get(at + 1)?).filter(|w| matches!(w, Word::End(..) | Word::Wait(_)))?;
    let name = cells.get(..at)?.iter().rev().find(|c| is_name(c))?;
    let restarts = cells.get(at + 2).copied().filter(|c| c.parse::<u64>().is_ok())?;
    Some((name, status, restarts))
}

/// A row of `kubectl get events` or of the end of `kubectl describe`, wherever in the line its type stands.
pub(super) fn event(line: &str, number: u64, file: &str) -> Option<Event> {
    let (at, kind) = ["Warning", "Normal"].iter().find_map(|k| Some((find_word(line, k)?, *k)))?;
    let mut rest = line.get(at + kind.len()..)?.trim_start();
    let reason = rest.split_whitespace().next()?;
    let camel = reason.starts_with(|c: char| c.is_ascii_uppercase())
        && reason.bytes().all(|b| b.is_ascii_alphanumeric());
    if !camel || reason.len() > 60 {
        return None;
    }
    rest = rest.get(reason.len()..)?.trim_start();
    let next = rest.split_whitespace().next()?;
    let object = next.split_once('/').and_then(|(kind, name)| {
        let kind = KINDS.iter().find(|(k, _)| k.eq_ignore_ascii_case(kind))?;
        Some((kind.1.to_owned(), name.to_owned(), String::new()))
    });
    let (object, message) = match object {
        Some(object) => (object, rest.get(next.len()..)?),
        // Described: the age, how often, and who says it stand before the message.
        None if is_age(next) => {
            let mut behind = rest.get(next.len()..)?.trim_start();
            if behind.starts_with("(x") {
                behind = behind.split_once(')')?.1.trim_start();
            }
            let from = behind.split_whitespace().next()?;
            (Default::default(), behind.get(from.len()..)?)
        }
        None => return None,
    };
    let message = message.trim();
    (!message.is_empty()).then(|| Event {
        file: file.to_owned(),
        line: Some(number),
        reason: reason.to_owned(),
        message: message.to_owned(),
        warning: kind == "Warning",
        object,
        namespace: String::new(),
        container: describe::container_in(message),
        first: None,
        last: None,
        count: describe::repeats(line),
    })
}

/// What the events of a Nomad task say of its end: `TIME  Terminated  Exit Code: 137, Exit Message: "OOM Killed"`.
pub(super) fn task_end(line: &str) -> Option<&str> {
    let (time, rest) = line.split_once(' ')?;
    let says = rest.trim_start().strip_prefix("Terminated")?.trim_start();
    let stamped = time.len() >= 20 && time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('T');
    (stamped && says.starts_with("Exit Code: ")).then_some(says)
}

/// `2m15s`, `45s`, `3d4h`, `<unknown>`.
fn is_age(text: &str) -> bool {
    text == "<unknown>"
        || text.len() <= 12
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text.ends_with(['s', 'm', 'h', 'd'])
            && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b's' | b'm' | b'h' | b'd'))
}

/// A word between blanks, not too far behind the begin: ages and dates stand before it.
fn find_word(line: &str, word: &str) -> Option<usize> {
    let head = line.get(..line.len().min(200)).unwrap_or(line);
    let at = head.find(word)?;
    let before = at == 0 || head.get(..at).is_some_and(|b| b.ends_with([' ', '|']));
    (before && line.get(at + word.len()..).is_some_and(|r| r.starts_with(' '))).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_events_in_all_widths() {
        for row in [
            "2m15s       Warning   OOMKilling   node/gpu-3   Memory cgroup out of memory: x",
            "2m15s Warning OOMKilling node/gpu-3 Memory cgroup out of memory: x",
            "  Warning  OOMKilling  2m15s (x3 over 9m)  kernel-monitor  Memory cgroup out of memory: x",
            "Warning OOMKilling 2m15s kernel-monitor Memory cgroup out of memory: x",
        ] {
            let e = event(row, 1, "f").unwrap_or_default();
            assert_eq!(
                (e.reason.as_str(), e.message.as_str()),
                ("OOMKilling", "Memory cgroup out of memory: x"),
                "{row}"
            );
        }
        for other in ["Warning: x", "WARN x", "a Warning sign of trouble", "Normal people do not"] {
            assert!(event(other, 1, "f").is_none(), "{other}");
        }
    }

    #[test]
    fn rows_of_pods_in_frames() {
        let want = Some(("llm-0", Word::End("OOMKilled", false), "2"));
        assert_eq!(pod("llm-0 | 0/1 | OOMKilled | 2 | 5m"), want);
        assert_eq!(pod("serving  llm-0  ●  0/1  OOMKilled  2  5m"), want);
        assert_eq!(pod("step 3/10 Error rate is low"), None);
        assert_eq!(pod("llm-0 0/1 Running 2"), None);
    }

    #[test]
    fn ends_of_tasks() {
        let row = "2026-11-21T12:52:38Z  Terminated  Exit Code: 137, Exit Message:  OOM Killed ";
        assert_eq!(task_end(row), Some("Exit Code: 137, Exit Message:  OOM Killed "));
        assert_eq!(task_end("2026-11-21T12:52:38Z Terminated: the job has Exit Code: 137"), None);
        assert_eq!(task_end("pod  Terminated  Exit Code: 137"), None);
    }

    #[test]
    fn custom_columns() {
        let columns = columns("POD        LAST_REASON   LAST_EXIT").unwrap();
        assert_eq!(
            cells(&columns, "llm-0      OOMKilled     137"),
            [(Field::Pod, "llm-0"), (Field::Reason, "OOMKilled"), (Field::ExitCode, "137")]
        );
        assert!(cells(&columns, "llm-0 OOMKilled 137").is_empty());
    }
}
