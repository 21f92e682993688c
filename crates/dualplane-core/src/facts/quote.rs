//! A user's text that goes on over several lines: where the quote that a logged prompt opens is closed again.
//!
//! Most request loggers print a prompt with `\n` escapes, so that it ends with its line. Some print it raw; then the
//! traceback that a user pastes into a question stands in the server's log as lines of their own.

use crate::time::{Stamp, find_stamp};

/// A prompt of more lines than this is not followed; what stands behind its first line is then read as the server's.
pub(crate) const MAX_LINES: u64 = 1000;

/// What was found behind a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Behind {
    /// How many of the next lines still belong to the user's text.
    pub(super) quoted: u64,
    /// How many were looked at for it.
    pub(super) looked: u64,
}

/// Which of the lines behind `text` still belong to the user's text that begins at byte `from` of it; none where it
/// opens no quote, closes it in the same line, or never closes it (a cut prompt).
pub(super) fn lines_behind<L: AsRef<str>>(text: &str, from: usize, next: impl Iterator<Item = L>) -> Behind {
    let Some((quote, rest)) = opening(text, from) else { return Behind::default() };
    if closes(rest, quote).is_some() {
        return Behind::default();
    }
    let mut looked = 0;
    let quoted = until_closed(quote, head(text), next.inspect(|_| looked += 1));
    Behind { quoted, looked }
}

/// The users' texts of one log. Facts and redaction follow them alike: what is read as evidence is not masked, and what is
/// masked is no evidence.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    /// Lines up to this one belong to a user's text.
    until: u64,
    looked: u64,
}

impl Prompts {
    /// Whether a line, counted from 1, belongs to a text that an earlier one opened.
    pub(crate) fn hold(&self, number: u64) -> bool {
        number <= self.until
    }

    /// Follows the text that begins at byte `from` of the line `number` over those behind it; says whether it goes on.
    /// A log in which each line opens a quote that none closes is looked through twice at most.
    pub(crate) fn follow<L: AsRef<str>>(
        &mut self,
        number: u64,
        text: &str,
        from: usize,
        next: impl Iterator<Item = L>,
    ) -> bool {
        if self.looked > 2 * number + MAX_LINES {
            return false;
        }
        let behind = lines_behind(text, from, next);
        self.looked += behind.looked;
        self.until = self.until.max(number + behind.quoted);
        behind.quoted > 0
    }
}

/// The quote that opens the user's text at byte `from`, and whether the line closes it.
pub(crate) fn quote_at(text: &str, from: usize) -> Option<(char, bool)> {
    let (quote, rest) = opening(text, from)?;
    Some((quote, closes(rest, quote).is_some()))
}

/// Whether a line is a record of its own, by its time or its level.
pub(crate) fn begins_record(line: &str) -> bool {
    head(line).is_some()
}

fn until_closed<L: AsRef<str>>(quote: char, opened: Option<Head>, next: impl Iterator<Item = L>) -> u64 {
    // A quote at the end of a line closes only where the server's next record (or nothing) stands behind it: what is
    // quoted holds ends of lines like `foo("x")` itself.
    let mut pending = 0;
    for (behind, line) in (1..=MAX_LINES).zip(next) {
        let line = line.as_ref();
        if line.trim().is_empty() {
            continue;
        }
        if head(line).is_some_and(|h| h.follows(opened)) {
            return pending;
        }
        match closes(line, quote) {
            Some(Close::Field) => return behind,
            Some(Close::End) => pending = behind,
            None => pending = 0,
        }
        if behind == MAX_LINES {
            return 0;
        }
    }
    pending
}

/// The quote that the mark ends with, or that stands directly behind it, and what follows it.
fn opening(text: &str, from: usize) -> Option<(char, &str)> {
    let is_quote = |c: &char| matches!(c, '"' | '\'' | '`');
    let (before, behind) = text.split_at_checked(from)?;
    if let Some(quote) = before.chars().next_back().filter(is_quote) {
        return Some((quote, behind));
    }
    let behind = behind.trim_start();
    let quote = behind.chars().next().filter(is_quote)?;
    Some((quote, behind.get(1..)?))
}

#[derive(Debug, PartialEq)]
enum Close {
    /// The next field of the record stands behind the quote: `', params: …`.
    Field,
    /// Nothing but brackets and punctuation does.
    End,
}

/// Whether an unescaped quote in the line closes the field.
fn closes(line: &str, quote: char) -> Option<Close> {
    let mut end = None;
    let mut escaped = false;
    for (i, c) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            let rest = line.get(i + 1..).unwrap_or_default();
            if next_field(rest) {
                return Some(Close::Field);
            }
            if rest.chars().all(|c| matches!(c, ')' | ']' | '}' | ',' | '.' | ';' | ' ')) {
                end = end.or(Some(Close::End));
            }
        }
    }
    end
}

/// `, params: …`, `, n=1`, ` format=""`: a name with its sign, as loggers part fields.
fn next_field(rest: &str) -> bool {
    let bare = rest.trim_start_matches([',', ' ']);
    if bare.len() == rest.len() {
        return false;
    }
    let name = bare.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    name > 0 && bare.get(name..).is_some_and(|r| r.starts_with([':', '=']))
}

/// How a line begins that is a record of its own.
#[derive(Clone, Copy)]
enum Head {
    At(Stamp),
    Level,
}

impl Head {
    /// A record of the server comes behind the opening one. A log that a user quotes is older than the question.
    fn follows(self, opened: Option<Self>) -> bool {
        match (self, opened) {
            (Self::At(now), Some(Self::At(then))) => then.ms_until(now).is_none_or(|ms| ms >= 0),
            // The server stamps its lines: one with a level only is none of them.
            (Self::Level, Some(Self::At(_))) => false,
            _ => true,
        }
    }
}

fn head(text: &str) -> Option<Head> {
    const LEVELS: &[&str] = &["INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL"];
    let bare =
        text.strip_prefix('(').and_then(|t| t.split_once(") ")).filter(|(tag, _)| tag.contains("pid="));
    let text = bare.map_or(text, |(_, rest)| rest);
    let level = LEVELS.iter().any(|l| text.starts_with(l));
    let opens = level || text.starts_with('[') || text.starts_with(|c: char| c.is_ascii_digit()) || {
        let b = text.as_bytes();
        // glog: I0424 17:25:31
        b.first().is_some_and(u8::is_ascii_uppercase)
            && b.get(1..5).is_some_and(|d| d.iter().all(u8::is_ascii_digit))
    };
    if !opens {
        return None;
    }
    let end = text.char_indices().nth(48).map_or(text.len(), |(i, _)| i);
    match find_stamp(text.get(..end).unwrap_or(text)) {
        Some(at) => Some(Head::At(at)),
        None => level.then_some(Head::Level),
    }
}

#[cfg(test)]
mod tests {
    use super::lines_behind;

    #[test]
    fn a_quote_ends_where_it_closes() {
        let q = "INFO 03-24 11:40:10 logger.py:39] Received request c-1: prompt: 'why?";
        let from = q.len() - "'why?".len();
        let behind = |lines: &[&str]| lines_behind(q, from, lines.iter()).quoted;
        let next = "INFO 03-24 11:40:11 engine.py:1] Added request";
        assert_eq!(
            behind(&["  File \"x.py\", line 1, in f", "torch.OutOfMemoryError: x', params: P(n=1)"]),
            2
        );
        assert_eq!(behind(&["print('x')", "E: CUDA', lora_request: None.", next]), 2);
        assert_eq!(behind(&["print('x')", "E: CUDA')", next]), 2);
        // A log that is quoted is older than the question.
        assert_eq!(behind(&["ERROR 03-24 09:00:00 core.py:1] CUDA out of memory", "thanks'", next]), 2);
        // Cut prompts: the server's own lines behind it count.
        assert_eq!(behind(&["it's cut", next, "E: CUDA', params: P(n=1)"]), 0);
        assert_eq!(behind(&["torch.OutOfMemoryError: x"]), 0);
        // Closed in its own line.
        let whole = format!("{q}', params: P(n=1)");
        assert_eq!(lines_behind(&whole, from, ["x', params: y"].iter()), super::Behind::default());
        let long: Vec<String> = (0..super::MAX_LINES + 5).map(|i| format!("line {i}'")).collect();
        assert_eq!(lines_behind(q, from, long.iter()).quoted, 0);
    }

    #[test]
    fn lines_of_a_prompt_are_held_and_the_work_is_bounded() {
        let q = "INFO 03-24 11:40:10 logger.py:39] Received request c-1: prompt: 'why?";
        let from = q.len() - "'why?".len();
        let mut prompts = super::Prompts::default();
        assert!(prompts.follow(7, q, from, ["Traceback", "E: CUDA', params: P(n=1)", "next"].iter()));
        assert_eq!([7, 8, 9, 10].map(|n| prompts.hold(n)), [true, true, true, false]);
        // Each line opens a quote that none closes.
        let open: Vec<&str> = vec!["it goes on"; 5000];
        let mut prompts = super::Prompts::default();
        let mut looked = 0_u64;
        for n in 1..=500 {
            prompts.follow(n, q, from, open.iter().inspect(|_| looked += 1));
        }
        assert!(looked <= 2 * 500 + 2 * super::MAX_LINES, "{looked}");
    }
}
