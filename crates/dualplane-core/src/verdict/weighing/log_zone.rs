//! A log whose clock is in local time.

use super::Weighing;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Decided};

/// Logs that are told of.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "log_zone",
    adds: "that a log's clock differs from the API's by whole hours, which were taken off",
    because: "whatever is compared by time hangs on it",
    source: "own",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    for log in case.facts.logs.iter().filter(|l| l.zone_ms.is_some()).take(TOLD) {
        let hours = log.zone_ms.unwrap_or_default() as f64 / -3_600_000.0;
        let text = format!(
            "the clock of this log is {hours:+} h from the API's: taken for a time zone, and taken off before times were compared"
        );
        decided.against.push(Cited::at(text, &Place { file: log.file.clone(), line: None }));
    }
}
