//! Nothing at hand shows how it ended, or that it went on: the absence of an error is no proof.

use super::{Rule, Stage, decided};
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::{Log, Status, Xid};
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
        let lines = log.total();
        let proof = if log.kernel { Log::QuietKernel { lines } } else { Log::NoMemoryError { lines } };
        supports.push(Cited::at(proof, &Place { file: log.file.clone(), line: None }));
    }
    if let Some(end) = case.death() {
        let proof = Status::EndedAsAfterFailure(Box::new(end.clone()));
        supports.push(Cited::at(proof, &case.pod_place()));
    }
    for x in facts.xids.iter().take(2) {
        supports.push(Cited::at(Xid::OnlyConsequence(x.code), &x.place));
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
