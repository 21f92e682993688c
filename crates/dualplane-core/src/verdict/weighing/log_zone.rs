//! A log whose clock is in local time.

use super::Weighing;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::Log;
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
        let proof = Log::OtherZone { zone_ms: log.zone_ms.unwrap_or_default() };
        decided.against.push(Cited::at(proof, &Place { file: log.file.clone(), line: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, log, pod, weighs};

    fn ends(at: &str) -> File {
        log(&format!(
            "INFO 11-20 {at} [loggers.py:123] Engine 000: Avg prompt throughput: 412.1 tokens/s, Running: 12 reqs\n"
        ))
    }

    #[test]
    fn a_log_that_ends_whole_hours_away_is_in_local_time() {
        weighs(&RULE, &[pod(137, "OOMKilled"), ends("18:29:58")]);
    }

    #[test]
    fn one_that_ends_with_the_container_is_not() {
        adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled"), ends("10:29:58")]);
    }
}
