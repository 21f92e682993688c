//! The server was up until it was asked to stop, and did.

use super::{Judged, NOTHING, Rule, Stage, decided, quoted, unmet};
use crate::facts::{Hit, LogSummary};
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "stopped_in_order",
    stage: Stage::Life,
    classes: &[Class::NotMemory],
    when: "the log shows that the server was up, then a request to stop and that it stopped by itself, and no failure \
    between or after",
    near_miss: "messages of a stop without a sign that the server was up before: they also follow a failure; a request \
    to stop that is the log's last word: an eviction for memory asks, too",
    beats: &[NOTHING],
    source: "uvicorn and engines: messages of a graceful stop (knowledge host.stop_request)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let ended = case.facts.logs.iter().find_map(|l| Some((l, stop(case, l)?)));
    let (log, stop) = ended
        .ok_or_else(|| unmet("no log shows a server that was up and then stopped when it was asked to"))?;
    if log.last_5xx > log.last_ready || case.failed_since(log, log.last_ready) {
        return Err(unmet("something failed after the server was up"));
    }
    let summary = "the server was up until it was asked to stop; nothing failed before that";
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, vec![quoted(stop)]))
}

/// The request to stop behind the last sign that the server was up, where the log also shows that it was carried out.
fn stop<'c>(case: &Case<'c>, log: &LogSummary) -> Option<&'c Hit> {
    let up = log.last_ready.filter(|_| !log.kernel)?;
    let behind = |h: &&Hit| h.place.file == log.file && h.place.line > Some(up);
    let stops = || case.facts.hits.iter().filter(behind).filter(|h| h.is_stop_request());
    stops().any(Hit::is_stop_done).then(|| stops().next())?
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    const UP: &str = "INFO:     Application startup complete.\nINFO:     10.0.0.1:40112 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
    const STOP: &str = "INFO:     Shutting down\nINFO:     Waiting for application shutdown.\nINFO:     Application shutdown complete.\nINFO:     Finished server process [1]\n";

    #[test]
    fn asked_to_stop_it_stopped() {
        holds(&RULE, &[log(&format!("{UP}{STOP}"))]);
    }

    /// The kubelet asks before it evicts, and the log does not say who asked.
    #[test]
    fn a_request_to_stop_may_be_an_eviction() {
        near_miss(&RULE, "end_not_shown", &[log(&format!("{UP}INFO:     Shutting down\n"))]);
    }

    #[test]
    fn a_stop_alone_may_follow_a_failure() {
        near_miss(&RULE, "end_not_shown", &[log(STOP)]);
    }
}
