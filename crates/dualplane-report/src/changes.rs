//! What the last roll-out changed, in words.

use super::Report;
use dualplane_core::evidence::{Change, Rollout};

/// When a roll-out was made, against the death.
pub(super) fn headline(report: &Report, rollout: &Rollout) -> String {
    let died = report.verdict.subject.death.as_ref().and_then(|d| d.finished);
    let before = rollout.at.zip(died).and_then(|(at, died)| at.ms_until(died));
    let when = match (before, rollout.at) {
        (Some(ms), _) if ms >= 0 => format!(", rolled out {} before the last death", span(ms)),
        (_, Some(at)) => format!(", rolled out {}", at.show()),
        _ => String::new(),
    };
    format!("{}: revision {} → {}{when}", rollout.workload, rollout.from, rollout.to)
}

/// `container vllm: --max-model-len 8192 → 32768`.
pub(super) fn change(change: &Change) -> String {
    let whose = change.container.as_ref().map_or(String::new(), |c| format!("container {c}: "));
    format!("{whose}{} {}", change.field, change.how())
}

/// The two largest units of a span.
fn span(ms: i64) -> String {
    let s = ms / 1000;
    match s {
        ..=119 => format!("{s} s"),
        120..=7199 => format!("{} min", s / 60),
        7200..=172_799 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} days", s / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_are_read_at_a_glance() {
        let told: Vec<String> =
            [5_000, 180_000, 7_260_000, 3 * 86_400_000].iter().map(|ms| span(*ms)).collect();
        assert_eq!(told, ["5 s", "3 min", "2 h 1 min", "3 days"]);
    }
}
