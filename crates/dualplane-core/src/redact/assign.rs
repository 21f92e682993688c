//! Finds what is assigned to a secret name in running text: `NAME=value`, `"name": "value"`, `--name value`, headers, lists.

use super::name::{MASK, MAX_NAME, is_harmless, is_shouted, judge};
use crate::knowledge::Names;

/// Blanks between a sign and its value: `kubectl describe` sets values in columns.
const MAX_BLANKS: usize = 64;
/// In running text a shorter value behind an ordinary word is another word.
const SHORTEST: usize = 6;
/// Values of one list.
const MAX_LIST: usize = 256;

/// What stands behind one name.
#[derive(Debug, Default)]
pub(super) struct Assigned<'k> {
    /// One behind the last byte of the name.
    pub(super) name_end: usize,
    /// Id of the rule.
    pub(super) id: &'k str,
    /// Ranges of the secrets.
    pub(super) values: Vec<(usize, usize)>,
}

/// What is assigned to the name around `hit`.
pub(super) fn at<'k>(names: &'k Names, text: &str, hit: (usize, usize)) -> Assigned<'k> {
    let bytes = text.as_bytes();
    let (start, end) = name_around(bytes, hit);
    let mut found = Assigned { name_end: end, ..Assigned::default() };
    let Some(raw) = text.get(start..end) else { return found };
    let name = raw.trim_start_matches(['-', '.']);
    let flag = raw.len() - name.len() >= 1 && raw.starts_with('-');
    let Some(value) = sign(bytes, end, flag, name) else { return found };
    let shouted = is_shouted(name);
    let Some(rule) = judge(names, name, shouted) else { return found };
    found.id = &rule.id;
    let shell = shouted && value.bare;
    for (from, to) in values(bytes, &value, rule.rest, shell) {
        let Some(mut secret) = text.get(from..to) else { continue };
        let mut from = from;
        // The scheme is no secret: `Bearer …`.
        if rule.rest
            && let Some((scheme, behind)) = secret.split_once(' ')
            && scheme.len() <= 16
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !behind.trim().is_empty()
            && !name.to_ascii_lowercase().contains("cookie")
        {
            let gap = behind.len() - behind.trim_start().len();
            from += scheme.len() + 1 + gap;
            secret = behind.trim_start();
        }
        let short = !rule.numbers && !shouted && !flag && !rule.rest && secret.len() < SHORTEST;
        if !short && !is_harmless(secret, rule) {
            found.values.push((from, to));
        }
    }
    found
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

/// The name of which `hit` is a part.
fn name_around(bytes: &[u8], (start, end): (usize, usize)) -> (usize, usize) {
    let before = bytes.get(start.saturating_sub(MAX_NAME)..start).unwrap_or_default();
    let left = before.iter().rev().take_while(|b| is_name(**b)).count();
    let behind = bytes.get(end..bytes.len().min(end + MAX_NAME)).unwrap_or_default();
    let right = behind.iter().take_while(|b| is_name(**b)).count();
    let from = start - left;
    // `text.\ntoken` in an escaped text: the n belongs to the escape.
    let escaped = from > 0
        && bytes.get(from - 1) == Some(&b'\\')
        && matches!(bytes.get(from), Some(b'n' | b't' | b'r'));
    (if escaped && from < start { from + 1 } else { from }, end + right)
}

/// Where a value begins.
#[derive(Debug)]
struct Value {
    at: usize,
    /// `=` without blanks, as a shell has it.
    bare: bool,
}

/// The sign behind a name: `=`, `:`, `=>`, `:=`, the blank behind a flag, the comma between a quoted header and its value.
fn sign(bytes: &[u8], end: usize, flag: bool, name: &str) -> Option<Value> {
    let get = |i: usize| bytes.get(i).copied();
    let blanks = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take(MAX_BLANKS).take_while(|b| matches!(b, b' ' | b'\t')).count()
    };
    let slashes = |from: usize| {
        from + bytes.get(from..).unwrap_or_default().iter().take_while(|b| **b == b'\\').count().min(16)
    };
    let mut i = slashes(end);
    let mut quoted = false;
    if matches!(get(i), Some(b'"' | b'\'' | b'`')) {
        quoted = true;
        i += 1;
    } else if i != end {
        return None;
    }
    if get(i) == Some(b']') {
        i += 1;
    }
    let gap = i;
    i = blanks(i);
    let header = name.contains('-')
        || name.eq_ignore_ascii_case("authorization")
        || name.eq_ignore_ascii_case("cookie");
    match get(i)? {
        b':' if get(i + 1) == Some(b':') => None,
        b':' if get(i + 1) == Some(b'/') && get(i + 2) == Some(b'/') => None,
        b':' => {
            let i = if get(i + 1) == Some(b'=') { i + 2 } else { i + 1 };
            Some(Value { at: blanks(i), bare: false })
        }
        b'=' => {
            let mut at = i + 1;
            while matches!(get(at), Some(b'=' | b'>')) && at < i + 3 {
                at += 1;
            }
            let value = blanks(at);
            Some(Value { at: value, bare: gap == i && value == at })
        }
        b',' if quoted && (flag || header) => {
            let mut i = blanks(i + 1);
            if get(i) == Some(b'b') {
                i += 1;
            }
            let quote = slashes(i);
            matches!(get(quote), Some(b'"' | b'\'')).then_some(Value { at: i, bare: false })
        }
        next if flag && !quoted && i > gap && !matches!(next, b'-' | b'|' | b'&' | b';' | b'<' | b'>') => {
            Some(Value { at: i, bare: true })
        }
        _ => None,
    }
}

/// Ranges of what is assigned: one value, or those of a list.
fn values(bytes: &[u8], value: &Value, rest: bool, shell: bool) -> Vec<(usize, usize)> {
    let at = value.at;
    let tail = bytes.get(at..).unwrap_or_default();
    if matches!(tail.first(), Some(b'[' | b'(' | b'{')) && !tail.starts_with(MASK.as_bytes()) {
        return list(bytes, at + 1);
    }
    // b'…', SecretStr('…')
    let at = match tail {
        [b'b' | b'r' | b'u', b'\'' | b'"', ..] => at + 1,
        _ if tail.starts_with(b"SecretStr(") => at + 10,
        _ => at,
    };
    match quoted(bytes, at) {
        Some(range) => vec![range],
        None => vec![unquoted(bytes, at, rest, shell)],
    }
}

fn list(bytes: &[u8], mut at: usize) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    while out.len() < MAX_LIST {
        let gap = bytes.get(at..).unwrap_or_default();
        at += gap.iter().take(MAX_BLANKS).take_while(|b| matches!(b, b' ' | b',' | b'b')).count();
        let Some((from, to)) = quoted(bytes, at) else { break };
        out.push((from, to));
        at = to;
        at += bytes.get(at..).unwrap_or_default().iter().take(17).take_while(|b| matches!(b, b'\\')).count()
            + 1;
    }
    out
}

/// The inside of a quoted text; quotes may be escaped any number of times, and close as they opened.
fn quoted(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let tail = bytes.get(at..)?;
    let level = tail.iter().take_while(|b| **b == b'\\').count();
    // Deeper escapes would let a hostile line be searched once for each depth.
    let quote = *tail.get(level).filter(|b| level <= 16 && matches!(b, b'"' | b'\'' | b'`'))?;
    let from = at + level + 1;
    let inner = bytes.get(from..)?;
    let mut i = 0;
    while let Some(skip) = inner.get(i..).and_then(|r| memchr::memchr2(b'\\', quote, r)) {
        i += skip;
        let run = inner.get(i..)?.iter().take_while(|b| **b == b'\\').count();
        let at_quote = inner.get(i + run) == Some(&quote);
        if at_quote && run <= level {
            return Some((from, from + i));
        }
        i += run + 1;
    }
    None
}

/// A value without quotes. In a shell's assignment brackets and commas belong to it.
fn unquoted(bytes: &[u8], at: usize, rest: bool, shell: bool) -> (usize, usize) {
    let tail = bytes.get(at..).unwrap_or_default();
    let opens = tail.starts_with(MASK.as_bytes());
    let ends = |b: &u8| match b {
        b'"' | b'\'' | b'`' | b'\\' => true,
        _ if rest => false,
        b' ' | b'\t' | b'\n' | b'\r' | b';' | b'|' | b'&' | b'<' | b'>' => true,
        b',' | b')' | b'}' => !shell,
        b']' => !shell && !opens,
        _ => false,
    };
    let len = tail.iter().position(ends).unwrap_or(tail.len());
    let tail = tail.get(..len).unwrap_or_default();
    // A mask and the bracket of a list behind it.
    let len = match tail.iter().position(|b| *b == b']') {
        Some(close) if opens && !rest && !shell => {
            let behind = tail.get(close + 1..).unwrap_or_default();
            let brackets = behind.iter().all(|b| matches!(b, b']' | b')' | b'}'));
            if brackets { close + 1 } else { len }
        }
        _ => len,
    };
    (at, at + len)
}
