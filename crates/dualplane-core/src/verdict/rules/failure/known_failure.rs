//! A log line that is known to end a server for another cause than memory.

use super::{BEATS, Judged, Rule, Stage, death, decided, quoted, unmet};
use crate::evidence::Pod;
use crate::facts::{Facts, Hit};
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::proof::Log;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "known_failure",
    stage: Stage::Failure,
    classes: &[Class::NotMemory],
    when: "a log line matches a known failure that is not memory, and no process died before it",
    near_miss: "a request that failed long before a SIGKILL; a failure caused by a process's death; a full volume that \
    may be one in memory",
    beats: BEATS,
    source: "signatures with the mark failure (knowledge/)",
    judge,
};

/// So near the end of its log a failure explains the end; an early failed request does not.
const NEAR_END: u64 = 200;

pub(super) fn judge(case: &Case<'_>) -> Judged {
    let facts = case.facts;
    let known = || facts.hits.iter().filter(|h| h.mark == Mark::Failure && case.may_tell_of_end(h));
    if known().next().is_none() {
        return Err(unmet("no line matches a known failure that is not memory"));
    }
    let hit = known()
        .find(|h| !case.outlived(&h.place))
        .ok_or_else(|| unmet("the server came up or answered requests after the failure"))?;
    // Behind a known failure a process that "died unexpectedly" died of it; before it, it did not.
    let explains =
        death(facts).is_none_or(|d| d.place.file != hit.place.file || d.place.line > hit.place.line);
    if !explains {
        return Err(unmet("a process died before the failure was printed"));
    }
    if !ends_log(hit, facts) {
        return Err(unmet("the failure is long before the end of its log"));
    }
    if let Some(path) = full_where(hit).filter(|p| of_unseen_volume(p, case)) {
        return Err(unmet(format!(
            "{path} may lie on a volume in memory: no object in the evidence shows its volume"
        )));
    }
    let phase = case.phase_or_end(hit.phase);
    let mut d = decided(Class::NotMemory, phase, Confidence::High, hit.meaning.clone(), vec![quoted(hit)]);
    if let Some(doubt) = &hit.doubt {
        d.confidence = Confidence::Medium;
        d.against.push(Cited::plain(Log::Doubt(doubt.clone())));
    }
    Ok(d)
}

/// The path at which a file system is full.
fn full_where(hit: &Hit) -> Option<&str> {
    let at = hit.text.find("No space left on device")?;
    let path = |w: &&str| w.starts_with('/') && w.len() > 1;
    let words = |s: &'static [char]| move |c: char| c.is_whitespace() || s.contains(&c);
    let apart = words(&['\'', '"', '`', ',', ';', '(', ')']);
    // Most say it behind, Go and C programs before.
    let (before, behind) = hit.text.split_at_checked(at)?;
    behind
        .split(apart)
        .find(path)
        .or_else(|| before.split(apart).rfind(path))
        .map(|p| p.trim_end_matches(':'))
}

/// Folders of an image, and those where weights are kept: on a disk. Another exists because a volume is mounted there.
const ON_A_DISK: &[&str] = &[
    "app",
    "data",
    "etc",
    "hf",
    "home",
    "huggingface",
    "mnt",
    "model",
    "models",
    "opt",
    "root",
    "srv",
    "tmp",
    "usr",
    "var",
    "workspace",
];

/// The path is one at which a volume is mounted, and no object says which.
fn of_unseen_volume(path: &str, case: &Case<'_>) -> bool {
    let top = path.split('/').nth(1).unwrap_or_default();
    !ON_A_DISK.contains(&top) && !case.pod().is_some_and(Pod::whole)
}

fn ends_log(hit: &Hit, facts: &Facts) -> bool {
    let log = facts.logs.iter().find(|l| l.file == hit.place.file);
    hit.place.line.is_some_and(|line| log.is_none_or(|l| l.behind(line) <= NEAR_END))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss, pod};

    const ARGS: &str = "api_server.py: error: unrecognized arguments: --gpu-memory-utilisation\n";

    #[test]
    fn a_bad_flag_is_the_end() {
        holds(&RULE, &[log(ARGS)]);
    }

    const FULL: &str = "write to /cache/kv.bin failed after 32 MiB: No space left on device\n";

    #[test]
    fn a_full_folder_of_the_image_is_a_disk() {
        holds(
            &RULE,
            &[log("OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/blob'\n")],
        );
    }

    #[test]
    fn a_full_volume_may_be_one_in_memory() {
        near_miss(&RULE, "end_not_shown", &[log(FULL)]);
        holds(&RULE, &[pod(5, "Error"), log(FULL)]);
    }

    #[test]
    fn long_before_a_kill_it_is_not() {
        let mut lines = ARGS.to_owned();
        (0..300).for_each(|i| lines.push_str(&format!("INFO step {i}\n")));
        near_miss(&RULE, "killed", &[pod(137, "Error"), log(&lines)]);
    }
}
