//! How host memory went to its end: it grew until the limit, or it jumped between two samples.

use super::Subject;
use super::causes::memory_limit;
use super::pressure::{Growth, growth_of};
use super::series::{of_container, of_pod, only_pod, place};
use crate::evidence::Bundle;
use crate::evidence::metrics::{Sample, by_series};
use crate::facts::{Facts, Place};
use crate::units::Bytes;
use dualplane_base::order::Order as _;

/// What a container holds and the kernel cannot take back, the better first.
const USES: [&str; 2] = ["container_memory_rss", "container_memory_working_set_bytes"];
/// A last sample below this share of the limit cannot have been the peak.
const FAR_BELOW: f64 = 0.8;
/// Scrapes lie 10 to 60 s apart; a last sample this long before the end says nothing of how it came.
const NEAR_THE_END_MS: i64 = 120_000;

/// How the memory of the dead container went.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    /// It grew steadily until the end.
    Grew(Growth),
    /// Shortly before the end it was far from the limit.
    Jumped {
        /// The last sample.
        last: Bytes,
        /// From it to the end.
        before_end_ms: i64,
        /// Where it stands.
        place: Place,
    },
}

/// The course of the run that ended, from the samples of that run.
#[must_use]
pub fn course(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<Course> {
    USES.iter().find_map(|name| of(bundle, facts, subject, name))
}

fn of(bundle: &Bundle, facts: &Facts, subject: &Subject, name: &str) -> Option<Course> {
    let limit = memory_limit(facts, subject)?;
    let death = subject.death.as_ref()?;
    let only = only_pod(bundle, name);
    let in_run = |s: &Sample| {
        let from = death.started.zip(s.stamp).and_then(|(a, b)| a.ms_until(b)).is_none_or(|ms| ms >= 0);
        let to = s.stamp.zip(death.finished).and_then(|(a, b)| a.ms_until(b));
        from && to.is_some_and(|ms| ms >= 0)
    };
    let mine = |s: &&Sample| {
        s.name == name
            && s.value.is_finite()
            && of_pod(s, subject, only)
            && of_container(s, subject)
            && in_run(s)
    };
    let mut series = by_series(bundle.metrics.iter().filter(mine)).into_iter().next()?;
    let end = death.finished?;
    series.order_by_key(|s| s.stamp.and_then(|t| t.ms_until(end)).map(std::cmp::Reverse));
    let points: Vec<_> =
        series.iter().filter_map(|s| Some((s.stamp?, Bytes::from_f64(s.value), place(s)))).collect();
    if let Some(growth) = growth_of(&points, limit) {
        return Some(Course::Grew(growth));
    }
    let (at, last, place) = points.into_iter().next_back()?;
    let before_end_ms = at.ms_until(end)?;
    (before_end_ms <= NEAR_THE_END_MS && last.share_of(limit) < FAR_BELOW).then_some(Course::Jumped {
        last,
        before_end_ms,
        place,
    })
}
