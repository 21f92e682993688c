//! Every form that evidence comes in: a sample each under `testdata/forms`, and what must be read from it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::path::Path;

use dualplane_base::Class;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::{
    Bundle, Container, ContainerKind, Event, Pod, Probe, RawFile, State, Termination,
};
use dualplane_core::knowledge::Knowledge;
use dualplane_report::{self as report, Report};

const GIB: u64 = 1 << 30;

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/forms").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn raw(name: &str) -> RawFile {
    RawFile::new(name.rsplit('/').next().unwrap(), sample(name))
}

fn bundle(names: &[&str]) -> Bundle {
    Bundle::from_files(names.iter().map(|n| raw(n)).collect())
}

fn triage(names: &[&str]) -> Vec<Report> {
    let files = names.iter().map(|n| raw(n)).collect();
    report::triage_all("case", files, Vec::new(), &Knowledge::embedded().unwrap())
}

fn container<'a>(pod: &'a Pod, name: &str) -> &'a Container {
    pod.containers.iter().find(|c| c.name == name).unwrap()
}

fn end(c: &Container) -> &Termination {
    c.status.as_ref().unwrap().termination().unwrap()
}

fn event<'a>(b: &'a Bundle, reason: &str) -> &'a Event {
    b.events.iter().find(|e| e.reason == reason).unwrap()
}

/// The line of the sample that an event or trigger cites really holds its text.
fn cited(name: &str, line: Option<u64>, text: &str) {
    let bytes = sample(name);
    let all = String::from_utf8_lossy(&bytes);
    let at = all.lines().nth(line.unwrap() as usize - 1).unwrap();
    assert!(at.contains(text), "{name}:{line:?}: {at:?} does not hold {text:?}");
}

#[test]
fn described_pods() {
    let b = bundle(&["describe/pod.txt"]);
    assert!(b.logs.is_empty(), "all of it is objects: {:?}", b.logs);
    assert_eq!(b.pods.len(), 2);
    let p = &b.pods[0];
    assert_eq!(p.full_name(), "inference/llama-70b-6c9f7d5b8d-x2k4p");
    assert_eq!(p.node.as_deref(), Some("gpu-node-1"));
    assert_eq!(p.owner.as_ref().unwrap().0, "ReplicaSet");
    assert!(p.conditions.iter().any(|c| c.kind == "Ready" && !c.holds));
    let fetch = container(p, "fetch-weights");
    assert_eq!((fetch.kind, end(fetch).exit_code), (ContainerKind::Init, Some(0)));
    let c = container(p, "vllm");
    assert_eq!(c.memory_limit, Some(Bytes(24 * GIB)));
    assert_eq!(c.memory_request, Some(Bytes(16 * GIB)));
    assert_eq!(c.devices, [("nvidia.com/gpu".to_owned(), 2)]);
    assert_eq!(c.args, ["vllm", "serve", "/models", "--tensor-parallel-size", "2", "--swap-space=16"]);
    assert_eq!(c.env.len(), 2, "a secret has no value: {:?}", c.env);
    assert_eq!(p.memory_mounts(c), [("/dev/shm", Some(Bytes(8 * GIB)))]);
    assert_eq!(c.liveness, Some(Probe { initial_delay: 120, period: 15, failure_threshold: 4 }));
    let status = c.status.as_ref().unwrap();
    assert_eq!(status.restarts, Some(5));
    assert!(matches!(&status.state, State::Waiting { reason, .. } if reason == "CrashLoopBackOff"));
    let t = end(c);
    assert_eq!((t.reason.as_str(), t.exit_code), ("OOMKilled", Some(137)));
    assert!(t.message.ends_with("last words of the container"), "{:?}", t.message);
    assert_eq!(t.finished.unwrap().show(), "2026-07-03T20:40:06Z");
    assert_eq!(b.pods[1].reason.as_deref(), Some("Evicted"));
    let back_off = event(&b, "BackOff");
    assert_eq!((back_off.count, back_off.container.as_deref()), (19, Some("vllm")));
    for e in &b.events {
        cited("describe/pod.txt", e.line, e.message.trim());
    }
    let reports = triage(&["describe/pod.txt"]);
    let classes: Vec<Class> = reports.iter().map(|r| r.verdict.class).collect();
    assert_eq!(classes, [Class::HostOomKilled, Class::HostNodeOom]);
}

#[test]
fn a_described_node() {
    let b = bundle(&["describe/node.txt"]);
    let n = &b.nodes[0];
    assert_eq!(n.name, "gpu-node-1");
    assert_eq!(n.memory_allocatable, Some(Bytes(263_677_616 << 10)));
    assert!(n.labels.iter().any(|(k, v)| k == "nvidia.com/gpu.product" && v.contains("A100")));
    let pressure = n.conditions.iter().find(|c| c.kind == "MemoryPressure").unwrap();
    assert!(pressure.holds && pressure.reason == "KubeletHasInsufficientMemory");
    let oom = event(&b, "SystemOOM");
    assert_eq!((oom.object.0.as_str(), oom.object.1.as_str()), ("Node", "gpu-node-1"));
    cited("describe/node.txt", oom.line, "victim process: python3");
}

#[test]
fn crictl_inspect() {
    let b = bundle(&["inspect/crictl.json"]);
    assert!(b.logs.is_empty() && b.gaps.is_empty(), "{:?}", b.gaps);
    let p = &b.pods[0];
    assert_eq!(p.full_name(), "inference/qwen-0");
    assert_eq!(p.uid, "6a0f9f0e-8f83-4c0e-9a8e-1f5f6a7b8c9d");
    let c = container(p, "vllm");
    assert_eq!(c.memory_limit, Some(Bytes(16 * GIB)));
    assert_eq!(c.args.last().map(String::as_str), Some("8"));
    assert_eq!(c.devices, [("nvidia.com/gpu".to_owned(), 1)]);
    assert_eq!(c.status.as_ref().unwrap().restarts, Some(3));
    let t = end(c);
    assert_eq!((t.reason.as_str(), t.exit_code), ("OOMKilled", Some(137)));
    assert_eq!(t.finished.unwrap().show(), "2026-07-03T20:40:06.201Z");
    assert_eq!(triage(&["inspect/crictl.json"])[0].verdict.class, Class::HostOomKilled);
}

#[test]
fn docker_inspect() {
    let b = bundle(&["inspect/docker.txt"]);
    assert!(b.logs.is_empty() && b.gaps.is_empty(), "{:?}", b.gaps);
    let p = &b.pods[0];
    assert_eq!(p.name, "serving-sglang-1");
    let c = container(p, "sglang");
    assert_eq!(c.memory_limit, Some(Bytes(32 * GIB)));
    assert_eq!(p.memory_mounts(c), [("/dev/shm", Some(Bytes(8 * GIB)))]);
    assert_eq!((end(c).reason.as_str(), end(c).exit_code), ("OOMKilled", Some(137)));
    assert_eq!(c.status.as_ref().unwrap().restarts, Some(2));
    assert_eq!(triage(&["inspect/docker.txt"])[0].verdict.class, Class::HostOomKilled);
}

/// One pod told by describe and by the runtime is one death.
#[test]
fn two_tellings_of_one_pod_are_one_pod() {
    let b = bundle(&["describe/pod.txt", "inspect/crictl.json"]);
    assert_eq!(b.pods.len(), 3, "three different pods");
    let described = String::from_utf8(sample("describe/pod.txt")).unwrap();
    let crictl = String::from_utf8(sample("inspect/crictl.json")).unwrap();
    let crictl = crictl.replace("qwen-0", "llama-70b-6c9f7d5b8d-x2k4p");
    let b = Bundle::from_files(vec![
        RawFile::new("a.txt", described.into_bytes()),
        RawFile::new("b.json", crictl.into_bytes()),
    ]);
    assert_eq!(b.pods.len(), 2);
    let p = &b.pods[0];
    assert_eq!((p.uid.is_empty(), p.containers.len()), (false, 2), "the UID comes from the runtime");
}

#[test]
fn tables_of_pods() {
    let b = bundle(&["tables/get.txt"]);
    assert!(b.logs.is_empty() && b.pods.len() == 5, "{:?}", b.pods);
    let p = &b.pods[0];
    assert_eq!(
        (p.full_name().as_str(), p.node.as_deref()),
        ("inference/llama-70b-6c9f7d5b8d-x2k4p", Some("gpu-node-1"))
    );
    assert_eq!(end(&p.containers[0]).reason, "OOMKilled");
    assert_eq!(p.containers[0].status.as_ref().unwrap().restarts, Some(5));
    assert_eq!(b.pods[1].reason.as_deref(), Some("Evicted"));
    assert_eq!(end(&b.pods[3].containers[0]).reason, "OOMKilled");
    let one = triage(&["tables/grep.txt"]);
    assert_eq!(one[0].verdict.class, Class::HostOomKilled, "an unknown limit is not a missing one");
    assert_eq!(one[0].verdict.subject.restarts, Some(5));
    // Described as well, the pod is there once, with its limit.
    let both = bundle(&["tables/grep.txt", "describe/pod.txt"]);
    assert_eq!(both.pods.len(), 2);
    assert_eq!(container(&both.pods[0], "vllm").memory_limit, Some(Bytes(24 * GIB)));
}

#[test]
fn tables_of_events() {
    let b = bundle(&["tables/events.txt"]);
    assert!(b.logs.is_empty() && b.events.len() == 4, "{:?}", b.events);
    assert_eq!(event(&b, "Unhealthy").count, 3);
    assert_eq!(event(&b, "Killing").container.as_deref(), Some("vllm"));
    assert_eq!(event(&b, "SystemOOM").object.0, "Node");
    for e in &b.events {
        cited("tables/events.txt", e.line, &e.message);
    }
}

/// An issue pasted into a file: prose, fences, prompts, and in them a described pod, a log, a kernel log, a table, YAML.
#[test]
fn several_kinds_in_one_text() {
    let name = "paste/issue.md";
    let b = bundle(&[name]);
    assert!(b.gaps.is_empty(), "{:?}", b.gaps);
    assert_eq!(b.pods.len(), 1, "described and listed, but one pod");
    let c = container(&b.pods[0], "vllm");
    assert_eq!((c.memory_limit, end(c).exit_code), (Some(Bytes(16 * GIB)), Some(137)));
    assert_eq!(b.nodes[0].name, "gpu-node-1");
    let kernel: Vec<bool> = b.logs.iter().map(|l| l.kernel).collect();
    assert_eq!(kernel, [false, true]);
    let app = String::from_utf8_lossy(&b.logs[0].bytes);
    assert!(
        app.contains("Starting to load model") && !app.contains("kubectl") && !app.contains("oom_reaper")
    );
    cited(name, event(&b, "BackOff").line, &event(&b, "BackOff").message);
    let report = &triage(&[name])[0];
    assert_eq!(report.verdict.class, Class::HostOomKilled);
    let trigger = report.verdict.trigger.as_ref().unwrap();
    cited(name, trigger.place.line, &trigger.text);
    assert_eq!(trigger.place.line, Some(59));
}

#[test]
fn encodings() {
    for name in ["powershell-le.txt", "be.txt", "bom-crlf.txt", "page.html"] {
        let b = bundle(&[&format!("encoding/{name}")]);
        assert!(b.gaps.is_empty() && b.pods.len() == 1, "{name}: {:?}", b.gaps);
        let c = container(&b.pods[0], "vllm");
        assert_eq!((end(c).reason.as_str(), c.memory_limit), ("OOMKilled", Some(Bytes(24 * GIB))), "{name}");
        assert!(event(&b, "Unhealthy").message.contains("Get \"http://10.244.3.21"), "{name}");
    }
}

/// The same death behind every prefix: the same verdict, the line of the file, the phase from the traceback.
#[test]
fn prefixes_of_log_tools() {
    for name in [
        "kubectl-prefix.log",
        "kubectl-timestamps.log",
        "compose.log",
        "stern.log",
        "kubetail.log",
        "logcli.txt",
    ] {
        let name = &format!("prefix/{name}");
        let report = &triage(&[name])[0];
        assert_eq!(report.verdict.class, Class::CudaOomLoad, "{name}");
        let trigger = report.verdict.trigger.as_ref().unwrap();
        cited(name, trigger.place.line, "torch.OutOfMemoryError: CUDA out of memory");
        cited(name, trigger.place.line, &trigger.text);
        let hit = report.facts.hits.iter().find(|h| h.place == trigger.place).unwrap();
        assert!(hit.process.contains("EngineCore_0 pid=612"), "{name}: {:?}", hit.process);
    }
}

/// Log stores answer with the newest line first: read in the order of time, cited by the line of the file.
#[test]
fn exports_of_log_stores() {
    for name in
        ["loki.json", "logcli.jsonl", "datadog.json", "cloudwatch.json", "insights.json", "gcloud.json"]
    {
        let name = &format!("exports/{name}");
        let b = bundle(&[name]);
        assert!(b.gaps.is_empty() && b.logs.len() == 1, "{name}: {:?}", b.gaps);
        let text = String::from_utf8_lossy(&b.logs[0].bytes).into_owned();
        assert_eq!(text.lines().count(), 6, "{name}: {text}");
        assert!(
            text.starts_with("INFO 07-03 22:39:40") && text.ends_with("Failed core proc(s): {}\n"),
            "{name}"
        );
        let report = &triage(&[name])[0];
        assert_eq!(report.verdict.class, Class::CudaOomLoad, "{name}");
        let trigger = report.verdict.trigger.as_ref().unwrap();
        assert!(
            trigger.text.starts_with("(EngineCore_0 pid=612) torch.OutOfMemoryError: "),
            "the line inside"
        );
        cited(name, trigger.place.line, &trigger.text);
        let first = &report.verdict.cascade[0];
        cited(name, first.first.line, first.text.split('"').next().unwrap());
    }
}

fn gib(b: Option<Bytes>) -> Option<u64> {
    b.map(|b| b.0 >> 30)
}

/// All of a printout is taken: what is left of the file is no log.
fn printout(name: &str) -> Bundle {
    let b = bundle(&[&format!("smi/{name}")]);
    assert!(
        b.logs.is_empty(),
        "{name}: {:?}",
        b.logs.iter().map(|l| String::from_utf8_lossy(&l.bytes).into_owned()).collect::<Vec<_>>()
    );
    b
}

#[test]
fn nvidia_smi_tables() {
    let b = printout("table.txt");
    let s = &b.gpus[0];
    assert_eq!(s.stamp.map(|s| s.show()).as_deref(), Some("2026-07-03T22:41:12"));
    let g = &s.gpus[1];
    assert_eq!(
        (g.index, g.name.as_deref(), g.pci.as_deref()),
        (Some(1), Some("NVIDIA A100-SXM4-80GB"), Some("00000000:0f:00.0"))
    );
    assert_eq!((gib(s.gpus[0].used), gib(s.gpus[0].total), g.ecc_uncorrected), (Some(60), Some(80), Some(2)));
    let p = &s.processes[0];
    assert_eq!(
        (p.pid, p.name.as_str(), p.gpu, gib(p.used)),
        (3_121_902, "/opt/train/bin/trainer", Some(0), Some(59))
    );
    assert_eq!(s.processes[1].name, "...rver --display :0");
    cited("smi/table.txt", Some(p.line), "trainer");
    let old = printout("table-418.txt");
    let s = &old.gpus[0];
    assert_eq!((s.processes[0].pid, s.processes[0].name.as_str()), (4242, "python"));
    assert_eq!(s.gpus[0].total, Some(Bytes(16_130 << 20)));
}

#[test]
fn mig_instances() {
    let b = printout("mig.txt");
    let (list, table) = (&b.gpus[0], &b.gpus[1]);
    assert_eq!((list.mig.len(), list.mig[0].profile.as_deref()), (2, Some("1g.6gb")));
    assert!(table.gpus[0].mig_enabled);
    let m = &table.mig[0];
    assert_eq!((m.instance, m.total, m.used), (Some(3), Some(Bytes(5952 << 20)), Some(Bytes(5320 << 20))));
    assert_eq!(table.processes[0].instance, Some(3));
    let lgi = printout("mig-lgi.txt");
    assert_eq!(
        (lgi.gpus[0].mig[1].profile.as_deref(), lgi.gpus[0].mig[1].instance),
        (Some("4g.40gb"), Some(2))
    );
    assert!(printout("mig-lgip.txt").gpus.is_empty(), "what could be created is no instance");
}

#[test]
fn nvidia_smi_queries() {
    let b = printout("q.txt");
    let g = &b.gpus[0].gpus[0];
    assert_eq!((gib(g.total), gib(g.free), g.uuid.as_deref().map(str::len)), (Some(80), Some(19), Some(40)));
    assert_eq!((g.ecc_uncorrected, g.remap_pending), (Some(3), true), "volatile only");
    assert_eq!((b.gpus[0].processes[0].pid, gib(b.gpus[0].processes[0].used)), (3_121_902, Some(59)));
    let b = printout("query.csv");
    let g = &b.gpus[0].gpus[1];
    assert_eq!((g.index, g.used, g.ecc_uncorrected), (Some(1), Some(Bytes(4 << 20)), None));
    let b = printout("apps.csv");
    let p = &b.gpus[0].processes;
    assert_eq!(
        (p[0].card.as_deref().and_then(|c| c.get(..8)), gib(p[0].used), p[1].used),
        (Some("GPU-43be"), Some(59), None)
    );
    let b = printout("noheader-command.txt");
    assert_eq!(
        (gib(b.gpus[0].gpus[0].used), gib(b.gpus[0].gpus[0].total)),
        (Some(60), Some(80)),
        "columns from the command"
    );
    assert_eq!(b.gpus[1].processes[0].pid, 3_121_902);
    let b = printout("noheader.csv");
    assert!(b.gpus.is_empty() && b.gaps[0].why.contains("no header"), "not guessed: {:?}", b.gaps);
}

#[test]
fn scrolling_and_other_vendors() {
    let b = printout("dmon.txt");
    assert_eq!(
        b.gpus[0].gpus.iter().map(|g| gib(g.used)).collect::<Vec<_>>(),
        [Some(60), Some(0)],
        "the last row of each"
    );
    let b = printout("pmon.txt");
    assert_eq!((b.gpus[0].processes.len(), b.gpus[0].processes[1].name.as_str()), (2, "Xorg :0"));
    let b = printout("amd.txt");
    let g = &b.gpus[0].gpus[0];
    assert_eq!((g.name.as_deref(), g.total), (Some("AMD Instinct MI300X VF"), Some(Bytes(196_288 << 20))));
    assert_eq!(printout("rocm-meminfo.txt").gpus[0].gpus[0].used, Some(Bytes(10_985_472)));
    assert!(printout("rocm.txt").gaps[0].why.contains("as a percentage"));
    let b = bundle(&["smi/dcgmi.txt"]);
    assert_eq!(b.gpus[0].gpus[0].name.as_deref(), Some("NVIDIA A100-SXM4-80GB"));
    assert_eq!(gib(b.gpus[1].gpus[0].used), Some(60));
}

#[test]
fn memory_files_of_cgroups() {
    let b = bundle(&["host/head.txt"]);
    let c = &b.cgroups[0];
    assert_eq!((b.cgroups.len(), c.path.as_str()), (1, "/sys/fs/cgroup"));
    assert_eq!(c.limit.as_ref().map(|r| r.bytes.0 >> 30), Some(64));
    assert_eq!(c.oom_kill.as_ref().map(|k| k.count), Some(2));
    cited("host/head.txt", c.oom_kill.as_ref().unwrap().place.line, "oom_kill 2");
    cited("host/head.txt", c.shmem.as_ref().unwrap().place.line, "shmem");
    let b = bundle(&["host/grep.txt"]);
    assert!(b.cgroups[0].unlimited && b.cgroups[0].stalled == Some(8.88));
    let b = bundle(&["host/v1.txt"]);
    let c = &b.cgroups[0];
    assert_eq!((b.cgroups.len(), c.pod_uid().as_deref()), (1, Some("6a0f9f0e-8f83-4c0e-9a8e-1f5f6a7b8c9d")));
    assert_eq!(
        (c.at_limit.as_ref().map(|k| k.count), c.peak.as_ref().map(|r| r.bytes.0 >> 30)),
        (Some(88_120), Some(32))
    );
}

#[test]
fn memory_of_machines_and_kubectl_top() {
    for name in ["host/free.txt", "host/free-h.txt", "host/meminfo.txt"] {
        let b = bundle(&[name]);
        assert!(b.logs.is_empty(), "{name}");
        let m = &b.machines[0];
        assert_eq!((gib(m.total), gib(m.available)), (Some(251), Some(1)), "{name}");
    }
    let b = bundle(&["host/top.txt"]);
    assert!(b.logs.is_empty() && b.machines.len() == 1);
    assert_eq!((b.machines[0].node.as_deref(), b.machines[0].used_percent), (Some("gpu-node-1"), Some(98)));
    let rows: Vec<_> = b.tops.iter().map(|t| (t.container.as_deref(), t.memory.0 >> 20)).collect();
    assert_eq!(rows, [(Some("vllm"), 62_914), (Some("log-shipper"), 41), (None, 62_955)]);
}

#[test]
fn series_of_both_planes() {
    let b = bundle(&["series/openmetrics.txt"]);
    assert_eq!(b.metrics.len(), 10);
    assert_eq!(b.metrics[0].stamp.map(|s| s.show()).as_deref(), Some("2026-07-03T20:42:50Z"));
    let fb = b.metrics.iter().find(|s| s.name == "DCGM_FI_DEV_FB_USED").unwrap();
    assert_eq!((fb.about("pod"), fb.stamp.is_some()), (Some("llama-0"), true), "not the exporter's own pod");
    let b = bundle(&["series/range.json"]);
    assert_eq!((b.metrics.len(), b.gaps.len()), (3, 1), "a series without a name is told");
    cited("series/range.json", Some(b.metrics[1].line), "68440000000");
    let b = bundle(&["series/vector.json"]);
    assert_eq!(b.metrics[0].value, 0.43);
    cited("series/vector.json", Some(b.metrics[0].line), "0.43");
    assert_eq!(bundle(&["series/promtool.json"]).metrics.len(), 2);
}

#[test]
fn ledgers_and_stacks_of_python() {
    let b = bundle(&["torch/summary.txt"]);
    assert!(b.logs.is_empty());
    let s = &b.summaries[0];
    assert_eq!((s.device, s.ooms), (0, 1));
    assert_eq!((s.allocated, s.reserved), (Some(Bytes(48_301 << 20)), Some(Bytes(77_728 << 20))));
    let b = bundle(&["torch/py-spy.txt"]);
    assert!(b.logs.is_empty() && b.gaps[0].why.contains("py-spy"), "{:?}", b.gaps);
}

#[test]
fn killers_and_crashes_in_the_journal() {
    for name in ["journal/oomd.txt", "journal/oomd.json"] {
        let v = &triage(&[name])[0].verdict;
        assert_eq!(v.class, Class::HostNodeOom, "{name}");
        assert!(v.summary.contains("systemd-oomd, not the kernel"), "{name}: {}", v.summary);
        cited(name, v.trigger.as_ref().unwrap().place.line, "Killed /kubepods.slice");
    }
    assert_eq!(triage(&["journal/coredump.txt"])[0].verdict.class, Class::Unknown);
}

/// One moment alone is neither a failure nor health.
#[test]
fn a_lone_snapshot_decides_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/forms");
    for folder in ["smi", "series", "torch"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let name = format!("{folder}/{}", file.unwrap().file_name().to_string_lossy());
            let report = &triage(&[&name])[0];
            // A counter of uncorrectable errors is a fault whenever it is read.
            let faulty = ["smi/table.txt", "smi/q.txt"].contains(&name.as_str());
            let want = if faulty { Class::XidHardware } else { Class::Unknown };
            assert_eq!(report.verdict.class, want, "{name}");
            assert!(!report.verdict.missing.is_empty(), "{name}");
        }
    }
    for name in ["free.txt", "free-h.txt", "meminfo.txt", "top.txt", "grep.txt"] {
        assert_eq!(triage(&[&format!("host/{name}")])[0].verdict.class, Class::Unknown, "{name}");
    }
}

/// The sentence that the series are read for: both planes at one moment, with its place.
#[test]
fn both_planes_at_one_moment() {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llama-0","namespace":"inference","uid":"u"},
        "spec":{"containers":[{"name":"vllm","resources":{"limits":{"memory":"64Gi"}}}]},
        "status":{"containerStatuses":[{"name":"vllm","restartCount":1,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-07-03T20:43:06Z"}}}]}}"#;
    let files = vec![RawFile::new("pod.json", pod.as_bytes().to_vec()), raw("series/openmetrics.txt")];
    let report = &report::triage_all("case", files, Vec::new(), &Knowledge::embedded().unwrap())[0];
    let said = report.causes[0].supports.iter().find(|c| c.text.contains("working set")).unwrap();
    assert_eq!(
        said.text,
        "working set reached 99.6 % of the limit 64.00 GiB (63.74 GiB) at 2026-07-03T20:43:05Z, while VRAM was at 61 % (GPU 0)"
    );
    cited("series/openmetrics.txt", said.place.as_ref().unwrap().line, "6.8440000e+10");
}

/// Escaped by a web page or broken by a terminal, a printout or a line is the same evidence.
#[test]
fn escaped_and_wrapped() {
    let issue = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../testdata/incidents/forms-issue-with-everything/issue.md"),
    )
    .unwrap();
    let escaped =
        issue.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    for text in [issue, escaped] {
        let b = Bundle::from_files(vec![RawFile::new("issue.md", text.into_bytes())]);
        assert_eq!(
            (b.pods.len(), b.cgroups.len(), b.gpus.len(), b.machines.len(), b.tops.len()),
            (1, 1, 1, 1, 1)
        );
        assert_eq!(b.gpus[0].processes.len(), 1);
    }
    let log = String::from_utf8(sample("wrapped/terminal-80.log")).unwrap();
    assert!(log.lines().all(|l| l.chars().count() <= 80));
    let report = &triage(&["wrapped/terminal-80.log"])[0];
    assert_eq!(report.verdict.class, Class::CudaOomRuntime);
    let t = report.verdict.trigger.as_ref().unwrap();
    assert!(t.text.ends_with("is reserved by PyTorch but unallocated."), "the whole line: {}", t.text);
    cited("wrapped/terminal-80.log", t.place.line, "torch.OutOfMemoryError: CUDA out of memory.");
}

/// Any part of any sample is read without a panic: cut anywhere, doubled, backwards.
#[test]
fn cut_samples_are_read_too() {
    let knowledge = Knowledge::embedded().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/forms");
    let folders = std::fs::read_dir(root).unwrap().map(|d| d.unwrap().path());
    for file in folders.flat_map(|d| std::fs::read_dir(d).unwrap()).map(|f| f.unwrap().path()) {
        let all = std::fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let mut reversed: Vec<&[u8]> = all.split_inclusive(|b| *b == b'\n').collect();
        reversed.reverse();
        let mut parts = vec![[all.as_slice(), &all].concat(), reversed.concat()];
        parts.extend((0..all.len()).step_by(97).flat_map(|at| [all[..at].to_vec(), all[at..].to_vec()]));
        for bytes in parts {
            let _ = Bundle::from_files(vec![RawFile::new(name.clone(), bytes)]);
        }
        let half = RawFile::new(name, all[..all.len() / 2].to_vec());
        let _ = report::triage_all("case", vec![half], Vec::new(), &knowledge);
    }
}

#[test]
fn absence_in_a_piece_proves_nothing() {
    let text = String::from_utf8(sample("describe/pod.txt")).unwrap();
    let of = |text: &str| Bundle::from_files(vec![RawFile::new("describe.txt", text)]);
    assert!(of(&text).pods[0].whole());
    // Without the end, without the limits' lines of the pod that has some, with dots for lines.
    let head = text.split("QoS Class:").next().unwrap();
    let dots = text.replacen("    Limits:", "    ...\n    Limits:", 1);
    for piece in [head, &dots] {
        assert!(!of(piece).pods[0].whole(), "{piece}");
    }
    let piece = "Containers:\n  vllm:\n    Image: x\n    Last State:  Terminated\n      Reason:  OOMKilled\n      Exit Code:  137\n";
    let cut = |text: &str| {
        let file = RawFile::new("describe.txt", text);
        report::triage_all("case", vec![file], Vec::new(), &Knowledge::embedded().unwrap()).remove(0)
    };
    // A limit that is not shown may be set, so the node is not blamed.
    assert_eq!(cut(piece).verdict.class, Class::HostOomKilled);
    // An exit code that is not shown is no 0.
    let row = "llm-0   0/1     OOMKilled   3 (45s ago)   12m\n";
    assert_eq!(cut(row).verdict.subject.death.unwrap().exit_code, None);
}
