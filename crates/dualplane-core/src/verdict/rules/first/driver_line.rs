//! The driver says in the kernel log that it was refused host memory.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "driver_line";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "the kernel log contains a driver message about a failed host memory allocation",
    "the same message about another pod's GPU, or from another node",
    "NVIDIA driver: NVRM lines in the kernel log",
    |case| {
        super::judge(
            case,
            ID,
            "the kernel log contains no driver message about a failed host memory \
    allocation",
        )
    },
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, kernel, near_miss};

    #[test]
    fn a_page_table_that_was_refused_decides() {
        holds(&RULE, &[kernel("[Mon Jul 20 16:03:40 2026] NVRM: failed to allocate page table!\n")]);
    }

    #[test]
    fn a_file_private_alone_is_only_suspect() {
        near_miss(
            &RULE,
            "fallback_failed",
            &[kernel("[Mon Jul 20 16:03:40 2026] NVRM: failed to allocate file private!\n")],
        );
    }
}
