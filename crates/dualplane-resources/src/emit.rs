//! Sizes as text, JSON, a block of YAML, a patch and values of a chart.

use dualplane_base::style::{Style, wrap};
use dualplane_base::text::counted;
use dualplane_base::units::Bytes;
use dualplane_base::yaml::manifest;
use serde_json::{Map, Value, json};

use crate::phases::Sizes;
use crate::size::{KRR_BUFFER, Sizing, lasted};

/// Lines for people.
#[must_use]
pub fn text(all: &[Sizing], style: Style) -> String {
    all.iter().map(|s| one(s, style)).collect::<Vec<_>>().join("\n")
}

/// Whose memory, in words.
fn called(s: &Sizing) -> String {
    let o = &s.owner;
    let slash = if o.namespace.is_empty() { "" } else { "/" };
    let what = if s.named { "container" } else { "engine" };
    format!("{}{slash}{}, {what} {}", o.namespace, o.pod, o.container)
}

fn one(s: &Sizing, style: Style) -> String {
    let mut out = style.bold(&called(s));
    out.push_str(&format!("  {} in {}", counted(s.starts as u64, "start"), lasted(s.days)));
    if s.step_s > 0.0 {
        out.push_str(&format!(", a sample each {:.0} s", s.step_s));
    }
    out.push('\n');
    let shown = |b: Option<Bytes>| b.map_or_else(|| "-".to_owned(), |b| b.to_string());
    out.push_str(&format!("  {:<10} {:>11} {:>11} {:>11}\n", "", "start-up", "steady", "peak"));
    let mut row = |name: &str, sizes: &Sizes, note: &str| {
        if sizes.peak.is_some() {
            out.push_str(&format!(
                "  {name:<10} {:>11} {:>11} {:>11}{note}\n",
                shown(sizes.start_up),
                shown(sizes.steady),
                shown(sizes.peak)
            ));
        }
    };
    row("host RAM", &s.ram, if s.exact { "   without page cache" } else { "   working set" });
    row("VRAM", &s.vram, "");
    let mut line = |name: &str, text: &str| {
        let first = format!("  {name:<10} ");
        out.push_str(&wrap(text, style.width, &first, &" ".repeat(first.len())));
        out.push('\n');
    };
    let parts = [
        ("anonymous", s.parts.anon),
        ("tmpfs and shared", s.parts.shmem),
        ("locked and pinned", s.parts.pinned),
        ("page cache", s.parts.file),
        ("/dev/shm", s.dev_shm),
        ("the kernel's own peak", s.kernel_peak),
    ];
    let parts: Vec<String> = parts.iter().filter_map(|(n, b)| Some(format!("{n} {}", (*b)?))).collect();
    if !parts.is_empty() {
        line("at most", &parts.join(", "));
    }
    let now = [("requests", s.request_now), ("limits", s.limit_now)];
    let now: Vec<String> =
        now.iter().filter_map(|(n, b)| Some(format!("{n}.memory {}", (*b)?.k8s()))).collect();
    line(
        "now",
        &if now.is_empty() { "neither request nor limit is told".to_owned() } else { now.join(", ") },
    );
    match s.limit {
        Some(limit) => {
            let cpu = s.cpu_request.map(|m| format!(", requests.cpu {m}m")).unwrap_or_default();
            let at_least = if s.at_least { " at least" } else { "" };
            line("set", &format!("limits.memory and requests.memory {}{at_least}{cpu}", limit.k8s()));
        }
        None => line("set", "nothing: no sample tells its host RAM"),
    }
    if let Some(krr) = s.krr {
        line("KRR", &format!("{krr}: the most of the working set and {:.0} %", KRR_BUFFER * 100.0));
    }
    for why in &s.why {
        line("why", why);
    }
    for beware in &s.beware {
        line("beware", beware);
    }
    out
}

/// `dualplane.resources/v1`.
#[must_use]
pub fn json(all: &[Sizing]) -> Value {
    let bytes = |b: Option<Bytes>| b.map_or(Value::Null, |b| b.0.into());
    let sizes = |s: &Sizes| json!({"start_up_bytes": bytes(s.start_up), "steady_bytes": bytes(s.steady), "peak_bytes": bytes(s.peak)});
    let one = |s: &Sizing| {
        json!({
            "namespace": s.owner.namespace,
            "pod": s.owner.pod,
            "container": s.owner.container,
            "starts": s.starts,
            "days": s.days,
            "step_seconds": s.step_s,
            "ram": sizes(&s.ram),
            "without_page_cache": s.exact,
            "start_seconds": s.start_seconds,
            "vram": sizes(&s.vram),
            "most": {
                "anon_bytes": bytes(s.parts.anon),
                "shmem_bytes": bytes(s.parts.shmem),
                "file_bytes": bytes(s.parts.file),
                "pinned_bytes": bytes(s.parts.pinned),
                "dev_shm_bytes": bytes(s.dev_shm),
                "kernel_peak_bytes": bytes(s.kernel_peak),
            },
            "now": {"limit_bytes": bytes(s.limit_now), "request_bytes": bytes(s.request_now)},
            "krr_bytes": bytes(s.krr),
            "set": {
                "memory_bytes": bytes(s.limit),
                "at_least": s.at_least,
                "headroom": s.headroom,
                "cpu_request_millicores": s.cpu_request,
            },
            "why": s.why,
            "beware": s.beware,
        })
    };
    json!({"schema": "dualplane.resources/v1", "containers": all.iter().map(one).collect::<Vec<_>>()})
}

/// Requests and limits of one container, as in its spec; none where nothing was measured.
#[must_use]
pub fn block(s: &Sizing) -> Option<Value> {
    let memory = s.limit?.k8s();
    let mut requests = Map::new();
    if let Some(cpu) = s.cpu_request {
        requests.insert("cpu".into(), format!("{cpu}m").into());
    }
    requests.insert("memory".into(), memory.clone().into());
    Some(json!({"requests": requests, "limits": {"memory": memory}}))
}

/// The blocks as YAML, each below a comment with its container.
#[must_use]
pub fn yaml(all: &[Sizing]) -> String {
    let one = |s: &Sizing| {
        let at_least = if s.at_least { ", at least" } else { "" };
        let head = format!("# {}{at_least}", called(s));
        Some(format!("{head}\n{}", manifest(&json!({"resources": block(s)?}))))
    };
    all.iter().filter_map(one).collect::<Vec<_>>().join("---\n")
}

/// A strategic merge patch of a workload with these containers.
#[must_use]
pub fn patch(all: &[Sizing]) -> Value {
    let one = |s: &Sizing| Some(json!({"name": s.owner.container, "resources": block(s)?}));
    let containers: Vec<Value> = all.iter().filter_map(one).collect();
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

/// Values by container, for charts.
#[must_use]
pub fn values(all: &[Sizing]) -> String {
    let mut out = Map::new();
    for s in all {
        if let Some(block) = block(s) {
            out.insert(s.owner.container.clone(), json!({"resources": block}));
        }
    }
    manifest(&Value::Object(out))
}
