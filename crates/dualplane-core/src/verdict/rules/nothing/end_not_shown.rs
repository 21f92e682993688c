//! Nothing at hand shows how it ended, or that it went on: the absence of an error is no proof.

use super::{Rule, Stage, decided};
use crate::facts::Place;
use crate::text::counted;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence, Decided};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "end_not_shown",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "there is evidence, it shows no error, and it does not show that the server went on or ended in order; \
    this last rule always holds",
    near_miss: "a pod that runs, is ready and was never restarted; a server that answers after the only warning",
    beats: &[],
    source: "own: a killed process prints nothing, and an excerpt leaves lines out",
    judge: |case: &Case<'_>| Ok(decide(case)),
};

pub(in crate::verdict::rules) fn decide(case: &Case<'_>) -> Decided {
    let facts = case.facts;
    let mut supports = Vec::new();
    for log in facts.logs.iter().filter(|l| l.lines > 0).take(4) {
        let what = if log.kernel {
            "without an OOM kill or GPU fault"
        } else {
            "without a memory error; they do not say how it ended"
        };
        let lines = counted(log.total(), if log.kernel { "kernel log line" } else { "log line" });
        supports.push(Cited::at(format!("{lines} {what}"), &Place { file: log.file.clone(), line: None }));
    }
    if let Some(end) = case.death() {
        let text = format!("{}; an API server may also exit so after its engine failed", end.told(", "));
        supports.push(Cited::at(text, &case.pod_place()));
    }
    for x in facts.xids.iter().take(2) {
        supports.push(Cited::at(
            format!("Xid {} is only a clean-up or informational message; it is a consequence", x.code),
            &x.place,
        ));
    }
    let summary =
        "the evidence shows no error, and nothing in it shows how the server ended or that it went on";
    decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, supports)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn a_log_that_just_stops_shows_no_end() {
        holds(&RULE, &[log("INFO 06-18 08:01:00 [api_server.py:1977] vLLM API server\n")]);
    }

    #[test]
    fn no_log_shows_nothing() {
        near_miss(&RULE, "no_evidence", &[]);
    }
}
