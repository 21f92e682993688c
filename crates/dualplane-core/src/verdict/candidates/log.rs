//! Signature hits in logs as candidates: whether the process recovered, and what the line's context adds.

use super::{Candidate, Source, Weight, end_phase};
use crate::evidence::Bundle;
use crate::facts::{Facts, Hit};
use crate::knowledge::Mark;
use crate::verdict::proof;
use crate::verdict::rules::first;
use crate::verdict::server_runs::recovered;
use crate::verdict::{Cited, Class, Confidence, Phase, Plane, vram};

/// A load that failed and then went on was no end: some engines retry with smaller buffers and come up.
pub(super) fn weigh_recovery(hit: &Hit, weight: Weight, facts: &Facts) -> Weight {
    // TensorRT's builder tries tactics: one that does not fit is skipped, and the next lines say so.
    const TACTIC_LINES: u64 = 5;
    let skipped = hit.id.starts_with("tensorrt_llm.trt_")
        && facts.hits.iter().any(|h| {
            h.mark == Mark::Benign
                && h.place.file == hit.place.file
                && h.place.line > hit.place.line
                && h.place.line <= hit.place.line.map(|l| l + TACTIC_LINES)
        });
    if skipped {
        return Weight::Suspect;
    }
    let retries = hit.engine.as_deref().and_then(|e| facts.engine.all.get(e)).is_some_and(|d| d.retries_load);
    if weight != Weight::Fatal || !retries || hit.class != Some(Class::CudaOomLoad) {
        return weight;
    }
    let log = facts.logs.iter().find(|l| l.file == hit.place.file);
    let up_again = log.is_some_and(|l| l.last_ready > hit.place.line);
    let gave_up = facts.hits.iter().any(|h| {
        matches!(h.mark, Mark::Cascade | Mark::Death | Mark::Failure)
            && h.place.file == hit.place.file
            && h.place.line > hit.place.line
    });
    if up_again && !gave_up { Weight::Suspect } else { weight }
}

/// Which rule a line of this class is of; the numbers of a VRAM error may make it another's.
fn rule(class: Class, kernel: bool) -> &'static str {
    match class {
        Class::HostOomKilled | Class::HostNodeOom => first::node_killer::ID,
        Class::HostAllocFailure if kernel => first::driver_line::ID,
        Class::HostAllocFailure => first::host_refusal::ID,
        Class::XidHardware => first::gpu_fault_line::ID,
        Class::KvCacheCapacity => first::kv_capacity::ID,
        Class::CudaOomLoad | Class::CudaOomRuntime => first::vram_unsized::ID,
        Class::Fragmentation
        | Class::GpuCapacityConflict
        | Class::MigSliceTooSmall
        | Class::NotMemory
        | Class::Unknown => first::engine_refusal::ID,
    }
}

/// Whether another line tells of the end that this one announces.
fn followed(hit: &Hit, facts: &Facts) -> bool {
    let tells = |h: &&Hit| matches!(h.mark, Mark::Fatal | Mark::Death | Mark::Cascade) && h.id != hit.id;
    facts.hits.iter().any(|h| tells(&h) && (h.place.file != hit.place.file || h.place.line > hit.place.line))
}

pub(super) fn hit(hit: &Hit, class: Class, weight: Weight, bundle: &Bundle, facts: &Facts) -> Candidate {
    let kernel = hit.kernel || hit.id.starts_with("kernel.");
    let mut c = Candidate::new(
        rule(class, kernel),
        class,
        if kernel { Source::Kernel } else { Source::Log },
        hit.meaning.clone(),
        hit.id.clone(),
    )
    .at(&hit.place, &hit.text, hit.stamp);
    c.weight = weight;
    c.role = hit.role;
    c.process.clone_from(&hit.process);
    c.vram.clone_from(&hit.vram);
    c.confidence = match weight {
        Weight::Fatal => Confidence::High,
        Weight::Degraded => Confidence::Medium,
        Weight::Suspect => Confidence::Low,
    };
    // The kernel and the node's own killers do not know what the server was doing.
    let outside = kernel || class == Class::HostNodeOom && hit.role == crate::evidence::Role::Unsaid;
    c.phase = if hit.phase == Phase::Unknown && outside { end_phase(facts) } else { hit.phase };
    c.supports = vec![Cited::of(crate::text::shorten(hit.text.trim(), 240), hit)];

    if class.plane() == Plane::Gpu {
        vram::refine(&mut c, hit, bundle, facts);
    }
    // One request's error with which the server lived on for long is a symptom, not an end.
    let gpu_log = c.class.plane() == Plane::Gpu && c.from == Source::Log;
    if c.weight == Weight::Fatal && gpu_log && recovered(&c, facts) {
        c.weight = Weight::Degraded;
        c.survived = true;
        c.against.push(Cited::at(proof::Log::ServedOn, &hit.place));
    }
    if let Some(doubt) = hit.doubt.as_ref().filter(|_| !followed(hit, facts)) {
        c.confidence = Confidence::Low;
        c.against.push(Cited::at(proof::Log::Doubt(doubt.clone()), &hit.place));
    }
    if hit.id.starts_with("generic.") {
        c.confidence = Confidence::Low;
        c.against.push(Cited::at(proof::Log::Unrecognised, &hit.place));
    }
    c
}
