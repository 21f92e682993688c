//! A frozen container as files, in the forms that the kernel, the kubelet and `nvidia-smi` give, so that whoever reads them
//! needs nothing of ours. Secrets are masked here, before anything reaches the disk.

use std::fmt::Write as _;

use dualplane_base::units::Bytes;
use dualplane_core::evidence::{Gap, RawFile};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_kube::bundle::artifact;
use dualplane_node::cgroup::{Kind as GroupKind, Limit, Memory, Version};
use dualplane_node::cri::{Copied, CopyLimits};
use dualplane_node::node::{Machine, Proc};
use serde_json::{Map, Value, json};

use super::container_ref::ContainerRef;
use super::freeze::Freeze;
use crate::given::device_of;
use crate::incident::Kind;
use crate::view::GpuView;

/// Processes that are listed.
const MAX_PROCESSES: usize = 256;
/// GPUs that were given are listed: 16 cards with 7 MIG devices each.
const MAX_GIVEN: usize = 128;

/// Who says what is in a bundle.
#[derive(Debug, Clone)]
pub struct Author {
    /// `dualplane 0.1.0`.
    pub tool: String,
    /// Node.
    pub node: String,
    /// The kernel's name of this boot.
    pub boot: String,
}

/// Makes the files. `series` are those of the time before the death.
#[must_use]
pub(super) fn files(
    freeze: &mut Freeze,
    series: Vec<RawFile>,
    died_at: &str,
    author: &Author,
    knowledge: &Knowledge,
) -> Vec<RawFile> {
    let mut redactor = Redactor::new(knowledge);
    let mut out = Vec::new();
    let (log, copied) = log(freeze, &mut redactor);
    out.extend(log);
    if !freeze.kernel.is_empty() {
        out.push(RawFile::new("node/kernel/kmsg.log", redactor.text(&freeze.kernel).into_owned()));
    }
    out.push(masked("pod.json", pod(freeze, author), &mut redactor));
    if let Some(c) = &freeze.container {
        let folder = format!("cgroup/{}", part(&freeze.who.container));
        out.extend(cgroup(&folder, &c.memory, freeze.version, freeze.kills));
        if !c.processes.processes.is_empty() {
            let list: Vec<Value> = c.processes.processes.iter().take(MAX_PROCESSES).map(process).collect();
            let left_out = c.processes.left_out + c.processes.processes.len().saturating_sub(MAX_PROCESSES);
            let value = json!({"processes": list, "left_out": left_out});
            out.push(masked("processes.json", value, &mut redactor));
        }
    }
    if let Some(e) =
        freeze.container.as_ref().and_then(|c| c.engine.as_ref()).filter(|e| !e.histograms.is_empty())
    {
        let text = redactor.text(&e.histograms).into_owned();
        out.push(RawFile::new(format!("metrics/engine-{}-histograms.prom", e.port), text));
    }
    if !freeze.gpus.is_empty() {
        out.push(RawFile::new("gpu/gpus.csv", gpus(&freeze.gpus)));
        out.push(RawFile::new("gpu/compute-apps.csv", holders(freeze)));
    }
    out.extend(meminfo(&freeze.machine));
    out.extend(series);
    let manifest = manifest(freeze, &out, copied, died_at, author, &redactor);
    out.push(json_file("manifest.json", &manifest));
    out
}

/// What the kubelet has of the instance's output; what is missing of it becomes a gap.
fn log(freeze: &mut Freeze, redactor: &mut Redactor<'_>) -> (Option<RawFile>, Copied) {
    let what = "the dead instance's log";
    let Some(log) = freeze.log.take() else {
        let service = freeze.container.as_ref().is_some_and(|c| c.group.kind == GroupKind::Service);
        freeze.gaps.push(match service {
            true => Gap {
                what: "the unit's log".to_owned(),
                why: "the journal is not read by the agent".to_owned(),
                command: Some(format!("journalctl -u {} -n 5000 --no-pager", unit_of(&freeze.who.container))),
            },
            false => gap(what, "the kubelet's log directory for this container is unknown"),
        });
        return (None, Copied::default());
    };
    if log.is_empty() {
        freeze.gaps.push(gap(
            what,
            "its log files were deleted or unreadable when the agent noticed the \
        end",
        ));
        return (None, Copied::default());
    }
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let copied = log.copy(CopyLimits::default(), &mut bytes).unwrap_or_default();
    if copied.bytes == 0 {
        freeze.gaps.push(gap(what, "the log file is empty: the container wrote nothing"));
    }
    let when = if freeze.kind == Kind::Kill { "current" } else { "previous" };
    let name = format!("logs/{}.{when}.log", part(&freeze.who.container));
    (Some(RawFile::new(name, redactor.text(&String::from_utf8_lossy(&bytes)).into_owned())), copied)
}

/// `vllm.service` of `system.slice/vllm.service`.
fn unit_of(container: &str) -> &str {
    container.rsplit('/').next().unwrap_or(container)
}

fn gap(what: &str, why: &str) -> Gap {
    Gap { what: what.to_owned(), why: why.to_owned(), command: None }
}

/// A name as part of a path.
fn part(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
    let out: String = name.chars().take(80).map(safe).collect();
    out.trim_start_matches('.').to_owned()
}

fn masked(name: &str, mut value: Value, redactor: &mut Redactor<'_>) -> RawFile {
    redactor.json(&mut value);
    json_file(name, &value)
}

/// A value as a file of a bundle.
pub(super) fn json_file(name: &str, value: &Value) -> RawFile {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    RawFile::new(name, bytes)
}

/// The pod as far as the node knows it: names, limit, command, restarts. No exit code, for nobody here has seen one.
fn pod(freeze: &Freeze, author: &Author) -> Value {
    let ContainerRef { namespace, pod, uid, container, container_id, restart } = &freeze.who;
    let mut own = Map::new();
    own.insert("name".into(), json!(container));
    if let Some(c) = &freeze.container {
        if let Some(Limit::At(b)) = c.memory.limit {
            own.insert("resources".into(), json!({"limits": {"memory": b.0.to_string()}}));
        }
        // Of the first process: workers have commands of their own.
        if let Some(p) = c.processes.processes.iter().min_by_key(|p| p.pid).filter(|p| !p.words.is_empty()) {
            own.insert("command".into(), json!(p.words));
        }
    }
    let mut status = Map::new();
    status.insert("name".into(), json!(container));
    if let Some(n) = restart {
        status.insert("restartCount".into(), json!(n));
    }
    if !container_id.is_empty() {
        let runtime =
            freeze.container.as_ref().and_then(|c| c.group.identity.runtime).unwrap_or("containerd");
        status.insert("containerID".into(), json!(format!("{runtime}://{container_id}")));
    }
    let name = if pod.is_empty() { container } else { pod };
    // A unit of systemd is no pod: whoever advises must know.
    let unit =
        freeze.container.as_ref().filter(|c| c.group.kind == GroupKind::Service).map(|_| unit_of(container));
    let labels = unit.map_or_else(|| json!({}), |u| json!({"dualplane.dev/unit": u}));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "labels": labels,
            "annotations": {"dualplane.dev/source": "the node's cgroups, processes and log folders, not the API server"},
        },
        "spec": {"nodeName": author.node, "containers": [own]},
        "status": {"containerStatuses": [status]},
    })
}

fn process(p: &Proc) -> Value {
    let b = |v: Option<Bytes>| v.map(|b| b.0);
    json!({
        "pid": p.pid,
        "parent": p.parent,
        "name": p.comm,
        "command": p.words,
        "rss_anon_bytes": b(p.anon),
        "rss_file_bytes": b(p.file),
        "rss_shmem_bytes": b(p.shmem),
        "swap_bytes": b(p.swap),
        "peak_bytes": b(p.peak),
    })
}

/// The group's files as the kernel writes them, those lines that were read.
fn cgroup(folder: &str, m: &Memory, version: Version, kills: u64) -> Vec<RawFile> {
    let v2 = version == Version::V2;
    let number = |v: Option<Bytes>| v.map(|b| format!("{}\n", b.0));
    let limit = match m.limit {
        Some(Limit::At(b)) => Some(format!("{}\n", b.0)),
        Some(Limit::Unlimited) if v2 => Some("max\n".to_owned()),
        _ => None,
    };
    let lines = |pairs: &[(&str, Option<u64>)]| {
        let text: String =
            pairs.iter().filter_map(|(k, v)| v.map(|n| format!("{k} {n}\n"))).collect::<Vec<_>>().concat();
        (!text.is_empty()).then_some(text)
    };
    let b = |v: Option<Bytes>| v.map(|b| b.0);
    // The counter of a group that is gone stands as it was last read; kills after that were told by the kernel.
    let killed = m.oom_kill.map(|n| n.max(kills)).or((kills > 0).then_some(kills));
    let files = if v2 {
        [
            ("memory.current", number(m.current)),
            ("memory.peak", number(m.peak)),
            ("memory.max", limit),
            (
                "memory.stat",
                lines(&[
                    ("anon", b(m.anon)),
                    ("file", b(m.file)),
                    ("kernel", b(m.kernel)),
                    ("shmem", b(m.shmem)),
                    ("inactive_file", b(m.inactive_file)),
                    ("active_file", b(m.active_file)),
                    ("unevictable", b(m.unevictable)),
                    ("pgmajfault", m.major_faults),
                ]),
            ),
            (
                "memory.events",
                lines(&[
                    ("max", m.at_limit),
                    ("oom", m.oom),
                    ("oom_kill", killed),
                    ("oom_group_kill", m.oom_group_kill),
                ]),
            ),
        ]
    } else {
        [
            ("memory.usage_in_bytes", number(m.current)),
            ("memory.max_usage_in_bytes", number(m.peak)),
            ("memory.limit_in_bytes", limit),
            (
                "memory.stat",
                lines(&[
                    ("total_cache", b(m.file)),
                    ("total_rss", b(m.anon)),
                    ("total_shmem", b(m.shmem)),
                    ("total_swap", b(m.swap)),
                    ("total_inactive_file", b(m.inactive_file)),
                    ("total_active_file", b(m.active_file)),
                    ("total_unevictable", b(m.unevictable)),
                    ("total_pgmajfault", m.major_faults),
                ]),
            ),
            ("memory.oom_control", lines(&[("oom_kill", killed)])),
        ]
    };
    files
        .into_iter()
        .filter_map(|(name, text)| Some(RawFile::new(format!("{folder}/{name}"), text?)))
        .collect()
}

/// As `/proc/meminfo` has it, those lines that were read.
fn meminfo(m: &Machine) -> Option<RawFile> {
    let lines = [
        ("MemTotal", m.total),
        ("MemFree", m.free),
        ("MemAvailable", m.available),
        ("Cached", m.cached),
        ("AnonPages", m.anon),
        ("Shmem", m.shmem),
        ("SUnreclaim", m.slab),
        ("Unevictable", m.unevictable),
        ("SwapTotal", m.swap_total),
        ("SwapFree", m.swap_free),
        ("Hugetlb", m.hugetlb),
    ];
    let mut text = String::new();
    for (key, bytes) in lines.into_iter().filter_map(|(k, b)| Some((k, b?))) {
        let _ = writeln!(text, "{:<16}{:>8} kB", format!("{key}:"), bytes.0 >> 10);
    }
    (!text.is_empty()).then(|| RawFile::new("node/meminfo", text))
}

fn mib(b: Option<Bytes>) -> String {
    b.map_or_else(|| "[N/A]".to_owned(), |b| format!("{} MiB", b.0 >> 20))
}

/// As `nvidia-smi --query-gpu=… --format=csv` prints them.
fn gpus(gpus: &[GpuView]) -> String {
    let mut out = String::from(
        "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n",
    );
    for g in gpus {
        let d = &g.device;
        let r = &g.reading;
        let name = d.name.replace([',', '\n'], " ");
        let uuid = d.uuid.replace([',', '\n'], " ");
        out.push_str(&format!(
            "{}, {name}, {uuid}, {}, {}, {}, {}\n",
            d.index,
            pci(&d.pci),
            mib(r.total),
            mib(r.used),
            mib(r.free)
        ));
    }
    out
}

/// With the function, which cards do not differ in.
fn pci(address: &str) -> String {
    if address.is_empty() { "[N/A]".to_owned() } else { format!("{}.0", address.replace([',', '\n'], " ")) }
}

/// GPUs that the container was given, used or not.
fn given(freeze: &Freeze) -> Vec<Value> {
    let all = freeze.container.iter().flat_map(|c| c.given.iter()).take(MAX_GIVEN);
    all.map(|g| {
        let device = device_of(&freeze.gpus, g).map(|(_, d)| &d.device);
        let uuid = g.uuid.as_deref().or(device.map(|d| d.uuid.as_str()));
        let card = device.and_then(|d| freeze.gpus.get(usize::from(d.card?.0))).map(|c| &c.device.uuid);
        json!({
            "resource": g.resource,
            "id": g.id,
            "uuid": uuid,
            "index": device.map(|d| d.index),
            "card": card,
            "profile": device.and_then(|d| d.profile()),
        })
    })
    .collect()
}

/// As `nvidia-smi --query-compute-apps=… --format=csv` prints them.
fn holders(freeze: &Freeze) -> String {
    let mut out = String::from("gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n");
    for g in &freeze.gpus {
        for (p, _) in &g.processes {
            let listed = freeze.container.iter().flat_map(|c| c.processes.processes.iter());
            let name = listed.filter(|o| o.pid == p.pid).map(|o| o.comm.replace([',', '\n'], " ")).next();
            let name = name.unwrap_or_else(|| "[Not Found]".to_owned());
            let uuid = g.device.uuid.replace([',', '\n'], " ");
            let _ = writeln!(out, "{uuid}, {}, {name}, {}", p.pid, mib(p.used));
        }
    }
    out
}

fn manifest(
    freeze: &Freeze,
    files: &[RawFile],
    copied: Copied,
    died_at: &str,
    author: &Author,
    redactor: &Redactor<'_>,
) -> Value {
    let sources: Vec<Value> =
        files.iter().map(|f| json!({"name": f.name, "state": "ok", "bytes": f.bytes.len()})).collect();
    json!({
        "schema": "dualplane.bundle/v1",
        "tool": author.tool,
        "captured_at": died_at,
        "pod": freeze.who.pod_title(),
        "uid": freeze.who.uid,
        "died_at": died_at,
        "incident": {
            "id": freeze.id,
            "kind": freeze.kind,
            "first": freeze.first,
            "node": author.node,
            "boot": author.boot,
            "container": freeze.who.container,
            "container_id": freeze.who.container_id,
            "restart": freeze.who.restart,
            "kills": freeze.kills,
            "kernel_record": freeze.kernel_record,
            "from_exec": freeze.from_exec,
            "gpus_given": given(freeze),
        },
        "log": {"bytes": copied.bytes, "left_out_between_head_and_tail": copied.left_out, "files": copied.files, "unreadable": copied.unreadable},
        "sources": sources,
        "models": artifact::of_files(files),
        "gaps": freeze.gaps,
        "redacted": redactor.counts(),
    })
}
