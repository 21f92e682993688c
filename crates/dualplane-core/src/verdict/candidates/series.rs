//! A container whose own memory stood at its limit when it got a SIGKILL that nobody explains.

use super::{Candidate, Source, Weight, end_phase};
use crate::evidence::Bundle;
use crate::facts::{Facts, Place};
use crate::verdict::proof;
use crate::verdict::rules::symptoms;
use crate::verdict::series;
use crate::verdict::{Cited, Class, Confidence, Subject};

/// Anonymous memory of this share of the limit leaves nothing to reclaim; the rest are page tables and stacks.
const AT_LIMIT: f64 = 0.95;
/// Two scrapes of a minute before the end.
const NEAR_MS: i64 = 120_000;

/// A low guess: the sample shows where memory stood, not who sent the signal.
pub(super) fn at_limit(bundle: &Bundle, subject: &Subject, facts: &Facts) -> Option<Candidate> {
    let death = subject.death.as_ref().filter(|d| d.ended_with(137) && !d.oom_killed())?;
    // A kernel log would hold the record.
    if facts.logs.iter().any(|l| l.kernel) {
        return None;
    }
    let finished = death.finished?;
    let point = series::peak(bundle, subject, facts, "container_memory_rss")?;
    let gap = point.sample.stamp?.ms_until(finished)?;
    if point.share < AT_LIMIT || !(0..=NEAR_MS).contains(&gap) {
        return None;
    }
    let place = Place { file: point.sample.file.clone(), line: Some(point.sample.line) };
    let what = format!(
        "SIGKILL (137) came {} s after the container's anonymous memory was at {:.1} % of its limit {}",
        gap / 1000,
        point.share * 100.0,
        point.limit
    );
    let at = Place { line: None, ..place.clone() };
    let mut c = Candidate::new(
        symptoms::memory_at_limit::ID,
        Class::HostOomKilled,
        Source::Metrics,
        what,
        "series.at_limit",
    )
    .at(&at, "", None);
    c.weight = Weight::Degraded;
    c.confidence = Confidence::Low;
    c.phase = end_phase(facts);
    c.supports.push(Cited::at(proof::Series::AnonymousMemory(point.peak()), &place));
    c.against.push(Cited::plain(proof::Status::MayMissOomKill));
    Some(c)
}
