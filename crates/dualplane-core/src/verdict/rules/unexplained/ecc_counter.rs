//! The GPU's counters show uncorrectable memory errors, and nothing else explains the end.

use super::{Beats, Judged, Rule, Stage, unmet};
use crate::verdict::Class;
use crate::verdict::case::Case;
use crate::verdict::rules::from_chain;

pub(in crate::verdict) const ID: &str = "ecc_counter";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Unexplained,
    classes: &[Class::XidHardware],
    when: "a tool shows uncorrectable ECC errors, or rows that wait to be remapped, on the pod's GPU; there is no Xid, and \
    no signal or known failure explains the end",
    near_miss: "corrected errors only; a faulty GPU that the pod does not use",
    beats: &[
        Beats::rule("exit_code", "the fault explains an end that nothing else does"),
        Beats::rule("restart_loop", "the fault explains an end that nothing else does"),
        Beats::rule("death_line", "the fault explains an end that nothing else does"),
        Beats::rule("failure_wrapper", "the fault explains an end that nothing else does"),
        Beats::stage(Stage::Nothing, "a GPU with uncorrectable errors must not serve on"),
    ],
    source: "nvidia-smi -q: ECC Errors, Volatile, Uncorrectable; Remapped Rows, Pending",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let found = case.candidates.iter().find(|c| c.rule == ID);
    found
        .map(|c| from_chain(c, &[]))
        .ok_or_else(|| unmet("no tool shows uncorrectable errors of the pod's GPU"))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{file, holds, near_miss, pod};

    fn query(dram: u32) -> String {
        format!(
            "==============NVSMI LOG==============\n\nTimestamp : Wed Jul  1 10:00:00 2026\nDriver Version : 550.90.07\n\nAttached GPUs : 1\nGPU 00000000:17:00.0\n    ECC Errors\n        Volatile\n            SRAM Correctable : 0\n            SRAM Uncorrectable : 0\n            DRAM Correctable : 12\n            DRAM Uncorrectable : {dram}\n"
        )
    }

    #[test]
    fn uncorrectable_errors_explain_an_end_that_nothing_else_does() {
        holds(&RULE, &[file("ecc.txt", &query(3)), pod(1, "Error")]);
    }

    #[test]
    fn corrected_errors_do_not() {
        near_miss(&RULE, "exit_code", &[file("ecc.txt", &query(0)), pod(1, "Error")]);
    }
}
