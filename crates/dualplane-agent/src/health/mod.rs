//! What is wrong with the agent itself: said once in its log, shown in `/healthz` and `/metrics` while it lasts, and said
//! again when it is over.
//!
//! Whoever tries something reports how it went ([`Health::report`]); [`faults`](Fault) become lines here, so that a disk
//! that refuses twice a second does not fill the log that should say so. Lines are handed to the binary, which writes.

mod line;
mod part;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dualplane_node::clock::{Anchor, Moment};

pub use line::{Level, LogLine};
pub use part::Part;

/// Lines that wait for whoever writes them: a round's worth is a few.
const MAX_LINES: usize = 256;
/// Parts that are told apart: there are some, and a handful of sinks.
const MAX_PARTS: usize = 64;
/// A fault whose reason changes is said again, but not more often: an API server that comes back says five things.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// Something that does not work now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What does not work.
    pub part: Part,
    /// Why, in one line.
    pub why: String,
    /// Since when.
    pub since: Moment,
    /// How often it was tried in vain.
    pub times: u64,
}

#[derive(Debug)]
struct Ongoing {
    fault: Fault,
    said: String,
    said_at: Moment,
}

#[derive(Debug, Default)]
struct Inner {
    ongoing: BTreeMap<Part, Ongoing>,
    /// Faults that began, by part.
    begun: BTreeMap<Part, u64>,
    lines: VecDeque<LogLine>,
    unsaid: u64,
}

/// How the agent is. Shared by its threads; a report costs a lock.
#[derive(Debug, Default)]
pub struct Health {
    inner: Mutex<Inner>,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how something went that is tried again and again.
    pub fn report(&self, part: &Part, how: Result<(), String>) {
        let now = Moment::now();
        let mut inner = self.lock();
        match how {
            Ok(()) => {
                let Some(o) = inner.ongoing.remove(part) else { return };
                let line = self::line_of(Level::Info, "recovery")
                    .with("what", &part.to_string())
                    .with("after_s", &format!("{:.0}", now.since(o.fault.since).as_secs_f64()))
                    .with("failures", &o.fault.times.to_string());
                inner.say(line);
            }
            Err(why) => inner.fault(part, why, now),
        }
    }

    /// A line about something that is no fault: an incident, a start.
    pub fn say(&self, line: LogLine) {
        self.lock().say(line);
    }

    /// Lines since the last call, oldest first.
    #[must_use]
    pub fn take_lines(&self) -> Vec<LogLine> {
        let mut inner = self.lock();
        let unsaid = std::mem::take(&mut inner.unsaid);
        let mut out: Vec<LogLine> = inner.lines.drain(..).collect();
        if unsaid > 0 {
            out.push(line_of(Level::Warn, "log_lines_left_out").with("lines", &unsaid.to_string()));
        }
        out
    }

    /// What does not work now, by part.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.lock().ongoing.values().map(|o| o.fault.clone()).collect()
    }

    /// Faults that began since the start, by part; those that are over as well.
    #[must_use]
    pub fn begun(&self) -> BTreeMap<Part, u64> {
        self.lock().begun.clone()
    }
}

impl Inner {
    fn fault(&mut self, part: &Part, why: String, now: Moment) {
        if let Some(o) = self.ongoing.get_mut(part) {
            o.fault.times += 1;
            let again = why != o.said && now.since(o.said_at) >= SAY_AGAIN;
            o.fault.why.clone_from(&why);
            if again {
                (o.said, o.said_at) = (why.clone(), now);
                self.say(fault_line(part, &why));
            }
            return;
        }
        if self.ongoing.len() >= MAX_PARTS {
            return;
        }
        *self.begun.entry(part.clone()).or_insert(0) += 1;
        self.say(fault_line(part, &why));
        let fault = Fault { part: part.clone(), why: why.clone(), since: now, times: 1 };
        self.ongoing.insert(part.clone(), Ongoing { fault, said: why, said_at: now });
    }

    fn say(&mut self, line: LogLine) {
        if self.lines.len() >= MAX_LINES {
            self.unsaid += 1;
            return;
        }
        self.lines.push_back(line);
    }
}

fn fault_line(part: &Part, why: &str) -> LogLine {
    let level = if part.is_needed() { Level::Error } else { Level::Warn };
    line_of(level, "fault").with("what", &part.to_string()).with("why", why)
}

/// A line of now.
#[must_use]
pub fn line_of(level: Level, event: &'static str) -> LogLine {
    LogLine::new(Anchor::take().wall_ms(Moment::now()), level, event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(h: &Health) -> Vec<String> {
        h.take_lines()
            .iter()
            .map(|l| l.to_string().split_once(" level=").map(|(_, l)| l.to_owned()).unwrap())
            .collect()
    }

    #[test]
    fn a_fault_is_said_once_and_its_end_with_the_count() {
        let h = Health::default();
        h.report(&Part::State, Ok(()));
        assert!(h.take_lines().is_empty(), "what works is not worth a line");
        for _ in 0..5 {
            h.report(&Part::State, Err("no such \"folder\"".into()));
        }
        h.report(&Part::State, Err("another reason".into()));
        assert_eq!(said(&h), [r#"error event=fault what=state why="no such \"folder\"""#]);
        let f = &h.faults()[0];
        assert_eq!((f.times, f.why.as_str()), (6, "another reason"), "the newest reason is shown");
        h.report(&Part::State, Ok(()));
        assert_eq!(said(&h), ["info event=recovery what=state after_s=0 failures=6"]);
        assert!(h.faults().is_empty());
        h.report(&Part::State, Err("again".into()));
        assert_eq!(h.begun()[&Part::State], 2);
        assert_eq!(said(&h), ["error event=fault what=state why=again"]);
    }

    #[test]
    fn parts_are_told_apart_and_what_is_optional_only_warns() {
        let h = Health::default();
        h.report(&Part::Sink("event".into()), Err("401".into()));
        h.report(&Part::KernelLog, Err("EPERM".into()));
        h.report(&Part::Sink("dir-1".into()), Ok(()));
        assert_eq!(
            said(&h),
            ["error event=fault what=sink:event why=401", "warn event=fault what=kernel_log why=EPERM"]
        );
        assert_eq!(h.faults().len(), 2);
    }

    #[test]
    fn lines_are_bounded_and_what_is_left_out_is_counted() {
        let h = Health::default();
        (0..MAX_LINES + 7).for_each(|_| h.say(line_of(Level::Info, "incident")));
        let lines = said(&h);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines.last().unwrap(), "warn event=log_lines_left_out lines=7");
        assert!(h.take_lines().is_empty());
    }
}
