//! The page against its own table, the manual, the core's parser and the real promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use dualplane_base::deprecation::{Deprecation, Release, Thing};
use dualplane_base::process::Process;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::metrics::{Sample, parse};
use dualplane_node::cgroup::{Group, Kind, Limit, Memory, Pressure};
use dualplane_node::clock::{Moment, Span};
use dualplane_node::cri::Named;
use dualplane_node::gpu::{Device, DeviceId, GpuProcess, Health, Reading};
use dualplane_node::node::{Listing, Machine, Proc, Shm};
use dualplane_node::sample::{Round, Scope};

use super::*;
use crate::health::{Fault, Part};
use crate::publish::{Cost, Last, SinkCounts, Verdicts};
use crate::{AllocatedDevice, ContainerView, EngineSample, GpuView, Holder, XidTally};

const SECOND: u64 = 1_000_000_000;
const UUID: &str = "GPU-9a1e0b1c-0000-4a5e-9d4f-000000000001";

fn container(slot: u16, named: Option<(&str, &str, &str)>, usage: u64) -> ContainerView {
    let named = named.map(|(namespace, pod, container)| Named {
        namespace: namespace.into(),
        pod: pod.into(),
        uid: Some("uid-1".into()),
        container: container.into(),
        restart: Some(2),
        folder: None,
    });
    let identity = Process {
        path: format!("/kubepods/pod/c{slot}"),
        pod_uid: Some("uid-1".into()),
        container_id: Some("c".repeat(64)),
        qos: Some("Burstable"),
        runtime: Some("containerd"),
        ..Process::default()
    };
    let b = |n| Some(Bytes(n));
    ContainerView {
        slot,
        group: Group { kind: Kind::Container, identity },
        named,
        since: Moment(u64::from(slot) * SECOND),
        memory: Memory {
            current: b(usage),
            peak: b(usage + 1),
            limit: Some(Limit::At(Bytes(1 << 30))),
            swap: b(0),
            anon: b(7),
            file: b(8),
            shmem: b(9),
            kernel: b(10),
            inactive_file: b(11),
            active_file: b(12),
            unevictable: b(13),
            major_faults: Some(14),
            at_limit: Some(15),
            oom: Some(16),
            oom_kill: Some(17),
            oom_group_kill: Some(18),
            pressure: Pressure { some_us: Some(1_500_000), full_us: Some(500_000), full_avg10: Some(100) },
        },
        at: Moment(99 * SECOND),
        shm: Some(Shm { size: Bytes(64 << 20), used: Bytes(1 << 20) }),
        processes: Arc::new(Listing { processes: vec![Proc::default(); 3], left_out: 1 }),
        engine: None,
        vram: Vec::new(),
        given: Arc::default(),
    }
}

/// A view in which every family has a sample.
fn full() -> (View, Counts) {
    let mut server = container(1, Some(("serving", "llm-0", "vllm")), 5 << 30);
    server.vram = vec![
        Holder { device: 0, pid: 1, used: Some(Bytes(40 << 30)) },
        Holder { device: 0, pid: 2, used: Some(Bytes(1 << 30)) },
        Holder { device: 1, pid: 3, used: None },
    ];
    let given = |resource: &str, id: &str, uuid: &str| AllocatedDevice {
        resource: resource.into(),
        id: id.into(),
        uuid: (!uuid.is_empty()).then(|| uuid.into()),
    };
    server.given = Arc::new([
        given("nvidia.com/gpu.shared", &format!("{UUID}::0"), UUID),
        given("nvidia.com/gpu.shared", &format!("{UUID}::1"), UUID),
        given("nvidia.com/mig-1g.10gb", "MIG-elsewhere", "MIG-elsewhere"),
        given("nvidia.com/gpu", "nvidia0", ""),
    ]);
    server.engine = Some(Arc::new(EngineSample {
        at: Moment(98 * SECOND),
        port: 8000,
        engine: "vllm",
        model: Some("a\"b\\c\nd\u{1b}[31m".into()),
        kv_use: Some(0.5),
        running: Some(3.0),
        waiting: Some(f64::NAN),
        preemptions: Some(2.0),
        first_tokens: Some(10.0),
        first_token_seconds: Some(2.5),
        prompt_tokens: Some(900.0),
        generated_tokens: Some(40.0),
        histograms: "".into(),
    }));
    let mut side = container(2, Some(("serving", "llm-0", "side")), 1 << 20);
    side.engine =
        Some(Arc::new(EngineSample { waiting: Some(4.0), ..(**server.engine.as_ref().unwrap()).clone() }));
    let mut machine = Machine { total: Some(Bytes(1 << 40)), oom_kill: Some(3), ..Machine::default() };
    machine.pressure = server.memory.pressure;
    let fields = [
        &mut machine.available,
        &mut machine.free,
        &mut machine.cached,
        &mut machine.shmem,
        &mut machine.anon,
        &mut machine.slab,
        &mut machine.unevictable,
        &mut machine.hugetlb,
        &mut machine.swap_total,
        &mut machine.swap_free,
    ];
    fields.into_iter().for_each(|f| *f = Some(Bytes(1)));
    let card = Device {
        uuid: UUID.into(),
        name: "NVIDIA H100".into(),
        pci: "0000:4a:00".into(),
        mig: Some(true),
        ..Device::default()
    };
    let mig = Device {
        uuid: "MIG-1".into(),
        card: Some(DeviceId(0)),
        instance: Some((5, 0)),
        mig: None,
        ..card.clone()
    };
    let reading = Reading {
        total: Some(Bytes(80 << 30)),
        used: Some(Bytes(60 << 30)),
        free: Some(Bytes(19 << 30)),
        reserved: Some(Bytes(1 << 30)),
        busy: Some(97),
        memory_busy: Some(40),
        power_mw: Some(650_500),
        celsius: Some(71),
        throttle: Some(0x40 | 0x4),
        sm_mhz: Some(1980),
        memory_mhz: Some(2619),
        ..Reading::default()
    };
    let health = Health {
        ecc_corrected: Some(4),
        ecc_uncorrected: Some(1),
        pcie_replays: Some(2),
        nvlinks: Some(18),
        nvlink_errors: Some(6),
        ecc_corrected_lifetime: Some(40),
        ecc_uncorrected_lifetime: Some(3),
        remapped_corrected: Some(0),
        remapped_uncorrected: Some(2),
        remap_pending: Some(true),
        remap_failed: Some(false),
        pcie_sent: Some(1 << 40),
        pcie_received: Some(1 << 41),
        nvlink0_sent: Some(1 << 42),
        nvlink0_received: Some(1 << 43),
        memory_celsius: Some(83),
        ..Health::default()
    };
    let process =
        |pid, used, slot| (GpuProcess { pid, used: Some(Bytes(used)), ..GpuProcess::default() }, slot);
    let at = Moment(99 * SECOND);
    let processes =
        vec![process(1, 40 << 30, Some(1)), process(2, 1 << 30, Some(1)), process(9, 5 << 30, None)];
    let xids = XidTally { by_code: BTreeMap::from([(31, 2), (94, 1)]), last: Some(94) };
    let gpus = vec![
        GpuView { device: card, reading, at, health: Some(health), processes, xids: xids.clone() },
        // A real MIG device has neither power nor counters of its own.
        GpuView {
            device: mig,
            reading,
            at,
            health: Some(health),
            processes: vec![process(3, 1, Some(1))],
            xids,
        },
    ];
    let span = |from: u64, to: u64| Span { from: Moment(from), to: Moment(to) };
    let round = Round {
        number: 41,
        scope: Scope::Whole,
        host: span(99 * SECOND, 99 * SECOND + 2_000_000),
        node: span(99 * SECOND, 99 * SECOND + 500_000),
        gpus: Some(span(99 * SECOND, 99 * SECOND + 1_000_000)),
    };
    let containers = BTreeMap::from([(1, server), (2, side), (3, container(3, None, 1))]);
    let view = View {
        at,
        wall_ms: 1_700_000_000_500,
        round: Some(round),
        machine,
        containers,
        gpus,
        gpu_gap: None,
        kubelet: Some(Ok(())),
    };
    let counts = Counts {
        node: "gpu-node-1".into(),
        verdicts: Arc::new(Verdicts {
            incidents: BTreeMap::from([(("host_oom_killed".into(), "host".into(), "death"), 2)]),
            last: BTreeMap::from([(
                ("serving".into(), "llm-0".into(), "vllm".into()),
                Last {
                    verdict: ("host_oom_killed".into(), "host".into(), "death"),
                    died_ms: Some(1_700_000_000_123),
                },
            )]),
        }),
        ring_bytes: Some(1 << 20),
        ring_span: Some(Duration::from_secs(600)),
        lost: BTreeMap::from([("log", 1)]),
        faults: vec![Fault { part: Part::Ring, why: "EIO".into(), since: Moment(SECOND), times: 3 }],
        faults_begun: BTreeMap::from([(Part::Ring, 2)]),
        sinks: vec![SinkCounts { name: "event".into(), delivered: 3, ..SinkCounts::default() }],
        cost: Cost { max_fds: Some(1024), ..Cost::own() },
        ..Counts::default()
    };
    (view, counts)
}

fn page(view: &View, counts: &Counts) -> (String, Vec<Sample>) {
    let mut text = String::new();
    render(view, counts, &mut text);
    let (samples, dropped) = parse(&text, "metrics");
    assert_eq!(dropped, 0);
    let lines = text.lines().filter(|l| !l.starts_with('#')).count();
    assert_eq!(samples.len(), lines, "the core reads every line");
    (text, samples)
}

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let fits = |s: &&Sample| s.name == name && labels.iter().all(|(k, v)| s.label(k) == Some(*v));
    let mut found = samples.iter().filter(fits);
    let first = found.next().map(|s| s.value);
    assert!(found.next().is_none(), "{name} {labels:?} is there twice");
    first
}

#[test]
fn every_family_is_told_with_the_labels_of_the_table() {
    let (view, counts) = full();
    let (text, samples) = page(&view, &counts);
    let mut names = BTreeSet::new();
    for f in families() {
        assert!(names.insert(f.name), "{} is there twice", f.name);
        let own: Vec<&Sample> = samples.iter().filter(|s| s.name == f.name).collect();
        assert!(!own.is_empty(), "{} has no sample", f.name);
        let may: BTreeSet<&str> = f.labels.split_whitespace().chain(["node"]).collect();
        let told: BTreeSet<&str> =
            own.iter().flat_map(|s| s.labels.iter().map(|(k, _)| k.as_str())).collect();
        assert_eq!(told, may, "{}", f.name);
        assert_eq!(f.name.ends_with("_total"), f.kind == Type::Counter, "{}", f.name);
        assert!(f.help.ends_with('.') && !f.help.contains(['\n', '|']), "{}", f.name);
        assert_eq!(text.matches(&format!("# TYPE {} ", f.name)).count(), 1);
    }
    let unknown: Vec<&Sample> = samples.iter().filter(|s| !names.contains(s.name.as_str())).collect();
    assert_eq!(unknown, Vec::<&Sample>::new());
}

/// Who scrapes it sees what goes where he reads what it means.
#[test]
fn a_metric_that_goes_says_so() {
    const TABLE: &[Deprecation] = &[Deprecation {
        thing: Thing::Metric,
        of: "agent",
        name: "dualplane_node_memory_total_bytes",
        since: Release(0, 2),
        gone: Release(0, 3),
        instead: "use another",
    }];
    let mut out = String::new();
    let mut page = Page::with(&mut out, TABLE);
    let samples = || std::iter::once((Labels::default(), 1.0));
    for name in ["dualplane_node_memory_total_bytes", "dualplane_node_memory_available_bytes"] {
        page.family(&family::gauge(name, "", "One sentence."), samples());
    }
    assert!(out.contains("_total_bytes One sentence. (deprecated since 0.2, gone with 0.3: use another)\n"));
    assert!(out.contains("_available_bytes One sentence.\n"), "{out}");
    assert_eq!(parse(&out, "agent").0.len(), 2);
    // What the table calls a metric of the agent is one.
    for d in DEPRECATED.iter().filter(|d| d.thing == Thing::Metric) {
        assert!(families().any(|f| f.name == d.name), "{d}");
    }
}

#[test]
fn both_planes_have_the_values_of_the_view() {
    let (view, counts) = full();
    let (_, s) = page(&view, &counts);
    let c = [("namespace", "serving"), ("pod", "llm-0"), ("container", "vllm"), ("node", "gpu-node-1")];
    let of = |name, labels: &[(&str, &str)]| value(&s, name, labels).unwrap();
    assert_eq!(of("dualplane_container_memory_usage_bytes", &c), 5_368_709_120.0);
    assert_eq!(of("dualplane_container_memory_pressure_waiting_seconds_total", &c), 1.5);
    assert_eq!(of("dualplane_container_processes", &c), 4.0);
    let on_card = [c[0], c[1], c[2], ("UUID", UUID), ("gpu", "0")];
    assert_eq!(of("dualplane_container_gpu_memory_used_bytes", &on_card), (41_u64 << 30) as f64);
    assert_eq!(of("dualplane_container_gpu_processes", &on_card), 2.0);
    let on_mig = [c[0], c[1], c[2], ("UUID", "MIG-1")];
    assert_eq!(
        value(&s, "dualplane_container_gpu_memory_used_bytes", &on_mig),
        None,
        "the driver does not tell"
    );
    assert_eq!(of("dualplane_container_gpu_processes", &on_mig), 1.0);
    assert_eq!(value(&s, "dualplane_engine_requests_waiting", &c), None, "NaN says nothing");
    let shared = [c[0], c[2], ("gpu", "0"), ("UUID", UUID), ("resource", "nvidia.com/gpu.shared")];
    let replica = format!("{UUID}::1");
    assert_eq!(of("dualplane_container_gpu_given", &[&shared[..], &[("device_id", &replica)]].concat()), 1.0);
    assert_eq!(of("dualplane_container_gpu_given", &[("UUID", "MIG-elsewhere"), ("gpu", "")]), 1.0);
    assert_eq!(
        of("dualplane_container_gpu_given", &[("device_id", "nvidia0"), ("gpu", ""), ("UUID", "")]),
        1.0
    );
    assert_eq!(of("dualplane_pod_resources_readable", &[]), 1.0);
    let card = [("UUID", UUID)];
    assert_eq!(of("dualplane_gpu_memory_unassigned_bytes", &card), (5_u64 << 30) as f64);
    assert_eq!(of("dualplane_gpu_power_watts", &card), 650.5);
    assert_eq!(of("dualplane_gpu_clock_hertz", &card), 1.98e9);
    assert_eq!(of("dualplane_gpu_xid_errors_total", &[card[0], ("xid", "31")]), 2.0);
    assert_eq!(of("dualplane_gpu_ecc_errors_lifetime_total", &[card[0], ("type", "uncorrected")]), 3.0);
    assert_eq!(of("dualplane_gpu_remapped_rows", &[card[0], ("type", "uncorrected")]), 2.0);
    assert_eq!(
        (of("dualplane_gpu_remap_pending", &card), of("dualplane_gpu_remap_failed", &card)),
        (1.0, 0.0)
    );
    assert_eq!(of("dualplane_engine_time_to_first_token_seconds_total", &[("container", "vllm")]), 2.5);
    assert_eq!(of("dualplane_gpu_throttled", &[card[0], ("reason", "hw_thermal")]), 1.0);
    assert_eq!(of("dualplane_gpu_throttled", &[card[0], ("reason", "hw_slowdown")]), 0.0);
    assert_eq!(of("dualplane_gpu_info", &[("UUID", "MIG-1"), ("GPU_I_ID", "5"), ("mig", "device")]), 1.0);
    assert_eq!(of("dualplane_agent_plane_skew_seconds", &[]), 0.002);
    assert_eq!(of("dualplane_agent_rounds_total", &[]), 42.0);
    let verdict = [("class", "host_oom_killed"), ("plane", "host"), ("kind", "death")];
    assert_eq!(of("dualplane_incidents_total", &verdict), 2.0);
    let engine = s.iter().find(|s| s.name == "dualplane_engine_requests_running").unwrap();
    assert_eq!(engine.label("model_name"), Some("a\"b\\c\\nd\\u{1b}[31m"), "controls are visible");
}

#[test]
fn nothing_read_is_no_sample() {
    let (text, s) = page(&View::default(), &Counts::default());
    assert!(!text.contains("pod_resources"));
    assert!(!text.contains("dualplane_node_") && !text.contains("dualplane_gpu"), "{text}");
    assert_eq!(value(&s, "dualplane_agent_rounds_total", &[]), None);
    let mut view = View { round: full().0.round, ..View::default() };
    view.gpu_gap = Some(dualplane_node::gpu::GpuGap::NoLibrary("x".into()));
    assert_eq!(value(&page(&view, &Counts::default()).1, "dualplane_gpus_readable", &[]), Some(0.0));
}

#[test]
fn a_restart_and_a_flood_give_each_series_once() {
    let (mut view, counts) = full();
    let mut newer = container(9, Some(("serving", "llm-0", "vllm")), 3);
    newer.vram = vec![Holder { device: 70, pid: 1, used: Some(Bytes(1)) }];
    view.containers.insert(9, newer);
    for slot in 100..2_200 {
        let pod = format!("p-{slot}");
        view.containers.insert(slot, container(slot, Some(("many", &pod, "c")), u64::from(slot)));
    }
    let mut docker = container(50, None, 1 << 40);
    docker.group.identity.pod_uid = None;
    view.containers.insert(50, docker);
    let (_, s) = page(&view, &counts);
    let all: BTreeSet<_> = s.iter().map(|s| (&s.name, &s.labels)).collect();
    assert_eq!(all.len(), s.len(), "no series twice");
    let usage = |l: &[(&str, &str)]| value(&s, "dualplane_container_memory_usage_bytes", l);
    assert_eq!(usage(&[("container", "cccccccccccc"), ("pod", "")]), Some((1_u64 << 40) as f64));
    assert_eq!(usage(&[("container", "vllm")]), None, "the newer one is small, and the largest are told");
    assert_eq!(s.iter().filter(|s| s.name == "dualplane_container_memory_usage_bytes").count(), 1024);
    // 2,100 of the flood, two of the pod, one of docker.
    assert_eq!(value(&s, "dualplane_agent_samples_left_out", &[]), Some(2103.0 - 1024.0));
}

#[test]
fn the_manual_has_the_table() {
    let doc = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent.md");
    let doc = std::fs::read_to_string(doc).unwrap();
    let table = table();
    assert!(doc.contains(&table), "put this into docs/agent.md:\n{table}");
}

/// The real one: in the path, in the cache of e2e, or skipped.
#[test]
fn promtool_has_no_complaint() {
    let home = std::env::var("HOME").unwrap_or_default();
    let cache = std::fs::read_dir(format!("{home}/.cache/dualplane/e2e")).into_iter().flatten();
    let cached = cache.filter_map(Result::ok).map(|e| e.path().join("usr/bin/promtool"));
    let tool = std::iter::once("promtool".into()).chain(cached).find(|t: &std::path::PathBuf| {
        Command::new(t)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    });
    let Some(tool) = tool else {
        eprintln!("skipped: no promtool");
        return;
    };
    let (view, counts) = full();
    let (text, _) = page(&view, &counts);
    let mut child = Command::new(tool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}
