//! Ends that name their cause by the way they ended.

pub(super) mod bus_error;
pub(super) mod kernel_saw_crash;
pub(super) mod orderly_stop;

use super::{Beats, Judged, Rule, Stage, decided, quoted, unmet};
