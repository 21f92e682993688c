//! DCGM's gauge holds the last Xid, where no Xid line is at hand.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "xid_gauge";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[Class::XidHardware],
    when: "DCGM_FI_DEV_XID_ERRORS of the pod's GPU shows an Xid that is not a clean-up and not informational",
    near_miss: "the gauge together with the driver's own messages, which have timestamps",
    beats: BEATS,
    source: "DCGM: DCGM_FI_DEV_XID_ERRORS",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| c.rule == ID)
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no DCGM gauge shows an Xid of this pod's GPU")
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, file, holds, kernel, near_miss, pod};

    fn gauge(xid: u32) -> File {
        let labels = "gpu=\"0\",Hostname=\"gpu-1\",namespace=\"serve\",pod=\"llm-0\",container=\"vllm\"";
        file("m.prom", &format!("DCGM_FI_DEV_XID_ERRORS{{{labels}}} {xid}\n"))
    }

    #[test]
    fn an_xid_that_only_the_gauge_shows_decides() {
        holds(&RULE, &[pod(1, "Error"), gauge(79)]);
    }

    #[test]
    fn the_driver_s_own_message_has_a_time_and_decides_instead() {
        let driver = kernel(
            "[54120.881204] NVRM: Xid (PCI:0000:4a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
        );
        near_miss(&RULE, "xid", &[pod(1, "Error"), gauge(79), driver]);
    }

    #[test]
    fn the_clean_up_after_a_death_is_no_fault() {
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), gauge(45)]);
    }
}
