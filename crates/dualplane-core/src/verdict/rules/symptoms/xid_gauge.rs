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
