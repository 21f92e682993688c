//! A life that demonstrably went on, or ended in order: only this proves that nothing failed, where no kill stands open beside it.
//!
//! That no error is at hand proves nothing: a server that is killed prints nothing, and an excerpt leaves lines out.

pub(super) mod ended_in_order;
pub(super) mod lived_on;
pub(super) mod nameless_kill;
pub(super) mod stays_ready;
pub(super) mod stopped_in_order;

pub(in crate::verdict) use nameless_kill::ID as NAMELESS_KILL;

use super::{Beats, Judged, Rule, Stage, decided, quoted, unmet};

const NOTHING: Beats = Beats::stage(Stage::Nothing, "the life that went on is shown");

/// The API's word goes before what a log shows.
const STATUS: &[Beats] = &[
    Beats::rule("lived_on", "the status tells of the whole run, a log of its lines"),
    Beats::rule("stopped_in_order", "the status tells of the whole run, a log of its lines"),
    NOTHING,
];
