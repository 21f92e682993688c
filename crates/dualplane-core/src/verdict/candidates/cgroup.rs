//! A cgroup's own counters as a candidate: a kill that the kernel counted where its log is not at hand.

use super::{Candidate, From, end_phase};
use crate::evidence::Bundle;
use crate::facts::{Facts, Place};
use crate::verdict::memory::{Whose, whose};
use crate::verdict::{Cited, Class, Confidence, Subject};

/// `oom_kill` above zero, in a cgroup that can be the subject's.
///
/// `memory.events` tells whose limit it was: `oom` counts failures at this cgroup's limit or below it, `oom_kill` the
/// processes of it that any OOM killer ended. A kill without a failure was asked for from above.
pub(super) fn oom_killed(bundle: &Bundle, subject: &Subject, facts: &Facts) -> Option<Candidate> {
    let mut all: Vec<(Whose, &crate::evidence::host_model::Cgroup)> =
        bundle.cgroups.iter().map(|c| (whose(c, bundle, subject), c)).collect();
    all.retain(|(w, c)| {
        !matches!(w, Whose::Other | Whose::Running) && c.oom_kill.as_ref().is_some_and(|k| k.count > 0)
    });
    all.sort_by_key(|(w, _)| *w);
    let (whose, c) = all.first()?;
    // Of another cgroup than the dead container's own it only explains an end that is a SIGKILL or is not known.
    let fits = subject.death.as_ref().is_none_or(|d| d.exit_code == 137 || d.oom_killed());
    if !fits && *whose != Whose::Dead {
        return None;
    }
    let kills = c.oom_kill.as_ref()?;
    let from_above = c.oom.as_ref().is_some_and(|o| o.count == 0)
        || c.oom.is_none() && c.at_limit.as_ref().is_some_and(|a| a.count == 0)
        || c.unlimited;
    let class = if from_above { Class::HostNodeOom } else { Class::HostOomKilled };
    let limit = c.limit.as_ref().map(|l| format!(" of {}", l.bytes)).unwrap_or_default();
    let what = match class {
        Class::HostNodeOom => format!(
            "the cgroup counts {} OOM kill(s) without a failure at a limit of its own: what ran out stands above it",
            kills.count
        ),
        _ => format!("the cgroup counts {} OOM kill(s) at its memory limit{limit}", kills.count),
    };
    let at = Place { line: None, ..kills.place.clone() };
    let mut out = Candidate::new(class, From::Cgroup, what, "cgroup.oom_kill").at(&at, "", None);
    out.phase = end_phase(facts);
    let sure = *whose == Whose::Dead && class == Class::HostOomKilled && c.oom.is_some();
    out.confidence = if sure { Confidence::High } else { Confidence::Medium };
    out.supports.push(Cited::at(format!("oom_kill {}", kills.count), &kills.place));
    if let Some(o) = &c.oom {
        out.supports.push(Cited::at(format!("oom {}", o.count), &o.place));
    }
    if *whose == Whose::Unsaid {
        out.against.push(Cited::at("nothing tells which container's cgroup these files are of", &at));
    }
    if class == Class::HostNodeOom {
        out.against.push(Cited::at("a limit of the whole pod stands above the container's as well", &at));
    }
    out.against.push(Cited::at("a counter has no time and names no process; the kernel log does", &at));
    Some(out)
}
