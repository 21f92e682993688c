//! What is at hand shows how memory stood at some moment, not whether or how anything ended.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::evidence::Bundle;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "snapshots",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "only printouts, samples and memory files of one moment are at hand, and no log that says anything",
    near_miss: "the same printout beside a log, an object or a kernel log",
    beats: &[
        Beats::rule("no_evidence", "what is at hand is told"),
        Beats::rule("nothing_failed", "a moment shows no end"),
    ],
    source: "nvidia-smi, free, kubectl top, memory.stat: values of one moment",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (bundle, facts) = (case.bundle, case.facts);
    let snapshots = snapshots(bundle);
    if snapshots.is_empty() {
        return Err(unmet("no printout or sample of a moment is at hand"));
    }
    let phase = case.end_phase();
    let silent = facts.hits.is_empty() && facts.exceptions.is_empty() && phase == Phase::Unknown;
    let alone = bundle.pods.is_empty() && bundle.events.is_empty() && !facts.logs.iter().any(|l| l.kernel);
    if !alone || !silent && facts.has_life() {
        return Err(unmet("a log, an object or a kernel log is at hand"));
    }
    let summary = "what is at hand shows how memory stood at some moment, not whether or how anything ended";
    Ok(decided(Class::Unknown, phase, Confidence::Low, summary, snapshots))
}

/// What tools and files tell of one moment.
fn snapshots(bundle: &Bundle) -> Vec<Cited> {
    let at = |file: &str, line: u64| Place { file: file.to_owned(), line: Some(line) };
    let mut out = Vec::new();
    for s in bundle.gpus.iter().take(3) {
        let (cards, mig, processes) = (s.gpus.len(), s.mig.len(), s.processes.len());
        let text = format!("{}: {cards} card(s), {mig} MIG instance(s), {processes} process(es)", s.tool);
        out.push(Cited::at(text, &at(&s.file, s.line)));
    }
    if let Some(s) = bundle.metrics.first() {
        let text = format!(
            "{} metric sample(s), without a counter or gauge that tells of an end",
            bundle.metrics.len()
        );
        out.push(Cited::at(text, &at(&s.file, s.line)));
    }
    for c in bundle.cgroups.iter().take(3) {
        let text = match &c.oom_kill {
            Some(k) => format!("memory files of a cgroup; it counts {} OOM kill(s)", k.count),
            None => "memory files of a cgroup, without its counters of OOM kills".to_owned(),
        };
        out.push(Cited::at(text, &Place { file: c.file.clone(), line: None }));
    }
    for m in bundle.machines.iter().take(2) {
        out.push(Cited::at(format!("{}: memory of a machine", m.tool), &at(&m.file, m.line)));
    }
    for t in bundle.tops.iter().take(2) {
        out.push(Cited::at(
            format!("{}: {} has a working set of {}", t.tool, t.pod, t.memory),
            &at(&t.file, t.line),
        ));
    }
    for s in bundle.summaries.iter().take(2) {
        let text =
            format!("memory_summary of device {}, which counts {} failed allocation(s)", s.device, s.ooms);
        out.push(Cited::at(text, &at(&s.file, s.line)));
    }
    out
}
