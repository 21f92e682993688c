//! The container's own memory stood at its limit when a SIGKILL came that nobody explains.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "memory_at_limit";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[Class::HostOomKilled],
    when: "container_memory_rss reached 95 % of the limit within two minutes before an unexplained \
    SIGKILL, and there is no kernel log",
    near_miss: "the same sample together with a kernel log without a record",
    beats: BEATS,
    source: "cAdvisor container_memory_rss; containerd and CRI-O can miss an OOM kill",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| c.rule == ID)
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(
        case,
        pick(case),
        "no sample shows the container's memory at its limit shortly before a SIGKILL",
    )
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, file, holds, kernel, near_miss, pod};

    /// Anonymous memory at 97 % of 64Gi, this many seconds before the end at 10:30:00.
    fn rss(before: u64) -> File {
        let at = (1_795_170_600 - before) * 1000;
        let labels = "namespace=\"serve\",pod=\"llm-0\",container=\"vllm\"";
        file("m.prom", &format!("container_memory_rss{{{labels}}} 66658997043 {at}\n"))
    }

    #[test]
    fn memory_at_the_limit_just_before_a_sigkill_is_the_best_guess() {
        holds(&RULE, &[pod(137, "Error"), rss(40)]);
    }

    #[test]
    fn a_kernel_log_would_hold_the_record() {
        let other = kernel("[54120.881204] nvidia-uvm: Loaded the UVM driver, major device number 510.\n");
        near_miss(&RULE, "killed", &[pod(137, "Error"), rss(40), other]);
    }

    #[test]
    fn ten_minutes_before_is_another_load() {
        near_miss(&RULE, "killed", &[pod(137, "Error"), rss(600)]);
    }
}
