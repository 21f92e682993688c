//! What to paste: flags, a `resources` block with its volume, Helm values.

use std::fmt::Write as _;

use crate::{Answer, EngineKind, MaxModelLen, Verdict};
use dualplane_base::units::{Bytes, GIB};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// Flags of the engine.
    Flags,
    /// `resources`, `volumeMounts` and `volumes` of a pod.
    Resources,
    /// Values for a chart.
    Values,
}

/// Renders one of them.
#[must_use]
pub fn emit(a: &Answer, what: Emit) -> String {
    match what {
        Emit::Flags => flags(a),
        Emit::Resources => resources(a),
        Emit::Values => values(a),
    }
}

/// The flags that decide memory, with their resolved values, so that an upgrade's new default changes nothing.
fn list(a: &Answer) -> Vec<(&'static str, String)> {
    let l = &a.line.launch;
    let mut out = Vec::new();
    let Ok(p) = &a.plan else { return out };
    if l.engine != EngineKind::Vllm {
        return out;
    }
    let kv = &p.gpu.kv_cache;
    out.push(("tensor-parallel-size", l.tp.to_string()));
    if l.pp > 1 {
        out.push(("pipeline-parallel-size", l.pp.to_string()));
    }
    if l.dp > 1 {
        out.push(("data-parallel-size", l.dp.to_string()));
    }
    // A refused length is replaced by the longest that the engine names, at the lower bound of the pool.
    let len = match (&p.refusal, p.verdict, l.max_model_len) {
        (Some(r), ..) => r.estimated_max_len,
        (None, Verdict::Uncertain, _) => None,
        (None, _, MaxModelLen::Fit) => None,
        _ => Some(kv.max_model_len),
    };
    match len {
        Some(n) => out.push(("max-model-len", n.to_string())),
        None => out.push(("max-model-len", "-1".into())),
    }
    out.push(("max-num-seqs", p.resolved.max_num_seqs.to_string()));
    out.push(("max-num-batched-tokens", p.resolved.max_num_batched_tokens.to_string()));
    if p.gpu.total_bytes > 0 {
        let share = l.gpu_memory_utilization.unwrap_or_else(|| {
            (p.gpu.requested_bytes as f64 / p.gpu.total_bytes as f64 * 100.0).round() / 100.0
        });
        out.push(("gpu-memory-utilization", share.to_string()));
    }
    if l.kv_cache_dtype != "auto" {
        out.push(("kv-cache-dtype", l.kv_cache_dtype.clone()));
    }
    out
}

fn flags(a: &Answer) -> String {
    let list = list(a);
    if list.is_empty() {
        return format!("# no flags: {}\n", comment(&a.message()));
    }
    let mut out = String::new();
    for (name, value) in list {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "--{name}={value}");
    }
    out
}

/// The device of the resource list: a MIG profile has a name of its own.
fn device(a: &Answer) -> String {
    let profile = a.gpu.name.split_once(':').map(|(_, p)| p);
    profile.map_or_else(|| "nvidia.com/gpu".into(), |p| format!("nvidia.com/mig-{p}"))
}

fn resources(a: &Answer) -> String {
    let h = &a.host;
    let gpus = a.line.host.pod_gpus().unwrap_or(a.gpus);
    let (request, limit) = (h.request_bytes / GIB, h.limit_bytes / GIB);
    let device = device(a);
    let mut out = format!(
        "resources:\n  requests:\n    memory: {request}Gi  # {}\n    {device}: {gpus}\n  limits:\n    memory: {limit}Gi  # {}\n    {device}: {gpus}\n",
        comment(h.arithmetic.first().map_or("", String::as_str)),
        comment(h.arithmetic.get(1).map_or("", String::as_str)),
    );
    if h.shm_size_bytes > 0 {
        let _ = write!(
            out,
            "volumeMounts:\n  - name: shm\n    mountPath: /dev/shm\nvolumes:\n  - name: shm\n    emptyDir:\n      medium: Memory\n      sizeLimit: {}Gi  # shared memory of up to {}, charged to the pod\n",
            h.shm_size_bytes / GIB,
            Bytes(h.plan.shm_bytes.high)
        );
    }
    out
}

fn values(a: &Answer) -> String {
    let mut out = String::from("model: ");
    let _ = writeln!(out, "{}", quoted(&a.model));
    out.push_str("engineArgs:\n");
    for (name, value) in list(a) {
        let _ = writeln!(out, "  {name}: {}", quoted(&value));
    }
    out.push_str(&resources(a));
    out
}

/// A string that YAML reads as one.
fn quoted(text: &str) -> String {
    serde_json::Value::String(dualplane_base::text::printable(text).into_owned()).to_string()
}

/// One line behind a `#`.
fn comment(text: &str) -> String {
    dualplane_base::text::printable(&text.replace(['\n', '\r'], " ")).into_owned()
}
