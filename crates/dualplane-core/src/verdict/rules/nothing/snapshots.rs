//! What is at hand shows how memory stood at some moment, not whether or how anything ended.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::evidence::Bundle;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::Snapshot;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "snapshots",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "the evidence contains only snapshots: tool output, samples and memory files, and no meaningful \
    log",
    near_miss: "the same tool output together with a log, an object or a kernel log",
    beats: &[
        Beats::rule("no_evidence", "the report shows what there is"),
        Beats::rule("end_not_shown", "a snapshot does not show an end"),
    ],
    source: "nvidia-smi, free, kubectl top, memory.stat: values at one moment",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (bundle, facts) = (case.bundle, case.facts);
    let snapshots = snapshots(bundle);
    if snapshots.is_empty() {
        return Err(unmet("there is no tool output or sample"));
    }
    let phase = case.end_phase();
    let silent = facts.hits.is_empty() && facts.exceptions.is_empty() && phase == Phase::Unknown;
    let alone = bundle.pods.is_empty() && bundle.events.is_empty() && !facts.logs.iter().any(|l| l.kernel);
    if !alone || !silent && facts.has_life() {
        return Err(unmet("there is a log, an object or a kernel log"));
    }
    let summary = "the evidence shows memory use at one moment, not whether or how anything ended";
    Ok(decided(Class::Unknown, phase, Confidence::Low, summary, snapshots))
}

/// What tools and files tell of one moment.
fn snapshots(bundle: &Bundle) -> Vec<Cited> {
    let at = |file: &str, line: u64| Place { file: file.to_owned(), line: Some(line) };
    let mut out = Vec::new();
    for s in bundle.gpus.iter().take(3) {
        let (gpus, instances, processes) = (s.gpus.len(), s.mig.len(), s.processes.len());
        let proof = Snapshot::Gpus { tool: s.tool, gpus, instances, processes };
        out.push(Cited::at(proof, &at(&s.file, s.line)));
    }
    if let Some(s) = bundle.metrics.first() {
        out.push(Cited::at(Snapshot::Samples(bundle.metrics.len()), &at(&s.file, s.line)));
    }
    for c in bundle.cgroups.iter().take(3) {
        let kills = c.oom_kill.as_ref().map(|k| k.count);
        out.push(Cited::at(Snapshot::Cgroup { kills }, &Place { file: c.file.clone(), line: None }));
    }
    for m in bundle.machines.iter().take(2) {
        out.push(Cited::at(Snapshot::Machine(m.tool), &at(&m.file, m.line)));
    }
    for t in bundle.tops.iter().take(2) {
        let proof = Snapshot::WorkingSet { tool: t.tool, pod: t.pod.clone(), used: t.memory };
        out.push(Cited::at(proof, &at(&t.file, t.line)));
    }
    for s in bundle.summaries.iter().take(2) {
        out.push(Cited::at(Snapshot::Torch { device: s.device, failed: s.ooms }, &at(&s.file, s.line)));
    }
    out
}
