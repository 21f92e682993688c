//! RAM and shared memory of the pod against what the plan needs of them.

use super::outcome::{Change, Finding, HostRow, Outcome, Where};
use super::seen::{MemoryLimit, Seen, Shm};
use crate::Quantity;
use crate::host::HostReport;
use crate::launch::PodAsk;
use dualplane_base::units::{Bytes, GIB, MIB};

/// `/dev/shm` of a container without a volume there.
const DEFAULT_SHM: u64 = 64 * MIB;

/// Compares the host plane.
pub(super) fn compare(
    seen: &Seen,
    need: Option<(&HostReport, &PodAsk)>,
    findings: &mut Vec<Finding>,
    changes: &mut Vec<Change>,
) -> HostRow {
    let found = shm_of(seen, need.map(|n| n.1));
    if let Some((report, _)) = need {
        let ram = report.plan.load_peak_bytes.max(report.plan.steady_bytes);
        let limited = limit(seen, report, ram);
        // Waiting needs no other limit.
        if limited.as_ref().is_some_and(|f| f.outcome != Outcome::Wait) {
            changes.push(Change {
                change: format!("resources.limits.memory: {}Gi", report.limit_bytes / GIB),
                because: report.arithmetic.get(1).cloned().unwrap_or_default(),
            });
        }
        findings.extend(limited);
        findings.extend(machine(seen, ram));
        if let Some(f) = shared(seen, report, &found) {
            let wait = f.outcome == Outcome::Wait;
            findings.push(f);
            changes.extend((!wait).then(|| Change {
                change: format!(
                    "a volume on /dev/shm: emptyDir {{medium: Memory, sizeLimit: {}Gi}}",
                    (report.shm_size_bytes / GIB).max(1)
                ),
                because: format!(
                    "the ranks share {} to {}, which counts towards the memory limit",
                    Bytes(report.plan.shm_bytes.low),
                    Bytes(report.plan.shm_bytes.high)
                ),
            }));
        }
    }
    HostRow {
        need: need.map(|(r, _)| r.plan.load_peak_bytes.max(r.plan.steady_bytes)),
        shm_need: need.map(|(r, _)| r.plan.shm_bytes),
        limit: seen.limit.clone(),
        machine_total: seen.machine_total,
        machine_available: seen.machine_available,
        shm: found.shm,
        shm_source: found.source.into(),
    }
}

fn limit(seen: &Seen, report: &HostReport, need: Quantity) -> Option<Finding> {
    let of = |outcome, what: String| Finding::new(outcome, Where::Host, what);
    let enough = format!("limits.memory of {}Gi covers the highest plausible need", report.limit_bytes / GIB);
    match &seen.limit {
        MemoryLimit::Unlimited { .. } => None,
        MemoryLimit::Untold { own } => {
            let here = own.map_or(String::new(), |b| format!("; {b} is the limit of this container"));
            Some(
                of(
                    Outcome::Unknown,
                    format!("the memory limit of the server's container is unknown{here}"),
                )
                .settle(
                    "--memory-limit SIZE, DUALPLANE_MEMORY_LIMIT from the downward API, or --manifest FILE",
                ),
            )
        }
        MemoryLimit::At { bytes, source, held } => {
            let said = format!("the memory limit of {bytes} ({source})");
            let left = bytes.0.saturating_sub(held.0);
            if bytes.0 < need.low {
                Some(
                    of(
                        Outcome::CannotFit,
                        format!(
                            "{said} is below the lowest plausible need of {}: the kernel would kill the \
                            server",
                            Bytes(need.low)
                        ),
                    )
                    .settle(enough),
                )
            } else if left < need.low {
                Some(
                    of(
                        Outcome::Wait,
                        format!(
                            "{said} leaves {}: other processes in this container use {held}, and the \
                            server needs {}",
                            Bytes(left),
                            Bytes(need.low)
                        ),
                    )
                    .settle("wait until they end, or stop them"),
                )
            } else if left < need.high {
                let held = if held.0 > 0 { format!(", minus {held} in use,") } else { String::new() };
                Some(
                    of(
                        Outcome::Unknown,
                        format!(
                            "{said}{held} is within the plausible need of {} to {}",
                            Bytes(need.low),
                            Bytes(need.high)
                        ),
                    )
                    .settle(enough),
                )
            } else {
                None
            }
        }
    }
}

fn machine(seen: &Seen, need: Quantity) -> Option<Finding> {
    let of = |outcome, what: String| Finding::new(outcome, Where::Host, what);
    let (Some(total), Some(free)) = (seen.machine_total, seen.machine_available) else {
        return Some(of(Outcome::Unknown, "cannot read the machine's memory from /proc/meminfo".into()));
    };
    if total.0 < need.low {
        let what = format!("the machine has {total} of RAM; the server needs at least {}", Bytes(need.low));
        Some(of(Outcome::CannotFit, what).settle("another node"))
    } else if free.0 < need.low {
        let what =
            format!("the machine has {free} of RAM available; the server needs at least {}", Bytes(need.low));
        Some(of(Outcome::Wait, what).settle("wait until other processes release RAM, or use another node"))
    } else if free.0 < need.high {
        let what = format!(
            "the machine has {free} of RAM available, which is within the plausible need of {} to {}",
            Bytes(need.low),
            Bytes(need.high)
        );
        Some(of(Outcome::Unknown, what).settle("a node with more free RAM"))
    } else {
        None
    }
}

/// `/dev/shm` of the server, and who told its size.
struct Shared {
    shm: Option<Shm>,
    source: &'static str,
    /// It is the mount of this container.
    here: bool,
}

fn shm_of(seen: &Seen, pod: Option<&PodAsk>) -> Shared {
    let of = |size: Bytes| Some(Shm { size, used: Bytes(0) });
    let told = |shm, source| Shared { shm, source, here: false };
    match pod.filter(|p| p.known).map(|p| p.shm) {
        None => Shared { shm: seen.shm, source: "as it is mounted here", here: true },
        Some(Some(Some(size))) => told(of(size), "the manifest's volume"),
        Some(Some(None)) => told(None, "the manifest's volume, which has no sizeLimit"),
        Some(None) => told(of(Bytes(DEFAULT_SHM)), "the manifest mounts no volume there"),
    }
}

fn shared(seen: &Seen, report: &HostReport, found: &Shared) -> Option<Finding> {
    let need = report.plan.shm_bytes;
    let Shared { shm, source, here } = found;
    if need.high == 0 || shm.is_none() && !here {
        return None;
    }
    let of = |outcome, what: String| Finding::new(outcome, Where::Shm, what);
    let Some(shm) = shm else {
        return Some(of(
            Outcome::Unknown,
            "/dev/shm is not mounted here, but the ranks need it to share memory".into(),
        ));
    };
    let needs = format!("the ranks share {} to {}", Bytes(need.low), Bytes(need.high));
    let free = shm.size.saturating_sub(shm.used);
    // The default of a container: its server may have a volume that is not mounted here.
    let own = seen.kubernetes && shm.size.0 == DEFAULT_SHM && *here;
    if shm.size.0 < need.low && own {
        Some(
            of(Outcome::Unknown, format!("/dev/shm has {} here; {needs}", shm.size))
                .settle("also mount the server's volume on /dev/shm here, or give --manifest FILE"),
        )
    } else if shm.size.0 < need.low {
        Some(of(Outcome::CannotFit, format!("/dev/shm has {} ({source}); {needs}", shm.size)))
    } else if free.0 < need.low {
        Some(of(Outcome::Wait, format!("/dev/shm has {} in use and {free} free; {needs}", shm.used)).settle(
            "files in /dev/shm outlive a killed server: remove those that no process uses \
                (fuser -v /dev/shm/*)",
        ))
    } else if free.0 < need.high {
        Some(of(Outcome::Unknown, format!("/dev/shm has {free} free ({source}); {needs}")))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use crate::host::{Checkpoint, HostInput, host};
    use crate::preflight::seen::{Driver, Pids, Visible};

    fn seen() -> Seen {
        Seen {
            gpus: Err(String::new()),
            driver: Driver::default(),
            pids: Pids::Host,
            visible: Visible::default(),
            kubernetes: false,
            limit: MemoryLimit::Unlimited { source: "test".into() },
            machine_total: Some(Bytes(512 * GIB)),
            machine_available: Some(Bytes(500 * GIB)),
            shm: Some(Shm { size: Bytes(256 * GIB), used: Bytes(0) }),
        }
    }

    /// What becomes of a launch with four ranks: 9 to 33 GiB of RAM, 0.2 to 3.6 GiB of them shared.
    fn of(seen: &Seen, pod: Option<PodAsk>) -> (Vec<(Outcome, Where)>, Vec<String>) {
        let line = cli::parse(&["vllm serve m -tp 4".to_owned()], &[], None).unwrap();
        let report = host(HostInput {
            line: &line,
            model: None,
            plan: None,
            files: Checkpoint::default(),
            cpu: false,
        });
        let need = report.plan.load_peak_bytes.max(report.plan.steady_bytes);
        assert!(
            need.low > 8 * GIB && need.high < 64 * GIB && need.low < 24 * GIB && need.high > 24 * GIB,
            "{need:?}"
        );
        let (mut findings, mut changes) = (vec![], vec![]);
        let pod = pod.unwrap_or_default();
        compare(seen, Some((&report, &pod)), &mut findings, &mut changes);
        (
            findings.iter().map(|f| (f.outcome, f.plane)).collect(),
            changes.into_iter().map(|c| c.change).collect(),
        )
    }

    #[test]
    fn limits_of_all_kinds() {
        use Outcome::{CannotFit, Unknown, Wait};
        let at = |limit: u64, held: u64| MemoryLimit::At {
            bytes: Bytes(limit * GIB),
            source: "--memory-limit".into(),
            held: Bytes(held * GIB),
        };
        for (limit, want) in [
            (at(64, 0), None),
            (at(64, 60), Some(Wait)),
            (at(64, 40), Some(Unknown)),
            (at(24, 0), Some(Unknown)),
            (at(4, 0), Some(CannotFit)),
            (MemoryLimit::Unlimited { source: String::new() }, None),
            (MemoryLimit::Untold { own: Some(Bytes(GIB)) }, Some(Unknown)),
        ] {
            let (found, changes) = of(&Seen { limit: limit.clone(), ..seen() }, None);
            assert_eq!(found.first().map(|f| f.0), want, "{limit:?}");
            assert_eq!(
                changes.iter().any(|c| c.starts_with("resources.limits.memory: ")),
                want.is_some_and(|w| w != Wait),
                "{limit:?}"
            );
        }
    }

    #[test]
    fn the_machine_and_its_free_ram() {
        use Outcome::{CannotFit, Unknown, Wait};
        let gib = |n: u64| Some(Bytes(n * GIB));
        for (total, available, want) in [
            (gib(512), gib(500), None),
            (gib(512), gib(24), Some(Unknown)),
            (gib(512), gib(2), Some(Wait)),
            (gib(4), gib(3), Some(CannotFit)),
            (None, None, Some(Unknown)),
        ] {
            let s = Seen { machine_total: total, machine_available: available, ..seen() };
            assert_eq!(of(&s, None).0.first().map(|f| f.0), want, "{total:?} {available:?}");
        }
    }

    #[test]
    fn shared_memory_here_and_in_a_manifest() {
        use Outcome::{CannotFit, Unknown, Wait};
        let here = |size: u64, used: u64| Some(Shm { size: Bytes(size * MIB), used: Bytes(used * MIB) });
        let pod = |shm| Some(PodAsk { shm, known: true, ..PodAsk::default() });
        for (shm, kubernetes, pod, want) in [
            (here(16_384, 0), true, None, None),
            (here(64, 0), false, None, Some(CannotFit)),
            (here(64, 0), true, None, Some(Unknown)),
            (here(100, 0), true, None, Some(CannotFit)),
            (here(16_384, 16_300), true, None, Some(Wait)),
            (here(1024, 0), true, None, Some(Unknown)),
            (None, false, None, Some(Unknown)),
            // What the manifest says decides, whatever is here.
            (here(64, 0), true, pod(Some(Some(Bytes(16 * GIB)))), None),
            (here(64, 0), true, pod(Some(None)), None),
            (here(16_384, 0), true, pod(None), Some(CannotFit)),
        ] {
            let s = Seen { shm, kubernetes, ..seen() };
            let (found, changes) = of(&s, pod.clone());
            assert_eq!(found.first().map(|f| f.0), want, "{shm:?} {kubernetes} {pod:?}");
            assert!(found.iter().all(|f| f.1 == Where::Shm));
            assert_eq!(changes.len(), usize::from(want.is_some_and(|w| w != Wait)));
        }
    }
}
