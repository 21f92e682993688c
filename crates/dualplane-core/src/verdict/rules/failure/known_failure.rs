//! A log line that is known to end a server for another cause than memory.

use super::{BEATS, Judged, Rule, Stage, death, decided, quoted, unmet};
use crate::facts::{Facts, Hit};
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "known_failure",
    stage: Stage::Failure,
    classes: &[Class::NotMemory],
    when: "a log line matches a known failure that is not memory, and no process died before it",
    near_miss: "a request that failed long before a SIGKILL; a failure caused by a process's death",
    beats: BEATS,
    source: "signatures with the mark failure (knowledge/)",
    judge,
};

/// So near the end of its log a failure explains the end; an early failed request does not.
const NEAR_END: u64 = 200;

fn judge(case: &Case<'_>) -> Judged {
    let facts = case.facts;
    let known = || facts.hits.iter().filter(|h| h.mark == Mark::Failure);
    if known().next().is_none() {
        return Err(unmet("no line matches a known failure that is not memory"));
    }
    let hit = known()
        .find(|h| !case.outlived(&h.place))
        .ok_or_else(|| unmet("the server came up or answered requests after the failure"))?;
    // Behind a known failure a process that "died unexpectedly" died of it; before it, it did not.
    let explains =
        death(facts).is_none_or(|d| d.place.file != hit.place.file || d.place.line > hit.place.line);
    if !explains {
        return Err(unmet("a process died before the failure was printed"));
    }
    if !ends_log(hit, facts) {
        return Err(unmet("the failure is long before the end of its log"));
    }
    let phase = case.phase_or_end(hit.phase);
    Ok(decided(Class::NotMemory, phase, Confidence::High, hit.meaning.clone(), vec![quoted(hit)]))
}

fn ends_log(hit: &Hit, facts: &Facts) -> bool {
    let log = facts.logs.iter().find(|l| l.file == hit.place.file);
    hit.place.line.is_some_and(|line| log.is_none_or(|l| l.behind(line) <= NEAR_END))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss, pod};

    const ARGS: &str = "api_server.py: error: unrecognized arguments: --gpu-memory-utilisation\n";

    #[test]
    fn a_bad_flag_is_the_end() {
        holds(&RULE, &[log(ARGS)]);
    }

    #[test]
    fn long_before_a_kill_it_is_not() {
        let mut lines = ARGS.to_owned();
        (0..300).for_each(|i| lines.push_str(&format!("INFO step {i}\n")));
        near_miss(&RULE, "killed", &[pod(137, "Error"), log(&lines)]);
    }
}
