//! The driver reported a fault of the GPU that ends work.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "xid";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::XidHardware],
    "the kernel log contains an Xid of the pod's GPU that is not a clean-up, not informational and not \
    caused by another",
    "Xid 45 and other clean-ups; an Xid of a GPU that the pod does not use; an Xid before this run, after \
    which requests were served",
    "NVIDIA Xid catalogue (knowledge/xid.toml)",
    |case| super::judge(case, ID, "the evidence contains no Xid of this pod's GPU that ends work"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, kernel, near_miss};

    #[test]
    fn a_gpu_off_the_bus_decides() {
        holds(
            &RULE,
            &[kernel(
                "[171903.002214] NVRM: Xid (PCI:0000:4a:00): 79, pid=1919440, name=python3, GPU has fallen off the bus.\n",
            )],
        );
    }

    #[test]
    fn a_cleanup_does_not() {
        near_miss(
            &RULE,
            "end_not_shown",
            &[kernel(
                "[171903.002214] NVRM: Xid (PCI:0007:01:00): 45, pid=1919440, name=python3, Ch 00000001\n",
            )],
        );
    }
}
