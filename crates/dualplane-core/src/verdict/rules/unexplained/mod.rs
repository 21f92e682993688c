//! Something died, and nothing says why: what the end itself tells.

pub(super) mod death_line;
pub(in crate::verdict) mod ecc_counter;
pub(super) mod exit_code;
pub(super) mod failure_wrapper;
pub(super) mod killed;
pub(super) mod quoted_words;
pub(super) mod restart_loop;
pub(super) mod segfault;
pub(super) mod terminated;
pub(super) mod unknown_alarm;

use super::{Beats, Judged, Rule, Stage, Unmet, decided, quoted, unmet};
use crate::evidence::Termination;
use crate::facts::Hit;
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

const BEATS: &[Beats] = &[LIFE, NOTHING];

const LIFE: Beats = Beats::stage(Stage::Life, "something died after the server was up");
const NOTHING: Beats = Beats::stage(Stage::Nothing, "something died");

/// An end that is told by the API and was not clean.
fn end<'c>(case: &'c Case<'_>, code: i64, absent: &'static str) -> Result<&'c Termination, Unmet> {
    case.death().filter(|d| !d.clean() && d.ended_with(code)).ok_or_else(|| unmet(absent))
}

/// The verdict "unknown" with the exit code that is all there is.
fn unknown_end(case: &Case<'_>, d: &Termination, summary: String) -> Judged {
    let supports = vec![Cited::at(Status::Ended(Box::new(d.clone())), &case.pod_place())];
    Ok(decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, supports))
}

/// The verdict "unknown" with a line that tells of an end and not of its cause.
fn unknown_line(case: &Case<'_>, hit: &Hit) -> Judged {
    let summary = format!("{}. The evidence does not show why", hit.meaning.trim_end_matches('.'));
    let phase = case.phase_or_end(hit.phase);
    Ok(decided(Class::Unknown, phase, Confidence::Low, summary, vec![quoted(hit)]))
}
