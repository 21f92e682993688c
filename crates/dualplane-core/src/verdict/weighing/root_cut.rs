//! The engine printed an error of its own before the end, and the line that names it is missing.

use super::Weighing;
use crate::facts::{LogSummary, Place};
use crate::verdict::case::Case;
use crate::verdict::proof::Log;
use crate::verdict::{Cited, Confidence, Decided, Plane};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "root_cut",
    adds: "doubt where a kill, an Xid or a status decides, and a traceback in the log lost the line that names its error",
    because: "a killed process prints no traceback: the engine failed by itself, possibly first",
    source: "CPython traceback format; signal(7): SIGKILL cannot be caught",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() == Plane::None {
        return;
    }
    let decides = decided.trigger.as_ref().map(|t| t.place.file.as_str());
    // A log that was reduced keeps what stands behind a traceback's head.
    let of_server = |l: &&LogSummary| !l.kernel && Some(l.file.as_str()) != decides;
    let cut = case.facts.logs.iter().filter(of_server).find_map(|l| {
        let line = l.cut_trace.as_ref().map(|(line, _)| *line)?;
        let place = Place { file: l.file.clone(), line: Some(line) };
        (!case.outlived(&place)).then_some(place)
    });
    let Some(place) = cut else { return };
    decided.confidence = decided.confidence.min(Confidence::Medium);
    decided.against.push(Cited::at(Log::CutTraceback, &place));
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, log, pod, weighs};

    const FRAME: &str = "ERROR 11-20 10:29:58 [core.py:700]   File \"/vllm/v1/engine/core.py\", line 845, in run_engine_core\n";

    fn failed(end: &str) -> [File; 2] {
        [pod(137, "OOMKilled"), log(&format!("{FRAME}{end}"))]
    }

    #[test]
    fn a_traceback_without_its_error_may_have_come_first() {
        weighs(&RULE, &failed(""));
    }

    #[test]
    fn a_whole_one_says_what_it_was() {
        adds_nothing(
            &RULE,
            "oom_killed_status",
            &failed("ERROR 11-20 10:29:58 [core.py:700] KeyError: 'x'\n"),
        );
    }
}
