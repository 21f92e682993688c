//! What tools put before each line of a log: the pod and container, the service, the time.
//!
//! `kubectl logs --prefix` and `--timestamps` and `logcli` are known by the line alone. `docker compose logs`, `stern` and
//! `kubetail` are known only by a file whose lines nearly all begin so: two words and a bar are ordinary text.

use std::borrow::Cow;

use crate::evidence::LogSource;
use crate::evidence::framing::{Unwrapped, unwrap_kernel, unwrap_line};
use crate::text::strip_ansi;
use crate::time::parse_rfc3339;

/// How much of a file decides.
const HEAD: usize = 64 << 10;
/// Lines of it.
const HEAD_LINES: usize = 100;

/// The tool whose prefix stands before the lines of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefix {
    /// None that holds for the whole file.
    #[default]
    None,
    /// `service-1  | message`
    Compose,
    /// `pod container message`
    Stern,
    /// `[pod container] message` or `[pod] message`
    Kubetail,
}

/// Which prefix nearly all lines of a log have.
pub(crate) fn of(bytes: &[u8]) -> Prefix {
    let head = String::from_utf8_lossy(bytes.get(..bytes.len().min(HEAD)).unwrap_or(bytes));
    let plain = strip_ansi(&head);
    let lines: Vec<&str> = plain.lines().filter(|l| !l.trim().is_empty()).take(HEAD_LINES).collect();
    [Prefix::Compose, Prefix::Stern, Prefix::Kubetail]
        .into_iter()
        .find(|p| {
            let with = lines.iter().filter(|l| split(*p, l).is_some()).count();
            with > 1 && with * 10 >= lines.len() * 9
        })
        .unwrap_or_default()
}

/// Unwraps a line of a log: its tool's prefix, then its runtime's.
#[must_use]
pub fn unwrap<'a>(log: &LogSource, raw: &'a str) -> Unwrapped<'a> {
    if log.kernel {
        return unwrap_kernel(raw);
    }
    if log.prefix != Prefix::None {
        match strip_ansi(raw) {
            Cow::Borrowed(line) => {
                if let Some((source, rest)) = split(log.prefix, line) {
                    return Unwrapped { source: Some(source.trim().to_owned()), ..unwrap_timed(rest) };
                }
            }
            Cow::Owned(line) => {
                if let Some((source, rest)) = split(log.prefix, &line) {
                    let u = unwrap_timed(rest);
                    return Unwrapped {
                        text: Cow::Owned(u.text.into_owned()),
                        stamp: u.stamp,
                        partial: u.partial,
                        stderr: u.stderr,
                        source: Some(source.trim().to_owned()),
                        record: u.record,
                    };
                }
            }
        }
    }
    match kubectl(raw) {
        Some((source, rest)) => Unwrapped { source: Some(source.to_owned()), ..unwrap_timed(rest) },
        None => unwrap_timed(raw),
    }
}

/// `[pod/name/container] message`
fn kubectl(line: &str) -> Option<(&str, &str)> {
    let (source, rest) = line.strip_prefix("[pod/")?.split_once("] ")?;
    (source.len() < 320 && source.contains('/') && !source.contains(' ')).then_some((source, rest))
}

/// `2026-07-03T20:40:06.123456789Z message` (always nine digits: kubectl, docker) and
/// `2026-07-03T22:40:06+02:00 {app="x"} message` (logcli).
fn unwrap_timed(line: &str) -> Unwrapped<'_> {
    let parts = || {
        let digit = line.starts_with(|c: char| c.is_ascii_digit());
        let (time, rest) = line.split_once(' ').filter(|(t, _)| digit && (20..=35).contains(&t.len()))?;
        let nine =
            time.split_once('.').is_some_and(|(_, f)| f.bytes().take_while(u8::is_ascii_digit).count() == 9);
        let labels = rest.trim_start().strip_prefix('{').and_then(|r| r.split_once("} "));
        let rest = match labels.filter(|(l, _)| l.is_empty() || l.contains("=\"")) {
            Some((_, message)) => message,
            None if nine => rest,
            None => return None,
        };
        // CRI's own `stdout F` is the business of the next layer.
        let cri = rest.starts_with("stdout ") || rest.starts_with("stderr ");
        // `docker events` has the same stamp, which belongs to its records.
        let record = rest.starts_with("container ") && rest.contains(" (");
        Some((parse_rfc3339(time).filter(|_| !cri && !record)?, rest))
    };
    match parts() {
        Some((stamp, rest)) => Unwrapped { stamp: Some(stamp), ..unwrap_line(rest) },
        None => unwrap_line(line),
    }
}

fn split(prefix: Prefix, line: &str) -> Option<(&str, &str)> {
    let (source, rest) = match prefix {
        Prefix::None => return None,
        Prefix::Compose => {
            let (service, rest) = line.split_once(" |")?;
            let service = service.trim_end();
            if !is_name(service) {
                return None;
            }
            (service, rest.strip_prefix(' ').unwrap_or(rest))
        }
        Prefix::Stern => {
            let (pod, after) = line.split_once(' ')?;
            let (container, rest) = after.split_once(' ').unwrap_or((after, ""));
            if !is_pod(pod) || !is_name(container) {
                return None;
            }
            (line.get(..pod.len() + 1 + container.len())?, rest)
        }
        Prefix::Kubetail => {
            let (source, rest) = line.strip_prefix('[')?.split_once(']')?;
            let mut words = source.split(' ');
            let ok = is_pod(words.next()?) && words.next().is_none_or(is_name) && words.next().is_none();
            if !ok {
                return None;
            }
            (source, rest.trim_start_matches(' '))
        }
    };
    Some((source, rest))
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 63
        && word.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && word
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'))
}

/// A pod's name ends in an ordinal or in five characters that no person chose.
fn is_pod(word: &str) -> bool {
    let Some((_, last)) = word.rsplit_once('-').filter(|_| is_name(word)) else { return false };
    let ordinal = last.len() < 4 && last.bytes().all(|b| b.is_ascii_digit());
    !last.is_empty() && (ordinal || last.len() == 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Role;

    fn read(lines: &str) -> (Prefix, Vec<(Option<String>, String)>) {
        let prefix = of(lines.as_bytes());
        let log =
            LogSource { name: "x".into(), role: Role::Unsaid, kernel: false, prefix, ..LogSource::default() };
        let one = |l| {
            let u = unwrap(&log, l);
            (u.source, u.text.into_owned())
        };
        (prefix, lines.lines().map(one).collect())
    }

    #[test]
    fn prefixes_come_off() {
        for (text, prefix, source) in [
            ("vllm-1  | a b\nvllm-1  | c\n", Prefix::Compose, Some("vllm-1")),
            ("\u{1b}[36mvllm-1  | \u{1b}[0ma b\nvllm-1  | c\n", Prefix::Compose, Some("vllm-1")),
            ("qwen-0 vllm a b\nqwen-0 vllm c\n", Prefix::Stern, Some("qwen-0 vllm")),
            ("[qwen-0 vllm] a b\n[qwen-0 vllm] c\n", Prefix::Kubetail, Some("qwen-0 vllm")),
            ("[pod/qwen-0/vllm] a b\n[pod/qwen-0/vllm] c\n", Prefix::None, Some("qwen-0/vllm")),
            ("[pod/qwen-0/vllm] 2026-07-03T20:40:06.123456789Z a b\n", Prefix::None, Some("qwen-0/vllm")),
            ("2026-07-03T20:40:06.123456789Z a b\n2026-07-03T20:40:06.223456789Z c\n", Prefix::None, None),
            ("2026-07-03T22:40:06+02:00 {app=\"x\", pod=\"y\"} a b\n", Prefix::None, None),
            ("2026-07-03T22:40:06+02:00 {} a b\n", Prefix::None, None),
            (
                "qwen-0 vllm 2026-07-03T20:40:06.123456789Z stdout F a b\nqwen-0 vllm c\n",
                Prefix::Stern,
                Some("qwen-0 vllm"),
            ),
        ] {
            let (found, lines) = read(text);
            assert_eq!(found, prefix, "{text}");
            assert_eq!((lines[0].0.as_deref(), lines[0].1.as_str()), (source, "a b"), "{text}");
        }
    }

    #[test]
    fn ordinary_text_has_no_prefix() {
        for text in [
            "loading model weights\nallocating cache blocks\n",
            "| 0  A100 | 1 MiB / 2 MiB |\n| 1  A100 | 1 MiB |\n",
            "2026-07-03T20:40:06.123Z INFO text_generation_launcher: x\n",
            "[rank-0] a\nINFO b\nINFO c\n",
        ] {
            let (prefix, lines) = read(text);
            assert_eq!(prefix, Prefix::None, "{text}");
            assert!(lines.iter().zip(text.lines()).all(|((s, t), l)| s.is_none() && t == l), "{lines:?}");
        }
    }
}
