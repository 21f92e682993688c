//! One pass over a log: signature hits, phases, tracebacks, kernel records.
//!
//! Ranks and processes interleave, so a traceback's frames are kept per process. Memory is bounded: see `found` and `xids`.

mod found;
mod listed;
mod node_log;
mod xids;

pub(crate) use found::KEPT_PER_SIGNATURE;
pub(crate) use listed::FAILED_ANSWERS;
pub use node_log::NodeLogs;

use std::borrow::Cow;
use std::collections::VecDeque;

use super::cut_trace::CutTraces;
use super::kernel_oom::{OomBuilder, RECORDS};
use super::lines::{contains, is_alarm, kernel_text};
use super::openings::any;
use super::owner::{Owners, Whose};
use super::trace::{Traces, exception_name, message_of};
use super::worded::{Worded, by_words, explains, of_words};
use super::{Exception, Facts, Hit, LogSummary, Place, quote, xid};
use crate::evidence::LogSource;
use crate::evidence::framing::{Unwrapped, process_of};
use crate::evidence::parts::{Cut, Joined, Parts};
use crate::evidence::prefix::unwrap;
use crate::knowledge::{Knowledge, Known, Level, Mark, Match, Scope, Signature, level_of_record};
use crate::time::Stamp;
use dualplane_base::order::Order as _;
use dualplane_base::{Class, Phase};

use self::found::Found;
use self::listed::Listed;
use self::node_log::{All, NodeLog};
use self::xids::Xids;

/// Longer lines are matched on their head only; the quoted text is cut there too.
const MAX_LINE: usize = crate::evidence::MAX_LINE;
/// How far back a signature's `context` looks.
pub(crate) const CONTEXT_LINES: usize = 40;

/// Scans one log into the facts.
pub(super) fn scan(log: &LogSource, knowledge: &Knowledge, owners: &Owners, facts: &mut Facts) {
    let mut scan = Scan::new(log, knowledge, owners);
    scan.lines();
    scan.finish(facts);
}

/// Scans a kernel log for all pods of its node; `None` where each has to for itself.
fn whole_node(log: &LogSource, knowledge: &Knowledge) -> Option<NodeLog> {
    let nobody = Owners::default();
    let mut scan = Scan::new(log, knowledge, &nobody);
    scan.all = Some(All::default());
    scan.lines();
    scan.finish_for_all()
}

struct Scan<'a> {
    log: &'a LogSource,
    knowledge: &'a Knowledge,
    owners: &'a Owners,
    found: Found,
    /// Where it is read for all pods of a node: what was found, whosever it is.
    all: Option<All>,
    traces: Traces,
    cut: CutTraces,
    recent: VecDeque<(Option<Cow<'a, str>>, &'a [u8])>,
    ooms: OomBuilder,
    xids: Xids,
    listed: Listed,
    summary: LogSummary,
    /// Lines that a runtime cut.
    parts: Parts<Part>,
    source: Option<String>,
    /// The line is a record of a structured logger.
    record: bool,
    /// Where in the line at hand a user's text begins.
    user_text: Option<usize>,
    /// The server's run ended in order, and no line shows yet what the next one does.
    between_runs: bool,
    prompts: quote::Prompts,
    /// The last error that only its words judge.
    worded: Option<Worded>,
    /// A fatal error was printed.
    failed: bool,
}

impl<'a> Scan<'a> {
    fn new(log: &'a LogSource, knowledge: &'a Knowledge, owners: &'a Owners) -> Self {
        Self {
            log,
            knowledge,
            owners,
            found: Found::default(),
            all: None,
            traces: Traces::default(),
            cut: CutTraces::default(),
            recent: VecDeque::with_capacity(CONTEXT_LINES),
            ooms: OomBuilder::default(),
            xids: Xids::default(),
            listed: Listed::default(),
            summary: LogSummary::of(log),
            parts: Parts::default(),
            source: None,
            record: false,
            user_text: None,
            between_runs: false,
            prompts: quote::Prompts::default(),
            worded: None,
            failed: false,
        }
    }

    fn lines(&mut self) {
        let log = self.log;
        let numbers = log.numbers.as_deref().filter(|_| log.sifted).unwrap_or_default();
        let mut lines = log.bytes.split(|b| *b == b'\n');
        let mut i = 0;
        while let Some(raw) = lines.next() {
            // Lines are missing here: a traceback or a line in parts does not go on behind them.
            if i > 0 && numbers.get(i).zip(numbers.get(i - 1)).is_some_and(|(now, last)| *now > last + 1) {
                self.interrupted();
            }
            i += 1;
            self.line(i as u64, raw, &lines);
        }
    }

    fn interrupted(&mut self) {
        self.traces = Traces::default();
        self.parts = Parts::default();
        self.found.interrupted();
        self.recent.clear();
    }

    /// One line; `next` are those behind it.
    fn line(&mut self, number: u64, bytes: &'a [u8], next: &(impl Iterator<Item = &'a [u8]> + Clone)) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.is_empty() {
            return;
        }
        if self.prompts.hold(number) {
            self.summary.lines = number;
            return;
        }
        let raw = head_of(bytes);
        let Unwrapped { text, stamp, stderr, partial, source, record } = unwrap(self.log, &raw);
        self.source = source;
        // Of parts of a line the last tells.
        self.record = record;
        self.summary.lines = number;
        if stamp.is_some() {
            self.summary.first = self.summary.first.or(stamp);
            self.summary.last = stamp;
        }
        // The parts of a cut line are matched as one and cited by the first.
        let keep = |text: Cow<'_, str>, before: usize| Part {
            number,
            raw: if before == 0 { raw.clone().into_owned() } else { String::new() },
            text: if before < MAX_LINE || !partial { text.into_owned() } else { String::new() },
        };
        match self.parts.take(Cut { stderr, partial, bytes: text.len() }, text, keep) {
            Joined::Open => {}
            Joined::Whole(text) => {
                self.message(number, &raw, &text, stamp, bytes);
                self.quote(number, &text, next);
            }
            Joined::Line(parts) => {
                let Some((first, raw, text)) = whole(parts) else { return };
                self.message(first, &raw, &text, stamp, bytes);
                self.quote(number, &text, next);
            }
        }
    }

    /// Where the line ends inside a text that a user wrote, the lines up to its end are no evidence.
    fn quote(&mut self, number: u64, text: &str, next: &(impl Iterator<Item = &'a [u8]> + Clone)) {
        let Some(from) = self.user_text.take() else { return };
        let log = self.log;
        let next = next.clone().map(|line| unwrap(log, &head_of(line)).text.into_owned());
        self.prompts.follow(number, text, from, next);
    }

    fn message(&mut self, number: u64, raw: &str, text: &str, stamp: Option<Stamp>, bytes: &'a [u8]) {
        let place = Place { file: self.log.name.clone(), line: Some(number) };
        self.listed.line(number, text, &place, self.recent.back().map(|(_, b)| *b), &mut self.summary);
        let tag = match (&self.source, process_of(text)) {
            (None, tag) => tag.map(str::to_owned),
            (Some(source), Some(tag)) => Some(format!("{source} {tag}")),
            // A bare line of the source whose traceback is open belongs to that traceback.
            (Some(source), None) => (!self.traces.open_of(source)).then(|| source.clone()),
        };
        let process = self.traces.process(tag.as_deref(), text);
        self.found.sizes_below(&process, text);
        let recent = &self.recent;
        let near = |literal: &str| {
            recent.iter().any(|(p, line)| {
                (p.is_none() || tag.is_none() || p.as_deref() == tag.as_deref())
                    && contains(line, literal.as_bytes())
            })
        };
        let Known { mut matches, quotes_error, worth_reading } = self.knowledge.known(text, near);
        let level = self.record.then(|| level_of_record(raw)).flatten();
        self.drop_quiet(level, &mut matches);
        // What a user wrote is no evidence for any reader: kernel records and exceptions see only what stands before it.
        let own = matches.iter().filter(|m| self.mark(m) == Some(Mark::UserText)).map(|m| m.end).min();
        self.user_text = own;
        if quotes_error {
            self.summary.quoted_error = Some((number, raw.to_owned()));
        }
        let own = own.and_then(|end| text.get(..end)).unwrap_or(text);
        let kernel = kernel_text(self.log.kernel, own);
        if let Some(kernel) = kernel {
            self.kernel(&place, raw, kernel, stamp);
        }
        // Phases first, so that a heading's phase holds for the error in the same line; then, where several hold for one
        // line, the more specific: by context, then the engine's own.
        matches.order_by_key(|m| {
            let s = self.knowledge.signature(m.id);
            s.map_or((true, true, true), |s| {
                (s.mark != Mark::Phase, !s.by_context(), s.file.starts_with("runtime/"))
            })
        });
        // A traceback shows the source line that raises before the exception itself.
        let said = message_of(own);
        let source_line = said.trim_start().starts_with("raise ");
        self.cut.line(&process, said, number, raw);
        // The words of a kill are read as its record, whosever it is.
        let mut explained = kernel.is_some_and(|k| any(RECORDS, k));
        let mut line_phase = None;
        let of_words_only = |m: &&Match| self.knowledge.signature(m.id).is_some_and(Signature::of_exceptions);
        let worded: Vec<Match> = matches.iter().filter(of_words_only).cloned().collect();
        for m in matches {
            let Some(s) = self.knowledge.signature(m.id).filter(|s| !s.of_objects() && !s.of_exceptions())
            else {
                continue;
            };
            if s.file == "kernel" && kernel.is_none() || source_line && s.mark != Mark::Phase {
                continue;
            }
            explained |= !matches!(s.mark, Mark::Info | Mark::Phase);
            if s.mark == Mark::Phase && s.scope == Scope::Frame {
                line_phase = line_phase.or(s.phase);
            }
            self.matched(s, m, &place, raw, stamp, &process, line_phase);
        }
        if !explained && is_alarm(own, kernel.is_some()) {
            self.next_run();
            self.summary.alarm = Some((number, raw.to_owned()));
        }
        if !explained {
            let ends = self.traces.ends(&process, said);
            self.exception(&place, raw, own, stamp, &process);
            // The drivers' own structures are refused in words that mean no more than a kernel's record beside them.
            let asked = !ends && !source_line && kernel.is_none();
            let words =
                Some(worded).filter(|_| asked).and_then(|w| of_words(self.knowledge, own, &w, worth_reading));
            if let Some(found) = words.filter(|w| w.is_error(own, level)).map(|w| w.found) {
                let (raw, process) = (raw.to_owned(), process.clone());
                self.worded = Some(Worded { found, place: place.clone(), raw, stamp, process });
            }
        }
        if self.failed
            && process_of(text).is_some()
            && let Some(tag) = tag.as_deref().filter(|tag| shows_work(tag, text))
        {
            self.works(tag, number);
        }
        if self.recent.len() == CONTEXT_LINES {
            self.recent.pop_front();
        }
        self.recent.push_back((tag.map(Cow::Owned), bytes));
        if !text.trim().is_empty() {
            self.summary.last_line = Some((number, raw.to_owned()));
        }
    }

    /// The level of a structured record stands beside its message.
    fn drop_quiet(&self, level: Option<Level>, matches: &mut Vec<Match>) {
        if level.is_some() && matches.iter().any(|m| self.mark(m) == Some(Mark::Failure)) {
            matches.retain(|m| self.knowledge.signature(m.id).is_none_or(|s| !s.unlike(level)));
        }
    }

    /// A process speaks behind a fatal error as one that lives.
    fn works(&mut self, tag: &str, number: u64) {
        /// Ranks of one log.
        const KEPT: usize = 64;
        self.depends();
        let spoke = &mut self.summary.spoke;
        if let Some(line) = spoke.get_mut(tag) {
            *line = number;
        } else if spoke.len() < KEPT {
            spoke.insert(tag.to_owned(), number);
        }
    }

    /// What this line says hangs on whose an earlier one is.
    fn depends(&mut self) {
        if let Some(all) = &mut self.all {
            all.depends = true;
        }
    }

    fn mark(&self, m: &Match) -> Option<Mark> {
        self.knowledge.signature(m.id).map(|s| s.mark)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one line's parts; a struct for one call would only rename them"
    )]
    fn matched(
        &mut self,
        s: &Signature,
        m: Match,
        place: &Place,
        raw: &str,
        stamp: Option<Stamp>,
        process: &str,
        line_phase: Option<Phase>,
    ) {
        if s.mark == Mark::Phase {
            let phase = s.phase.unwrap_or(Phase::Unknown);
            if s.scope == Scope::Frame {
                self.traces.frame(process, phase);
            } else if phase == Phase::Unknown {
                self.summary.run_ended = place.line;
                self.between_runs = true;
                self.depends();
            } else {
                self.next_run();
                self.summary.phase = phase;
                if matches!(phase, Phase::Traffic | Phase::Idle) {
                    self.summary.last_ready = place.line;
                }
                if phase == Phase::Traffic {
                    self.summary.last_served = place.line;
                    // An access line without a stamp was written after the last line that has one.
                    self.summary.last_served_at = stamp.or(self.summary.last);
                }
            }
            return;
        }
        if s.mark == Mark::UserText {
            return;
        }
        let id = m.id;
        let mut hit = Hit::of(s, m, place, raw, stamp);
        hit.kernel = self.log.kernel;
        // Not even counted: many lines of a neighbour must not crowd out the pod's own.
        if self.owners.of_hit(&hit) == Whose::Another {
            return;
        }
        if matches!(s.mark, Mark::Fatal | Mark::Degraded | Mark::Suspect | Mark::Failure | Mark::Death) {
            self.next_run();
        }
        self.failed |= s.mark == Mark::Fatal;
        let phase = self.phase_of(s, line_phase, process);
        hit.process = process.to_owned();
        hit.role = self.log.role;
        hit.phase = phase;
        match &mut self.all {
            None => self.found.hit(id, hit),
            Some(all) => all.hit(id, hit),
        }
    }

    /// A line is of a run that began after an orderly end: what the one before served tells nothing of it.
    fn next_run(&mut self) {
        if std::mem::take(&mut self.between_runs) {
            self.summary.last_served = None;
            self.summary.last_served_at = None;
            self.summary.last_ready = None;
            self.summary.last_5xx = None;
            self.summary.phase = Phase::Unknown;
        }
    }

    /// What the server was doing: the signature says it, else the frames of the traceback, else the log so far.
    fn phase_of(&self, s: &Signature, line_phase: Option<Phase>, process: &str) -> Phase {
        let told = line_phase.or_else(|| self.traces.phase(process)).unwrap_or(self.summary.phase);
        match (s.mark, s.phase, told) {
            // Who only notices knows less of it than the log: "the engine did not start" is said of a failed profile run.
            (Mark::Cascade | Mark::Death, Some(own), Phase::Unknown) => own,
            (Mark::Cascade | Mark::Death, Some(_), told) => told,
            (_, Some(own), _) => own,
            // A server without requests allocates nothing and fails in nothing: the first one has come.
            (Mark::Fatal | Mark::Degraded | Mark::Suspect | Mark::Failure, None, Phase::Idle)
                if !self.log.kernel && s.class.is_none_or(of_the_process) =>
            {
                Phase::Traffic
            }
            (_, None, told) => told,
        }
    }

    fn exception(&mut self, place: &Place, raw: &str, text: &str, stamp: Option<Stamp>, process: &str) {
        let message = message_of(text);
        let Some(name) = self.traces.ends(process, message).then(|| exception_name(message)).flatten() else {
            return;
        };
        // Memory words in the exception itself are no advice: prefer a cautious class to "not memory".
        let knowledge = self.knowledge;
        if let Some((s, m)) = by_words(knowledge, message) {
            self.matched(s, m, place, raw, stamp, process, None);
            return;
        }
        self.next_run();
        self.found.exception(Exception {
            name: name.to_owned(),
            message: message.to_owned(),
            text: raw.to_owned(),
            place: place.clone(),
            phase: self.traces.phase(process).unwrap_or(self.summary.phase),
        });
    }

    fn kernel(&mut self, place: &Place, raw: &str, text: &str, stamp: Option<Stamp>) {
        self.ooms.line(place, raw, text, stamp);
        if let Some(event) = xid::parse(place, raw, text, stamp) {
            self.xids.take(event);
        }
    }

    fn finish(mut self, facts: &mut Facts) {
        self.end();
        self.found.finish(self.knowledge, facts);
        facts.ooms.append(&mut self.ooms.finish());
        facts.xids.append(&mut self.xids.kept);
        facts.logs.push(self.summary);
    }

    fn finish_for_all(mut self) -> Option<NodeLog> {
        self.end();
        NodeLog::of(self.all, self.found, self.ooms.finish(), self.xids, self.summary)
    }

    /// Takes what waited for a line behind the last one.
    fn end(&mut self) {
        let mut open: Vec<_> = std::mem::take(&mut self.parts).left().filter_map(whole).collect();
        open.order_by_key(|(number, ..)| *number);
        for (number, raw, text) in open {
            self.message(number, &raw, &text, None, b"");
        }
        if let Some(w) = self.worded.take().filter(|_| !self.found.hits().iter().any(explains))
            && let Some(s) = self.knowledge.signature(w.found.id)
        {
            self.matched(s, w.found, &w.place, &w.raw, w.stamp, &w.process, None);
        }
        self.summary.cut_trace = std::mem::take(&mut self.cut).first();
        self.summary.dropped_xids = self.xids.dropped;
    }
}

/// A failure of the process itself, as opposed to what a killer outside of it says.
fn of_the_process(class: Class) -> bool {
    !matches!(class, Class::HostOomKilled | Class::HostNodeOom | Class::XidHardware)
}

/// Whether a process of the engine tells of its work. A front end answers for engines that are gone, too.
fn shows_work(tag: &str, text: &str) -> bool {
    !tag.contains("APIServer") && [" INFO ", "Decode batch", "Prefill batch"].iter().any(|w| text.contains(w))
}

/// As much of a line as is read.
fn head_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(MAX_LINE)).unwrap_or(bytes))
}

/// A part of a line that a runtime cut.
struct Part {
    number: u64,
    raw: String,
    text: String,
}

/// The line that parts make: number and raw text of the first, and the text of all.
fn whole(parts: Vec<Part>) -> Option<(u64, String, String)> {
    let mut parts = parts.into_iter();
    let Part { number, raw, mut text } = parts.next()?;
    text.extend(parts.map(|p| p.text));
    Some((number, raw, text))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn facts(name: &str, text: &str, kernel: bool) -> Facts {
        let log = LogSource {
            name: name.into(),
            kernel,
            bytes: text.as_bytes().to_vec().into(),
            ..LogSource::default()
        };
        let mut facts = Facts::default();
        scan(&log, &Knowledge::embedded().unwrap(), &Owners::default(), &mut facts);
        facts
    }

    #[test]
    fn parts_are_joined_per_stream() {
        let f = facts(
            "0.log",
            "2026-01-01T00:00:00.000000000Z stderr P torch.OutOfMemoryError: CUDA out of memory. Tried to allocat\n\
             2026-01-01T00:00:00.000000001Z stdout F INFO other\n\
             2026-01-01T00:00:00.000000002Z stderr F e 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.01 GiB is allocated by PyTorch, and 899.74 MiB is reserved by PyTorch but unallocated.\n",
            false,
        );
        let hit = f.hits.iter().find(|h| h.class.is_some()).unwrap();
        assert_eq!(hit.place.line, Some(1));
        assert!(!hit.captures.is_empty(), "the numbers stand in the second part");
    }

    #[test]
    fn a_nested_record_says_what_the_plain_line_says() {
        let ids = |line: &str| {
            let f = facts("0.log", &format!("{line}\n"), false);
            f.hits.iter().map(|h| (h.id.clone(), h.class, h.captures.clone())).collect::<Vec<_>>()
        };
        for plain in [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free.",
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
            "RuntimeError: insufficient device memory for workspace",
            "the VRAM is large enough",
        ] {
            let text = serde_json::to_string(plain).unwrap();
            let want = ids(plain);
            for nested in [
                format!("{{\"attr\":{{\"message\":{text}}}}}"),
                format!("{{\"jsonPayload\":{{\"message\":{text}}},\"severity\":\"ERROR\"}}"),
                format!("{{\"log\":{{\"message\":{text}}}}}"),
                format!("{{\"body\":{{\"stringValue\":{text}}}}}"),
                format!(
                    "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{{\"stringValue\":{text}}}}}]}}]}}]}}"
                ),
            ] {
                assert_eq!(ids(&nested), want, "{nested}");
            }
        }
        // Its level counts where it stands beside the words.
        let quiet =
            "{\"fields\":{\"message\":\"insufficient device memory for workspace\"},\"level\":\"WARN\"}";
        assert!(ids(quiet).is_empty(), "{:?}", ids(quiet));
    }
}
