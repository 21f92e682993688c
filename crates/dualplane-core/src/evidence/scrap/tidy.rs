//! What people's tools put before and around the lines that they paste: quotes of a mail, bullets, frames, emphasis.

use std::borrow::Cow;

/// Frames of tables and boxes, between cells and around them.
const BARS: &[char] = &['|', '│', '┃', '║', '┆', '┊'];
/// Marks of a list.
const BULLETS: &[char] = &['•', '●', '◦', '▪', '‣', '·', '○', '■', '–', '—'];

/// A line without the marks of a quoted mail, its indentation kept: what readers of tables and descriptions need.
pub(in crate::evidence) fn unquoted(line: &str) -> Cow<'_, str> {
    let mut rest = line;
    while let Some(inner) = rest.trim_start_matches(' ').strip_prefix('>') {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    if rest.contains('\t') { Cow::Owned(rest.replace('\t', "    ")) } else { Cow::Borrowed(rest) }
}

/// A line without quotes, bullets, numbers of a list or pager, times of a chat, frames, emphasis. Cells stay apart: what
/// stood between them becomes ` | `.
pub(super) fn bare(line: &str) -> String {
    let unquoted = unquoted(line);
    let mut rest = unquoted.trim();
    loop {
        let before = rest;
        rest = rest
            .trim_start_matches(|c: char| c == ' ' || c == '>' || BARS.contains(&c) || BULLETS.contains(&c));
        for mark in ["- ", "* ", "+ "] {
            rest = rest.strip_prefix(mark).unwrap_or(rest);
        }
        rest = without_number(rest);
        rest = without_clock(rest);
        rest = without_picture(rest);
        if rest == before {
            break;
        }
    }
    let mut out = String::with_capacity(rest.len());
    let mut chars = rest.trim_end_matches(|c: char| c == ' ' || BARS.contains(&c)).chars().peekable();
    while let Some(c) = chars.next() {
        let apart = out.is_empty() || out.ends_with(' ') || chars.peek().is_none_or(|n| *n == ' ');
        match c {
            // Emphasis beside a blank is none of its own: two blanks part cells.
            '`' | '*' if apart => {}
            '"' | '\'' | '`' | '*' | '{' | '}' | '[' | ']' => out.push(' '),
            c if BARS.contains(&c) => out.push_str(" | "),
            '→' | '＝' | '：' => out.push(':'),
            c => out.push(c),
        }
    }
    for (from, to) in [("->", ":"), ("=>", ":"), ("<br>", " "), ("__", " ")] {
        if out.contains(from) {
            out = out.replace(from, to);
        }
    }
    out
}

/// `1. `, `12) ` of a list; `  71  ` of a pager, before which and behind which blanks stand.
fn without_number(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let Some(rest) = line.get(digits..).filter(|_| (1..=4).contains(&digits)) else { return line };
    match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(text) => text,
        None => rest.strip_prefix("  ").unwrap_or(line),
    }
}

/// `:rotating_light: ` that a bot of a chat puts first.
fn without_picture(line: &str) -> &str {
    let picture = |name: &str| {
        (2..=40).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'+'))
    };
    match line.strip_prefix(':').and_then(|l| l.split_once(": ")) {
        Some((name, text)) if picture(name) => text,
        _ => line,
    }
}

/// `[12:01:30] ` of a recorded terminal, `[10:32 AM] ` of a chat. Logs have dates.
fn without_clock(line: &str) -> &str {
    let Some((clock, rest)) = line.strip_prefix('[').and_then(|l| l.split_once("] ")) else { return line };
    let plain = clock.len() <= 11
        && clock.contains(':')
        && clock.bytes().all(|b| {
            b.is_ascii_digit() || matches!(b, b':' | b' ' | b'A' | b'P' | b'M' | b'a' | b'p' | b'm')
        });
    if plain { rest } else { line }
}

/// Blanks of another width, and characters without one, become plain; only where a text has some. Line ends of old
/// systems become ours, so that a text of one line is not what its writer saw as many.
pub(in crate::evidence) fn plain(bytes: Vec<u8>) -> Vec<u8> {
    let odd = |w: &[u8]| {
        matches!(
            w,
            [0xc2, 0xa0, ..]
                | [0xe2, 0x80, 0x87..=0x8d]
                | [0xe2, 0x80, 0xaf]
                | [0xe2, 0x81, 0xa0]
                | [0xef, 0xbb, 0xbf]
        )
    };
    let returns = bytes.contains(&b'\r') && !bytes.contains(&b'\n');
    if !returns && !bytes.windows(3).any(odd) && !bytes.ends_with(b"\xc2\xa0") {
        return bytes;
    }
    let Ok(text) = std::str::from_utf8(&bytes) else { return bytes };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{2008}' | '\u{2009}' | '\u{200a}' => out.push(' '),
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            '\r' if returns => out.push('\n'),
            c => out.push(c),
        }
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_words_stay() {
        for (line, want) in [
            ("> >   Reason: OOMKilled", "Reason: OOMKilled"),
            ("- Exit Code: 137", "Exit Code: 137"),
            ("3. Reason: Error", "Reason: Error"),
            ("  73        Exit Code:    137", "Exit Code:    137"),
            ("[12:01:30]   Reason: x", "Reason: x"),
            ("│ Reason │ OOMKilled │", "Reason  |  OOMKilled"),
            (":rotating_light: *OOMKilled* `x`: **y**", "OOMKilled x : y "),
            ("137", "137"),
            ("[2026-11-21 10:00:00] INFO x", " 2026-11-21 10:00:00  INFO x"),
        ] {
            assert_eq!(bare(line), want, "{line}");
        }
        assert_eq!(unquoted(">\tReason: x"), "    Reason: x");
        assert_eq!(plain("a\u{a0}b\u{200b}c".into()), b"a bc");
        assert_eq!(plain("a\rb".into()), b"a\nb");
        assert_eq!(plain("a\r\nb ─ é".into()), "a\r\nb ─ é".as_bytes());
    }
}
