//! The memory files of a cgroup: single files, `head memory.*` (`==> memory.stat <==`), `grep . memory.*`, and bare content
//! below `cat …`.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst`, "Memory Interface Files", and `cgroup-v1/memory.rst`.

use crate::evidence::host_model::{Cgroup, Counter, Reading};
use crate::units::Bytes;
use dualplane_base::Place;

/// The kernel's files that are read. Longer names first, so that a name finds its own.
const FILES: &[&str] = &[
    "memory.max_usage_in_bytes",
    "memory.usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.events.local",
    "memory.oom_control",
    "memory.oom.group",
    "memory.pressure",
    "memory.failcnt",
    "memory.current",
    "memory.events",
    "memory.stat",
    "memory.high",
    "memory.peak",
    "memory.low",
    "memory.max",
    "memory.min",
];
/// Cgroup v1 without a limit: the largest multiple of a page. Anything near it is none.
const NO_LIMIT: u64 = 1 << 60;
/// Cgroups in one text.
const MAX_CGROUPS: usize = 512;

/// The kernel's name of a file and what stands behind it (`memory.stat.last`, `memory.max.txt`).
fn known(name: &str) -> Option<(&'static str, &str)> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let file =
        FILES.iter().find(|f| base.strip_prefix(**f).is_some_and(|r| r.is_empty() || r.starts_with('.')))?;
    Some((file, base.get(file.len()..)?))
}

fn dir(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(d, _)| d)
}

/// One file of a cgroup: by its name and fitting content.
pub(in crate::evidence) fn is_file(name: &str, head: &[String]) -> bool {
    known(name).is_some_and(|(file, _)| {
        let mut lines = head.iter().map(|l| l.trim()).filter(|l| !l.is_empty());
        lines.clone().next().is_some() && lines.all(|l| fits(file, l))
    })
}

/// The line is one that this file has.
fn fits(file: &str, line: &str) -> bool {
    let number = |t: &str| t == "max" || t.parse::<u64>().is_ok();
    match file {
        "memory.stat" | "memory.events" | "memory.events.local" | "memory.oom_control" => {
            line.split_once(' ').is_some_and(|(key, value)| is_key(key) && number(value))
        }
        "memory.pressure" => line.starts_with("some avg10=") || line.starts_with("full avg10="),
        _ => number(line),
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Reads a whole file.
pub(in crate::evidence) fn file(all: &mut Vec<Cgroup>, text: &str, name: &str) {
    let Some((file, suffix)) = known(name) else { return };
    for (i, line) in text.lines().enumerate() {
        take(all, name, (dir(name), suffix), file, line.trim(), i as u64 + 1);
    }
}

/// Reads the form that begins with the first of these lines; returns how many it takes.
pub(in crate::evidence) fn read(
    all: &mut Vec<Cgroup>,
    lines: &[&str],
    first: u64,
    file: &str,
    command: Option<&str>,
) -> Option<usize> {
    let head = lines.first()?.trim();
    if let Some(name) = head.strip_prefix("==> ").and_then(|h| h.strip_suffix(" <==")) {
        let (kind, suffix) = known(name)?;
        let own = |l: &&&str| l.trim().is_empty() || fits(kind, l.trim());
        let body = lines.iter().skip(1).take_while(own).count();
        for (i, line) in lines.iter().enumerate().skip(1).take(body) {
            take(all, file, (dir(name), suffix), kind, line.trim(), first + i as u64);
        }
        return Some(1 + body);
    }
    // grep: `memory.events:oom_kill 1`
    if let Some((name, value)) = head.split_once(':').filter(|(n, _)| n.contains("memory.")) {
        let (kind, suffix) = known(name).filter(|(k, _)| fits(k, value.trim()))?;
        take(all, file, (dir(name), suffix), kind, value.trim(), first);
        return Some(1);
    }
    let catted = command.and_then(|c| {
        let c = c.strip_prefix("sudo ").unwrap_or(c);
        let rest = c.split_once("cat ")?.1;
        let mut names = rest.split_whitespace().filter(|w| known(w).is_some());
        names.next().filter(|_| names.next().is_none())
    });
    if let Some(name) = catted {
        let (kind, suffix) = known(name)?;
        let body = lines.iter().take_while(|l| fits(kind, l.trim())).count();
        for (i, line) in lines.iter().enumerate().take(body) {
            take(all, file, (dir(name), suffix), kind, line.trim(), first + i as u64);
        }
        return (body > 0).then_some(body);
    }
    bare(all, lines, first, file)
}

/// The text is of a cgroup, though keys and numbers look like metrics.
pub(in crate::evidence) fn looks_like(head: &[String]) -> bool {
    let mut lines = head.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).peekable();
    let first = lines.peek().copied().unwrap_or_default();
    let named = first
        .strip_prefix("==> ")
        .map(|h| h.trim_end_matches(" <=="))
        .or(first.split_once(':').map(|(n, _)| n));
    let bare: Vec<&str> = lines.collect();
    named.is_some_and(|n| n.contains("memory.") && known(n).is_some()) || bare_kind(&bare).is_some()
}

/// Keys of `memory.events` (Documentation/admin-guide/cgroup-v2.rst).
const EVENTS: &[&str] = &["low", "high", "max", "oom", "oom_kill", "oom_group_kill", "sock_throttled"];

/// Which file it is that has these keys first.
fn bare_kind(lines: &[&str]) -> Option<&'static str> {
    let keys: Vec<&str> = lines
        .iter()
        .take(8)
        .map_while(|l| l.trim().split_once(' ').filter(|(k, v)| is_key(k) && v.parse::<u64>().is_ok()))
        .map(|(k, _)| k)
        .collect();
    let begins = |want: &[&str]| keys.starts_with(want);
    // Also what a grep left of it. `oom_kill` alone may be the node's /proc/vmstat.
    let of_events = |k: &&str| EVENTS.contains(k);
    let has = |key: &str| keys.contains(&key);
    if keys.iter().all(of_events) && has("oom_kill") && (has("oom") || has("oom_group_kill"))
        || begins(&["low", "high", "max", "oom"])
    {
        Some("memory.events")
    } else if begins(&["oom_kill_disable", "under_oom"]) {
        Some("memory.oom_control")
    } else if begins(&["anon", "file", "kernel"]) || begins(&["cache", "rss", "rss_huge"]) {
        Some("memory.stat")
    } else {
        None
    }
}

/// Content without a name: only files whose keys tell which they are.
fn bare(all: &mut Vec<Cgroup>, lines: &[&str], first: u64, file: &str) -> Option<usize> {
    let kind = bare_kind(lines)?;
    let body = lines.iter().take_while(|l| fits(kind, l.trim())).count();
    for (i, line) in lines.iter().enumerate().take(body) {
        take(all, file, ("", ""), kind, line.trim(), first + i as u64);
    }
    Some(body)
}

/// Puts one line where it belongs. Lines of one directory and suffix are one cgroup at one moment.
fn take(all: &mut Vec<Cgroup>, file: &str, of: (&str, &str), kind: &str, text: &str, line: u64) {
    let (path, suffix) = of;
    let found = all.iter().rposition(|c| {
        c.path == path
            && c.suffix == suffix
            && (c.file == file || !path.is_empty() || dir(&c.file) == dir(file))
    });
    let at = match found {
        Some(at) => at,
        None if all.len() < MAX_CGROUPS => {
            all.push(Cgroup {
                file: file.to_owned(),
                path: path.to_owned(),
                suffix: suffix.to_owned(),
                ..Cgroup::default()
            });
            all.len() - 1
        }
        None => return,
    };
    let Some(c) = all.get_mut(at).filter(|_| !text.is_empty()) else { return };
    let place = || Place { file: file.to_owned(), line: Some(line) };
    let count = |count: u64| Some(Counter { count, place: place() });
    let whole = text.parse::<u64>().ok();
    let reading = |b: Option<u64>| b.map(|b| Reading { bytes: Bytes(b), place: place() });
    let keyed = text.split_once(' ').and_then(|(k, v)| Some((k, v.trim().parse::<u64>().ok()?)));
    match kind {
        "memory.current" | "memory.usage_in_bytes" => c.current = reading(whole),
        "memory.max" | "memory.limit_in_bytes" => {
            c.limit = reading(whole.filter(|l| *l < NO_LIMIT));
            c.unlimited = c.limit.is_none();
        }
        "memory.peak" | "memory.max_usage_in_bytes" => c.peak = reading(whole),
        "memory.failcnt" => c.at_limit = whole.and_then(count),
        "memory.pressure" => {
            let full = text.strip_prefix("full ").and_then(|t| t.split_once("avg60="));
            if let Some(v) = full.and_then(|(_, t)| t.split_whitespace().next()?.parse::<f64>().ok()) {
                c.stalled = Some(v);
            }
        }
        "memory.events" | "memory.events.local" | "memory.oom_control" => match keyed {
            Some(("oom", n)) => c.oom = count(n),
            Some(("oom_kill", n)) => c.oom_kill = count(n),
            Some(("max", n)) => c.at_limit = count(n),
            Some(("under_oom", n)) => c.under_oom = n > 0,
            _ => {}
        },
        "memory.stat" => match keyed {
            Some(("anon" | "total_rss", b)) => c.anon = reading(Some(b)),
            Some(("file" | "total_cache", b)) => c.file_pages = reading(Some(b)),
            Some(("shmem" | "total_shmem", b)) => c.shmem = reading(Some(b)),
            Some(("unevictable" | "total_unevictable", b)) => c.unevictable = reading(Some(b)),
            // Version 1 without hierarchy has no twins.
            Some(("rss", b)) if c.anon.is_none() => c.anon = reading(Some(b)),
            Some(("cache", b)) if c.file_pages.is_none() => c.file_pages = reading(Some(b)),
            _ => {}
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paste(text: &str, command: Option<&str>) -> (Vec<Cgroup>, usize) {
        let lines: Vec<&str> = text.lines().collect();
        let (mut all, mut at, mut taken) = (Vec::new(), 0, 0);
        while at < lines.len() {
            let n = read(&mut all, &lines[at..], at as u64 + 1, "x", command).unwrap_or(0);
            taken += n;
            at += n.max(1);
        }
        (all, taken)
    }

    #[test]
    fn the_same_cgroup_in_every_form() {
        for (text, command) in [
            (
                "==> memory.max <==\n1024\n\n==> memory.events <==\nlow 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n",
                None,
            ),
            ("memory.max:1024\nmemory.events:max 7\nmemory.events:oom 1\nmemory.events:oom_kill 2\n", None),
            ("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n", None),
            ("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n", Some("cat memory.events")),
            ("max 7\noom 1\noom_kill 2\noom_group_kill 0\n", None),
        ] {
            let (all, taken) = paste(text, command);
            assert_eq!(taken, text.lines().count(), "{text}");
            assert_eq!(all.len(), 1);
            let c = &all[0];
            assert_eq!(
                (
                    c.oom.as_ref().map(|c| c.count),
                    c.oom_kill.as_ref().map(|c| c.count),
                    c.at_limit.as_ref().map(|c| c.count)
                ),
                (Some(1), Some(2), Some(7))
            );
            assert_eq!(c.limit.as_ref().map(|l| l.bytes.0), text.contains("memory.max").then_some(1024));
        }
    }

    #[test]
    fn moments_and_directories_stay_apart() {
        let mut all = Vec::new();
        file(&mut all, "anon 5\nfile 6\n", "a/memory.stat");
        file(&mut all, "anon 7\n", "a/memory.stat.last");
        file(&mut all, "anon 8\n", "b/memory.stat");
        file(&mut all, "9223372036854771712\n", "a/memory.limit_in_bytes");
        assert_eq!(all.len(), 3);
        assert!(all[0].unlimited && all[0].limit.is_none());
        assert_eq!(all[1].suffix, ".last");
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in
            ["max 7\nmin 3\n", "oom_kill 3\n", "GPU memory.usage: 5\n", "==> server.log <==\nx\n", "a b\n"]
        {
            assert_eq!(paste(text, None).1, 0, "{text}");
        }
        assert!(!is_file("memory.max", &["INFO started".into()]));
        assert!(!is_file("memory.maximum", &["5".into()]));
        assert!(is_file("x/memory.oom_control.txt", &["oom_kill 1".into()]));
    }
}
