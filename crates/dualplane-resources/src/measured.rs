//! Sizes from reports of `measure`: what a server held under a load that somebody chose.

use dualplane_base::text::printable;
use dualplane_base::units::Bytes;
use dualplane_gate::document::{Measure, PlaneFigures, Run};

use crate::phases::{Sizes, largest};
use crate::record::Owner;
use crate::size::{Parts, Seen, Sizing, grows, limit, most_cores};

/// What grows in less time, in seconds, may be a cache that fills, a heap or a buffer: of hours it says nothing.
const LONG: f64 = 1800.0;

/// Sizes of each server that was measured. Reports of the same one are put together.
#[must_use]
pub fn sizes(all: &[Measure]) -> Vec<Sizing> {
    let mut groups: Vec<Vec<&Measure>> = Vec::new();
    for m in all {
        match groups.iter_mut().find(|g| g.first().is_some_and(|first| first.subject == m.subject)) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    groups.iter().filter_map(|g| size(g)).collect()
}

fn size(reports: &[&Measure]) -> Option<Sizing> {
    let first = reports.first()?;
    let runs: Vec<(&Measure, &Run)> = reports.iter().flat_map(|m| m.runs.iter().map(|r| (*m, r))).collect();
    let plane = |of: fn(&Run) -> Option<&PlaneFigures>| {
        largest(runs.iter().filter_map(|(_, r)| of(r)).map(|f| Sizes {
            start_up: f.start_up_bytes.map(Bytes),
            steady: f.steady_bytes.map(Bytes),
            peak: f.peak_bytes.map(Bytes),
        }))
    };
    let host: Vec<&PlaneFigures> = runs.iter().filter_map(|(_, r)| r.host.as_ref()).collect();
    let of_run =
        |m: &Measure, r: &Run| r.host.as_ref().and_then(|h| h.limit_bytes).or(m.hardware.memory_limit_bytes);
    let started = runs.iter().filter(|(_, r)| r.start_seconds.is_some()).count();
    let seconds: f64 = runs.iter().map(|(_, r)| r.measured_seconds + r.start_seconds.unwrap_or(0.0)).sum();
    let (owner, named) = owner(first);
    let mut s = Sizing {
        owner,
        starts: started.max(1),
        days: seconds / 86_400.0,
        step_s: step(&runs),
        ram: plane(|r| r.host.as_ref()),
        exact: host.iter().all(|h| h.without_page_cache == Some(true)),
        start_seconds: runs.iter().filter_map(|(_, r)| r.start_seconds).reduce(f64::max),
        vram: plane(|r| r.vram.as_ref()),
        parts: parts(&runs),
        dev_shm: None,
        kernel_peak: None,
        limit_now: runs.iter().rev().find_map(|(m, r)| of_run(m, r)).map(Bytes),
        request_now: None,
        krr: None,
        limit: None,
        at_least: false,
        headroom: 0.0,
        named,
        cpu_request: most_cores(cores(&runs)),
        why: vec![load(&runs)],
        beware: Vec::new(),
    };
    let seen: Vec<Seen> = runs
        .iter()
        .filter_map(|(m, r)| {
            Some(Seen {
                peak: r.host.as_ref()?.peak_bytes? as f64,
                unseen: None,
                limit: of_run(m, r).map(|l| l as f64),
                killed: r.restarts.iter().flatten().any(|x| x.plane.as_deref() == Some("host")),
            })
        })
        .collect();
    limit(&mut s, &seen);
    drift(&mut s, &host);
    if started == 0 {
        s.beware.push(
            "no run saw the server start, which often takes the most: measure one from its start on"
                .to_owned(),
        );
    }
    Some(s)
}

/// Kinds as workloads are named: `NAMESPACE/deploy/NAME`.
const KINDS: [&str; 7] = ["deploy", "sts", "ds", "lws", "job", "pod", "rs"];

/// The workload, where the report names it, and whether it names the container: `NAMESPACE/POD/CONTAINER` does, as it was asked
/// of an agent.
fn owner(m: &Measure) -> (Owner, bool) {
    let word = |text: &str| printable(text).into_owned();
    let container = word(m.subject.engine.as_deref().unwrap_or("server"));
    let parts: Vec<&str> = m.subject.workload.iter().flat_map(|w| w.splitn(3, '/')).collect();
    match parts.as_slice() {
        [namespace, pod, container] if !KINDS.contains(pod) && !container.is_empty() => {
            (Owner { namespace: word(namespace), pod: word(pod), container: word(container) }, true)
        }
        [namespace, workload @ ..] if !workload.is_empty() => {
            (Owner { namespace: word(namespace), pod: word(&workload.join("/")), container }, false)
        }
        _ => {
            let pod = m.subject.build.as_deref().or(m.subject.model.as_deref()).unwrap_or("the server");
            (Owner { namespace: String::new(), pod: word(pod), container }, false)
        }
    }
}

/// Seconds between two samples, where series tell them.
fn step(runs: &[(&Measure, &Run)]) -> f64 {
    let times = runs.iter().filter_map(|(_, r)| r.series.as_ref()).flat_map(|s| s.seconds.windows(2));
    let gap = |pair: &[f64]| match pair {
        [a, b] => Some(b - a),
        _ => None,
    };
    crate::phases::median(times.filter_map(gap)).unwrap_or(0.0)
}

fn parts(runs: &[(&Measure, &Run)]) -> Parts {
    let splits = || runs.iter().filter_map(|(_, r)| r.host_split.as_ref());
    let most = |of: fn(&dualplane_gate::document::HostSplit) -> Option<u64>| {
        splits().filter_map(of).max().map(Bytes)
    };
    Parts {
        anon: most(|s| s.anon_bytes),
        shmem: most(|s| s.shmem_bytes),
        file: most(|s| s.file_bytes),
        pinned: most(|s| s.pinned_bytes),
    }
}

/// Processors of each window, or the mean of a run.
fn cores(runs: &[(&Measure, &Run)]) -> Vec<f64> {
    let windows: Vec<f64> = runs.iter().flat_map(|(_, r)| &r.windows).filter_map(|w| w.cpu_cores).collect();
    if windows.is_empty() {
        return runs.iter().filter_map(|(_, r)| r.used.as_ref()?.cpu_cores).collect();
    }
    windows
}

/// Under which load it was measured: the limit holds for that one.
fn load(runs: &[(&Measure, &Run)]) -> String {
    let mut all: Vec<String> = runs
        .iter()
        .map(|(m, r)| {
            let shape = m.shape.as_ref().map(|s| format!(" of {}", printable(&s.name))).unwrap_or_default();
            let much = match (r.load.concurrency, r.load.rate) {
                (Some(n), _) => format!(", {n} at the same time"),
                (None, Some(rate)) => format!(", {rate} a second"),
                (None, None) => String::new(),
            };
            format!("{}{shape}{much}", printable(&r.load.mode))
        })
        .collect();
    all.dedup();
    let more = all.len().saturating_sub(4);
    all.truncate(4);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("it holds for the load that was measured: {}{rest}", all.join("; "))
}

fn drift(s: &mut Sizing, host: &[&PlaneFigures]) {
    let grown = host.iter().filter_map(|h| Some((h.drift.filter(|d| d.grows)?, h.peak_bytes?)));
    let worst = grown.max_by(|a, b| a.0.bytes_per_hour.total_cmp(&b.0.bytes_per_hour));
    if let Some((d, peak)) = worst.filter(|(d, _)| d.bytes_per_hour > 0.0) {
        s.beware.push(if d.seconds >= LONG {
            grows(s.limit, d.bytes_per_hour, peak as f64)
        } else {
            format!(
                "it grew by {} in {:.0} s: whether that goes on, or a cache fills, only a longer run tells \
                 (`dualplane measure --pattern soak`)",
                Bytes::from_f64(d.bytes_per_hour * d.seconds / 3600.0),
                d.seconds
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use dualplane_base::units::GIB;
    use dualplane_gate::document::{HostSplit, Restart, Tool, Use};

    use super::*;

    fn report(peak: u64, limit: u64) -> Measure {
        let mut m = Measure::new(Tool::default());
        m.subject.engine = Some("vllm".into());
        m.subject.workload = Some("serving/deploy/llm".into());
        m.hardware.memory_limit_bytes = Some(limit * GIB);
        m.runs.push(Run {
            name: "1".into(),
            measured_seconds: 540.0,
            start_seconds: Some(60.0),
            host: Some(PlaneFigures {
                start_up_bytes: Some((peak - 1) * GIB),
                steady_bytes: Some((peak - 2) * GIB),
                peak_bytes: Some(peak * GIB),
                without_page_cache: Some(true),
                ..PlaneFigures::default()
            }),
            vram: Some(PlaneFigures {
                start_up_bytes: Some(60 * GIB),
                steady_bytes: Some(70 * GIB),
                peak_bytes: Some(72 * GIB),
                ..PlaneFigures::default()
            }),
            host_split: Some(HostSplit {
                anon_bytes: Some(GIB),
                pinned_bytes: Some(2 * GIB),
                ..HostSplit::default()
            }),
            used: Some(Use { cpu_cores: Some(3.21), ..Use::default() }),
            ..Run::default()
        });
        m
    }

    #[test]
    fn six_numbers_of_a_report_become_a_limit() {
        let all = sizes(&[report(10, 32), report(12, 32)]);
        assert_eq!(all.len(), 1);
        let s = &all[0];
        assert_eq!(
            (s.owner.namespace.as_str(), s.owner.pod.as_str(), s.named),
            ("serving", "deploy/llm", false)
        );
        assert_eq!(s.ram.peak, Some(Bytes(12 * GIB)));
        assert_eq!((s.ram.start_up, s.ram.steady), (Some(Bytes(11 * GIB)), Some(Bytes(10 * GIB))));
        assert_eq!((s.vram.peak, s.parts.pinned), (Some(Bytes(72 * GIB)), Some(Bytes(2 * GIB))));
        // Two starts of ten minutes: 12 GiB, and what they differ by, 17 %.
        assert_eq!((s.limit, s.at_least, s.cpu_request), (Some(Bytes(14 * GIB)), false, Some(3300)));
        assert!(s.why.iter().any(|w| w.contains("2 starts in 20 minutes")), "{:?}", s.why);
    }

    #[test]
    fn a_kill_within_a_run_makes_the_limit_a_next_try() {
        let mut m = report(10, 16);
        m.runs[0].restarts = Some(vec![Restart { plane: Some("host".into()), ..Restart::default() }]);
        let s = &sizes(&[m])[0];
        assert_eq!((s.limit, s.at_least), (Some(Bytes(24 * GIB)), true));
        let mut m = report(10, 16);
        m.runs[0].restarts = Some(vec![Restart { plane: Some("gpu".into()), ..Restart::default() }]);
        assert!(!sizes(&[m])[0].at_least);
    }

    #[test]
    fn other_builds_stay_apart_and_no_start_is_said() {
        let mut other = report(30, 64);
        other.subject.build = Some("next".into());
        other.runs[0].start_seconds = None;
        let all = sizes(&[report(10, 64), other]);
        assert_eq!(all.len(), 2);
        assert!(
            all[1].beware.iter().any(|b| b.contains("no run saw the server start")),
            "{:?}",
            all[1].beware
        );
    }
}
