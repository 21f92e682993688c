//! Finds printouts of tools in a text: GPU tools, cgroup files, `free`, `kubectl top`, allocator ledgers, stacks.

use super::{Bundle, cgroup, machine, smi, torch};

const STACKS: &str =
    "a py-spy dump is recognised: it shows where threads of a live process stood, and nothing of memory";

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
        bundle.summaries.push(summary);
        return Some(n);
    }
    if let Some(n) = torch::py_spy(lines) {
        bundle.gap(file, STACKS, None);
        return Some(n);
    }
    if let Some(n) = cgroup::read(&mut bundle.cgroups, lines, first, file, command) {
        return Some(n);
    }
    if let Some(n) = machine::read(bundle, lines, first, file, command) {
        return Some(n);
    }
    let mut p = smi::read(lines, first, command)?;
    if let Some(why) = p.unclear {
        bundle.gap(file, why, None);
    }
    file.clone_into(&mut p.snapshot.file);
    p.snapshot.line = first;
    if !p.snapshot.is_empty() {
        bundle.gpus.push(p.snapshot);
    }
    Some(p.lines)
}
