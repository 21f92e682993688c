//! Which life of the server a line belongs to: one log may hold several, and a server lives on after many an error.

use super::candidates::{Candidate, Source, Weight};
use super::chain::LINKED_MS;
use super::{Class, Phase, Subject};
use crate::facts::Facts;
use crate::knowledge::Mark;

/// How much earlier a line may be stamped by the same clock and still be of this life.
const MARGIN_MS: i64 = 60_000;

/// The fault was reported before this instance began to log, and it served since: an older incident's.
pub(super) fn before_this_run(c: &Candidate, facts: &Facts) -> bool {
    let Some(at) = c.stamp else { return false };
    let mut logs = facts.logs.iter().filter(|l| !l.kernel && l.last_served.is_some()).peekable();
    logs.peek().is_some()
        && logs.all(|l| l.first.and_then(|f| at.ms_until(f)).is_some_and(|ms| ms > at.slack_ms(MARGIN_MS)))
}

/// The fault came long before the other error, and requests were served between: they have nothing to do with each other.
pub(super) fn lived_between(fault: &Candidate, later: &Candidate, facts: &Facts) -> bool {
    let apart =
        fault.stamp.zip(later.stamp).and_then(|(f, l)| f.ms_until(l)).is_some_and(|ms| ms > LINKED_MS);
    apart
        && facts
            .logs
            .iter()
            .filter_map(|l| l.last_served_at)
            .any(|served| fault.stamp.and_then(|f| f.ms_until(served)).is_some_and(|ms| ms > LINKED_MS))
}

/// What the server still did behind an error of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct After {
    /// It lived on, and did not die of the error.
    pub(super) lived_on: bool,
    /// It did neither much more nor much less than what is taken for living on.
    pub(super) close: bool,
    /// Lines from the error to the last sign of an answer.
    pub(super) lines: u64,
    /// Time between them.
    pub(super) ms: Option<i64>,
}

/// The server answered requests well after the error: it did not die of it.
pub(super) fn recovered(c: &Candidate, facts: &Facts) -> bool {
    after(c, facts).is_some_and(|a| a.lived_on)
}

/// What the server did behind the error; `None` where it answered nothing more.
///
/// Answers that were under way are still written when the engine is gone, so that how long they go on counts, and less
/// how many they are. A process that works on after its error lives; where one is said to be dead, much more is asked.
pub(super) fn after(c: &Candidate, facts: &Facts) -> Option<After> {
    const WELL_AFTER_LINES: f64 = 20.0;
    const WELL_AFTER_MS: f64 = 10_000.0;
    /// Of a server whose engine is said to be dead.
    const TIMES_AS_LONG: f64 = 6.0;
    /// Answers of one moment, as many as they are, say little more than a few.
    const OF_ONE_MOMENT: f64 = 2.0;
    /// So many times more or less is beyond doubt.
    const CLOSE: f64 = 5.0;
    let (file, line) = c.place.as_ref().and_then(|p| Some((&p.file, p.line?)))?;
    let log = facts.logs.iter().filter(|l| l.file == *file).find(|l| l.last_served > Some(line))?;
    let lines = log.last_served?.saturating_sub(line);
    // Without a stamp behind the error the time says nothing.
    let ms = c.stamp.zip(log.last_served_at).and_then(|(c, s)| c.ms_until(s)).filter(|ms| *ms > 0);
    let by_lines = lines as f64 / WELL_AFTER_LINES;
    let share = ms.map_or(by_lines, |ms| (ms as f64 / WELL_AFTER_MS).max(by_lines.min(OF_ONE_MOMENT)));
    let behind = |at: Option<u64>| at > Some(line);
    let dead =
        facts.hits.iter().any(|h| h.mark == Mark::Death && h.place.file == *file && behind(h.place.line));
    let spoke = log.spoke.get(&c.process).is_some_and(|at| *at > line);
    let share = if dead && !spoke { share / TIMES_AS_LONG } else { share };
    Some(After {
        lived_on: share > 1.0 || spoke && !dead,
        close: (CLOSE.recip()..=CLOSE).contains(&share) || spoke && share < CLOSE,
        lines,
        ms,
    })
}

/// The line is older than the start of the instance that died: it stood in an earlier one's log.
pub(super) fn before_the_start(c: &Candidate, subject: &Subject) -> bool {
    let Some(started) = subject.death.as_ref().and_then(|d| d.started).filter(|_| c.from == Source::Log)
    else {
        return false;
    };
    c.stamp.is_some_and(|at| at.ms_until(started).is_some_and(|ms| ms > at.slack_ms(MARGIN_MS)))
}

/// A fault of some card of the node, from before the container began that runs and of which nothing ended. Its node's clock may
/// print no zone; that it is UTC is likelier than that each later pod of the node suffers of an old fault.
pub(super) fn before_it_ran(c: &Candidate, subject: &Subject) -> bool {
    const MARGIN_MS: i64 = 60_000;
    let of_some_card = c.class == Class::XidHardware && c.from == Source::Kernel && c.untied;
    let ms = c.stamp.zip(subject.runs_since).and_then(|(at, since)| at.ms_until(since));
    of_some_card && ms.is_some_and(|ms| ms > MARGIN_MS)
}

/// The log goes on: the server answered requests after the error, was started anew, and that start failed of something
/// else. A log of `docker compose` or of a supervisor holds several lives.
pub(super) fn of_an_earlier_life(c: &Candidate, facts: &Facts) -> bool {
    let Some((file, line)) = c.place.as_ref().and_then(|p| Some((&p.file, p.line?))) else { return false };
    if c.from != Source::Log {
        return false;
    }
    let served =
        facts.logs.iter().filter(|l| l.file == *file && !l.kernel).filter_map(|l| l.last_served).max();
    let Some(served) = served.filter(|s| *s > line) else { return false };
    facts.hits.iter().any(|h| {
        h.mark == Mark::Failure
            && h.phase == Phase::Load
            && h.place.file == *file
            && h.place.line > Some(served)
    })
}

/// The engine said that it is dead, and the server answered nothing since: whenever the end comes, it is of that.
pub(super) fn served_nothing_after(c: &Candidate, facts: &Facts) -> bool {
    let Some(place) = &c.place else { return false };
    let wrapped = facts.hits.iter().any(|h| {
        matches!(h.mark, Mark::Cascade | Mark::Death)
            && h.place.file == place.file
            && h.place.line > place.line
    });
    wrapped
        && c.weight == Weight::Fatal
        && facts.logs.iter().filter(|l| l.file == place.file).all(|l| l.last_served < place.line)
}

#[cfg(test)]
mod tests {
    use crate::verdict::Class;
    use crate::verdict::rules::testing::{file, judged, pod_with};
    use serde_json::json;

    /// The pod was made, and serves, after a card of its node had failed.
    #[test]
    fn a_fault_before_a_pod_that_lives_is_none_of_it() {
        let class = |at: &str| {
            let alive = pod_with(0, "Completed", |p| {
                let c = &mut p["status"]["containerStatuses"][0];
                c["state"] = json!({"running": {"startedAt": "2026-11-20T10:30:05Z"}});
                c["lastState"] = json!({});
                c["restartCount"] = 0.into();
            });
            let line = format!(
                "{at} gpu-1 kernel: NVRM: Xid (PCI:0000:7f:00): 79, pid=4194000, name=python3, GPU has fallen off the bus.\n"
            );
            judged(&[alive, file("node/kernel/kern.log", &line)]).class
        };
        assert_eq!(class("2026-11-20T10:31:00.000000+00:00"), Class::XidHardware);
        assert_ne!(class("2026-11-20T09:31:00.000000+00:00"), Class::XidHardware);
    }
}
