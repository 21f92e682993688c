//! Takes a line out of its wrapping: CRI, Docker json-file, JSON app logs, journald JSON, kernel records.
//!
//! The raw line stays what a verdict quotes; what signatures see is the message inside.

use std::borrow::Cow;

use serde_json::Value;

use super::record;

use crate::text::strip_ansi;
use crate::time::{Stamp, find_stamp, parse_boot_prefix, parse_rfc3339};

/// A line without its wrapping.
#[derive(Debug, Clone)]
pub struct Unwrapped<'a> {
    /// The message, colours removed.
    pub text: Cow<'a, str>,
    /// When it was written.
    pub stamp: Option<Stamp>,
    /// CRI cut a long line: the next line goes on.
    pub partial: bool,
    /// Standard error, where the runtime says so; any other line is taken for standard output.
    pub stderr: bool,
    /// Pod, container or service, where a tool put it before the line.
    pub source: Option<String>,
    /// It was a record of a structured logger, whose level stands beside the message.
    pub record: bool,
}

/// Unwraps one line of a container or system log.
#[must_use]
pub fn unwrap_line(raw: &str) -> Unwrapped<'_> {
    if let Some(cri) = cri(raw) {
        // The program's own record, unless the runtime cut it.
        let inner =
            Some(cri.text.as_ref()).filter(|t| !cri.partial && t.starts_with('{')).and_then(json_record);
        if let Some(Unwrapped { text, record, .. }) = inner {
            let text = Cow::Owned(text.into_owned());
            return Unwrapped { text, record, ..cri };
        }
        return cri;
    }
    let trimmed = raw.trim_start();
    if trimmed.starts_with('{')
        && raw.trim_end().ends_with('}')
        && let Some(json) = json_record(trimmed)
    {
        return json;
    }
    let text = strip_ansi(raw);
    let stamp = find_stamp(&text);
    Unwrapped { text, stamp, partial: false, stderr: false, source: None, record: false }
}

/// `2026-07-03T22:40:06.123456789Z stdout F message`
fn cri(raw: &str) -> Option<Unwrapped<'_>> {
    let (time, behind) = raw.split_once(' ')?;
    let (stderr, rest) = match behind.strip_prefix("stdout ") {
        Some(rest) => (false, rest),
        None => (true, behind.strip_prefix("stderr ")?),
    };
    let partial = match rest.get(..2)? {
        "F " => false,
        "P " => true,
        _ if rest == "F" => false,
        _ => return None,
    };
    let stamp = parse_rfc3339(time)?;
    Some(Unwrapped {
        text: strip_ansi(rest.get(2..).unwrap_or_default()),
        stamp: Some(stamp),
        partial,
        stderr,
        source: None,
        record: false,
    })
}

/// Docker json-file, journald's `-o json`, and records of loggers and collectors.
fn json_record(raw: &str) -> Option<Unwrapped<'_>> {
    let map = record::parse(raw)?;
    let text = record::message(&map)?;
    let get = |keys: &[&str]| keys.iter().find_map(|k| map.get(*k)).and_then(Value::as_str);
    let docker = map.contains_key("log") && (map.contains_key("stream") || map.contains_key("time"));
    let partial = docker && map.get("log").and_then(Value::as_str).is_some_and(|log| !log.ends_with('\n'));
    let stderr = map.get("stream").and_then(Value::as_str) == Some("stderr");
    let stamp = get(&["time", "timestamp", "ts", "@timestamp"])
        .and_then(|t| parse_rfc3339(t).or_else(|| find_stamp(t)))
        .or_else(|| journald_time(&map))
        .or_else(|| find_stamp(&text));
    let text = strip_ansi(&text).into_owned();
    Some(Unwrapped { text: Cow::Owned(text), stamp, partial, stderr, source: None, record: true })
}

fn journald_time(map: &serde_json::Map<String, Value>) -> Option<Stamp> {
    let us: i64 = map.get("__REALTIME_TIMESTAMP")?.as_str()?.parse().ok()?;
    Some(Stamp::Wall { ms: us / 1000, zoned: true, year: true })
}

/// Unwraps one line of a kernel log: `dmesg` plain, `-T`, `-x`, syslog, `journalctl -k`, `/dev/kmsg`.
#[must_use]
pub fn unwrap_kernel(raw: &str) -> Unwrapped<'_> {
    let line = raw.trim_end_matches('\r');
    if let Some((stamp, text)) = parse_kmsg(line) {
        return Unwrapped {
            text: Cow::Borrowed(text),
            stamp: Some(stamp),
            partial: false,
            stderr: false,
            source: None,
            record: false,
        };
    }
    // dmesg -x: facility and level before the stamp; syslog: <6> before it.
    let body = match line.find('[') {
        Some(i)
            if i < 24
                && line
                    .get(..i)
                    .is_some_and(|f| f.trim_end().ends_with(':') || f.trim_end().ends_with('>')) =>
        {
            line.get(i..).unwrap_or(line)
        }
        _ => line,
    };
    if let Some((stamp, text)) = parse_boot_prefix(body) {
        return Unwrapped {
            text: Cow::Borrowed(text),
            stamp: Some(stamp),
            partial: false,
            stderr: false,
            source: None,
            record: false,
        };
    }
    if let Some((_, rest)) =
        body.strip_prefix('[').and_then(|b| b.split_once("] ")).filter(|(s, _)| s.len() > 18)
    {
        return Unwrapped {
            text: Cow::Borrowed(rest),
            stamp: find_stamp(body),
            partial: false,
            stderr: false,
            source: None,
            record: false,
        };
    }
    if let Some((_, rest)) = body.split_once(" kernel: ") {
        // Some journals keep the boot stamp as well.
        let rest = parse_boot_prefix(rest).map_or(rest, |(_, r)| r);
        return Unwrapped {
            text: Cow::Borrowed(rest),
            stamp: find_stamp(body),
            partial: false,
            stderr: false,
            source: None,
            record: false,
        };
    }
    unwrap_line(raw)
}

/// The host that a line of a system log names: `Jul 03 22:40:06 HOST kernel: …`, also behind an RFC 3339 stamp, or a
/// journal's `_HOSTNAME`.
#[must_use]
pub fn kernel_host(raw: &str) -> Option<&str> {
    if raw.starts_with('{') {
        let (_, rest) = raw.split_once("\"_HOSTNAME\"")?;
        return rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.split('"').next();
    }
    let (head, _) = raw.split_once(" kernel: ").filter(|(h, _)| h.len() < 320)?;
    let host = head.rsplit(' ').next()?;
    // A stamp alone stands before "kernel:" where the host was taken out.
    let named = host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        && host.contains(|c: char| c.is_ascii_alphabetic());
    (named && head.len() > host.len() && find_stamp(host).is_none()).then_some(host)
}

/// A `/dev/kmsg` record: `level,sequence,microseconds,flags;message`.
#[must_use]
pub fn parse_kmsg(line: &str) -> Option<(Stamp, &str)> {
    let (head, text) = line.split_once(';')?;
    let mut parts = head.split(',');
    let level: u32 = parts.next()?.parse().ok()?;
    let _sequence: u64 = parts.next()?.parse().ok()?;
    let us: i64 = parts.next()?.parse().ok()?;
    parts.next()?;
    (level < 2048).then_some((Stamp::Boot { us }, text))
}

/// The process that wrote a line, as its prefix tells: `EngineCore_DP0 pid=602`, `rank0`, `TP2`, `ollama[2114]`.
#[must_use]
pub fn process_of(text: &str) -> Option<&str> {
    let head = text.trim_start();
    if let Some(rest) = head.strip_prefix('(') {
        let (tag, _) = rest.split_once(')')?;
        if tag.contains("pid=") && tag.len() < 80 {
            return Some(tag);
        }
    }
    if let Some(rest) = head.strip_prefix('[') {
        let (tag, _) = rest.split_once(']')?;
        if tag.starts_with("rank") {
            return Some(tag);
        }
        // SGLang: [2025-03-12 08:25:21 TP2] or [… DP0 TP0 EP0]
        let ranks = tag.get(19..).map(str::trim).unwrap_or_default();
        let ranks =
            ranks.trim_start_matches(['.', ',']).trim_start_matches(|c: char| c.is_ascii_digit()).trim();
        if ["TP", "DP", "PP", "EP"].iter().any(|r| ranks.starts_with(r)) && tag.len() < 60 {
            return Some(ranks);
        }
        return None;
    }
    // syslog: "Jul 02 19:20:41 mini ollama[2114]: …"
    let unit = head.split_whitespace().nth(4)?.strip_suffix(':')?;
    (unit.ends_with(']') && unit.contains('[')).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappings_come_off() {
        for (raw, text) in [
            ("2026-07-03T22:40:06.1Z stdout F hello", "hello"),
            ("2026-07-03T22:40:06.1+02:00 stderr P hel", "hel"),
            (
                "{\"log\":\"a \\u001b[31mb\\u001b[0m\\n\",\"stream\":\"stderr\",\"time\":\"2026-07-03T22:40:06.1Z\"}",
                "a b",
            ),
            (
                "{\"timestamp\":\"2026-07-03T22:40:06Z\",\"level\":\"ERROR\",\"message\":\"boom\",\"exception\":\"E: x\"}",
                "boom E: x",
            ),
            ("{\"MESSAGE\":\"oom\",\"__REALTIME_TIMESTAMP\":\"1700000000000000\"}", "oom"),
            ("{not json}", "{not json}"),
            ("plain stdout F line", "plain stdout F line"),
        ] {
            assert_eq!(unwrap_line(raw).text, text, "{raw}");
        }
        assert!(unwrap_line("2026-07-03T22:40:06.1+02:00 stderr P hel").partial);
    }

    #[test]
    fn kernel_forms() {
        for raw in [
            "[ 5521.220914] NVRM: x",
            "[Thu Aug  6 11:20:38 2026] NVRM: x",
            "kern  :warn  : [ 5521.220914] NVRM: x",
            "kern  :warn  : [Thu Aug  6 11:20:38 2026] NVRM: x",
            "<4>[ 5521.220914] NVRM: x",
            "4,1234,5521220914,-;NVRM: x",
            "Jul 03 22:40:06 node1 kernel: NVRM: x",
            "Jul 03 22:40:06 node1 kernel: [ 5521.220914] NVRM: x",
            "2026-07-03T22:40:06.123456+00:00 node1 kernel: NVRM: x",
        ] {
            let u = unwrap_kernel(raw);
            assert_eq!(u.text, "NVRM: x", "{raw}");
            assert!(u.stamp.is_some(), "{raw}");
        }
    }

    #[test]
    fn hosts() {
        for (raw, want) in [
            ("Jul 03 22:40:06 node-1 kernel: NVRM: x", Some("node-1")),
            ("2026-07-03T22:40:06.123456+00:00 n1.example.org kernel: x", Some("n1.example.org")),
            ("{\"MESSAGE\":\"x\",\"_HOSTNAME\":\"n2\"}", Some("n2")),
            ("Jul 03 22:40:06 kernel: x", None),
            ("[ 5521.220914] NVRM: x", None),
            ("a sentence about the (odd) kernel: x", None),
        ] {
            assert_eq!(kernel_host(raw), want, "{raw}");
        }
    }

    #[test]
    fn processes() {
        for (text, want) in [
            ("(EngineCore_DP0 pid=602) ERROR x", Some("EngineCore_DP0 pid=602")),
            ("(VllmWorker rank=1 pid=88214) ERROR", Some("VllmWorker rank=1 pid=88214")),
            ("[rank0]: Traceback", Some("rank0")),
            ("[2025-03-12 08:25:21 TP2] x", Some("TP2")),
            ("[2025-03-12 08:25:21.123 DP0 TP1] x", Some("DP0 TP1")),
            ("[2025-03-12 08:25:21] x", None),
            ("Jul 02 19:20:41 mini ollama[2114]: load", Some("ollama[2114]")),
            ("INFO 05-02 10:11:56 [api_server.py:1043] vLLM", None),
            ("(see above) x", None),
        ] {
            assert_eq!(process_of(text), want, "{text}");
        }
    }
}
