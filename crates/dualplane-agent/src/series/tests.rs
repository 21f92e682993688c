//! Windows out of a ring, through the core as `triage` reads them: both planes must turn up in what the verdict cites.

use std::time::Duration;

use dualplane_base::Class;
use dualplane_base::process::of_path;
use dualplane_base::time::Stamp;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::metrics::Sample;
use dualplane_core::evidence::{Bundle, RawFile};
use dualplane_core::knowledge::Knowledge;
use dualplane_node::cgroup::{Depth, Group, Kind, Limit, Memory, Pressure};
use dualplane_node::clock::{Moment, Span};
use dualplane_node::gpu::{Device, DeviceId, GpuProcess, Health, Reading};
use dualplane_node::node::{Machine, Shm};
use dualplane_report as report;

use super::*;
use crate::ring::{Engine, Note, Ring, RingLimits};

const BOOT: &str = "b932d0cf-5916-41b7-ae0f-3282d92e7059";
const SECOND: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
/// 2026-07-03T20:33:06Z, the begin of the rounds; the death is ten minutes later.
const BEGIN_MS: i64 = 1_783_110_786_000;
const DIED: &str = "2026-07-03T20:43:06Z";

fn path(slot: u16) -> String {
    format!("/kubepods/burstable/pod9ebd9238-4ea3-417e-975f-{slot:012x}/{slot:064x}")
}

fn container(slot: u16) -> Note {
    let named = Named {
        namespace: "serving".into(),
        pod: format!("llm-{slot}"),
        uid: None,
        container: "vllm".into(),
        restart: Some(3),
        folder: None,
    };
    let group = Group { kind: Kind::Container, identity: of_path(&path(slot), 2) };
    Note::Container { slot, group, named: Some(named), command: Vec::new() }
}

/// What the two planes of `llm-0` do, from 0 to 1 of the time before its death.
struct Story {
    host: fn(f64) -> f64,
    vram: fn(f64) -> f64,
}

/// 600 rounds: `llm-0` on GPU 0 with a limit of 64 GiB, `llm-1` on GPU 1, both with vLLM.
fn window(story: &Story) -> Window {
    let d = tempfile::tempdir().unwrap();
    let (mut ring, _) = Ring::open(d.path(), RingLimits::default(), BOOT).unwrap();
    let device = |i: u32| Device {
        uuid: format!("GPU-{i}"),
        index: i,
        name: "NVIDIA H100 80GB HBM3".into(),
        pci: format!("0000:4{i}:00"),
        ..Device::default()
    };
    let engine = Engine { engine: "vllm".into(), model: Some("m".into()), port: 8000 };
    let mut notes = vec![container(0), container(1), Note::Devices(vec![device(0), device(1)])];
    notes.push(Note::Engine { slot: 0, engine });
    for s in 0..=600_u64 {
        let x = s as f64 / 600.0;
        let at = Moment((s + 1000) * SECOND);
        let read = at.plus(Duration::from_micros(700));
        let b = |share: f64, of: u64| Some(Bytes((share * of as f64) as u64));
        let memory = |used: f64| Memory {
            current: b(used, 64 * GIB),
            peak: b(used, 64 * GIB),
            limit: Some(Limit::At(Bytes(64 * GIB))),
            anon: b(used * 0.97, 64 * GIB),
            file: b(used * 0.02, 64 * GIB),
            shmem: b(used * 0.01, 64 * GIB),
            inactive_file: Some(Bytes(0)),
            oom_kill: Some(0),
            at_limit: Some(s / 100),
            pressure: Pressure { full_us: Some(s * 1000), full_avg10: Some(1234), ..Pressure::default() },
            ..Memory::default()
        };
        let mut records = vec![
            Record::container(0, read, Depth::Full, &memory((story.host)(x))),
            Record::container(1, read, Depth::Full, &memory(0.1)),
            Record::shm(0, read, Shm { size: Bytes(64 << 20), used: Bytes(1 << 20) }),
            Record::engine(
                0,
                read,
                [
                    Some((x * 1e6) as u64),
                    Some(4000),
                    Some(500),
                    Some(s / 60),
                    Some(s),
                    Some(s * 250_000),
                    Some(s * 100),
                    None,
                ],
            ),
        ];
        let machine = Machine {
            total: Some(Bytes(512 * GIB)),
            available: Some(Bytes(100 * GIB)),
            ..Machine::default()
        };
        records.push(Record::node(read, &machine));
        for g in 0..2_u16 {
            let used = b(if g == 0 { (story.vram)(x) } else { 0.2 }, 80 * GIB).unwrap();
            let reading = Reading {
                device: DeviceId(g),
                total: Some(Bytes(80 * GIB)),
                used: Some(used),
                free: Some(Bytes(80 * GIB - used.0)),
                busy: Some(s as u32 % 100),
                power_mw: Some(432_100),
                sm_mhz: Some(1980),
                memory_mhz: Some(2619),
                ..Reading::default()
            };
            // Asked before the containers were read.
            let asked = Moment(at.0 - 300_000);
            records.push(Record::gpu(asked, &reading));
            let p = GpuProcess {
                device: DeviceId(g),
                pid: 77 + u32::from(g),
                used: Some(used),
                other_kind: false,
            };
            records.push(Record::gpu_process(asked, &p, Some(g)));
            records.push(Record::gpu_health(
                asked,
                &Health {
                    device: DeviceId(g),
                    ecc_uncorrected: Some(0),
                    ecc_corrected_lifetime: Some(17),
                    remapped_uncorrected: Some(2),
                    remap_pending: Some(true),
                    remap_failed: Some(false),
                    pcie_sent: Some(s << 30),
                    nvlink0_received: Some(s << 32),
                    memory_celsius: Some(71),
                    xids: Some(s / 300),
                    last_xid: (s >= 300).then_some(94),
                    ..Health::default()
                },
            ));
        }
        let span = Span { from: at, to: read };
        records.push(Record::round(s, BEGIN_MS + s as i64 * 1000, span, span, Some(span)));
        ring.append(&records, if s == 0 { &notes } else { &[] });
    }
    ring.window(Moment(0), Moment(u64::MAX), &|p| p == path(0))
}

fn files(story: &Story) -> Vec<RawFile> {
    let who = Labels {
        node: "node-1".into(),
        namespace: "serving".into(),
        pod: "llm-0".into(),
        container: "vllm".into(),
        last: Some(LastIncident { class: "host_oom_killed".into(), plane: "host".into(), kind: "death" }),
    };
    matrix(&window(story), &who)
}

fn pod(reason: &str, code: i32) -> RawFile {
    let value = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "llm-0", "namespace": "serving", "uid": "9ebd9238-4ea3-417e-975f-000000000000"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "vllm", "resources": {"limits": {"memory": "64Gi"}}}]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "vllm", "restartCount": 1, "ready": false, "image": "vllm/vllm-openai:v0.10.2", "imageID": "",
            "state": {"running": {"startedAt": "2026-07-03T20:43:20Z"}},
            "lastState": {"terminated": {"exitCode": code, "reason": reason, "startedAt": "2026-07-03T20:10:00Z", "finishedAt": DIED}},
        }]},
    });
    RawFile::new("pod.json", serde_json::to_vec(&value).unwrap())
}

fn triage(files: Vec<RawFile>) -> (Class, Vec<String>) {
    let mut reports = report::triage_all("x", files, Vec::new(), &Knowledge::embedded().unwrap());
    assert_eq!(reports.len(), 1);
    let r = reports.remove(0);
    let cited = r.causes.iter().flat_map(|c| &c.supports);
    (r.verdict.class, cited.map(|c| format!("{} @{:?}", c.text, c.place)).collect())
}

#[test]
fn a_container_at_its_limit_is_cited_with_vram_beside_it() {
    let story = Story { host: |x| 0.5 + 0.491 * x, vram: |x| 0.3 + 0.2 * x };
    let mut files = files(&story);
    files.push(pod("OOMKilled", 137));
    let (class, cited) = triage(files);
    assert_eq!(class, Class::HostOomKilled);
    let has = |parts: &[&str]| cited.iter().any(|c| parts.iter().all(|p| c.contains(p)));
    assert!(
        has(&[
            "working set reached 99.1 % of the limit 64.00 GiB",
            "VRAM was at 50 % (GPU 0)",
            "the KV cache at 100 %",
            "series/host.json"
        ]),
        "{cited:#?}"
    );
    assert!(
        has(&["VRAM of GPU 0: 40.00 GiB of 80.00 GiB at 2026-07-03T20:43:06Z", "series/gpu.json"]),
        "{cited:#?}"
    );
}

#[test]
fn a_signal_at_the_limit_is_explained_by_anonymous_memory() {
    let story = Story { host: |x| 0.5 + 0.491 * x, vram: |_| 0.3 };
    let mut files = files(&story);
    // Its preemptions would be a finding of their own.
    files.retain(|f| f.name != "series/engine.json");
    files.push(pod("Error", 137));
    let (class, cited) = triage(files);
    assert_eq!(class, Class::HostOomKilled);
    assert!(cited.iter().any(|c| c.contains("anonymous memory reached 96.1 % of the limit")), "{cited:#?}");
}

#[test]
fn a_full_card_is_cited_with_host_ram_beside_it() {
    let story = Story { host: |x| 0.4 + 0.1 * x, vram: |x| 0.9 + 0.099 * x };
    let mut files = files(&story);
    files.push(pod("Error", 1));
    let log = "2026-07-03T20:43:05.000000000Z stderr F torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 80.00 MiB is free.\n";
    files.push(RawFile::new("previous.log", log));
    let (class, cited) = triage(files);
    assert_eq!(class.plane(), dualplane_base::Plane::Gpu, "{class:?}");
    assert!(
        cited.iter().any(|c| c.contains("VRAM of GPU 0 was at 99.9 %")
            && c.contains("never exceeded 50 % of its limit 64.00 GiB")),
        "{cited:#?}"
    );
}

#[test]
fn values_keep_their_units_times_and_names() {
    let all = files(&Story { host: |_| 0.25, vram: |x| x });
    let names: Vec<&str> = all.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["series/host.json", "series/gpu.json", "series/node.json", "series/engine.json"]);
    let bytes: usize = all.iter().map(|f| f.bytes.len()).sum();
    assert!(bytes < 330_000, "{bytes}");
    let bundle = Bundle::from_files(all);
    assert!(bundle.gaps.is_empty(), "{:?}", bundle.gaps);
    let of = |name: &str| bundle.metrics.iter().filter(|s| s.name == name).collect::<Vec<&Sample>>();
    let last =
        |name: &str| of(name).last().map(|s| (s.value, s.stamp)).unwrap_or_else(|| panic!("no {name}"));
    let end = Some(Stamp::Wall { ms: BEGIN_MS + 600_000, zoned: true, year: true });
    for (name, value) in [
        ("container_memory_usage_bytes", 16.0 * GIB as f64),
        ("container_memory_max_usage_bytes", 16.0 * GIB as f64),
        ("container_spec_memory_limit_bytes", 64.0 * GIB as f64),
        ("container_memory_failcnt", 6.0),
        ("container_pressure_memory_stalled_seconds_total", 0.6),
        ("dualplane_container_memory_pressure_stalled_ratio", 0.1234),
        ("dualplane_container_shm_used_bytes", 1048576.0),
        ("container_oom_events_total", 0.0),
        ("node_memory_MemAvailable_bytes", 100.0 * GIB as f64),
        ("DCGM_FI_DEV_FB_TOTAL", 81920.0),
        ("DCGM_FI_DEV_POWER_USAGE", 432.1),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0.0),
        ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 17.0),
        ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 2.0),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", 1.0),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0.0),
        ("DCGM_FI_DEV_MEMORY_TEMP", 71.0),
        ("DCGM_FI_DEV_SM_CLOCK", 1980.0),
        ("DCGM_FI_DEV_MEM_CLOCK", 2619.0),
        ("dualplane_gpu_xid_errors_total", 2.0),
        ("dualplane_gpu_last_xid", 94.0),
        ("dualplane_gpu_pcie_sent_bytes_total", 600.0 * GIB as f64),
        ("dualplane_gpu_nvlink0_received_bytes_total", 2400.0 * GIB as f64),
        ("dualplane_container_restarts", 3.0),
        ("dualplane_container_last_incident", 1.0),
        ("vllm:time_to_first_token_seconds_count", 600.0),
        ("vllm:time_to_first_token_seconds_sum", 150.0),
        ("vllm:prompt_tokens_total", 60_000.0),
        ("vllm:kv_cache_usage_perc", 1.0),
        ("vllm:num_requests_waiting", 0.5),
        ("vllm:num_preemptions_total", 10.0),
    ] {
        assert_eq!(last(name), (value, end), "{name}");
    }
    assert!(of("vllm:generation_tokens_total").is_empty() && of("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL").is_empty());
    let before = of("dualplane_container_last_incident")[0];
    assert_eq!(
        (before.label("class"), before.label("kind"), before.about("pod")),
        (Some("host_oom_killed"), Some("death"), Some("llm-0"))
    );
    assert!(of("container_memory_swap").is_empty(), "what the machine does not tell is left out");
    // Still for ten minutes: each 15 s.
    assert_eq!(of("container_memory_usage_bytes").len(), 41);
    assert_eq!(of("vllm:num_preemptions_total").len(), 11 + 10 + 30);
    let used = of("DCGM_FI_DEV_FB_USED");
    let (mine, others): (Vec<&Sample>, Vec<&Sample>) =
        used.iter().copied().partition(|s| s.label("pod").is_some());
    assert_eq!(
        (mine.len(), mine[0].label("UUID"), mine[0].label("pod")),
        (601, Some("GPU-0"), Some("llm-0"))
    );
    assert_eq!(
        (others.len(), others[0].label("UUID"), others[0].label("Hostname")),
        (41, Some("GPU-1"), Some("node-1"))
    );
    assert_eq!(mine[0].label("pci_bus_id"), Some("00000000:40:00.0"));
    // The total stands at each time of the use: whoever divides finds both.
    assert_eq!(of("DCGM_FI_DEV_FB_TOTAL").len(), used.len());
    let held = of("dualplane_gpu_process_memory_bytes");
    let mine: Vec<&Sample> = held.iter().copied().filter(|s| s.label("pid") == Some("77")).collect();
    assert_eq!(
        (mine.len(), mine[600].value, mine[600].label("container")),
        (601, 80.0 * GIB as f64, Some("vllm"))
    );
    assert!(held.iter().any(|s| s.label("pid") == Some("78") && s.label("container").is_none()));
}

#[test]
fn what_knows_no_time_or_no_name_is_said_so() {
    let mut w = window(&Story { host: |_| 0.25, vram: |_| 0.5 });
    w.containers.get_mut(&path(0)).unwrap().named = None;
    w.containers.get_mut(&path(0)).unwrap().engine = None;
    let all = matrix(&w, &Labels { container: "vllm.service".into(), ..Labels::default() });
    let bundle = Bundle::from_files(all);
    let usage = bundle.metrics.iter().find(|s| s.name == "container_memory_usage_bytes").unwrap();
    assert_eq!((usage.about("pod"), usage.about("container")), (Some("vllm.service"), Some("vllm.service")));
    assert!(bundle.metrics.iter().any(|s| s.name == "dualplane_engine_kv_cache_usage_ratio"));
    w.rounds.clear();
    assert!(matrix(&w, &Labels::default()).is_empty());
    assert!(matrix(&Window::default(), &Labels::default()).is_empty());
}

#[test]
fn the_manual_has_each_name() {
    let manual = include_str!("../../../../docs/series.md");
    let names = CONTAINER.iter().map(|m| m.name).chain(SHM.iter().map(|m| m.name));
    let names = names.chain(NODE.iter().map(|m| m.name)).chain(VRAM.iter().chain(DEVICE).map(|m| m.name));
    let names = names.chain(HEALTH.iter().map(|m| m.name)).chain(ENGINE.map(|(name, _)| name));
    for name in names.chain(["dualplane_gpu_process_memory_bytes", RESTARTS, LAST_INCIDENT]) {
        assert!(manual.contains(&format!("| `{name}` |")), "docs/series.md has no row for {name}");
    }
}
