//! The kernel's line about an invalid access, and the exit code of SIGSEGV, SIGILL or SIGFPE (128 + signal).

use super::{Beats, Judged, Rule, Stage, decided, quoted, unmet};
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::proof::Signal;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "kernel_saw_crash",
    stage: Stage::Signal,
    classes: &[Class::NotMemory],
    when: "the kernel log reports a crash, and the exit code is 139, 132 or 136",
    near_miss: "a kernel message about another process, with an exit code that does not match a crash",
    beats: &[
        Beats::stage(Stage::Symptom, "a crash is not memory pressure that the server survived"),
        Beats::stage(Stage::Failure, "the kernel saw the crash itself"),
        Beats::stage(Stage::Unexplained, "the kernel message is more specific than the exit code"),
        Beats::stage(Stage::Life, "the end is explained"),
        Beats::stage(Stage::Nothing, "the end is explained"),
    ],
    source: "Linux arch/x86/mm/fault.c: \"segfault at … ip … sp … error\"",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let code = case
        .exit_code()
        .filter(|c| matches!(c, 139 | 132 | 136))
        .ok_or_else(|| unmet("the exit code does not match a crash (139, 132, 136)"))?;
    let hit = case
        .facts
        .hits
        .iter()
        .find(|h| h.mark == Mark::Failure && h.id.starts_with("kernel.") && case.may_tell_of_end(h))
        .ok_or_else(|| unmet("no kernel message reports a crash"))?;
    let supports = vec![quoted(hit), Cited::plain(Signal::Crash { exit_code: code })];
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::High, hit.meaning.clone(), supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, kernel, near_miss, pod};

    const SEGFAULT: &str = "[ 9123.456789] python3[4242]: segfault at 7f0c00000008 ip 00007f0cdeadbeef sp 00007ffd00001000 error 4 in libc.so.6[7f0cde000000+1c0000]\n";

    #[test]
    fn the_kernel_s_line_and_the_exit_code_agree() {
        holds(&RULE, &[pod(139, "Error"), kernel(SEGFAULT)]);
    }

    #[test]
    fn another_exit_code_is_another_process_s_crash() {
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), kernel(SEGFAULT)]);
        near_miss(&RULE, "exit_code", &[pod(134, "Error"), kernel(SEGFAULT)]);
    }
}
