//! The gate: what passes, what fails, and what is not shown.

use dualplane_stats::random::Random;

use super::*;
use crate::document::{
    Distribution, Drift, Gpu, GpuFaults, Hardware, Kv, Load, PlaneFigures, Requests, Restart, Shape, Subject,
    Throughput, Tool, Use,
};
use crate::report;

const GIB: f64 = (1_u64 << 30) as f64;

fn policy(text: &str) -> Policy {
    let p: Policy = toml::from_str(&format!("schema = \"{POLICY_SCHEMA}\"\n{text}")).unwrap();
    assert_eq!(p.fault(), None);
    p
}

/// A run of a server that holds so many bytes on both planes, with the noise of a seed.
fn run(host: f64, noise: f64, seed: u64) -> Run {
    let mut r = Random::new(seed);
    let mut v = |mean: f64| mean * (1.0 + noise * r.normal()).max(0.1);
    let bytes = |v: f64| Some(v as u64);
    let peak = v(host);
    let plane = |peak: f64, limit: f64| PlaneFigures {
        start_up_bytes: bytes(peak * 0.9),
        steady_bytes: bytes(peak * 0.95),
        peak_bytes: bytes(peak),
        limit_bytes: bytes(limit),
        without_page_cache: Some(true),
        drift: Some(Drift {
            bytes_per_hour: 1e6,
            low_bytes_per_hour: -2e6,
            high_bytes_per_hour: 4e6,
            confidence: 0.995,
            seconds: 1800.0,
            samples: 1800,
            grows: false,
        }),
    };
    let p50 = v(0.1);
    let times = Distribution {
        n: 500,
        mean: p50,
        p50,
        p90: p50 * 2.0,
        p95: p50 * 2.5,
        p99: p50 * 3.0,
        max: p50 * 4.0,
    };
    Run {
        name: format!("{seed}"),
        load: Load { mode: "closed".into(), concurrency: Some(8), ..Load::default() },
        start_seconds: Some(v(40.0)),
        measured_seconds: 60.0,
        host: Some(plane(peak, 20.0 * GIB)),
        vram: Some(plane(v(70.0 * GIB), 80.0 * GIB)),
        kv: Some(Kv { high_water_share: Some(0.6), preemptions: Some(0), ..Kv::default() }),
        ttft: Some(times),
        itl: Some(times),
        e2e: Some(times),
        requests: Some(Requests { sent: 500, succeeded: 500, good: Some(499), ..Requests::default() }),
        throughput: Some(Throughput { good_requests_per_second: Some(v(8.0)), ..Throughput::default() }),
        restarts: Some(Vec::new()),
        gpu_faults: Some(GpuFaults {
            xids: Some(Vec::new()),
            ecc_uncorrected: Some(0),
            ..GpuFaults::default()
        }),
        ..Run::default()
    }
}

fn report(file: &str, runs: Vec<Run>) -> Named {
    let measure = Measure {
        subject: Subject {
            engine: Some("vllm".into()),
            model: Some("example/tiny".into()),
            ..Subject::default()
        },
        hardware: Hardware {
            gpus: Some(vec![Gpu {
                name: "NVIDIA H100 80GB HBM3".into(),
                memory_bytes: Some(80 << 30),
                mig: None,
            }]),
            ..Hardware::default()
        },
        shape: Some(Shape {
            name: "chat".into(),
            digest: Some("sha256:00".into()),
            longest_input_tokens: Some(4096),
            ..Shape::default()
        }),
        runs,
        ..Measure::new(Tool { name: "dualplane".into(), version: "0.1.0".into(), load_tool: None })
    };
    Named { file: file.into(), measure }
}

fn runs(n: u64, host: f64, noise: f64, seed: u64) -> Vec<Run> {
    (0..n).map(|i| run(host, noise, seed * 1000 + i)).collect()
}

fn outcome(g: &Gate, id: &str) -> Outcome {
    g.checks.iter().find(|c| c.id == id).unwrap_or_else(|| panic!("no {id} in {:#?}", g.checks)).outcome
}

const ALL: &str = "[runs]\ncandidate = 3\nbaseline = 5\nseconds = 60\n[headroom]\nhost = 0.1\nvram = 0.05\nkv = 0.1\n\
    [stability]\nrestarts = 0\nxids_allowed = []\necc_uncorrected = 0\npreemptions = 0\ndrift_per_hour = \"16Mi\"\n\
    [worst_case]\ninput_tokens = 4096\nconcurrency = 8\n[slo]\nttft_p99 = 0.5\nerrors = 0.001\ngood = 0.99\ngoodput = 5\n\
    [regression.tolerance]\nhost_peak = 0.05\nvram_peak = 0.05\nttft_p99 = 0.25\ngoodput = 0.1\n";

#[test]
fn the_template_is_a_policy_and_names_every_figure_and_field() {
    let p: Policy = toml::from_str(TEMPLATE).unwrap();
    assert_eq!((p.schema.as_str(), p.fault()), (POLICY_SCHEMA, None));
    // What is commented out is valid too.
    let all: String = TEMPLATE
        .lines()
        .map(|l| match l.strip_prefix("# ") {
            Some(rest)
                if rest.split(' ').next().is_some_and(|w| w.starts_with('[') || rest.contains(" = ")) =>
            {
                format!("{rest}\n")
            }
            _ => format!("{l}\n"),
        })
        .collect();
    let p: Policy = toml::from_str(&all).unwrap_or_else(|e| panic!("{e}\n{all}"));
    assert!(p.worst_case.rate.is_some() && p.slo.goodput.is_some() && p.headroom.host_limit.is_some());
    for f in [
        Figure::HostStartUp,
        Figure::HostSteady,
        Figure::HostPeak,
        Figure::VramStartUp,
        Figure::VramSteady,
        Figure::VramPeak,
        Figure::KvHighWater,
        Figure::StartSeconds,
        Figure::TtftP50,
        Figure::TtftP99,
        Figure::ItlP50,
        Figure::ItlP99,
        Figure::E2eP50,
        Figure::E2eP99,
        Figure::Goodput,
        Figure::RequestsPerSecond,
        Figure::OutputTokensPerSecond,
        Figure::CostPerGoodRequest,
    ] {
        assert!(TEMPLATE.contains(f.as_str()), "{}", f.as_str());
        let text = format!("schema = \"{POLICY_SCHEMA}\"\n[regression.tolerance]\n{} = 0.1\n", f.as_str());
        assert!(toml::from_str::<Policy>(&text).is_ok(), "{text}");
    }
    for field in Field::RELEASED.iter().chain(&Field::MODEL) {
        assert!(TEMPLATE.contains(&format!("\"{}\"", field.as_str())), "{}", field.as_str());
    }
}

#[test]
fn a_clean_build_passes_everything() {
    let g = judge(
        &policy(ALL),
        &[report("new", runs(3, 16.0 * GIB, 0.01, 1))],
        &[report("old", runs(5, 16.0 * GIB, 0.01, 2))],
        7,
    );
    let g = g.unwrap();
    assert_eq!(g.outcome, Outcome::Pass, "{:#?}", g.checks);
    assert!(g.checks.len() >= 18 && g.checks.iter().all(|c| c.outcome == Outcome::Pass));
}

/// 8 % more host RAM on 1 % of noise fails, and on that figure alone.
#[test]
fn eight_percent_more_ram_fail() {
    for seed in 0..20 {
        let new = report("new", runs(3, 16.0 * 1.08 * GIB, 0.01, 100 + seed));
        let g =
            judge(&policy(ALL), &[new], &[report("old", runs(5, 16.0 * GIB, 0.01, 200 + seed))], 7).unwrap();
        let failed: Vec<&str> =
            g.checks.iter().filter(|c| c.outcome == Outcome::Fail).map(|c| c.id.as_str()).collect();
        assert_eq!(failed, ["regression.host_peak"], "{seed}: {:#?}", g.checks);
    }
}

/// A single run fails for its memory, and not for times that a busy machine makes.
#[test]
fn a_single_run_fails_for_memory_alone() {
    let mut slow = runs(1, 16.0 * 1.08 * GIB, 0.01, 3);
    slow[0].throughput = Some(Throughput { good_requests_per_second: Some(5.2), ..Throughput::default() });
    let p = policy("[regression.tolerance]\nhost_peak = 0.05\ngoodput = 0.1\n");
    let g = judge(&p, &[report("new", slow)], &[report("old", runs(5, 16.0 * GIB, 0.01, 2))], 7).unwrap();
    assert_eq!(outcome(&g, "regression.host_peak"), Outcome::Fail);
    assert_eq!(outcome(&g, "regression.goodput"), Outcome::NotShown);
}

/// Of 100 clean repeats, with noise of 2 % on memory and of latencies alike, none fails.
#[test]
fn clean_repeats_do_not_fail() {
    let failed = (0..100)
        .filter(|seed| {
            let (new, old) = (runs(3, 16.0 * GIB, 0.02, 1000 + seed), runs(5, 16.0 * GIB, 0.02, 2000 + seed));
            judge(&policy(ALL), &[report("new", new)], &[report("old", old)], *seed).unwrap().outcome
                == Outcome::Fail
        })
        .count();
    assert_eq!(failed, 0);
}

/// Whatever is taken out of the reports, nothing that passed because of it still does.
#[test]
fn absence_is_no_pass() {
    let mut bare = run(16.0 * GIB, 0.0, 1);
    bare = Run { name: bare.name, load: Load { mode: "closed".into(), ..Load::default() }, ..Run::default() };
    let mut new = report("new", vec![bare.clone(), bare.clone(), bare]);
    new.measure.shape = None;
    let g = judge(&policy(ALL), &[new], &[report("old", runs(5, 16.0 * GIB, 0.01, 2))], 7).unwrap();
    let passed: Vec<&str> =
        g.checks.iter().filter(|c| c.outcome == Outcome::Pass).map(|c| c.id.as_str()).collect();
    assert_eq!(passed, ["runs.candidate", "runs.baseline"]);
    assert_eq!(g.outcome, Outcome::NotShown);
    // One run of several without the number is enough to show nothing.
    let mut some = runs(3, 16.0 * GIB, 0.01, 1);
    some[1].host = None;
    some[1].restarts = None;
    let g = judge(&policy(ALL), &[report("new", some)], &[report("old", runs(5, 16.0 * GIB, 0.01, 2))], 7)
        .unwrap();
    for id in ["headroom.host", "regression.host_peak", "stability.restarts", "stability.drift_host"] {
        assert_ne!(outcome(&g, id), Outcome::Fail, "{id}");
    }
    assert_eq!(outcome(&g, "headroom.host"), Outcome::NotShown);
    assert_eq!(outcome(&g, "stability.restarts"), Outcome::NotShown);
    let g = judge(&policy(""), &[report("new", runs(3, 16.0 * GIB, 0.01, 1))], &[], 7).unwrap();
    assert_eq!(g.outcome, Outcome::NotShown, "a policy that asks for nothing shows nothing");
    let g = judge(&policy(ALL), &[report("new", runs(3, 16.0 * GIB, 0.01, 1))], &[], 7).unwrap();
    assert_eq!(outcome(&g, "regression.host_peak"), Outcome::NotShown);
    assert_eq!(judge(&policy(ALL), &[], &[], 7), Err(GateError::NoCandidate));
}

#[test]
fn each_fault_fails_its_check() {
    let with = |change: fn(&mut Run)| {
        let mut some = runs(3, 16.0 * GIB, 0.01, 1);
        change(&mut some[2]);
        judge(&policy(ALL), &[report("new", some)], &[report("old", runs(5, 16.0 * GIB, 0.01, 2))], 7)
            .unwrap()
    };
    let killed = |r: &mut Run| {
        r.restarts = Some(vec![Restart { class: Some("host_oom_killed".into()), ..Restart::default() }])
    };
    type Fault<'a> = (&'a str, fn(&mut Run));
    let faults: [Fault<'_>; 9] = [
        ("stability.restarts", killed),
        ("stability.xids", |r| r.gpu_faults.as_mut().unwrap().xids = Some(vec![79])),
        ("stability.ecc", |r| r.gpu_faults.as_mut().unwrap().ecc_uncorrected = Some(1)),
        ("stability.preemptions", |r| r.kv.as_mut().unwrap().preemptions = Some(1)),
        ("headroom.host", |r| r.host.as_mut().unwrap().peak_bytes = Some((19.0 * GIB) as u64)),
        ("headroom.vram", |r| r.vram.as_mut().unwrap().peak_bytes = Some((79.0 * GIB) as u64)),
        ("headroom.kv", |r| r.kv.as_mut().unwrap().high_water_share = Some(0.95)),
        ("slo.errors", |r| {
            r.requests.as_mut().unwrap().failed =
                vec![crate::document::Failed { reason: "timeout".into(), count: 9 }]
        }),
        ("stability.drift_host", |r| {
            let d = r.host.as_mut().unwrap().drift.as_mut().unwrap();
            (d.bytes_per_hour, d.low_bytes_per_hour, d.high_bytes_per_hour, d.grows) = (6e7, 5e7, 7e7, true);
        }),
    ];
    for (id, change) in faults {
        let g = with(change);
        assert_eq!((outcome(&g, id), g.outcome), (Outcome::Fail, Outcome::Fail), "{id}: {:#?}", g.checks);
    }
    let g = with(killed);
    let c = g.checks.iter().find(|c| c.id == "stability.restarts").unwrap();
    assert!(c.found.contains("host_oom_killed"), "{}", c.found);
}

#[test]
fn different_hardware_models_and_requests_are_refused() {
    let old = || report("old", runs(5, 16.0 * GIB, 0.01, 2));
    let with = |change: fn(&mut Measure)| {
        let mut new = report("new", runs(3, 16.0 * GIB, 0.01, 1));
        change(&mut new.measure);
        judge(&policy(ALL), &[new], &[old()], 7).unwrap()
    };
    type Other<'a> = (&'a str, fn(&mut Measure));
    let other: [Other<'_>; 6] = [
        ("gpus", |m| m.hardware.gpus = Some(vec![Gpu { name: "NVIDIA L40S".into(), ..Gpu::default() }])),
        ("gpus", |m| m.hardware.gpus = None),
        ("memory_limit", |m| m.hardware.memory_limit_bytes = Some(1 << 30)),
        ("model", |m| m.subject.model = Some("example/other".into())),
        ("shape", |m| m.shape.as_mut().unwrap().digest = Some("sha256:01".into())),
        ("load", |m| m.runs[0].load.concurrency = Some(9)),
    ];
    for (field, change) in other {
        let g = with(change);
        assert!(g.refused.iter().any(|d| d.field.as_str() == field), "{field}");
        assert_eq!(outcome(&g, "regression.host_peak"), Outcome::NotShown, "{field}");
        assert!(report::markdown(&g).contains("differs, the baseline says"), "{field}");
    }
    // A new revision is what is released.
    let g = with(|m| m.subject.model_revision = Some("abc".into()));
    assert!(g.refused.is_empty() && g.released.len() == 1 && g.outcome == Outcome::Pass, "{:#?}", g.checks);
    let mut mixed = report("b", runs(1, 16.0 * GIB, 0.01, 1));
    mixed.measure.subject.model_revision = Some("abc".into());
    let e = judge(&policy(ALL), &[old(), mixed], &[], 7).unwrap_err().to_string();
    assert!(e.contains("model_revision"), "{e}");
    let bad: Policy = toml::from_str(&format!(
        "schema = \"{POLICY_SCHEMA}\"\n[regression]\nmay_differ = [\"gpus\"]\ntolerance = {{}}\n"
    ))
    .unwrap();
    assert!(bad.fault().unwrap().contains("measure the baseline anew"));
}

#[test]
fn without_a_card_the_gpu_plane_is_not_asked_for() {
    let mut new = report("new", runs(3, 16.0 * GIB, 0.01, 1));
    new.measure.hardware.gpus = Some(Vec::new());
    for r in &mut new.measure.runs {
        (r.vram, r.gpu_faults) = (None, None);
    }
    let mut old = new.clone();
    old.measure.runs = runs(5, 16.0 * GIB, 0.01, 2);
    old.measure.runs.iter_mut().for_each(|r| r.vram = None);
    let g = judge(&policy(ALL), &[new.clone()], &[old], 7).unwrap();
    for id in
        ["headroom.vram", "stability.xids", "stability.ecc", "stability.drift_vram", "regression.vram_peak"]
    {
        assert_eq!(outcome(&g, id), Outcome::NotApplicable, "{id}");
    }
    assert_eq!(g.outcome, Outcome::Pass, "{:#?}", g.checks);
    // Where the report does not say that there is none, the number is missing.
    new.measure.hardware.gpus = None;
    let g = judge(&policy(ALL), &[new], &[], 7).unwrap();
    assert_eq!(outcome(&g, "headroom.vram"), Outcome::NotShown);
}

/// A name that a user gave cannot leave its place in any format.
#[test]
fn hostile_names_stay_text() {
    let mut new = report("new|`<b>\u{1b}[2J", runs(3, 19.5 * GIB, 0.0, 1));
    new.measure.subject.model = Some("a|b`<script>\u{1b}[31m\u{202e}&\"]]>".into());
    let g = judge(&policy(ALL), &[new], &[], 7).unwrap();
    let text = report::text(&g, Default::default());
    let markdown = report::markdown(&g);
    let junit = report::junit(&g, jiff::Timestamp::UNIX_EPOCH);
    for out in [&text, &markdown, &junit] {
        assert!(!out.contains('\u{1b}') && !out.contains('\u{202e}'), "{out}");
    }
    assert!(!markdown.contains("<script>") && !junit.contains("<script>"));
    let sarif = report::sarif(&g, "0.1.0").to_string();
    assert!(sarif.contains("new%7C%60%3Cb%3E"), "{sarif}");
}

#[test]
fn the_document_follows_its_schema() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gate.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut other = report("new", runs(3, 17.5 * GIB, 0.01, 1));
    for baseline in [vec![], vec![report("old", runs(5, 16.0 * GIB, 0.01, 2))]] {
        let g = judge(&policy(ALL), &[other.clone()], &baseline, 7).unwrap();
        let value = report::json(&g);
        let errors: Vec<String> =
            schema.iter_errors(&value).map(|e| format!("{e} at {}", e.instance_path)).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        other.measure.subject.model = Some("example/other".into());
    }
}

/// A server on processors that got less of them is no slower build; with as much of them it is.
#[test]
fn a_busy_machine_is_no_slower_build() {
    let of = |goodput: f64, cores: f64, n: u64, seed: u64| {
        let mut all = runs(n, 16.0 * GIB, 0.01, seed);
        for r in &mut all {
            r.throughput =
                Some(Throughput { good_requests_per_second: Some(goodput), ..Throughput::default() });
            r.used = Some(Use { cpu_cores: Some(cores), ..Use::default() });
        }
        let mut made = report("r", all);
        made.measure.hardware.gpus = Some(Vec::new());
        made
    };
    let outcome = |candidate: Named| {
        let base = of(8.0, 1.0, 5, 2);
        let g = judge(&policy("[regression.tolerance]\ngoodput = 0.1\n"), &[candidate], &[base], 7).unwrap();
        g.checks.iter().find(|c| c.id == "regression.goodput").unwrap().outcome
    };
    assert_eq!(outcome(of(4.0, 0.98, 3, 3)), Outcome::Fail);
    assert_eq!(outcome(of(4.0, 0.5, 3, 3)), Outcome::NotShown);
    assert_eq!(outcome(of(8.0, 0.5, 3, 3)), Outcome::Pass);
}
