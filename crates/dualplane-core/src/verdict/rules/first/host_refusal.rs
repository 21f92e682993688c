//! A log line says that host memory was refused, without a kill.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "host_refusal";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "a log line tells of refused host memory: /dev/shm, pinned memory, malloc, an engine's own check",
    "the same words with a fall-back behind them; no space on a disk",
    "each signature's own source: dualplane explain SIGNATURE",
    |case| super::judge(case, ID, "no log line tells of a refused host allocation"),
);
