//! No memory error, GPU fault or abnormal end stands in the evidence.

use super::{Rule, Stage, decided, has_objects};
use crate::facts::Place;
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence, Decided, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "nothing_failed",
    stage: Stage::Nothing,
    classes: &[Class::NotMemory],
    when: "there is evidence, and nothing in it failed; this last rule always holds",
    near_miss: "a pod manifest without a status; snapshots from tools",
    beats: &[],
    source: "own",
    judge: |case: &Case<'_>| Ok(decide(case)),
};

pub(in crate::verdict::rules) fn decide(case: &Case<'_>) -> Decided {
    let facts = case.facts;
    let mut supports = Vec::new();
    for log in facts.logs.iter().filter(|l| l.lines > 0).take(4) {
        let what = if log.kernel {
            "kernel log lines without an OOM kill or GPU fault"
        } else {
            "log lines without a memory error or abnormal exit"
        };
        supports.push(Cited::at(
            format!("{} {what}", log.total()),
            &Place { file: log.file.clone(), line: None },
        ));
    }
    for x in facts.xids.iter().take(2) {
        supports.push(Cited::at(
            format!("Xid {} is only a clean-up or informational message; it is a consequence", x.code),
            &x.place,
        ));
    }
    if let Some(s) = case.death().filter(|d| d.clean()) {
        supports.push(Cited::plain(format!(
            "the container ended with {}",
            s.exit_code.map_or_else(|| s.told(", "), |c| format!("exit code {c}"))
        )));
    }
    let phase = case.end_phase();
    let known = facts.hits.iter().any(|h| !matches!(h.mark, Mark::Cascade));
    // What was taken for trouble: the phase in which a healthy server speaks of memory.
    let mut spoken = facts.hits.iter().filter(|h| h.mark == Mark::Benign).map(|h| h.phase);
    let phase = spoken.find(|p| *p != Phase::Unknown).filter(|_| case.death().is_none()).unwrap_or(phase);
    let sure = known || has_objects(case) || phase != Phase::Unknown;
    let confidence = if sure { Confidence::Medium } else { Confidence::Low };
    let summary = "found no memory error, GPU fault or abnormal exit";
    decided(Class::NotMemory, phase, confidence, summary, supports)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn a_quiet_log_is_healthy() {
        holds(&RULE, &[log("INFO: Started server process [1]\n")]);
    }

    #[test]
    fn no_log_is_not() {
        near_miss(&RULE, "no_evidence", &[]);
    }
}
