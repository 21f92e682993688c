//! A line was taken for trouble, and the server came up or answered after it.

use super::{Beats, Judged, NOTHING, Rule, Stage, decided, unmet};
use crate::facts::{LogSummary, Place};
use crate::knowledge::Mark;
use crate::verdict::candidates::Weight;
use crate::verdict::case::Case;
use crate::verdict::proof::Log;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "lived_on",
    stage: Stage::Life,
    classes: &[Class::NotMemory],
    when: "a log holds a line that is taken for a memory error and is none (a warning, a fallback, a user's text), \
    and the server came up or answered requests after it",
    near_miss: "a log that only serves and then stops: that is also what a kill leaves",
    beats: &[Beats::rule("stopped_in_order", "the line that was taken for trouble is explained"), NOTHING],
    source: "signatures with the marks benign, suspect, failure and user_text (knowledge/)",
    judge,
};

/// So few lines behind the line in question the log is about it. Behind more of them it is the log of a whole run, which
/// prints such lines at each start, and which stops as that of a killed server does.
const NEAR: u64 = 20;

/// What looked like trouble, and how the server's life went on behind it.
struct Trouble {
    /// What the line means.
    meaning: String,
    /// It is known to be another failure than memory.
    known: bool,
    place: Place,
    text: String,
    phase: Phase,
}

fn judge(case: &Case<'_>) -> Judged {
    let lived = case.facts.logs.iter().filter(|l| !l.kernel).find_map(|l| {
        let trouble = trouble(case, l).filter(|t| t.place.line.is_some_and(|n| l.behind(n) <= NEAR))?;
        (l.last_ready > trouble.place.line && !case.failed_since(l, l.last_ready)).then_some((l, trouble))
    });
    let (log, trouble) =
        lived.ok_or_else(|| unmet("no log shows trouble after which the server came up or answered"))?;
    let up = Place { file: log.file.clone(), line: log.last_ready };
    let behind = log.last_ready.zip(trouble.place.line).map_or(0, |(up, line)| up - line);
    let supports = vec![
        Cited::quote(crate::text::shorten(trouble.text.trim(), 240), &trouble.place),
        Cited::at(Log::UpAfter(behind), &up),
    ];
    let phase = if trouble.phase == Phase::Unknown { case.end_phase() } else { trouble.phase };
    let summary = format!("{}. The server went on after it", trouble.meaning.trim_end_matches('.'));
    let confidence = if trouble.known { Confidence::High } else { Confidence::Medium };
    Ok(decided(Class::NotMemory, phase, confidence, summary, supports))
}

/// The last line of a log that looks like trouble.
fn trouble(case: &Case<'_>, log: &LogSummary) -> Option<Trouble> {
    let facts = case.facts;
    let of_log = facts.hits.iter().filter(|h| h.place.file == log.file && !h.kernel);
    let hits =
        of_log.filter(|h| matches!(h.mark, Mark::Benign | Mark::Suspect | Mark::Failure)).map(|h| Trouble {
            meaning: h.meaning.clone(),
            known: h.mark == Mark::Failure,
            place: h.place.clone(),
            text: h.text.clone(),
            phase: h.phase,
        });
    // An error from which the engine has a way back.
    let suspects = case
        .candidates
        .iter()
        .filter(|c| c.weight == Weight::Suspect)
        .filter_map(|c| {
            let meaning = c.what.clone();
            Some(Trouble {
                meaning,
                known: false,
                place: c.place.clone()?,
                text: c.text.clone(),
                phase: c.phase,
            })
        })
        .filter(|t| t.place.file == log.file);
    let exceptions = facts.exceptions.iter().filter(|e| e.place.file == log.file).map(|e| Trouble {
        meaning: format!("a request failed with {}", crate::text::shorten(&e.message, 120)),
        known: false,
        place: e.place.clone(),
        text: e.text.clone(),
        phase: e.phase,
    });
    let quoted = log.quoted_error.as_ref().map(|(line, text)| Trouble {
        meaning: "a user's text quotes an error".to_owned(),
        known: false,
        place: Place { file: log.file.clone(), line: Some(*line) },
        text: text.clone(),
        phase: Phase::Unknown,
    });
    hits.chain(suspects).chain(exceptions).chain(quoted).max_by_key(|t| t.place.line)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    const SERVED: &str = "INFO:     10.9.0.3:40031 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
    const SKIPPED: &str = "[2025-05-30 17:20:11,004] LMCache WARNING: Failed to allocate memory for the KV cache. The KV cache will not be stored. (cache_engine.py:188:lmcache.experimental.cache_engine)\n";

    #[test]
    fn a_warning_that_requests_outlive_is_none() {
        holds(&RULE, &[log(&format!("{SERVED}{SKIPPED}{SERVED}"))]);
    }

    #[test]
    fn a_log_that_just_stops_is_no_life() {
        near_miss(&RULE, "end_not_shown", &[log(&format!("{SERVED}{SERVED}"))]);
    }
}
