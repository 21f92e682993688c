//! The log ends in an orderly stop, and nothing failed since the server answered last.

use super::{Beats, Judged, Rule, Stage, decided, quoted, unmet};
use crate::facts::Place;
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "orderly_stop",
    stage: Stage::Signal,
    classes: &[Class::NotMemory],
    when: "the log contains a memory error after which the server answered requests, and it ends with a \
    request to stop",
    near_miss: "a request to stop after another failure",
    beats: &[
        Beats::rule("survived_error", "the server answered well after the error and was then stopped"),
        Beats::stage(Stage::Failure, "nothing failed after the last response"),
        Beats::stage(Stage::Unexplained, "the stop explains the end"),
        Beats::stage(Stage::Nothing, "the end is explained"),
    ],
    source: "uvicorn and engines: messages of a graceful stop (knowledge host.stop_request)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if !case.survived() {
        return Err(unmet("the log contains no memory error that the server survived"));
    }
    let facts = case.facts;
    let log = facts
        .logs
        .iter()
        .find(|l| !l.kernel && l.last_served.is_some())
        .ok_or_else(|| unmet("no log shows an answered request"))?;
    let since = |p: &Place| p.file == log.file && p.line > log.last_served;
    let ends = |m: Mark| matches!(m, Mark::Fatal | Mark::Death | Mark::Failure | Mark::Suspect);
    let failed = facts.hits.iter().any(|h| since(&h.place) && ends(h.mark))
        || log.alarm.as_ref().is_some_and(|(line, _)| Some(*line) > log.last_served)
        || facts.exceptions.iter().any(|e| since(&e.place));
    if failed {
        return Err(unmet("something failed after the last answered request"));
    }
    let stop = facts
        .hits
        .iter()
        .find(|h| since(&h.place) && h.id == "host.stop_request")
        .ok_or_else(|| unmet("there is no request to stop after the last answered request"))?;
    let summary = "the server was stopped gracefully; nothing failed after its last request";
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, vec![quoted(stop)]))
}
