//! A log whose clock is in local time.

use super::Weighing;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Decided};

/// Logs that are told of.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "log_zone",
    adds: "a note that a log's clock differs from the API's by whole hours, which were corrected",
    because: "every comparison of times depends on it",
    source: "own",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    for log in case.facts.logs.iter().filter(|l| l.zone_ms.is_some()).take(TOLD) {
        let hours = log.zone_ms.unwrap_or_default() as f64 / -3_600_000.0;
        let text = format!(
            "the clock of this log differs from the API's by {hours:+} h; assumed to be a time zone \
            difference and corrected"
        );
        decided.against.push(Cited::at(text, &Place { file: log.file.clone(), line: None }));
    }
}
