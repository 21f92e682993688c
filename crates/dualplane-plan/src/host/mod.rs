//! RAM of the pod: what loading takes, what stays, what is shared memory, and what to write into the resources.
//!
//! Unreclaimable memory counts: anonymous pages, pinned pages, shared memory and Memory volumes. Page cache does not:
//! the kernel takes it back before it kills anybody.

mod caches;
mod cpu;
mod files;
mod loading;
mod processes;
mod volumes;

use super::launch::{CommandLine, HostAsk};
pub use files::Checkpoint;
pub(crate) use volumes::DEFAULT_SHM;

use serde::Serialize;

use super::model::Model;
use super::outcome::{GpuPlan, HostPlan, Plan, Verdict};
use super::quantity::{Plane, Quantity, Term, Unknown};
use super::version::EngineKind;
use dualplane_base::units::GIB;

/// Share on top of the expected memory for what grows while serving.
const HEADROOM_PERCENT: u64 = 15;
/// Room for what no term names: fragmentation of the allocator, probes, shells.
const HEADROOM_BYTES: u64 = 2 * GIB;

/// What the host plane is computed from.
#[derive(Debug, Clone, Copy)]
pub struct HostInput<'a> {
    /// The launch and what else it asks.
    pub line: &'a CommandLine,
    /// The model, where it could be read.
    pub model: Option<&'a Model>,
    /// The GPU plane, where it is known: caches that follow the device's, and how open flags were resolved.
    pub plan: Option<&'a Plan>,
    /// The checkpoint's files, where they were seen.
    pub files: Checkpoint,
    /// Whether the engine serves on the CPU, so that weights and cache stand here.
    pub cpu: bool,
}

/// The host plane with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// The figures.
    pub plan: HostPlan,
    /// Every addend.
    pub terms: Vec<Term>,
    /// What is not known.
    pub unknown: Vec<Unknown>,
    /// Memory request that holds the expected need, in bytes, whole GiB.
    pub request_bytes: u64,
    /// Memory limit that holds the highest plausible need, in bytes, whole GiB.
    pub limit_bytes: u64,
    /// Size of the Memory volume for /dev/shm, in bytes, whole GiB; 0: none is needed.
    pub shm_size_bytes: u64,
    /// How request and limit came about.
    pub arithmetic: Vec<String>,
    /// What is held at each stage of a start.
    pub stages: HostStages,
    /// Whether the pod's own limit holds it; `None` where no limit is known.
    pub verdict: Option<Verdict>,
    /// What is wrong with the pod's specification.
    pub findings: Vec<String>,
}

/// RAM that cannot be reclaimed, stage by stage, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HostStages {
    /// Processes alone.
    pub processes: Quantity,
    /// And what they share.
    pub connected: Quantity,
    /// While weights pass through.
    pub loading: Quantity,
    /// Afterwards, with what was pinned for them.
    pub loaded: Quantity,
    /// When pools of the cache are pinned, which is the peak until requests come.
    pub pools: Quantity,
    /// Ready to serve.
    pub resident: Quantity,
}

/// Pools that follow the KV cache: they are allocated with it, after the weights.
const WITH_THE_CACHE: [&str; 6] = [
    "cpu.kv_cache",
    "pinned.hicache",
    "pinned.lmcache",
    "pinned.swap_space",
    "pinned.token_ids",
    "shm.kv_offload",
];

fn stages(parts: &[Part]) -> HostStages {
    let sum = |keep: &dyn Fn(&Part) -> bool| -> Quantity {
        parts.iter().filter(|p| keep(p)).map(|p| p.term.quantity).sum()
    };
    let late = |p: &Part| WITH_THE_CACHE.contains(&p.term.name.as_str());
    let always = |p: &Part| p.when == When::Always;
    let resident = sum(&always);
    let loading = sum(&|p| matches!(p.when, When::Load | When::BeforePools) || always(p) && !late(p));
    HostStages {
        processes: sum(&|p| always(p) && p.term.name.starts_with("process.")),
        connected: sum(&|p| always(p) && (p.term.name.starts_with("process.") || p.shared) && !late(p)),
        loading,
        loaded: sum(&|p| always(p) && !late(p)),
        // The allocator keeps what loading freed until it is asked for again.
        pools: if parts.iter().any(late) { sum(&|p| p.when == When::Load || always(p)) } else { resident },
        resident,
    }
}

/// Where a term counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// While loading only.
    Load,
    /// The same, and gone before pools are allocated.
    BeforePools,
    /// From start to end.
    Always,
    /// Fills while serving.
    Serving,
    /// Page cache: neither.
    Reclaimable,
}

/// A term with when it counts and whether it is shared memory.
pub(crate) struct Part {
    pub(crate) term: Term,
    pub(crate) when: When,
    pub(crate) shared: bool,
}

impl Part {
    pub(crate) fn new(name: &str, when: When, quantity: Quantity, formula: String, source: &str) -> Self {
        let term = Term { name: name.into(), plane: Plane::Host, quantity, formula, source: source.into() };
        Self { term, when, shared: false }
    }

    pub(crate) fn shared(self) -> Self {
        Self { shared: true, ..self }
    }
}

/// Everything that the parts need to know together.
pub(crate) struct Cx<'a> {
    pub(crate) input: HostInput<'a>,
    /// Ranks in this pod.
    pub(crate) ranks: u64,
    pub(crate) unknown: Vec<Unknown>,
}

impl Cx<'_> {
    pub(crate) fn unknown(&mut self, what: &str, settle: &str) {
        self.unknown.push(Unknown { what: what.into(), settle: settle.into() });
    }

    pub(crate) fn gpu(&self) -> Option<&GpuPlan> {
        self.input.plan.map(|p| &p.gpu)
    }

    pub(crate) fn vllm(&self) -> bool {
        self.input.line.launch.engine == EngineKind::Vllm
    }
}

/// The host plane of a launch.
#[must_use]
pub fn host(input: HostInput<'_>) -> HostReport {
    let launch = &input.line.launch;
    // DP ranks are engines of the same pod unless they are spread by an outer balancer, which the flags do not tell.
    let all = launch.tp.saturating_mul(launch.pp).saturating_mul(launch.dp).clamp(1, 4096);
    let ranks = input.line.gpus_of_pod().clamp(1, all);
    let mut cx = Cx { input, ranks, unknown: Vec::new() };
    let mut parts = processes::parts(&mut cx);
    parts.extend(loading::parts(&mut cx));
    parts.extend(caches::parts(&mut cx));
    parts.extend(cpu::parts(&cx));
    parts.extend(volumes::parts(&mut cx));
    let sum = |keep: &dyn Fn(&Part) -> bool| -> Quantity {
        parts.iter().filter(|p| keep(p)).map(|p| p.term.quantity).sum()
    };
    let stages = stages(&parts);
    let plan = HostPlan {
        load_peak_bytes: stages.loading.max(stages.pools),
        steady_bytes: sum(&|p| matches!(p.when, When::Always | When::Serving)),
        shm_bytes: sum(&|p| p.shared && p.when != When::Reclaimable),
        page_cache_bytes: sum(&|p| p.when == When::Reclaimable),
    };
    let need = plan.load_peak_bytes.max(plan.steady_bytes);
    let request = whole_gib(need.expected.saturating_mul(100 + HEADROOM_PERCENT) / 100 + HEADROOM_BYTES);
    let limit = whole_gib(need.high.saturating_add(HEADROOM_BYTES)).max(request);
    let shm = volumes::size(plan.shm_bytes);
    let arithmetic = vec![
        format!(
            "request: the larger of load peak and steady, {} expected, × 1.{HEADROOM_PERCENT} + {} GiB, \
            rounded up to whole GiB",
            dualplane_base::units::Bytes(need.expected),
            HEADROOM_BYTES / GIB
        ),
        format!(
            "limit: the highest plausible {} + {} GiB, rounded up to whole GiB; page cache needs no room \
            in it",
            dualplane_base::units::Bytes(need.high),
            HEADROOM_BYTES / GIB
        ),
    ];
    let (verdict, findings) = volumes::judge(&cx, &plan, need, shm);
    HostReport {
        plan,
        stages,
        terms: parts.into_iter().map(|p| p.term).collect(),
        unknown: cx.unknown,
        request_bytes: request,
        limit_bytes: limit,
        shm_size_bytes: shm,
        arithmetic,
        verdict,
        findings,
    }
}

/// Rounded up to whole GiB.
pub(crate) const fn whole_gib(bytes: u64) -> u64 {
    bytes.div_ceil(GIB).saturating_mul(GIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use crate::launch::PodAsk;
    use dualplane_base::units::Bytes;

    fn report(text: &str) -> HostReport {
        report_of(text, |_| {})
    }

    fn report_of(text: &str, change: impl Fn(&mut HostAsk)) -> HostReport {
        let mut line = cli::parse(&[text.to_owned()], &[], None).unwrap();
        change(&mut line.host);
        let files = Checkpoint { bytes: Some(140 * GIB), largest_file: Some(9_800_000_000), bin: false };
        host(HostInput { line: &line, model: None, plan: None, files, cpu: false })
    }

    #[test]
    fn parts_sum_to_the_whole() {
        let r = report("vllm serve m -tp 4 --kv-offloading-size 64 --cpu-offload-gb 2");
        let all: u64 = r.terms.iter().map(|t| t.quantity.expected).sum();
        let loading: u64 =
            r.terms.iter().filter(|t| t.name.starts_with("loader.")).map(|t| t.quantity.expected).sum();
        assert_eq!(all, r.plan.steady_bytes.expected + loading + r.plan.page_cache_bytes.expected);
        assert!(r.plan.shm_bytes.expected >= 64 * GIB && r.plan.shm_bytes.expected < 70 * GIB);
        assert!(r.request_bytes <= r.limit_bytes);
        assert!(r.terms.iter().all(|t| !t.formula.is_empty() && !t.source.is_empty()));
    }

    #[test]
    fn the_checkpoint_is_page_cache_and_no_requirement() {
        let r = report("vllm serve m -tp 4");
        assert_eq!(r.plan.page_cache_bytes.expected, 140 * GIB);
        assert!(r.request_bytes < 30 * GIB, "{}", Bytes(r.request_bytes));
        // From .bin files each rank reads whole shards.
        let bin = report("vllm serve m -tp 4 --load-format pt");
        assert!(bin.plan.load_peak_bytes.expected > r.plan.load_peak_bytes.expected + 4 * 8_000_000_000);
        assert_eq!(bin.plan.steady_bytes, r.plan.steady_bytes);
    }

    #[test]
    fn the_limit_of_the_pod_is_judged() {
        let with = |limit: u64, shm: Option<Option<Bytes>>| {
            report_of("vllm serve m -tp 4", |h| {
                h.pod = PodAsk { limit: Some(Bytes(limit)), shm, known: true, ..PodAsk::default() };
            })
        };
        let roomy = with(200 * GIB, Some(Some(Bytes(16 * GIB))));
        assert_eq!((roomy.verdict, roomy.findings.len()), (Some(Verdict::Fits), 0));
        let tight = with(4 * GIB, None);
        assert_eq!(tight.verdict, Some(Verdict::Refused));
        assert!(tight.findings.iter().any(|f| f.contains("/dev/shm")), "{:?}", tight.findings);
    }
}
