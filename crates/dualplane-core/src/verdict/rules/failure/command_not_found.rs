//! The shell did not find the command that it was to run.

use super::{BEATS, Judged, Rule, Stage, decided, quoted, unmet};
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence, Phase};

/// By convention of the shells; it is handed on by a script that ends with its last command, or at its first error.
const NOT_FOUND: i64 = 127;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "command_not_found",
    stage: Stage::Failure,
    classes: &[Class::NotMemory],
    when: "the container ended with exit code 127, and its shell says which command it does not find",
    near_miss: "a start script that misses a tool, goes on, and ends with another exit code",
    beats: BEATS,
    source: "POSIX, Shell Command Language, 2.8.2: exit status for commands",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.exit_code() != Some(NOT_FOUND) {
        return Err(unmet("the container did not end with exit code 127"));
    }
    let mut said = case.facts.hits.iter().filter(|h| h.id == "host.command_not_found" && !h.kernel);
    // The last one ended it: what a script misses before is not what it ends with.
    let hit = said.next_back().ok_or_else(|| unmet("no shell says that it does not find a command"))?;
    let command = hit.word("program").unwrap_or_default();
    let summary = format!("the shell does not find the command {command}");
    Ok(decided(Class::NotMemory, Phase::Load, Confidence::High, summary, vec![quoted(hit)]))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss, pod};

    const MISSED: &str = "/bin/sh: 1: vllm-server: not found\n";

    #[test]
    fn the_shell_says_so() {
        holds(&RULE, &[pod(127, "Error"), log(MISSED)]);
    }

    #[test]
    fn another_code_is_of_another_end() {
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), log(MISSED)]);
    }

    #[test]
    fn the_code_alone_is_none() {
        near_miss(&RULE, "exit_code", &[pod(127, "Error"), log("starting\n")]);
    }
}
