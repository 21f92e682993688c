//! What took the host RAM, ranked: by what the kernel and the samples show, else by the phase of the death.
//!
//! A start-up fills RAM with what it stages, starts and copies; traffic with batches, payloads and what is not given back.

use super::Held;
use crate::planned::Expected;
use dualplane_base::Phase;
use dualplane_base::order::Order as _;
use dualplane_base::text::{counted, name};
use dualplane_base::time::span;
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::evidence::{Bundle, ContainerKind};
use dualplane_core::facts::{Facts, HostPool};
use dualplane_core::verdict::{Course, Subject};
use dualplane_plan::Quantity;

/// A part below this share of the limit is not what filled it.
const LEAST_SHARE: f64 = 0.25;
/// Processes whose sizes lie within this factor are of a kind.
const ALIKE: f64 = 1.5;

/// What may have taken the memory.
#[derive(Debug, Clone)]
pub struct Suspect {
    /// What it is.
    pub what: String,
    /// How much of the memory it explains.
    pub bytes: Option<Bytes>,
    /// How that is known.
    pub because: Vec<String>,
    /// The larger, the likelier: the share of the limit that is explained, less where only the phase speaks.
    rank: f64,
}

/// What the ranking looks at.
pub(super) struct Scene<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) facts: &'a Facts,
    pub(super) subject: &'a Subject,
    pub(super) phase: Phase,
    pub(super) held: &'a Held,
    pub(super) pools: &'a [HostPool],
    pub(super) expected: Option<&'a Expected>,
}

/// The suspects, the likeliest first.
pub(super) fn rank(s: &Scene<'_>) -> Vec<Suspect> {
    let rules = [limit, shared, stranger, staging, workers, course_of, serving];
    let mut out: Vec<Suspect> = rules.iter().filter_map(|rule| rule(s)).collect();
    out.order_by(|a, b| b.rank.total_cmp(&a.rank));
    out
}

/// What the launch needs in the phase in which it died.
pub(super) fn need(expected: &Expected, phase: Phase) -> Quantity {
    let plan = &expected.host.plan;
    if loading(phase) { plan.load_peak_bytes } else { plan.load_peak_bytes.max(plan.steady_bytes) }
}

pub(crate) fn loading(phase: Phase) -> bool {
    matches!(phase, Phase::Load | Phase::Profile)
}

/// `8.10 GiB (6.00 GiB to 14.20 GiB)`.
pub(crate) fn band(q: Quantity) -> String {
    if q.low == q.high {
        return Bytes(q.expected).to_string();
    }
    format!("{} ({} to {})", Bytes(q.expected), Bytes(q.low), Bytes(q.high))
}

/// The launch needs more than the limit.
fn limit(s: &Scene<'_>) -> Option<Suspect> {
    let expected = s.expected?;
    let need = need(expected, s.phase);
    let limit = s.held.limit;
    let (what, rank) = match limit.0 {
        l if need.low > l => ("the limit is below what this launch needs", 1.5),
        l if need.expected > l => ("the limit is below what this launch probably needs", 1.2),
        l if need.high > l => ("the limit is below the most that this launch may need", 0.45),
        _ => return None,
    };
    Some(Suspect {
        what: what.to_owned(),
        bytes: Some(Bytes(need.expected)),
        because: vec![format!("computed need {}, limit {limit}", band(need))],
        rank,
    })
}

/// Pages of tmpfs, /dev/shm and pinned buffers count as shared memory.
fn shared(s: &Scene<'_>) -> Option<Suspect> {
    let shmem = s.held.shmem?;
    let share = shmem.share_of(s.held.limit);
    if share < LEAST_SHARE {
        return None;
    }
    let pools: Vec<String> = s.pools.iter().map(|p| format!("{} ({})", p.name, p.bytes)).collect();
    let volumes: Vec<&str> = s
        .subject
        .pod_of(s.bundle)
        .into_iter()
        .flat_map(|p| p.volumes.iter().filter(|v| v.memory_medium))
        .map(|v| v.name.as_str())
        .collect();
    let what = match (pools.is_empty(), volumes.is_empty()) {
        (false, _) => format!("pinned or shared pools: {}", pools.join(", ")),
        (true, false) => format!("files in Memory volumes ({}) or in /dev/shm", volumes.join(", ")),
        (true, true) => "pinned host memory, or files in /dev/shm or another tmpfs".to_owned(),
    };
    let of = if s.held.whole { "the cgroup" } else { "the killed processes" };
    Some(Suspect {
        what,
        bytes: Some(shmem),
        because: vec![format!(
            "shared memory of {of}: {shmem}, {}; pinned memory and tmpfs count as shared",
            of_the_limit(share)
        )],
        rank: share,
    })
}

/// What processes hold counts shared pages once for each, and pages that another cgroup was charged: more than the limit is
/// no share of it.
fn of_the_limit(share: f64) -> String {
    if share > 1.0 {
        "as much as the limit or more (pages of files and shared memory count in each process)".to_owned()
    } else {
        format!("{:.0} % of the limit", share * 100.0)
    }
}

/// The largest process is none of the server's.
fn stranger(s: &Scene<'_>) -> Option<Suspect> {
    let (comm, bytes) = s.held.processes.first()?;
    let share = bytes.share_of(s.held.limit);
    let engine = &s.facts.engine;
    let own = s.subject.container_kind != ContainerKind::Main || engine.all.may_own(engine.head(), comm);
    (share >= LEAST_SHARE && !own).then(|| Suspect {
        what: format!("{}, which is not the server's own process", name(comm)),
        bytes: Some(*bytes),
        because: vec![format!("{} held {bytes}, {}", name(comm), of_the_limit(share))],
        rank: share + 0.1,
    })
}

/// Weights that lie in RAM while they are loaded.
fn staging(s: &Scene<'_>) -> Option<Suspect> {
    if !loading(s.phase) || s.subject.container_kind != ContainerKind::Main {
        return None;
    }
    let mut because = Vec::new();
    let heap = s.held.heap();
    if let Some((done, all)) = s.held.shards {
        because.push(format!("{done} of {all} checkpoint files were loaded at the kill"));
    }
    let base = s.expected.map(|e| Bytes(e.host.plan.steady_bytes.expected));
    if let Some(base) = base.filter(|b| *b < heap) {
        because.push(format!("the server without staging takes about {base}"));
    }
    let known = s.held.anon.is_some();
    if known {
        because.push(format!("anonymous memory at the kill: {heap}"));
    }
    if because.is_empty() {
        because.push("it died while loading; the evidence shows no split of its memory".to_owned());
    }
    let bytes = base.filter(|_| known).map(|b| heap.saturating_sub(b)).filter(|b| b.0 > GIB / 2);
    let share = if known { heap.share_of(s.held.limit) } else { 0.4 };
    (share >= LEAST_SHARE).then_some(Suspect {
        what: "weights staged in host RAM while loading (.bin shards, eager or streamed loading, one copy for each rank)"
            .to_owned(),
        bytes,
        because,
        rank: share * 0.9,
    })
}

/// Several processes of a kind.
fn workers(s: &Scene<'_>) -> Option<Suspect> {
    let (_, largest) = s.held.processes.first()?;
    let alike: Vec<&(String, Bytes)> =
        s.held.processes.iter().filter(|(_, b)| b.0 as f64 * ALIKE >= largest.0 as f64).collect();
    let n = alike.len() as u64;
    let sum = alike.iter().fold(Bytes(0), |s, (_, b)| s.saturating_add(*b));
    let share = sum.share_of(s.held.limit);
    // Pages that they share or have pinned are another suspect's.
    let shared = s.held.shmem.is_some_and(|b| b.share_of(s.held.limit) >= 0.5);
    if n < 2 || share < LEAST_SHARE || shared {
        return None;
    }
    let each = Bytes(sum.0 / n);
    Some(Suspect {
        what: format!("{n} processes of about {each} each: ranks, API servers or data-loading workers"),
        bytes: Some(sum),
        because: vec![format!("{n} × {each} = {sum}, {}; each worker has its own copy", of_the_limit(share))],
        rank: share * 0.85,
    })
}

/// A steady rise, or a jump.
fn course_of(s: &Scene<'_>) -> Option<Suspect> {
    match s.held.course.as_ref()? {
        Course::Grew(g) => Some(Suspect {
            what: "a leak, or a cache without a bound: memory grew until it reached the limit".to_owned(),
            bytes: None,
            because: vec![format!(
                "it grew by {} an hour ({} in {})",
                g.per_hour,
                counted(g.samples as u64, "sample"),
                span(g.window_ms)
            )],
            rank: 1.1,
        }),
        Course::Jumped { last, before_end_ms, .. } => {
            let jump = s.held.limit.saturating_sub(*last);
            Some(Suspect {
                what: if loading(s.phase) {
                    "one large allocation of the start-up".to_owned()
                } else {
                    "one large request or batch, or a model that was reloaded".to_owned()
                },
                bytes: Some(jump),
                because: vec![format!(
                    "{} before the end it held {last}: at least {jump} came in that time",
                    span(*before_end_ms)
                )],
                rank: 1.05,
            })
        }
    }
}

/// Under traffic, where nothing says more.
fn serving(s: &Scene<'_>) -> Option<Suspect> {
    if s.phase != Phase::Traffic || s.held.course.is_some() || s.subject.container_kind != ContainerKind::Main
    {
        return None;
    }
    let heap = s.held.heap();
    let base = s.expected.map(|e| e.host.plan.steady_bytes);
    let above = base.map(|b| heap.saturating_sub(Bytes(b.expected)));
    // What the launch accounts for needs no other explanation.
    if s.held.anon.is_some() && above == Some(Bytes(0)) {
        return None;
    }
    let mut because = Vec::new();
    if let (Some(base), Some(above)) = (base, above.filter(|_| s.held.anon.is_some())) {
        because.push(format!("the heap held {heap}, the launch accounts for {}: {above} more", band(base)));
    }
    if base.is_none() && s.held.anon.is_some() {
        because.push(format!("anonymous memory at the kill: {heap}"));
    }
    because.push(match s.held.ran_ms {
        Some(ms) => format!("it died under traffic, {} after its start", span(ms)),
        None => "it died under traffic".to_owned(),
    });
    Some(Suspect {
        what: "request buffers (long, image or audio inputs, large batches), or a leak".to_owned(),
        bytes: above.filter(|_| s.held.anon.is_some()),
        because,
        rank: if s.held.anon.is_some() { heap.share_of(s.held.limit) * 0.8 } else { 0.35 },
    })
}
