//! Masks a text line by line, in whatever wrapping the lines stand, and follows what reaches over several: private keys,
//! prompts, lines that a runtime cut, an environment variable whose value stands in the next line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Redactor;
use super::frame::Frame;
use super::name::{is_harmless, judge};
use super::spans;
use super::{json_tail, pem};
use crate::evidence::parts::{Cut, Joined, Parts};
use crate::evidence::{LogSource, prefix};
use crate::facts::{lines, quote, trace};
use crate::knowledge::Knowledge;

/// Parts of one line that a runtime cut are joined up to this many bytes; longer ones are masked part by part.
const MAX_JOINED: usize = 4 << 20;
/// Lines behind a prompt that nothing closes.
const MAX_OPEN: u64 = quote::MAX_LINES;

/// Masks a text of many lines.
pub(super) fn redact<'t>(r: &mut Redactor<'_>, text: &'t str) -> Cow<'t, str> {
    let mut walk = Walk::new(text);
    let mut lines = text.split('\n');
    let mut i = 0;
    while let Some(raw) = lines.next() {
        walk.line(r, i, raw, &lines);
        i += 1;
    }
    for group in std::mem::take(&mut walk.cut).left() {
        walk.parts(r, group, &lines);
    }
    walk.finish(text)
}

/// A part of a line that a runtime cut, with its line number.
type Part<'t> = (usize, Frame<'t>);

struct Walk<'t> {
    /// Tells the tool whose prefix stands before each line.
    log: LogSource,
    /// New lines, by their index.
    new: BTreeMap<usize, String>,
    /// Lines that a runtime cut.
    cut: Parts<Part<'t>>,
    prompts: quote::Prompts,
    /// Lines of a prompt that nothing closes go on, up to this many and to this depth of brackets.
    open: Option<(u64, Option<i64>)>,
    pem: pem::Block,
    /// One of so many next lines may hold the value of a secret variable; another stream may have come between.
    variable: Option<(String, u32)>,
}

impl<'t> Walk<'t> {
    fn new(text: &str) -> Self {
        let log = LogSource { prefix: prefix::of(text.as_bytes()), ..LogSource::default() };
        Self {
            log,
            new: BTreeMap::new(),
            cut: Parts::default(),
            prompts: quote::Prompts::default(),
            open: None,
            pem: pem::Block::default(),
            variable: None,
        }
    }

    fn line(
        &mut self,
        r: &mut Redactor<'_>,
        i: usize,
        raw: &'t str,
        next: &(impl Iterator<Item = &'t str> + Clone),
    ) {
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        if raw.is_empty() {
            return;
        }
        let quoted = self.prompts.hold(i as u64 + 1);
        let cut = self.cut.any_open();
        let going_on = quoted || cut || self.open.is_some() || self.pem.is_open() || self.variable.is_some();
        if !going_on && !worth_a_look(r.knowledge, raw) {
            return;
        }
        let frame = Frame::of(&self.log, raw);
        if quoted {
            self.put(r, i, frame, Some(String::new()));
            return;
        }
        let cut = Cut { stderr: frame.stderr, partial: frame.partial, bytes: frame.text.len() };
        match self.cut.take(cut, frame, |frame, _| (i, frame)) {
            Joined::Whole(frame) => {
                let text = frame.text.clone();
                let message = self.message(r, i, &text, next);
                self.put(r, i, frame, message);
            }
            Joined::Line(parts) => self.parts(r, parts, next),
            Joined::Open => {
                if let Some(parts) = self.cut.longer_than(MAX_JOINED) {
                    self.parts(r, parts, next);
                }
            }
        }
    }

    /// The new message of a line; `None` where it stays.
    fn message(
        &mut self,
        r: &mut Redactor<'_>,
        i: usize,
        text: &str,
        next: &(impl Iterator<Item = &'t str> + Clone),
    ) -> Option<String> {
        if let Some(masked) = self.opened_before(r, text) {
            return Some(masked);
        }
        let spans = spans::find(r.knowledge, text);
        self.variable = variable(r, text).or(self.variable.take());
        if self.pem.opens(text) && spans.secrets.iter().all(|s| s.id != "private_key") {
            r.note("private_key");
        }
        if let Some(masked) = json_tail::redact(r, text, &spans) {
            return matches!(masked, Cow::Owned(_)).then(|| masked.into_owned());
        }
        if let Some(from) = spans.user {
            self.follow(i, text, from, next);
        }
        match r.message(text, &spans) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        }
    }

    /// What a line becomes that goes on with what an earlier one opened.
    fn opened_before(&mut self, r: &mut Redactor<'_>, text: &str) -> Option<String> {
        if let Some(masked) = self.pem.goes_on(text) {
            return Some(masked);
        }
        if self.goes_on(r.knowledge, text) {
            return Some(String::new());
        }
        self.value(r, text)
    }

    /// Where a user's text goes on behind its first line.
    fn follow(&mut self, i: usize, text: &str, from: usize, next: &(impl Iterator<Item = &'t str> + Clone)) {
        // Masked before: what stood behind it is masked as well.
        let tail = text.get(from..).unwrap_or_default();
        if tail.trim().trim_matches(['"', '\'', '`']) == "[redacted:user_text]" {
            return;
        }
        let quote = quote::quote_at(text, from);
        if quote.is_some_and(|(_, closed)| closed) {
            return;
        }
        let log = &self.log;
        let ahead = next.clone().map(|l| Frame::of(log, l.strip_suffix('\r').unwrap_or(l)).text);
        if self.prompts.follow(i as u64 + 1, text, from, ahead) {
            return;
        }
        let (before, _) = text.split_at_checked(from).unwrap_or((text, ""));
        let bracket = before.ends_with(['[', '{', '(']) || tail.trim_start().starts_with(['[', '{', '(']);
        if bracket {
            let depth = i64::from(before.ends_with(['[', '{', '('])) + brackets(tail);
            if depth > 0 {
                self.open = Some((MAX_OPEN, Some(depth)));
            }
            return;
        }
        // Where lines have no time, a quote that stands twice is taken for closed.
        let closed = quote
            .is_some_and(|(q, _)| tail.matches(q).count() > 1 || before.ends_with(q) && tail.contains(q));
        if quote::begins_record(text) || quote.is_some() && !closed {
            self.open = Some((MAX_OPEN, None));
        }
    }

    /// Whether a line still belongs to a prompt that nothing closes: the server's next record, or anything that a verdict may
    /// rest on, ends it.
    fn goes_on(&mut self, knowledge: &Knowledge, text: &str) -> bool {
        let Some((left, depth)) = self.open.as_mut() else { return false };
        let evidence = quote::begins_record(text)
            || lines::kernel_text(false, text).is_some()
            || lines::is_alarm(text, false)
            || trace::exception_name(trace::message_of(text)).is_some()
            || text.trim_start().starts_with("Traceback ")
            || knowledge.matches(text, |_| true).iter().any(|m| {
                knowledge.signature(m.id).is_some_and(|s| s.mark != crate::knowledge::Mark::UserText)
            });
        *left = left.saturating_sub(1);
        if evidence || *left == 0 {
            self.open = None;
            return false;
        }
        if let Some(depth) = depth {
            *depth += brackets(text);
            if *depth <= 0 {
                self.open = None;
            }
        }
        true
    }

    /// `value: …` behind a line `name: HF_TOKEN`.
    fn value(&mut self, r: &mut Redactor<'_>, text: &str) -> Option<String> {
        let (id, left) = self.variable.take()?;
        let rule = r.knowledge.names().secret.iter().find(|s| s.id == id)?;
        let start = text.len() - text.trim_start_matches([' ', '\t', '"', '\\']).len();
        let Some(behind) = text.get(start..)?.strip_prefix("value") else {
            self.variable = (left > 1).then(|| (id, left - 1));
            return None;
        };
        let behind = behind.trim_start_matches(['"', '\\', ' ']).strip_prefix(':')?.trim_start();
        let secret = behind.trim_end_matches([',', ' ', '}']).trim_matches(['"', '\'']);
        if is_harmless(secret, rule) {
            return None;
        }
        let at = text.len() - behind.len();
        r.note(&rule.id);
        let quote = if behind.starts_with(['"', '\'']) { behind.get(..1)? } else { "" };
        let comma = if behind.ends_with(',') { "," } else { "" };
        Some(format!("{}{quote}[redacted:{}]{quote}{comma}", text.get(..at)?, rule.id))
    }

    /// Parts of one line: what is found in the whole is masked in each part that holds some of it.
    fn parts(
        &mut self,
        r: &mut Redactor<'_>,
        parts: Vec<Part<'t>>,
        next: &(impl Iterator<Item = &'t str> + Clone),
    ) {
        let whole: String = parts.iter().map(|(_, f)| f.text.as_str()).collect();
        if let Some(mut masked) = self.opened_before(r, &whole) {
            for (i, frame) in parts {
                self.put(r, i, frame, Some(std::mem::take(&mut masked)));
            }
            return;
        }
        let found = spans::find(r.knowledge, &whole);
        self.variable = variable(r, &whole).or(self.variable.take());
        self.pem.opens(&whole);
        if let (Some(from), Some((last, _))) = (found.user, parts.last()) {
            self.follow(*last, &whole, from, next);
        }
        let mut start = 0;
        for (i, frame) in parts {
            let end = start + frame.text.len();
            let mut own = spans::Spans {
                secrets: Vec::new(),
                keys: false,
                user: found.user.filter(|u| *u < end).map(|u| u.saturating_sub(start)),
            };
            for s in found.secrets.iter().filter(|s| s.start < end && s.end > start) {
                let (from, to) = (s.start.saturating_sub(start), s.end.min(end) - start);
                own.secrets.push(spans::Span { start: from, end: to, id: s.id });
            }
            // A part that lies in a user's text as a whole goes as a whole.
            let whole_user = own.user == Some(0) && found.user.is_some_and(|u| u < start);
            let message = if whole_user && !frame.text.is_empty() {
                Some(String::new())
            } else {
                let text = frame.text.clone();
                match r.message(&text, &own) {
                    Cow::Owned(masked) => Some(masked),
                    Cow::Borrowed(_) => None,
                }
            };
            start = end;
            self.put(r, i, frame, message);
        }
    }

    fn put(&mut self, r: &mut Redactor<'_>, i: usize, frame: Frame<'_>, message: Option<String>) {
        if let Some(new) = frame.with(r, message) {
            r.edits += 1;
            self.new.insert(i, new);
        }
    }

    fn finish(self, text: &str) -> Cow<'_, str> {
        if self.new.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                out.push('\n');
            }
            match self.new.get(&i) {
                Some(new) => {
                    // One line stays one line, whatever a message held.
                    out.push_str(new);
                    if line.ends_with('\r') && !new.ends_with('\r') {
                        out.push('\r');
                    }
                }
                None => out.push_str(line),
            }
        }
        Cow::Owned(out)
    }
}

/// Whether a line can hold anything. Most lines are told by the automaton alone; of the rest, most hold a word like `tokens`
/// and nothing behind it, which is seen without taking the line out of its wrapping.
fn worth_a_look(knowledge: &Knowledge, raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let head = bytes.get(..bytes.len().min(64)).unwrap_or(bytes);
    if memchr::memmem::find(head, b" P ").is_some()
        || memchr::memchr(0x1b, bytes).is_some()
        || bytes.contains(&b'[') && raw.contains('m') && cut_colour(raw)
    {
        return true;
    }
    let plain = match unescaped(raw) {
        Some(plain) => plain,
        None => return true,
    };
    if !knowledge.gate().is_none_or(|g| g.any(&plain)) {
        return false;
    }
    // What reaches over the next lines.
    plain.contains("-----BEGIN ")
        || plain.contains("name:")
        || plain.contains("name\":")
        || !spans::find(knowledge, &plain).is_empty()
}

/// Colours whose escape byte was lost still stand between the letters of a secret: `[33mhf_…`.
fn cut_colour(raw: &str) -> bool {
    matches!(crate::text::strip_ansi(raw), Cow::Owned(_))
}

/// The line as it reads without the escapes of one JSON string; `None` where they are more than quotes and line ends, or where
/// a part of a line does not say that it is one.
fn unescaped(raw: &str) -> Option<Cow<'_, str>> {
    let docker = raw.starts_with("{\"log\":");
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return (!docker).then_some(Cow::Borrowed(raw));
    }
    if docker && !raw.contains("\\n\",\"") {
        return None;
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        match behind.chars().next()? {
            '"' => out.push('"'),
            '\'' => out.push('\''),
            'n' | 't' | 'r' => out.push(' '),
            _ => return None,
        }
        rest = behind.get(1..)?;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// A line `- name: HF_TOKEN` of a manifest whose value stands in the next; the rule's id.
fn variable(r: &Redactor<'_>, text: &str) -> Option<(String, u32)> {
    let bare = text.trim_start_matches([' ', '\t', '-', '{', '"', '\\']);
    let name = bare.strip_prefix("name")?.trim_start_matches(['"', '\\']).strip_prefix(':')?;
    let name = name.trim_matches([' ', ',', '"', '\'', '\\', '\r']);
    judge(r.knowledge.names(), name, true).map(|s| (s.id.clone(), 2))
}

/// Brackets opened less those closed, outside of double quotes.
fn brackets(text: &str) -> i64 {
    let (mut depth, mut inside, mut escaped) = (0, false, false);
    for b in text.bytes() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => inside = !inside,
            b'[' | b'{' | b'(' if !inside => depth += 1,
            b']' | b'}' | b')' if !inside => depth -= 1,
            _ => {}
        }
    }
    depth
}
