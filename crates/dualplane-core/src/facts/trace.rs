//! Tracebacks, kept per process, because ranks interleave in one log.

use std::collections::HashMap;

use dualplane_base::Phase;

use super::openings::{Opening, any};

/// A traceback longer than this is not one any more.
const MAX_LINES: u32 = 400;
/// Processes that are followed at the same time.
const MAX_PROCESSES: usize = 1024;

/// What opens a traceback, of Python and of its fault handler. Deep ones have some hundred lines.
pub(crate) const HEADINGS: &[Opening] = &[
    Opening::new("Traceback (most recent call last)", 2, 200),
    Opening::new("most recent call first", 2, 200),
];

#[derive(Debug, Default)]
struct Trace {
    open: bool,
    /// Its heading was cut off (`kubectl logs --tail`), and with it perhaps an error that it follows from: its frames tell a
    /// phase, its end is no cause.
    headless: bool,
    lines: u32,
    phase: Option<Phase>,
}

/// All tracebacks of one log.
#[derive(Debug, Default)]
pub(super) struct Traces {
    by_process: HashMap<String, Trace>,
    /// The process whose traceback was opened last: lines without a tag belong to it.
    last: String,
}

impl Traces {
    /// Names the process of a line and follows its traceback.
    pub(super) fn process(&mut self, tag: Option<&str>, text: &str) -> String {
        let opens = any(HEADINGS, text);
        let process = match tag {
            Some(tag) => tag.to_owned(),
            // SGLang and TGI print the frames bare behind a tagged heading.
            None if self.by_process.get(&self.last).is_some_and(|t| t.open) => self.last.clone(),
            None => String::new(),
        };
        if opens {
            if self.by_process.len() >= MAX_PROCESSES {
                self.by_process.clear();
            }
            let trace = self.by_process.entry(process.clone()).or_default();
            *trace = Trace { open: true, ..Trace::default() };
            self.last.clone_from(&process);
        } else if let Some(trace) = self.by_process.get_mut(&process) {
            trace.lines += 1;
            if trace.lines > MAX_LINES || tag.is_none() && starts_new_record(text) {
                trace.open = false;
            }
        }
        process
    }

    /// Whether the traceback that was opened last is open, and one of this source (a pod, a service).
    pub(super) fn open_of(&self, source: &str) -> bool {
        self.last.starts_with(source) && self.by_process.get(&self.last).is_some_and(|t| t.open)
    }

    /// A frame tells a phase. Loading and profiling outrank serving: `profile_run` calls `forward` too.
    pub(super) fn frame(&mut self, process: &str, phase: Phase) {
        if !self.by_process.contains_key(process) && self.by_process.len() < MAX_PROCESSES {
            let cut = Trace { open: true, headless: true, ..Trace::default() };
            self.by_process.insert(process.to_owned(), cut);
            process.clone_into(&mut self.last);
        }
        if let Some(trace) = self.by_process.get_mut(process).filter(|t| t.open) {
            let rank = |p: Phase| match p {
                Phase::Profile => 3,
                Phase::Load => 2,
                Phase::Traffic => 1,
                _ => 0,
            };
            if trace.phase.is_none_or(|old| rank(phase) >= rank(old)) {
                trace.phase = Some(phase);
            }
        }
    }

    /// The phase that the open traceback of a process tells.
    pub(super) fn phase(&self, process: &str) -> Option<Phase> {
        self.by_process.get(process).filter(|t| t.open).and_then(|t| t.phase)
    }

    /// Whether this message ends the process's traceback: the first line that is no frame.
    pub(super) fn ends(&self, process: &str, message: &str) -> bool {
        self.by_process.get(process).is_some_and(|t| t.open && !t.headless && t.lines > 0)
            && exception_name(message).is_some()
    }
}

/// A line without a process tag that opens with a time stamp or a level is not a frame.
fn starts_new_record(text: &str) -> bool {
    let head = text.trim_start();
    ["INFO", "WARNING", "DEBUG", "CRITICAL"].iter().any(|l| head.starts_with(l))
        || head.starts_with('[') && crate::time::find_stamp(head).is_some()
}

/// The message behind the prefixes that engines print: process tag, level, date, `[file.py:12]`, `[rank0]:`.
pub(crate) fn message_of(text: &str) -> &str {
    let mut rest = text;
    if let Some(inner) = rest.strip_prefix('(')
        && let Some((tag, after)) = inner.split_once(") ")
        && tag.contains("pid=")
    {
        rest = after;
    }
    if rest.starts_with("[rank") {
        rest = rest.split_once("]: ").map_or(rest, |(_, r)| r);
    }
    let level = ["ERROR ", "CRITICAL ", "WARNING ", "INFO "].iter().any(|l| rest.starts_with(l));
    if level || crate::time::find_stamp(rest).is_some() {
        // vLLM: "ERROR 04-02 09:27:44 [core.py:340] msg" and "… core.py:340] msg".
        if let Some(end) = rest.find("] ").filter(|e| *e < 90) {
            rest = rest.get(end + 2..).unwrap_or(rest);
        } else if let Some((_, message)) = rest.split_once("ERROR:").filter(|(head, _)| head.len() < 60) {
            rest = message.trim_start();
        }
    }
    rest
}

/// The class name of `package.Name: message`, where the line is one.
pub(crate) fn exception_name(message: &str) -> Option<&str> {
    if message.starts_with([' ', '\t']) {
        return None;
    }
    let end = message
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
        .unwrap_or(message.len());
    let (name, rest) = message.split_at_checked(end)?;
    let last = name.rsplit('.').next()?;
    let camel = last.starts_with(|c: char| c.is_ascii_uppercase()) && last.len() > 3;
    let known =
        ["Error", "Exception", "Interrupt", "Exit", "Failure", "Timeout", "Refused", "Died", "NotFound"]
            .iter()
            .any(|s| last.ends_with(s));
    (camel && known && (rest.is_empty() || rest.starts_with(':') || rest.starts_with('('))).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_and_prefixes() {
        for (line, want) in [
            (
                "(EngineCore_DP0 pid=610) ERROR 09-28 14:33:10 [core.py:718] RuntimeError: Error in function",
                Some("RuntimeError"),
            ),
            ("ERROR 10-15 06:10:09 async_llm_engine.py:61] ValueError: x", Some("ValueError")),
            ("[rank0]: torch.cuda.OutOfMemoryError: CUDA", Some("OutOfMemoryError")),
            ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore", Some("EngineDeadError")),
            ("KeyboardInterrupt: terminated", Some("KeyboardInterrupt")),
            ("    raise ValueError(", None),
            (
                "2024-11-20 10:15:31.774 ERROR:    AssertionError: Job requires 129 pages",
                Some("AssertionError"),
            ),
            ("Loading: x", None),
            ("OSError", Some("OSError")),
        ] {
            assert_eq!(exception_name(message_of(line)), want, "{line}");
        }
    }

    /// Wherever the head of a traceback is cut off, the frames that are left tell their phase, and no end of it is a cause.
    #[test]
    fn a_headless_traceback_tells_a_phase_and_no_cause() {
        let lines = ["  File \"a.py\", line 1, in load_model", "    return f()", "ValueError: x"];
        for tag in [None, Some("EngineCore pid=7")] {
            let mut t = Traces::default();
            let mut p = t.process(tag, lines[0]);
            t.frame(&p, Phase::Load);
            for line in &lines[1..] {
                p = t.process(tag, line);
            }
            assert_eq!((t.phase(&p), t.ends(&p, lines[2])), (Some(Phase::Load), false));
        }
    }

    #[test]
    fn profile_frames_outrank_forward() {
        let mut t = Traces::default();
        let p = t.process(
            Some("TP0"),
            "[2025-03-12 08:25:21 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        );
        t.frame(&p, Phase::Profile);
        let bare = t.process(None, "  File \"x.py\", line 1, in forward");
        assert_eq!(bare, "TP0");
        t.frame(&bare, Phase::Traffic);
        assert_eq!(t.phase("TP0"), Some(Phase::Profile));
    }
}
