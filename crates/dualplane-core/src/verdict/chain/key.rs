//! The key that puts the first errors of all sources into causal order.
//!
//! A chain has at most five links, one a kind of source, and no two of their clocks need to agree. Comparing them pair by
//! pair goes in circles: a VRAM error was printed before its process was killed, the kill stands before an Xid in the kernel
//! log, and without a common clock the driver's Xid goes before the engine's words. So each link gets a key instead:
//!
//! 1. **Side of the kill.** What the kernel log tells before the record of the kill, or after it; an engine's error before
//!    the kill that it was printed before ([`log_first`]). A fault that is only the teardown of an engine's error stays
//!    behind that error, also where the error has nothing to do with the kill.
//! 2. **Order of the kernel's lines** on that side: by line in one file, else by time, else the fault first.
//! 3. **The engine's error** stands before the first kernel line of its side that it precedes.
//! 4. **What Kubernetes says of an object** (a start that was refused) stands before the engine's error, which is then of an
//!    earlier run, and behind the kernel's word.
//!
//! Keys are compared field by field, so that the order is total whatever the clocks say.

use dualplane_base::order::Order as _;
use std::cmp::Ordering;

use super::LINKED_MS;
use crate::facts::Facts;
use crate::knowledge::Mark;
use crate::verdict::candidates::{Candidate, Source};
use crate::verdict::server_runs::{recovered, served_nothing_after};
use crate::verdict::{Class, Confidence, Plane};

/// Clocks of container, kubelet and kernel log (`dmesg -T` drifts) agree about this well.
const SKEW_MS: i64 = 1_000;

/// The first error of each kind of source.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Links<'a> {
    /// The driver's fault of a GPU.
    pub(super) fault: Option<&'a Candidate>,
    /// The driver's line about refused host memory.
    pub(super) driver: Option<&'a Candidate>,
    /// A line of a log.
    pub(super) log: Option<&'a Candidate>,
    /// An OOM kill, whoever tells it.
    pub(super) kill: Option<&'a Candidate>,
    /// Another event or status.
    pub(super) object: Option<&'a Candidate>,
}

/// Before the kill, the kill itself, after it. Without a kill everything is before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Before,
    Kill,
    After,
}

/// Where a link stands: its side, the kernel line of that side that it goes with, and its place at that line.
type Key = (Side, usize, At);

/// An object's word, the engine's error, the kernel's line itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Object,
    Log,
    Kernel,
}

impl<'a> Links<'a> {
    /// All links, the first in cause first.
    pub(super) fn in_order(self, facts: &Facts) -> Vec<&'a Candidate> {
        let mut keyed = self.keyed(facts);
        keyed.order_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, c)| c).collect()
    }

    fn keyed(self, facts: &Facts) -> Vec<(Key, &'a Candidate)> {
        let mut out: Vec<(Key, &'a Candidate)> = Vec::new();
        let log_side = self.log.map(|l| match self.kill {
            Some(k) if !log_first(l, k, facts) => Side::After,
            _ => Side::Before,
        });
        let mut kernel: Vec<(Side, &'a Candidate)> = [self.fault, self.driver]
            .into_iter()
            .flatten()
            .map(|c| {
                let echo = log_side == Some(Side::After) && self.log.is_some_and(|l| log_first(l, c, facts));
                let after = echo || self.kill.is_some_and(|k| kernel_order(k, c) == Ordering::Less);
                (if after { Side::After } else { Side::Before }, c)
            })
            .collect();
        // Both are the kernel's own words; where nothing orders them the fault stays first.
        kernel.order_by(|(a, x), (b, y)| a.cmp(b).then_with(|| kernel_order(x, y)));
        let on = |side: Side| kernel.iter().filter(move |(s, _)| *s == side).map(|(_, c)| *c);
        for side in [Side::Before, Side::After] {
            out.extend(on(side).enumerate().map(|(i, c)| ((side, i, At::Kernel), c)));
        }
        let log_key = self.log.zip(log_side).map(|(l, side)| {
            let at = on(side).position(|c| log_first(l, c, facts)).unwrap_or_else(|| on(side).count());
            ((side, at, At::Log), l)
        });
        out.extend(log_key);
        out.extend(self.kill.map(|k| ((Side::Kill, 0, At::Kernel), k)));
        if let Some(o) = self.object {
            let timely = |k: &Candidate| k.from != Source::Kernel && gap(o, k).is_some_and(|ms| ms > 0);
            let by_kill = match self.kill {
                Some(k) if timely(k) => (Side::Before, usize::MAX, At::Object),
                _ => (Side::After, usize::MAX, At::Object),
            };
            let by_log = log_key.map(|((side, at, _), _)| (side, at, At::Object));
            out.push((by_log.map_or(by_kill, |k| k.min(by_kill)), o));
        }
        out
    }
}

fn gap(a: &Candidate, b: &Candidate) -> Option<i64> {
    a.stamp.zip(b.stamp).and_then(|(a, b)| a.ms_until(b))
}

/// Which of the kernel's word and another's that is no log line came first: the kernel's own order where both are its, else
/// the kernel's word goes before what is told of it. `Equal` where nothing tells.
fn kernel_order(a: &Candidate, b: &Candidate) -> Ordering {
    match (a.from, b.from) {
        (Source::Kernel, Source::Kernel) => match (&a.place, &b.place) {
            (Some(x), Some(y)) if x.file == y.file => x.line.cmp(&y.line),
            _ => gap(a, b).map_or(Ordering::Equal, |ms| 0.cmp(&ms)),
        },
        (Source::Kernel, _) => Ordering::Less,
        (_, Source::Kernel) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// Whether an engine's error came before what another source tells.
fn log_first(log: &Candidate, other: &Candidate, facts: &Facts) -> bool {
    let kill = matches!(other.class, Class::HostOomKilled | Class::HostNodeOom);
    let lived_on = || recovered(log, facts) || worker_gone_before(log, facts);
    // Whose the kill is nothing says; what the log prints of its own end is the log's.
    if kill && other.untied {
        return !lived_on();
    }
    match (gap(log, other), kill) {
        // So long before the kill it is another incident, unless the engine was dead from then on.
        (Some(ms), true) if ms.abs() > LINKED_MS && !(ms > 0 && served_nothing_after(log, facts)) => false,
        (Some(ms), true) => ms >= -SKEW_MS && !lived_on(),
        // A driver's fault precedes the engine's words for it, which are late, unless these carry sizes.
        (Some(ms), false) => {
            ms > SKEW_MS && other.from == Source::Kernel && log.class.plane() == Plane::Gpu && sized(log)
        }
        // No common clock. An instance's own VRAM error was printed before that instance was killed.
        (None, true) => log.class.plane() == Plane::Gpu && !lived_on(),
        // An application fault (Xid 13, 31, 43) behind a sized VRAM error is the teardown.
        (None, false) => other.confidence < Confidence::High && sized(log) && log.class != Class::XidHardware,
    }
}

/// The error carries sizes, so it is what it says and not an asynchronous echo of something else.
fn sized(c: &Candidate) -> bool {
    c.vram.as_ref().is_some_and(|o| o.requested.is_some())
}

/// A process was already gone when the error was printed: the error is what its end left behind.
fn worker_gone_before(c: &Candidate, facts: &Facts) -> bool {
    let Some(place) = &c.place else { return false };
    facts
        .hits
        .iter()
        .any(|h| h.mark == Mark::Death && h.place.file == place.file && h.place.line < place.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Place;
    use crate::verdict::candidates::testing::candidate;

    const SIZED: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free.";

    fn at(mut c: Candidate, file: &str, line: u64, text: &str) -> Candidate {
        c.place = Some(Place { file: file.into(), line: Some(line) });
        c.text = text.into();
        c.vram = crate::facts::vram::parse(text);
        c
    }

    fn classes(links: Links<'_>) -> Vec<Class> {
        links.in_order(&Facts::default()).iter().map(|c| c.class).collect()
    }

    /// Pair by pair this is a circle: error before kill, kill before Xid, Xid before error.
    #[test]
    fn an_xid_behind_the_kill_does_not_hide_the_error_before_it() {
        let log = at(candidate(Class::CudaOomLoad, Source::Log), "previous.log", 9, SIZED);
        let kill = at(candidate(Class::HostOomKilled, Source::Kernel), "kernel.log", 1, "");
        let fault = at(candidate(Class::XidHardware, Source::Kernel), "kernel.log", 2, "");
        let links = Links { fault: Some(&fault), log: Some(&log), kill: Some(&kill), ..Links::default() };
        assert_eq!(classes(links), [Class::CudaOomLoad, Class::HostOomKilled, Class::XidHardware]);
    }

    #[test]
    fn without_a_kill_the_driver_s_word_goes_before_the_engine_s() {
        let log = at(candidate(Class::CudaOomLoad, Source::Log), "previous.log", 9, SIZED);
        let mut fault = at(candidate(Class::XidHardware, Source::Kernel), "kernel.log", 2, "");
        let links = Links { fault: Some(&fault), log: Some(&log), ..Links::default() };
        assert_eq!(classes(links), [Class::XidHardware, Class::CudaOomLoad]);
        // One that the program itself may have caused is the teardown of a sized error.
        fault.confidence = Confidence::Medium;
        let links = Links { fault: Some(&fault), log: Some(&log), ..Links::default() };
        assert_eq!(classes(links), [Class::CudaOomLoad, Class::XidHardware]);
    }
}
