//! Text hygiene: nothing read from outside reaches a pattern with its colours on, or a terminal with its escapes.

use std::borrow::Cow;

/// Removes ANSI escape sequences, also the mangled forms that copy and paste leaves (`[36m` without the ESC byte,
/// `^[[36m`, `\x1b[36m`, `\u001b[36m` spelled out), and a trailing carriage return.
#[must_use]
pub fn strip_ansi(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    // Every colour sequence ends in 'm' behind digits; without '[' there is nothing to strip.
    if !line.contains('[') || !line.as_bytes().contains(&0x1b) && !line.contains("m") {
        return Cow::Borrowed(line);
    }
    let mut out = String::new();
    let mut rest = line;
    let mut changed = false;
    while let Some((before, after)) = next_sequence(rest) {
        changed = true;
        out.push_str(before);
        rest = after;
    }
    if !changed {
        return Cow::Borrowed(line);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Finds the first escape sequence: text before it, text after it.
fn next_sequence(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let bracket = from + text.get(from..)?.find('[')?;
        let before = text.get(..bracket)?;
        let body = text.get(bracket + 1..)?;
        let escape =
            ["\u{1b}", "^[", "\\x1b", "\\u001b", "\\033", "\u{241b}"].iter().find(|e| before.ends_with(**e));
        let len = body.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').count();
        let end = body.as_bytes().get(len);
        let is_colour = end == Some(&b'm') && (len > 0 || escape.is_some());
        let is_other = escape.is_some() && end.is_some_and(u8::is_ascii_alphabetic);
        // A bare "[0m" or "[36m" is a colour whose ESC byte was lost; "[12]" or "[main]" is not.
        if is_colour || is_other {
            let cut = escape.map_or(bracket, |e| bracket - e.len());
            return Some((text.get(..cut)?, body.get(len + 1..)?));
        }
        from = bracket + 1;
    }
}

/// Makes untrusted text safe for a terminal: control characters and bidirectional overrides become visible escapes.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c == '\t' {
            out.push(' ');
        } else if is_unsafe(c) {
            out.push_str(&c.escape_default().to_string());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Controls, bidirectional overrides and invisible marks.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A line without the time that `kubectl logs --timestamps` puts before it, where the line tells its own.
#[must_use]
pub fn without_kubelet_time(line: &str) -> &str {
    let Some((stamp, rest)) = line.split_once(' ') else { return line };
    // 2026-11-21T18:50:02.652186888Z
    let fixed = stamp.len() == 30 && stamp.ends_with('Z') && stamp.get(10..11) == Some("T");
    if fixed && crate::time::parse_rfc3339(stamp).is_some() { rest } else { line }
}

/// At most `max` characters of `text`, with `…` where something was cut.
#[must_use]
pub fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default().trim_end())),
    }
}

/// A count with its noun: `1 citation`, `2 citations`, `2 processes`.
#[must_use]
pub fn counted(n: impl TryInto<u64> + std::fmt::Display + Copy, noun: &str) -> String {
    let one = n.try_into().is_ok_and(|n: u64| n == 1);
    let ending = match noun {
        _ if one => "",
        n if n.ends_with('s') || n.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{n} {noun}{ending}")
}

/// Longest name of a Kubernetes object, characters (DNS-1123 subdomain).
pub const LONGEST_NAME: usize = 253;

/// A name for people: no longer than any object's can be.
#[must_use]
pub fn name(name: &str) -> Cow<'_, str> {
    shorten(name, LONGEST_NAME)
}

/// Escapes what Markdown would take for markup or HTML.
#[must_use]
pub fn markdown_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in printable(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A block of code in Markdown, whose fence is longer than any run of backticks in it.
#[must_use]
pub fn markdown_fence(text: &str) -> String {
    let text: Vec<String> = text.lines().map(|l| printable(l).into_owned()).collect();
    let text = text.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let ticks = "`".repeat(longest.max(2) + 1);
    format!("{ticks}text\n{text}\n{ticks}")
}

/// A block below a point of a list in Markdown.
#[must_use]
pub fn markdown_indent(block: &str) -> String {
    block.lines().map(|l| format!("  {l}")).collect::<Vec<_>>().join("\n")
}

/// Text as it may stand between tags and in quoted attributes of XML, HTML and SVG: markup is escaped, a line end is kept
/// as a reference, and what is unsafe, or no character of XML 1.0, becomes a visible escape.
#[must_use]
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(' '),
            c if is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_agrees_with_its_noun() {
        assert_eq!(counted(1_usize, "citation"), "1 citation");
        assert_eq!(counted(0_u64, "citation"), "0 citations");
        assert_eq!(
            (counted(2_u32, "process"), counted(3_u8, "batch")),
            ("2 processes".into(), "3 batches".into())
        );
    }

    #[test]
    fn colours_go_also_mangled_ones() {
        for (given, want) in [
            ("\u{1b}[1;36m(EngineCore_DP0 pid=1)\u{1b}[0;0m ERROR", "(EngineCore_DP0 pid=1) ERROR"),
            ("[1;36m(EngineCore_DP0 pid=1)[0;0m ERROR", "(EngineCore_DP0 pid=1) ERROR"),
            ("\\x1b[36m(VllmWorker)\\x1b[0m x", "(VllmWorker) x"),
            ("^[[31mred^[[0m", "red"),
            ("[core.py:700] list[3] main[1m", "[core.py:700] list[3] main"),
            ("[2025-03-12 08:25:21 TP2] plain [12]\r", "[2025-03-12 08:25:21 TP2] plain [12]"),
            ("\u{1b}[2K\u{1b}[1Gprogress", "progress"),
        ] {
            assert_eq!(strip_ansi(given), want);
        }
    }

    #[test]
    fn escapes_never_reach_a_terminal() {
        let shown = printable("a\u{1b}]0;owned\u{7}b\u{202e}c\td");
        assert!(!shown.chars().any(|c| c.is_control()), "{shown}");
        assert_eq!(printable("plain 漢字"), "plain 漢字");
        assert_eq!(markdown_escape("<b>|x"), "&lt;b&gt;\\|x");
        assert_eq!(shorten("abcdef", 3), "abc…");
    }

    #[test]
    fn markup_keeps_no_tag_no_quote_and_no_character_that_xml_forbids() {
        assert_eq!(markup("<b a=\"1\">&'\n\tx"), "&lt;b a=&quot;1&quot;&gt;&amp;&#39;&#10; x");
        // Each character there is, between two letters.
        for c in '\0'..=char::MAX {
            let shown = markup(&format!("a{c}b"));
            let inner = shown.strip_prefix('a').and_then(|s| s.strip_suffix('b')).unwrap();
            let reference = inner.starts_with('&') && inner.ends_with(';') && inner.matches('&').count() == 1;
            assert!(
                !inner.contains(['<', '>', '"', '\'']) && (reference || !inner.contains('&')),
                "{c:?}: {shown}"
            );
            let bad = |c: char| is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}');
            assert!(!inner.is_empty() && !inner.chars().any(bad), "{c:?}: {shown}");
        }
    }
}
