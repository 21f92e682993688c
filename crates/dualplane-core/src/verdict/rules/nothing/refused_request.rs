//! Requests were refused for reasons of their own, and nothing else is wrong: the answer to "why does it fail?".

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::rules::quoted;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "refused_request",
    stage: Stage::Nothing,
    classes: &[Class::NotMemory],
    when: "the last thing that a log tells is a request refused for a reason of its own (too long, unknown image, full \
    queue), and nothing ended",
    near_miss: "a refused request in the log of a container that died; one long before a log just stops",
    beats: &[Beats::rule("end_not_shown", "a request failed, and the log shows why")],
    source: "signatures with the mark refused (knowledge/)",
    judge,
};

/// Lines of a traceback's end and an access log behind the refusal.
const LAST: u64 = 10;

fn judge(case: &Case<'_>) -> Judged {
    let refused = case.facts.hits.iter().rfind(|h| h.mark == Mark::Refused);
    let hit = refused.ok_or_else(|| unmet("no line reports a refused request"))?;
    let mut logs = case.facts.logs.iter().filter(|l| l.file == hit.place.file);
    if hit.place.line.is_some_and(|line| logs.any(|l| l.behind(line) > LAST)) {
        return Err(unmet("the log goes on behind the refused request"));
    }
    if case.death().is_some_and(|d| !d.clean()) {
        return Err(unmet("the container ended, and a refused request ends none"));
    }
    let phase = case.phase_or_end(hit.phase);
    Ok(decided(Class::NotMemory, phase, Confidence::Medium, hit.meaning.clone(), vec![quoted(hit)]))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss, pod};

    const TOO_LONG: &str = "ValueError: This model's maximum context length is 2048 tokens. However, you requested 6020 tokens in the messages, Please reduce the length of the messages.\n";

    #[test]
    fn a_refused_request_is_the_answer() {
        holds(&RULE, &[log(TOO_LONG)]);
    }

    #[test]
    fn a_death_is_not_explained_by_it() {
        near_miss(&RULE, "exit_code", &[log(TOO_LONG), pod(1, "Error")]);
    }
}
