//! What people write around the logs that they paste. A title that quotes an error is no line of a log.

use crate::evidence::framing::process_of;
use crate::evidence::{LogSource, Role};
use crate::time::find_stamp;

/// A text with more lines is a log and no message.
const MESSAGE: usize = 200;
/// So many lines inside fences must look like a log's before what stands outside is taken for prose.
const ENOUGH: usize = 3;

/// Which lines are prose: those outside of fences that do not begin as a log's do, in a text whose logs stand in fences.
pub(in crate::evidence) fn lines(text: &[&str]) -> Option<Vec<bool>> {
    let mut open: Option<&str> = None;
    let mut closed = 0;
    let mut logged = 0;
    let mut outside = Vec::with_capacity(text.len());
    for line in text {
        let bare = line.trim_start_matches(['>', ' ']);
        let mark = ["```", "~~~"].into_iter().find(|m| bare.starts_with(m));
        match (open, mark) {
            (None, Some(mark)) => open = Some(mark),
            (Some(o), Some(mark)) if o == mark => {
                open = None;
                closed += 1;
            }
            (Some(_), _) => logged += usize::from(logs(line)),
            (None, None) => {}
        }
        outside.push(open.is_none() && mark.is_none() && !logs(line));
    }
    // A fence that is never closed says nothing of where prose begins.
    (closed > 0 && open.is_none() && logged >= ENOUGH).then_some(outside)
}

/// The lines of a short paste that no logger wrote, each with its number: an alert or a chat quotes one sentence of an event
/// without its table. A log of a container is none: there those sentences are quotes.
pub(crate) fn sentences(log: &LogSource) -> Vec<(u64, &str)> {
    let text = std::str::from_utf8(&log.bytes).unwrap_or_default();
    let short = || text.lines().nth(MESSAGE).is_none();
    if log.role != Role::Unsaid || log.kernel || log.sifted || !short() {
        return Vec::new();
    }
    let number = |i: usize| log.numbers.as_ref().and_then(|n| n.get(i).copied()).unwrap_or(i as u64 + 1);
    let all = text.lines().enumerate().map(|(i, line)| (number(i), line));
    all.filter(|(_, line)| !line.trim().is_empty() && !logs(line)).collect()
}

/// A line with a time stamp, a level, a rank or a process at its begin.
pub(in crate::evidence) fn logs(line: &str) -> bool {
    const LEVELS: &[&str] = &["INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL", "TRACE"];
    let bare = line.trim_start();
    let level = LEVELS.iter().any(|l| bare.strip_prefix(l).is_some_and(|r| r.starts_with([' ', ':', 'I'])));
    level
        || process_of(bare).is_some()
        || find_stamp(bare).is_some()
        || bare.starts_with("Traceback (most")
        || ["slot ", "srv ", "llama_", "ggml_", "main: ", "File \""].iter().any(|p| bare.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn titles_are_prose_and_logs_are_not() {
        let text = "### CUDA error: out of memory on start\n\n```\nINFO 1 a\nERROR 2 b\nslot x\n```\nINFO 08-20 10:20:11 said again\nwhy?";
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(lines(&all).unwrap(), [true, true, false, false, false, false, false, false, true]);
        for bare in [
            "CUDA error: out of memory\nINFO x",
            "```\nINFO a\nINFO b\nINFO c",
            "```\nx\n```\nCUDA error: out of memory",
        ] {
            assert_eq!(lines(&bare.lines().collect::<Vec<_>>()), None, "{bare}");
        }
    }
}
