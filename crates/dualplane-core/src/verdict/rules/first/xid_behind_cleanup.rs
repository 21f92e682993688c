//! Clean-up that names the Xid it was caused by, whose own line is lost.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "xid_behind_cleanup";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::XidHardware],
    "an Xid 45 names the fault that it was caused by, and that fault's own line is not there",
    "an Xid 45 that names no cause, or whose cause is a clean-up as well",
    "NVIDIA driver: \"caused by previous Xid\"",
    |case| super::judge(case, ID, "no clean-up names a fault whose own line is lost"),
);
