//! Finds printouts of tools in a text: GPU tools, cgroup files, `free`, `kubectl top`, allocator ledgers, stacks.

use super::gpu_model::GpuSnapshot;
use super::{Bundle, cgroup, machine, scaling, smi, torch};

/// Cards, instances and processes of one incident; some hundred nodes' worth.
const MAX_GPU_ROWS: usize = 4096;
/// Machines and ledgers of one incident.
const MAX_OTHERS: usize = 1024;

const STACKS: &str = "it is a py-spy dump, which shows the stacks of a live process but nothing about memory";

/// Reads the printouts of a block into the bundle; returns the lines they take, as (start, end).
pub(super) fn read(
    bundle: &mut Bundle,
    lines: &[&str],
    first: u64,
    file: &str,
    command: Option<&str>,
) -> Vec<(usize, usize)> {
    let mut taken = Vec::new();
    let mut at = 0;
    while let Some(rest) = lines.get(at..).filter(|r| !r.is_empty()) {
        // A command's output begins below it.
        let command =
            command.filter(|_| lines.get(..at).is_none_or(|l| l.iter().all(|l| l.trim().is_empty())));
        match one(bundle, rest, first + at as u64, file, command) {
            Some(n) if n > 0 => {
                taken.push((at, at + n));
                at += n;
            }
            _ => at += 1,
        }
    }
    taken
}

fn one(bundle: &mut Bundle, lines: &[&str], first: u64, file: &str, command: Option<&str>) -> Option<usize> {
    if lines.first()?.trim().is_empty() {
        return None;
    }
    if let Some((n, summary)) = torch::summary(lines, first, file) {
        if bundle.summaries.len() < MAX_OTHERS {
            bundle.summaries.push(summary);
        }
        return Some(n);
    }
    if let Some(n) = torch::py_spy(lines) {
        say(bundle, file, STACKS);
        return Some(n);
    }
    if let Some(n) = cgroup::read(&mut bundle.cgroups, lines, first, file, command) {
        return Some(n);
    }
    if let Some(n) = machine::read(bundle, lines, first, file, command) {
        return Some(n);
    }
    if let Some(n) = scaling::read(bundle, lines) {
        return Some(n);
    }
    let mut p = smi::read(lines, first, command)?;
    if let Some(why) = p.unclear {
        say(bundle, file, why);
    }
    file.clone_into(&mut p.snapshot.file);
    p.snapshot.line = first;
    let rows = |s: &GpuSnapshot| s.gpus.len() + s.mig.len() + s.processes.len();
    if p.snapshot.is_empty() {
        return Some(p.lines);
    }
    if bundle.gpus.iter().map(rows).sum::<usize>() + rows(&p.snapshot) <= MAX_GPU_ROWS
        && bundle.gpus.len() < MAX_OTHERS
    {
        bundle.gpus.push(p.snapshot);
    } else {
        say(
            bundle,
            file,
            "it contains too much GPU tool output; save only that of the affected node and time",
        );
    }
    Some(p.lines)
}

/// A gap, once however often a text repeats its reason.
fn say(bundle: &mut Bundle, file: &str, why: &str) {
    if bundle.gaps.last().is_none_or(|g| g.what != file || g.why != why) {
        bundle.gap(file, why, None);
    }
}
