//! Clean-up that names the Xid it was caused by, whose own line is lost.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "xid_behind_cleanup";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::XidHardware],
    "an Xid 45 names the fault that caused it, and that fault's own line is missing",
    "an Xid 45 that names no cause, or whose cause is also a clean-up",
    "NVIDIA driver: \"caused by previous Xid\"",
    |case| super::judge(case, ID, "no clean-up names a fault whose own line is missing"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, kernel, near_miss};

    #[test]
    fn the_named_cause_decides() {
        holds(
            &RULE,
            &[kernel(
                "[171903.002214] NVRM: Xid (PCI:0007:01:00): 45, pid=1919440, name=python3, Ch 00000001 caused by previous Xid 149\n",
            )],
        );
    }

    #[test]
    fn a_cleanup_without_a_cause_does_not() {
        near_miss(
            &RULE,
            "end_not_shown",
            &[kernel(
                "[171903.002214] NVRM: Xid (PCI:0007:01:00): 45, pid=1919440, name=python3, Ch 00000001\n",
            )],
        );
    }
}
