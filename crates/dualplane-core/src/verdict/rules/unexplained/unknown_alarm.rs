//! The log tells of a violent end in words that no signature knows: that is no health.

use super::{BEATS, Judged, Rule, Stage, decided, unmet};
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "unknown_alarm",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "after the last sign that the server was up, a line reports an abnormal end and matches no \
    signature",
    near_miss: "the same message before the server started (again)",
    beats: BEATS,
    source: "messages of signals and aborts (facts/lines.rs)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let alarm = case.facts.logs.iter().find_map(|l| {
        let (line, text) = l.alarm.as_ref()?;
        (l.last_ready.is_none_or(|r| r < *line)).then_some((l, *line, text))
    });
    let (log, line, text) = alarm.ok_or_else(|| unmet("no log ends with a report of an abnormal end"))?;
    let place = Place { file: log.file.clone(), line: Some(line) };
    let supports = vec![Cited::quote(crate::text::shorten(text.trim(), 240), &place)];
    let summary = "the log reports an abnormal end in an unrecognised message";
    Ok(decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, supports))
}
