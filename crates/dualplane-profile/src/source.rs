//! A source line by line: what it is, by its content, and what it tells.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::csv::{Heads, heads};
use crate::forms::{What, forms};
use crate::keys::{scan, stamp};
use crate::metrics::Grown;
use crate::spans;
use crate::tally::{Seen, Tally};
use crate::walk::{Blocks, walk};

/// Of a longer line the rest is not read; requests with pictures in them are some MiB.
const MAX_LINE: usize = 8 << 20;
/// A document over many lines is kept until its end; of a larger one nothing is read.
const MAX_DOCUMENT: usize = 64 << 20;
/// Requests of which a part is known and the rest is waited for.
const MAX_PENDING: usize = 65_536;

/// What a source is.
#[derive(Debug, Clone)]
enum Mode {
    /// Nothing was read yet.
    Fresh,
    /// A log: lines of any program, JSON among them.
    Lines,
    Table(Heads),
    /// A page of metrics.
    Metrics,
    /// One JSON document over many lines.
    Document(Vec<u8>),
    /// A document that is too large.
    TooLarge,
}

/// Counts what sources tell of requests.
#[derive(Debug)]
pub struct Profiler {
    pub(crate) tally: Tally,
    mode: Mode,
    blocks: Blocks,
    pending: HashMap<u64, Seen>,
    /// The request of which lines without an id are.
    current: Option<u64>,
    pub(crate) grown: Grown,
    pub(crate) lines: u64,
    pub(crate) sources: Vec<String>,
    rest: Vec<u8>,
    cut: bool,
    /// Documents that were too large, for a remark.
    pub(crate) too_large: u32,
    last_at: Option<f64>,
}

impl Profiler {
    /// Counts requests; those above this many tokens are long.
    #[must_use]
    pub fn new(long_above: u64) -> Self {
        Self {
            tally: Tally::new(long_above),
            mode: Mode::Fresh,
            blocks: Blocks::default(),
            pending: HashMap::new(),
            current: None,
            grown: Grown::default(),
            lines: 0,
            sources: Vec::new(),
            rest: Vec::new(),
            cut: false,
            too_large: 0,
            last_at: None,
        }
    }

    /// Requests that were counted so far.
    #[must_use]
    pub const fn counted(&self) -> u64 {
        self.tally.all.n
    }

    /// A source begins. Its name is for the shape's `source`: a file's name, never its path.
    pub fn begin(&mut self, name: &str) {
        self.end();
        self.sources.push(name.to_owned());
    }

    /// Takes the next bytes of the source.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(at);
            bytes = tail.get(1..).unwrap_or_default();
            if self.rest.is_empty() && !self.cut {
                self.line(head);
            } else {
                self.keep(head);
                let line = std::mem::take(&mut self.rest);
                self.cut = false;
                self.line(&line);
                // The buffer is used again.
                self.rest = line;
                self.rest.clear();
            }
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.rest.len());
        self.cut |= bytes.len() > room;
        self.rest.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// The source ends.
    pub fn end(&mut self) {
        let line = std::mem::take(&mut self.rest);
        self.cut = false;
        if !line.is_empty() {
            self.line(&line);
        }
        if let Mode::Document(text) = std::mem::replace(&mut self.mode, Mode::Fresh)
            && let Ok(document) = serde_json::from_slice::<Value>(&text)
        {
            self.document(&document, None);
        }
        for (_, seen) in std::mem::take(&mut self.pending) {
            self.tally.add(seen);
        }
        self.current = None;
        self.last_at = None;
    }

    /// Takes an answer of Prometheus to a query of [`crate::histograms`].
    pub fn answer(&mut self, mut answer: Value, name: &str, seconds: f64) {
        // The query says what grew already: the last value of a range of one point.
        let list = answer.pointer_mut("/data/result").and_then(Value::as_array_mut);
        for series in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(last) =
                series.remove("values").and_then(|v| v.as_array().and_then(|a| a.last().cloned()))
            {
                series.insert("value".into(), last);
            }
        }
        self.grown.answer(&answer, Some(name));
        self.grown.over(seconds);
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.lines += 1;
        if matches!(self.mode, Mode::Fresh) {
            self.mode = self.recognise(line);
            if matches!(self.mode, Mode::Table(_)) {
                return;
            }
        }
        match &mut self.mode {
            Mode::Table(heads) => {
                if let Some(seen) = heads.row(line) {
                    self.tally.add(seen);
                }
            }
            Mode::Metrics => {
                if let Ok(text) = std::str::from_utf8(line) {
                    self.grown.line(text);
                }
            }
            Mode::Document(text) if text.len() + line.len() < MAX_DOCUMENT => {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
            Mode::Document(_) => {
                self.mode = Mode::TooLarge;
                self.too_large += 1;
            }
            Mode::TooLarge => {}
            Mode::Lines | Mode::Fresh => self.log(line),
        }
    }

    fn recognise(&self, line: &[u8]) -> Mode {
        if let Some(heads) = heads(line) {
            return Mode::Table(heads);
        }
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start();
        if text.starts_with("# HELP ") || text.starts_with("# TYPE ") {
            return Mode::Metrics;
        }
        if text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            let opens = text.len() < 512 && serde_json::from_str::<Value>(text).is_err_and(|e| e.is_eof());
            if opens {
                return Mode::Document(Vec::new());
            }
        }
        Mode::Lines
    }

    fn log(&mut self, line: &[u8]) {
        // What users wrote must not count: a whole JSON line is read by its keys alone.
        if let Some(at) = memchr::memchr(b'{', line) {
            let (before, json) = line.split_at(at);
            if line.last() == Some(&b'}') && before.len() < 256 && self.json(before, json) {
                return;
            }
        }
        if let Some((what, told)) = forms().read(line) {
            let mut seen = told.seen;
            seen.at = seen.at.or_else(|| self.time(line));
            match what {
                What::Request => {
                    seen.at = begun(seen);
                    self.tally.add(seen);
                }
                What::Arrival => {
                    let keys = scan(line);
                    seen.merge(keys);
                    self.tally.add(seen);
                }
                What::Part => {
                    let id = told.id.or(self.current);
                    self.current = id;
                    if let Some(id) = id {
                        self.part(id, seen);
                    }
                }
                What::Last => {
                    let id = told.id.or(self.current);
                    let mut whole = id.and_then(|id| self.pending.remove(&id)).unwrap_or_default();
                    // The time of the end is no time of a beginning.
                    let ended = seen.at.take();
                    whole.merge(seen);
                    whole.at = whole.at.or(ended.map(|at| at - whole.seconds.unwrap_or(0.0)));
                    self.current = None;
                    self.tally.add(whole);
                }
                What::Stats => {
                    if let Some(n) = told.running {
                        self.tally.running(n);
                    }
                    if let Some(percent) = told.hit_percent.filter(|p| (0.0..=100.0).contains(p)) {
                        self.tally.hits = (self.tally.hits.0 + 1, self.tally.hits.1 + percent / 100.0);
                    }
                    if let Some((all, cached)) = told.prefill {
                        self.tally.cached = (self.tally.cached.0 + all, self.tally.cached.1 + cached);
                    }
                }
            }
            return;
        }
        let mut seen = scan(line);
        if seen.input.is_some() && seen.output.is_some() {
            seen.at = self.time(line);
            seen.at = begun(seen);
            self.tally.add(seen);
        }
    }

    /// The time of a line, or of the last one that had any.
    fn time(&mut self, line: &[u8]) -> Option<f64> {
        let head = line.get(..160).unwrap_or(line);
        let found = stamp(&String::from_utf8_lossy(head));
        self.last_at = found.or(self.last_at);
        self.last_at
    }

    fn part(&mut self, id: u64, seen: Seen) {
        if let Some(known) = self.pending.get_mut(&id) {
            known.merge(seen);
        } else if self.pending.len() < MAX_PENDING {
            self.pending.insert(id, seen);
        }
    }

    /// Takes a line that is JSON, perhaps with a runtime's words before it.
    fn json(&mut self, before: &[u8], json: &[u8]) -> bool {
        let spans = memchr::memmem::find(json, b"esourceSpans").is_some()
            || memchr::memmem::find(json, b"resource_spans").is_some();
        let answer = memchr::memmem::find(json, b"\"resultType\"").is_some();
        if (spans || answer)
            && let Ok(document) = serde_json::from_slice::<Value>(json)
        {
            self.document(&document, None);
            return true;
        }
        let Some(mut seen) = walk(json, &mut self.blocks) else { return false };
        if seen.at.is_none() {
            seen.at = self.time(before);
        }
        if seen.has_length() || (seen.characters > 0 && seen.most_output.is_some()) {
            self.tally.add(seen);
            return true;
        }
        // A log in JSON holds an engine's own line.
        if let Some(message) = message(json) {
            let mut line = String::from_utf8_lossy(before).into_owned();
            if let Some(at) = seen.at {
                self.last_at = Some(at);
            }
            let _ = write!(line, "{message}");
            if !line.starts_with('{') {
                self.log(line.as_bytes());
            }
        }
        true
    }

    fn document(&mut self, document: &Value, name: Option<&str>) {
        if let Some(requests) = spans::requests(document) {
            requests.into_iter().for_each(|seen| self.tally.add(seen));
            return;
        }
        if self.grown.answer(document, name) {
            return;
        }
        match document {
            Value::Array(list) => {
                for one in list.iter().filter(|v| v.is_object()) {
                    self.document(one, None);
                }
            }
            one => {
                if let Some(seen) = walk(one.to_string().as_bytes(), &mut self.blocks)
                    && (seen.has_length() || (seen.characters > 0 && seen.most_output.is_some()))
                {
                    self.tally.add(seen);
                }
            }
        }
    }
}

/// When a request began of which a line tells at its end.
fn begun(seen: Seen) -> Option<f64> {
    seen.at.map(|at| at - seen.seconds.unwrap_or(0.0))
}

/// What a JSON line of a log says in words.
fn message(json: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(alias = "msg", alias = "log")]
        message: String,
    }
    serde_json::from_slice::<Line>(json).ok().map(|l| l.message)
}
