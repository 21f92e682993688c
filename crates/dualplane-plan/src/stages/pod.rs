//! The pod's RAM at each stage, against its limit and its /dev/shm.

use super::lines::kernel_kill;
use super::{Fault, Peak, Step};
use crate::host::{DEFAULT_SHM, HostReport};
use crate::launch::CommandLine;
use crate::outcome::Verdict;
use crate::quantity::Quantity;
use dualplane_base::Class;
use dualplane_base::units::Bytes;

/// Unreclaimable RAM at the peak of a step.
pub(super) fn at(host: &HostReport, step: Step) -> Quantity {
    let s = &host.stages;
    match step {
        Step::ProcessStart => s.processes,
        Step::Context => s.connected,
        Step::Load | Step::Repack => s.loading,
        Step::Profile => s.loaded,
        Step::KvCache => s.pools,
        Step::Graphs | Step::WarmUp => s.resident,
        Step::Traffic => host.plan.steady_bytes.max(s.resident),
    }
}

/// Where the limit is reached, or a message queue finds no room.
pub(super) fn faults(line: &CommandLine, host: &HostReport) -> Vec<Fault> {
    let mut out = Vec::new();
    if let Some(Bytes(limit)) = line.host.pod.limit {
        let steps = [Step::ProcessStart, Step::Context, Step::Load, Step::KvCache, Step::Traffic];
        let mut peak = Peak::default();
        for step in steps {
            let need = at(host, step);
            let Some(verdict) = peak.reaches(need, limit) else { continue };
            let why = format!(
                "the pod needs {} to {} of RAM here, and its memory limit is {}",
                Bytes(need.low),
                Bytes(need.high),
                Bytes(limit)
            );
            out.push(Fault::new(step, Class::HostOomKilled, verdict, kernel_kill(line), why));
        }
    }
    out.extend(shared_memory(line, host));
    out
}

/// A volume on /dev/shm that is too small, or the default one.
fn shared_memory(line: &CommandLine, host: &HostReport) -> Option<Fault> {
    let pod = &line.host.pod;
    let size = match (&pod.shm, pod.known) {
        (Some(Some(Bytes(size))), _) => *size,
        (None, true) => DEFAULT_SHM,
        _ => return None,
    };
    let need = host.plan.shm_bytes;
    if need.high <= size {
        return None;
    }
    // Collectives take another way where peers reach each other, so the low bound is no proof.
    let verdict = Verdict::Uncertain;
    let why = format!(
        "shared memory needs {} to {}, and /dev/shm holds {}",
        Bytes(need.low),
        Bytes(need.high),
        Bytes(size)
    );
    let text = "OSError: [Errno 28] No space left on device: '/dev/shm/…'".to_owned();
    Some(Fault::new(Step::Context, Class::HostAllocFailure, verdict, text, why))
}
