//! Every proof has words: one sample of each, so that no sentence is left out of the language check.

use std::collections::{BTreeMap, BTreeSet};

use dualplane_base::Class;
use dualplane_base::time::{Stamp, parse_rfc3339};
use dualplane_base::units::Bytes;
use dualplane_core::evidence::{Change, Termination};
use dualplane_core::facts::{Constraint, Victim};
use dualplane_core::knowledge::Mark;
use dualplane_core::verdict::pressure::{Growth, Level, Reading};
use dualplane_core::verdict::proof::{
    Busy, Cgroup, Enough, Fault, Gpu, HostPool, Kernel, Launch, Log, NoKill, Peak, Proof, Series,
    SharedMemory, Signal, Snapshot, Status, Untold, Vram, VramShare, Weighed, Xid,
};
use dualplane_report::words::sentence;

use crate::harness::root;
use crate::words::found;

const GIB: Bytes = Bytes(1 << 30);
const TOOL: &str = "nvidia-smi";

fn s(text: &str) -> String {
    text.to_owned()
}

fn stamp() -> Option<Stamp> {
    Some(parse_rfc3339("2026-07-03T20:43:05Z").unwrap())
}

fn all<T: Into<Proof>>(list: impl IntoIterator<Item = T>) -> Vec<Proof> {
    list.into_iter().map(Into::into).collect()
}

fn samples() -> Vec<Proof> {
    let mut out = vec![
        Proof::Line { signature: s("vllm.kv_cache"), text: s("a line") },
        Proof::Quote(s("another")),
        Proof::from(Reading {
            plane: dualplane_base::Plane::Host,
            level: Level::High,
            what: s("working set"),
            container: None,
            bytes: Some((GIB, GIB)),
            share: 1.0,
            stamp: None,
            place: dualplane_base::Place { file: s("top.txt"), line: None },
            note: None,
            growth: Some(Growth {
                per_hour: GIB,
                window_ms: 60_000,
                samples: 9,
                to_limit_ms: 0,
                first: dualplane_base::Place { file: s("top.txt"), line: None },
            }),
        }),
    ];
    out.extend(kernel());
    out.extend(xid());
    out.extend(status());
    out.extend(signal());
    out.extend(cgroup());
    out.extend(series());
    out.extend(gpu());
    out.extend(vram());
    out.extend(log());
    out.extend(snapshot());
    out.extend(host_pool());
    out.extend(weighed());
    out.extend(launch());
    out.extend(busy());
    out
}

fn launch() -> Vec<Proof> {
    all([
        Launch::Weights { weights: GIB, total: GIB },
        Launch::Shards { done: 1, all: 9 },
        Launch::NeverServed,
        Launch::Served,
        Launch::NotQuantised,
        Launch::Quantised { name: s("--quantization"), value: s("fp8") },
        Launch::Demand { sequences: 128, length: 8192, pool: Some(300_000) },
        Launch::Demand { sequences: 128, length: 8192, pool: None },
        Launch::PoolTaken,
        Launch::Share { share: 0.97, rest: Some(GIB) },
        Launch::Share { share: 0.97, rest: None },
        Launch::Asked { requested: GIB, total: GIB },
        Launch::Ranks { ranks: 1, gpus: 4 },
        Launch::Ranks { ranks: 4, gpus: 4 },
        Launch::Uneven { most: 0.9, least: 0.1 },
        Launch::Own { own: GIB, total: GIB },
        Launch::Others { others: GIB, total: GIB },
        Launch::ScalesBy { name: s("llm"), metrics: s("cpu: 12%/80%") },
    ])
}

fn busy() -> Vec<Proof> {
    all([
        Busy::Use { gpu: s("0"), mean: 0.97, samples: 12 },
        Busy::Queue { first: 1.0, last: 40.0 },
        Busy::Queue { first: 4.0, last: 4.0 },
        Busy::FirstToken { before: Some(0.4), after: 3.0 },
        Busy::FirstToken { before: None, after: 3.0 },
        Busy::Generated { before: 900.0, after: 880.0 },
        Busy::Failed { name: s("http_requests_total"), count: 0.0 },
        Busy::Failed { name: s("http_requests_total"), count: 12.0 },
        Busy::Throttled(0.8),
        Busy::Storage(0.3),
        Busy::Dropped(12.0),
        Busy::Admitted { running: 4.0, most: 4.0 },
        Busy::Untold(Untold::Use),
        Busy::Untold(Untold::Errors),
        Busy::Untold(Untold::Throughput),
        Busy::Untold(Untold::Host),
    ])
}

fn kernel() -> Vec<Proof> {
    let victim = Victim { pid: 7, comm: s("python3"), anon: Some(GIB), file: None, shmem: Some(GIB) };
    let scopes = [Constraint::Memcg, Constraint::Global, Constraint::Numa, Constraint::Unsaid];
    let mut out = all(scopes.map(Kernel::OomRecord));
    out.extend(all([
        Kernel::Killed(victim.clone()),
        Kernel::Nameless(victim),
        Kernel::CgroupUsage { usage: GIB, limit: GIB },
        Kernel::PinnedMemory { shmem: GIB, anon: GIB },
        Kernel::Scope { cgroup: true },
        Kernel::Scope { cgroup: false },
        Kernel::OtherZone { gap_ms: 7_200_000 },
        Kernel::WrongClock { gap_ms: -300_000 },
        Kernel::OtherHost { host: s("node-2"), node: s("node-1") },
        Kernel::OomOnHost(s("node-2")),
        Kernel::NoOomRecord,
        Kernel::NoLog,
    ]));
    out
}

fn xid() -> Vec<Proof> {
    all([
        Xid::Event { code: 79, pci: s("0000:4a:00"), name: Some(s("GPU has fallen off the bus")) },
        Xid::Event { code: 999, pci: s("0000:4a:00"), name: None },
        Xid::Further { code: 48, name: Some(s("double-bit ECC error")) },
        Xid::Further { code: 999, name: None },
        Xid::CausedCleanup(79),
        Xid::NoLine(79),
        Xid::None,
        Xid::OftenByProgram,
        Xid::Consequence(45),
        Xid::OnlyConsequence(45),
        Xid::OtherGpu { own: vec![s("0000:4a:00")], address: s("0000:5b:00") },
        Xid::Gauge,
    ])
}

fn status() -> Vec<Proof> {
    let end = || Box::new(Termination { exit_code: Some(137), reason: s("Error"), ..Termination::default() });
    let change = Change {
        container: None,
        field: s("resources.limits.memory"),
        before: Some(s("64Gi")),
        after: Some(s("48Gi")),
    };
    all([
        Status::OomKilled { container: Some(s("vllm")), exit_code: Some(137) },
        Status::OomKilled { container: None, exit_code: None },
        Status::OtherExitCode(1),
        Status::Blurred,
        Status::NoMemoryLimit,
        Status::MemoryLimit(GIB),
        Status::SystemOom,
        Status::EarlierOomKill,
        Status::MayMissOomKill,
        Status::Ended(end()),
        Status::EndedAsAfterFailure(end()),
        Status::EndedOtherwise(end()),
        Status::EndedNotOomKilled(end()),
        Status::CleanAfterFailure,
        Status::Ready,
        Status::WaitsForRestart(s("CrashLoopBackOff")),
        Status::Restarted(3),
        Status::ProbeKills { message: s("failed liveness probe"), count: 2, restarts: 3 },
        Status::NoEventNearEnd,
        Status::Deleted,
        Status::Disruption { reason: s("PreemptionByScheduler"), message: s("preempted") },
        Status::MemoryVolume { path: s("/dev/shm"), size: Some(GIB) },
        Status::SharedGpu(s("nvidia.com/gpu.shared")),
        Status::Changed { revision: 4, change },
        Status::ObjectWouldTell,
        Status::Unconfirmed,
    ])
}

fn signal() -> Vec<Proof> {
    all([
        Signal::Crash { exit_code: 132 },
        Signal::Terminated,
        Signal::Segfault,
        Signal::BusError,
        Signal::SharedMemory(SharedMemory::Mounted),
        Signal::SharedMemory(SharedMemory::Default),
        Signal::SharedMemory(SharedMemory::Unknown),
        Signal::CutFile,
    ])
}

fn cgroup() -> Vec<Proof> {
    let mut out = all([NoKill::Dead, NoKill::Pod, NoKill::Running, NoKill::Unknown].map(Cgroup::NoKill));
    out.extend(all([
        Cgroup::OomKill(1),
        Cgroup::Oom(1),
        Cgroup::PodFailures(1),
        Cgroup::UnknownContainer,
        Cgroup::PodLimitAbove,
        Cgroup::NoTime,
        Cgroup::Peak { peak: GIB, limit: GIB },
        Cgroup::Kills(1),
        Cgroup::Breakdown { anon: GIB, shmem: GIB, cache: GIB },
    ]));
    out
}

fn series() -> Vec<Proof> {
    let peak = Peak { used: GIB, limit: GIB, at: stamp() };
    let vram = || VramShare { gpu: s("0"), used: GIB, total: GIB, at: stamp() };
    all([
        Series::Sample { name: s("container_oom_events_total"), value: 1.0 },
        Series::NoProcess,
        Series::OtherContainer,
        Series::KvCache(0.5),
        Series::AnonymousMemory(peak),
        Series::WorkingSet { peak, vram: Some((s("0"), 0.5)), kv_cache: Some(0.5) },
        Series::Vram(vram()),
        Series::VramAtError { vram: vram(), working_set: Some((0.5, GIB)) },
    ])
}

fn gpu() -> Vec<Proof> {
    let holder = |named| Gpu::Holder {
        tool: TOOL,
        process: s("trainer"),
        pid: 7,
        used: Some(GIB),
        at: stamp(),
        named,
    };
    all([
        holder(true),
        holder(false),
        Gpu::Unlisted { tool: TOOL, used: GIB, listed: Bytes(0) },
        Gpu::HoldersLater,
        Gpu::WhichUnknown,
        Gpu::FreeLater { tool: TOOL, free: GIB, total: None },
        Gpu::Faulty { tool: TOOL, fault: Fault::Uncorrected(1) },
        Gpu::Faulty { tool: TOOL, fault: Fault::RemapPending },
        Gpu::MaybeFaulty { tool: TOOL, fault: Fault::Uncorrected(2) },
        Gpu::MaybeFaulty { tool: TOOL, fault: Fault::RemapPending },
        Gpu::MaybeFaulty { tool: TOOL, fault: Fault::Hot(94) },
        Gpu::HeatOfAMoment,
        Gpu::OnePool { card: s("NVIDIA GB10") },
        Gpu::CoherentPools { card: s("NVIDIA GH200 480GB") },
        Gpu::FaultWithoutTime,
        Gpu::MaybeFaultWithoutTime,
        Gpu::MigRequested(s("nvidia.com/mig-1g.18gb")),
        Gpu::MigLabel { metric: s("DCGM_FI_DEV_FB_USED"), profile: s("1g.18gb") },
        Gpu::MigProduct(s("NVIDIA-H200-MIG-1g.18gb")),
        Gpu::MigLine(s("MIG 1g.18gb Device 0")),
        Gpu::MigOfThisSize { tool: TOOL, size: GIB },
        Gpu::NoMig,
    ])
}

fn vram() -> Vec<Proof> {
    let holes = |graphs, enough| Vram::Holes {
        reserved: GIB,
        graphs,
        idle: GIB,
        enough,
        requested: GIB,
        allocated: GIB,
        total: GIB,
    };
    all([
        Vram::NoSizes,
        Vram::UnknownPhase,
        Vram::Fraction(GIB),
        Vram::Others { total: GIB, free: GIB, own: GIB, others: GIB, requested: GIB },
        Vram::HeldByOthers { others: GIB, total: GIB },
        Vram::FullOfTensors { idle: GIB, requested: GIB, allocated: GIB, total: GIB },
        holes(GIB, Enough::Alone),
        holes(Bytes(0), Enough::WithFree(GIB)),
        Vram::IdleAndRequested { idle: GIB, requested: GIB, allocated: GIB, total: GIB },
        Vram::Ledger { device: 0, reserved: GIB, allocated: GIB, fragments: Some(GIB) },
        Vram::LedgerLater,
        Vram::BeforeProfile { initial: GIB, own: GIB },
        Vram::NotFreeAtStart { budget: GIB, share: 0.9, total: GIB, free: GIB },
        Vram::OutsideTorch { outside: GIB, total: GIB, own: GIB },
    ])
}

fn log() -> Vec<Proof> {
    all([
        Log::ServedOn,
        Log::ServedForAWhile { lines: 12, ms: Some(8_000), lived_on: false },
        Log::LongBeforeTheKill { ms: 1_200_000 },
        Log::UpAfter(1),
        Log::Unrecognised,
        Log::Doubt(s("a disk may be full, too")),
        Log::Unreadable(s("its JSON is broken at line 1, column 51")),
        Log::CutTraceback,
        Log::Fallback,
        Log::OtherZone { zone_ms: 7_200_000 },
        Log::NoVramError { lines: 1, files: 1 },
        Log::NothingKnown { lines: 1 },
        Log::NoMemoryError { lines: 1 },
        Log::QuietKernel { lines: 1 },
    ])
}

fn snapshot() -> Vec<Proof> {
    let available = |released| Snapshot::Available { tool: "free", available: GIB, total: GIB, released };
    all([
        Snapshot::Gpus { tool: TOOL, gpus: 1, instances: 0, processes: 1 },
        Snapshot::Samples(1),
        Snapshot::Cgroup { kills: Some(1) },
        Snapshot::Cgroup { kills: None },
        Snapshot::Machine("free"),
        Snapshot::WorkingSet { tool: "kubectl top", pod: s("llm-0"), used: GIB },
        Snapshot::NearLimit { tool: "kubectl top", used: GIB, limit: GIB },
        Snapshot::Torch { device: 0, failed: 1 },
        available(true),
        available(false),
        Snapshot::NodeUse { tool: "kubectl top", node: None, percent: 95, used: GIB },
    ])
}

fn host_pool() -> Vec<Proof> {
    all([
        HostPool::Size { name: Some(s("CPU offload")), arithmetic: s("4 GiB × 2 ranks") },
        HostPool::Size { name: None, arithmetic: s("4 GiB × 2 ranks") },
        HostPool::UpperBound(s("CPU offload")),
        HostPool::BelowLimit,
    ])
}

fn weighed() -> Vec<Proof> {
    let not = |mark| Weighed::NotTheCause { signature: s("vllm.cuda_oom"), mark };
    let mut out = all(Class::ALL.iter().copied().map(Weighed::DecidedBy));
    out.extend(all([Mark::Suspect, Mark::Degraded, Mark::Fatal].map(not)));
    out.extend(all([
        Weighed::IsVerdict(Class::Unknown),
        Weighed::CameLater { first: Class::XidHardware, what: s("a cache was full") },
        Weighed::NoSignature { signatures: 1, lines: 1, logs: 1 },
        Weighed::RuleHolds { rule: "xid", class: Class::XidHardware },
        Weighed::RuleNotMet { rule: "xid", why: s("there is no Xid") },
        Weighed::RuleLost { rule: "killed", winner: "xid", because: Some("the end is explained") },
    ]));
    out
}

/// The variants of every enum in `verdict/proof/`, as they stand in the source.
fn variants() -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in std::fs::read_dir(root().join("crates/dualplane-core/src/verdict/proof")).unwrap() {
        let mut name = None;
        for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let word = |l: &str| l.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
            if let Some(rest) = line.strip_prefix("pub enum ") {
                name = Some(word(rest));
            } else if line == "}" {
                name = None;
            }
            let variant = line.strip_prefix("    ").filter(|l| l.starts_with(|c: char| c.is_uppercase()));
            if let Some((name, variant)) = name.as_ref().zip(variant) {
                out.entry(name.clone()).or_default().push(word(variant));
            }
        }
    }
    out
}

#[test]
fn every_proof_has_a_sample() {
    let samples: Vec<String> = samples().iter().map(|p| format!("{p:?}")).collect();
    let variants = variants();
    assert!(variants.values().map(Vec::len).sum::<usize>() > 120, "{variants:?}");
    let domains = &variants["Proof"];
    for (name, all) in &variants {
        for variant in all {
            // `Kernel(Scope { … })`; a part of a proof stands behind its field.
            let shown = |s: &&String| match name.as_str() {
                "Proof" => s.starts_with(variant.as_str()),
                _ if domains.contains(name) => s.starts_with(&format!("{name}({variant}")),
                _ => [format!("({variant}"), format!(": {variant}")].iter().any(|p| s.contains(p.as_str())),
            };
            assert!(samples.iter().any(|s| shown(&s)), "{name}::{variant} has no sample here");
        }
    }
}

#[test]
fn ids_are_those_of_the_variants_and_domains_are_documented() {
    let page = std::fs::read_to_string(root().join("docs/verdict.md")).unwrap();
    let found: BTreeSet<String> = samples().iter().map(|p| p.id().to_owned()).collect();
    let variants = variants();
    let mut expected = BTreeSet::new();
    for domain in &variants["Proof"] {
        let id = snake(domain);
        let Some(kinds) = variants.get(domain) else {
            expected.insert(id);
            continue;
        };
        expected.extend(kinds.iter().map(|k| format!("{id}.{}", snake(k))));
        let row = page.lines().find(|l| l.starts_with(&format!("| `{id}` |")));
        // What only `--why-not` tells is in no report.
        assert!(row.is_some() || domain == "Weighed", "docs/verdict.md lacks {id}");
        let example = row.and_then(|r| r.split('`').nth(3)).unwrap_or("weighed.decided_by");
        assert!(found.contains(example), "docs/verdict.md: {example} is no proof");
    }
    assert_eq!(found, expected);
}

/// `OomRecord` as `oom_record`.
fn snake(name: &str) -> String {
    let word = |(i, c): (usize, char)| {
        let apart = if c.is_uppercase() && i > 0 { "_" } else { "" };
        format!("{apart}{}", c.to_lowercase())
    };
    name.chars().enumerate().map(word).collect()
}

#[test]
fn every_proof_is_told_in_plain_english() {
    for proof in samples() {
        let text = sentence(&proof);
        assert!(!text.is_empty() && text.trim() == text && !text.contains("  "), "{proof:?}: {text:?}");
        assert!(!text.ends_with('.') && !text.contains('\n'), "{proof:?}: {text:?}");
        assert_eq!(found(&text), None, "{proof:?}: {text}");
    }
}
