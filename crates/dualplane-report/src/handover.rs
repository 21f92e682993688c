//! What the next shift needs beside the verdict: what kind of failure it was, the settings as they were, what was kept, what
//! is to be taken back, and what is open.

use super::Report;
use super::budget;
use crate::actions::Stage;
use dualplane_base::text::{counted, name};
use dualplane_base::{Class, Phase};
use dualplane_core::verdict::rules::UNDER_PRESSURE;

/// Files that are named.
const FILES: usize = 20;

/// Expected memory and suspects, as the screen has them.
pub(super) fn budget(report: &Report) -> Vec<String> {
    let mut out = budget::lines(&report.budget, &report.verdict);
    out.extend(report.budget.suspects.iter().map(|s| {
        let size = s.bytes.map(|b| format!(" [{b}]")).unwrap_or_default();
        format!("suspect: {}{size}", s.what)
    }));
    out
}

/// Lines of the note, each a point.
pub(super) fn points(report: &Report) -> Vec<String> {
    let mut out = vec![format!("kind: {}", kind(report))];
    let settings = settings(report);
    if !settings.is_empty() {
        out.push(format!("settings at the failure: {}", settings.join(", ")));
    }
    if let Some(n) = report.verdict.subject.restarts {
        out.push(format!("restarts at the failure: {n}; a higher number later is a new failure"));
    }
    let files: Vec<String> = report.files.iter().take(FILES).map(|f| name(f).into_owned()).collect();
    let more = report.files.len().saturating_sub(FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !files.is_empty() {
        out.push(format!("evidence kept: {}{more}", files.join(", ")));
    }
    if report.verdict.missing.is_empty() {
        out.push("open: nothing that the verdict needs is missing".to_owned());
    } else {
        let things: Vec<&str> = report.verdict.missing.iter().map(|g| g.what.as_str()).collect();
        out.push(format!("open: {} missing: {}", counted(things.len(), "thing"), things.join(", ")));
    }
    out
}

/// Which of the few kinds of failure it is, as people sort them.
fn kind(report: &Report) -> &'static str {
    let v = &report.verdict;
    match v.class {
        Class::HostOomKilled if v.phase == Phase::Traffic => "host RAM while serving",
        Class::HostOomKilled if v.phase == Phase::Unknown => "host RAM of the container",
        Class::HostOomKilled => "host RAM while loading",
        Class::HostNodeOom => "host RAM of the node",
        Class::HostAllocFailure => "a host allocation that was refused",
        Class::CudaOomLoad => "static: the weights, their quantisation or their sharding",
        Class::KvCacheCapacity => "KV cache: context length and concurrency",
        Class::CudaOomRuntime => "parameters at the edge: the step and the share of the card",
        Class::Fragmentation => "overhead: the allocator's fragments",
        Class::GpuCapacityConflict => "scheduling: somebody else holds the card",
        Class::MigSliceTooSmall => "scheduling: the slice is too small for the model",
        Class::XidHardware => "hardware: the card or its driver",
        Class::NotMemory => "not memory",
        Class::Unknown if v.decided_by == UNDER_PRESSURE => "pressure: it lives at a limit",
        Class::Unknown => "not known",
    }
}

/// Length, sequences, share and ranks, as far as the evidence shows them.
fn settings(report: &Report) -> Vec<String> {
    let e = &report.facts.engine;
    let Some(head) = e.head() else { return Vec::new() };
    let f = &head.flags;
    let levers = [&f.length, &f.batch, &f.share, &f.tensor_parallel];
    let shown =
        levers.into_iter().filter_map(|names| Some(format!("{} {}", names.first()?, e.lever(names)?)));
    shown.map(|s| name(&s).into_owned()).collect()
}

/// What takes back what is only for the night, for each of the commands that the report gives.
pub(super) fn undo(report: &Report) -> Vec<String> {
    let of_night = report.actions.iter().filter(|a| a.stage == Stage::StopTheBleeding);
    of_night.flat_map(|a| &a.commands).filter_map(|c| back(c)).collect()
}

/// The command that takes back one of [`Stage::StopTheBleeding`]; none where there is no way back.
#[must_use]
pub fn back(command: &str) -> Option<String> {
    if let Some(node) = command.strip_prefix("kubectl cordon ") {
        return Some(format!("kubectl uncordon {node}"));
    }
    if command.starts_with("kubectl rollout pause ") {
        return Some(command.replace(" pause ", " resume "));
    }
    if command.starts_with("kubectl patch hpa ") {
        return Some(command.replace("\"Disabled\"", "\"Max\""));
    }
    if command.starts_with("kubectl annotate scaledobject ") {
        return Some(command.replace("autoscaling.keda.sh/paused=true", "autoscaling.keda.sh/paused-"));
    }
    let scale = command.strip_suffix("--replicas=0")?;
    Some(format!("{scale}--replicas=REPLICAS"))
}

#[cfg(test)]
mod tests {
    use super::back;

    #[test]
    fn each_change_of_the_night_has_a_way_back() {
        for (command, want) in [
            ("kubectl cordon gpu-1", Some("kubectl uncordon gpu-1")),
            ("kubectl rollout pause deployment/llm -n s", Some("kubectl rollout resume deployment/llm -n s")),
            (
                "kubectl scale deployment/llm -n s --replicas=0",
                Some("kubectl scale deployment/llm -n s --replicas=REPLICAS"),
            ),
            (
                "kubectl annotate scaledobject llm -n s --overwrite autoscaling.keda.sh/paused=true",
                Some("kubectl annotate scaledobject llm -n s --overwrite autoscaling.keda.sh/paused-"),
            ),
            ("kubectl drain gpu-1 --ignore-daemonsets --delete-emptydir-data", None),
            ("kubectl delete pod llm-0 -n s", None),
        ] {
            assert_eq!(back(command).as_deref(), want, "{command}");
        }
    }
}
