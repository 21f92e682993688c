//! Says what a file is from its content; its name only breaks ties.

use dualplane_base::schema;
use serde_json::Value;

use super::exports::{self, Export};
use super::paste::{MAX_PASTE, is_bound};
use super::{cgroup, inspect, kubelet, processes, promql, revisions};
use super::{status, stream};

/// What a file holds.
#[derive(Debug)]
pub enum Kind {
    /// Kubernetes objects (Lists unfolded by the caller).
    Kube(Vec<Value>),
    /// What a container runtime says of its containers.
    Inspect(Value),
    /// Lines out of a log store.
    Export(Export),
    /// Prometheus text.
    Metrics,
    /// An answer of Prometheus' HTTP API, or what `promtool query … -o json` prints.
    Series(Value),
    /// A memory file of a cgroup.
    Cgroup,
    /// Lines; `kernel` when the whole file is a kernel log.
    Log {
        /// It is a kernel log.
        kernel: bool,
    },
    /// A dualplane bundle manifest.
    Manifest(Value),
    /// The last two revisions of a workload, as `capture` keeps them.
    Revisions(Value),
    /// The kubelet's `/stats/summary`.
    Summary(Value),
    /// Processes of a container.
    Processes(super::Processes),
    /// Nothing that can be used, and why.
    Unusable(String),
}

/// Schema of the manifest that `capture` writes.
pub(super) const BUNDLE_SCHEMA_PREFIX: &str = "dualplane.bundle/";

/// YAML is only parsed up to this size: it is the one format here whose parse tree dwarfs its text.
const MAX_YAML: usize = 64 << 20;

/// Its parse tree takes about a hundred bytes a node.
const MAX_YAML_NODES: usize = 5_000_000;
/// Documents in one file.
const MAX_YAML_DOCUMENTS: usize = 100_000;

/// Recognises one file.
#[must_use]
pub fn recognise(name: &str, bytes: &[u8]) -> Kind {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Kind::Unusable("it is empty".into());
    }
    if looks_binary(bytes) {
        return Kind::Unusable(format!(
            "it looks binary (byte {:#04x} in the first 8 KiB); pass text, or unpack it first",
            bytes.iter().find(|b| is_binary(**b)).copied().unwrap_or(0)
        ));
    }
    let lower = name.to_ascii_lowercase();
    let head = head_lines(bytes, 64);
    let first = head.iter().map(|l| l.trim_start()).find(|l| !l.is_empty()).unwrap_or_default();
    if (opens_json(first, &head) || first.starts_with('[') && lower.ends_with(".json"))
        && let Some(kind) = json(bytes, lower.ends_with(".json"), &head)
    {
        return kind;
    }
    if looks_yaml(&lower, &head) {
        let kind = yaml(bytes);
        // Below a prompt or a fence it is a paste.
        let pasted = bytes.len() <= MAX_PASTE && head.iter().any(|l| is_bound(l.trim_end()));
        return if pasted && matches!(kind, Kind::Unusable(_)) { Kind::Log { kernel: false } } else { kind };
    }
    if lower.ends_with(".yaml") || lower.ends_with(".yml") {
        return Kind::Unusable("it is YAML, but not a Kubernetes object".into());
    }
    if cgroup::is_file(name, &head) {
        return Kind::Cgroup;
    }
    if lower.ends_with(".prom") || mostly(&head, is_metric_line) && !cgroup::looks_like(&head) {
        return Kind::Metrics;
    }
    let kernel_name =
        ["kernel", "dmesg", "kmsg"].iter().any(|w| lower.rsplit('/').next().unwrap_or(&lower).contains(w));
    Kind::Log { kernel: kernel_name || mostly(&head, is_kernel_line) }
}

/// Whether a file is one document that has no meaning line by line. JSON lines are a log.
pub(crate) fn is_document(name: &str, head: &[u8]) -> bool {
    // What is folded is small already, and its numbers would be lost in a second sifting.
    if super::encoding::is_utf16(head) || super::is_folded(head) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let head = head_lines(head, 64);
    let first = head.iter().map(|l| l.trim_start()).find(|l| !l.is_empty()).unwrap_or_default();
    if opens_json(first, &head) || first.starts_with('[') && lower.ends_with(".json") {
        return serde_json::from_str::<Value>(first).is_err() || head.len() < 2;
    }
    looks_yaml(&lower, &head)
}

fn looks_binary(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(8192)).unwrap_or(bytes);
    let odd = head.iter().filter(|b| is_binary(**b)).count();
    // A stray control byte in a log is normal, a twentieth of them is not text.
    odd * 20 > head.len()
}

fn is_binary(b: u8) -> bool {
    matches!(b, 0..=8 | 14..=26 | 28..=31 | 127)
}

fn head_lines(bytes: &[u8], n: usize) -> Vec<String> {
    let head = bytes.get(..bytes.len().min(64 << 10)).unwrap_or(bytes);
    head.split(|b| *b == b'\n').take(n).map(|l| String::from_utf8_lossy(l).into_owned()).collect()
}

pub(super) fn mostly<L: AsRef<str>>(lines: &[L], is: impl Fn(&str) -> bool) -> bool {
    let lines: Vec<&str> =
        lines.iter().map(AsRef::as_ref).filter(|l| !l.trim().is_empty()).take(64).collect();
    !lines.is_empty() && lines.iter().filter(|l| is(l)).count() * 2 > lines.len()
}

/// Recognises a block of a larger text, where it is something other than lines as a whole.
pub(super) fn recognise_structured(bytes: &[u8]) -> Option<Kind> {
    let head = head_lines(bytes, 64);
    let first = head.iter().map(|l| l.trim_start()).find(|l| !l.is_empty())?;
    let kind = if opens_json(first, &head) {
        json(bytes, false, &head)?
    } else if looks_yaml("", &head) {
        yaml(bytes)
    } else if mostly(&head, is_metric_line) && !cgroup::looks_like(&head) {
        Kind::Metrics
    } else {
        return None;
    };
    (!matches!(kind, Kind::Log { .. } | Kind::Unusable(_) | Kind::Manifest(_))).then_some(kind)
}

/// `{`, or a list of objects; `[2026-…` and `[   12.3]` open lines of logs.
fn opens_json(first: &str, head: &[String]) -> bool {
    let next = || {
        let rest = first.strip_prefix('[')?.trim_start().chars().next();
        rest.or_else(|| {
            let mut lines = head.iter().map(|l| l.trim_start()).skip_while(|l| l.is_empty()).skip(1);
            lines.find(|l| !l.is_empty())?.chars().next()
        })
    };
    first.starts_with('{') || next().is_some_and(|c| matches!(c, '{' | ']'))
}

fn json(bytes: &[u8], named_json: bool, head: &[String]) -> Option<Kind> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            let id = value.get("schema").and_then(Value::as_str).unwrap_or_default();
            if id.starts_with(BUNDLE_SCHEMA_PREFIX) {
                return Some(Kind::Manifest(value));
            }
            if id == revisions::SCHEMA {
                return Some(Kind::Revisions(value));
            }
            if let Some(list) = processes::read(&value) {
                return Some(Kind::Processes(list));
            }
            if kubelet::is_summary(&value) {
                return Some(Kind::Summary(value));
            }
            if is_kube(&value) {
                return Some(Kind::Kube(vec![value]));
            }
            if let Value::Array(items) = &value
                && items.iter().any(is_kube)
            {
                return Some(Kind::Kube(items.clone()));
            }
            if let Some(pod) = status::as_pod(&value) {
                return Some(Kind::Kube(vec![pod]));
            }
            if inspect::is_inspect(&value) {
                return Some(Kind::Inspect(value));
            }
            if promql::is_answer(&value) {
                return Some(Kind::Series(value));
            }
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            if let Some(export) = exports::read(&value, text) {
                return Some(Kind::Export(export));
            }
            // One JSON object on one line is a log with a single record.
            if let Some(of) = schema::id(id) {
                return Some(Kind::Unusable(of.to_string()));
            }
            let lines = head.iter().filter(|l| !l.trim().is_empty()).count();
            if lines == 1 && !named_json {
                return Some(Kind::Log { kernel: false });
            }
            Some(Kind::Unusable("it is JSON, but neither a Kubernetes object nor a bundle manifest".into()))
        }
        Err(error) => {
            // JSON lines: the first line is whole by itself.
            let first = head.iter().find(|l| !l.trim().is_empty())?;
            if serde_json::from_str::<Value>(first).is_ok_and(|v| v.is_object()) {
                if let Some(export) = std::str::from_utf8(bytes).ok().and_then(exports::read_lines) {
                    return Some(Kind::Export(export));
                }
                return Some(Kind::Log { kernel: false });
            }
            // Several objects one after another, or one with text around it: they are taken out of the text.
            let found = stream::read(&String::from_utf8_lossy(bytes)).objects;
            if !found.is_empty() {
                let small = bytes.len() <= MAX_PASTE;
                return Some(if small { Kind::Log { kernel: false } } else { Kind::Kube(found) });
            }
            let kube = head.iter().any(|l| l.contains("\"apiVersion\"") || l.contains("\"kind\""));
            (named_json || kube).then(|| {
                Kind::Unusable(format!(
                    "its JSON is broken at line {}, column {} ({error}); save it again, for example with \
                    kubectl get … -o json",
                    error.line(),
                    error.column()
                ))
            })
        }
    }
}

fn is_kube(value: &Value) -> bool {
    value.get("kind").is_some_and(Value::is_string)
        && (value.get("apiVersion").is_some() || value.get("items").is_some())
        || value
            .get("items")
            .and_then(Value::as_array)
            .is_some_and(|items| items.iter().any(|i| i.get("kind").is_some()))
}

fn looks_yaml(lower_name: &str, head: &[String]) -> bool {
    let starts = |l: &String| {
        let l = l.trim_start_matches("- ");
        l.starts_with("apiVersion:") || l.starts_with("kind:") || status::opens_yaml(l)
    };
    let named = lower_name.ends_with(".yaml") || lower_name.ends_with(".yml");
    named
        && head
            .iter()
            .any(|l| l.trim_start().starts_with("kind:") || l.trim_start().starts_with("apiVersion:"))
        || head
            .iter()
            .find(|l| !l.trim().is_empty() && l.trim() != "---" && !l.starts_with('#'))
            .is_some_and(starts)
}

fn yaml(bytes: &[u8]) -> Kind {
    if bytes.len() > MAX_YAML {
        return Kind::Unusable(format!(
            "it is {} MiB of YAML, above the limit of {} MiB; save it with -o json",
            bytes.len() >> 20,
            MAX_YAML >> 20
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    match serde_saphyr::from_multiple_with_options::<Value>(&text, yaml_options()) {
        Ok(docs) => {
            // A sequence of objects is what `kubectl … | yq .items` leaves.
            let flat =
                docs.into_iter().flat_map(|d| if let Value::Array(items) = d { items } else { vec![d] });
            let docs: Vec<Value> =
                flat.filter_map(|d| status::as_pod(&d).or_else(|| is_kube(&d).then_some(d))).collect();
            if docs.is_empty() {
                return Kind::Unusable("it is YAML, but not a Kubernetes object".into());
            }
            Kind::Kube(docs)
        }
        Err(error) => {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            Kind::Unusable(format!(
                "its YAML is invalid ({first}); save it again, for example with kubectl get … -o json"
            ))
        }
    }
}

/// The parser's own budgets are meant for settings; an events list of a busy namespace has millions of nodes. Aliases
/// and depth stay bounded as they were: kubectl writes none.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_YAML_NODES,
            max_events: 2 * MAX_YAML_NODES,
            max_documents: MAX_YAML_DOCUMENTS,
        },
    }
}

fn is_metric_line(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("# HELP ") || line.starts_with("# TYPE ") || line == "# EOF" {
        return true;
    }
    let name_end = line.find(['{', ' ']).unwrap_or(0);
    let (name, rest) = line.split_at_checked(name_end).unwrap_or_default();
    let name_ok = name.len() > 2
        && name.contains(['_', ':'])
        && !name.ends_with(':')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':');
    let mut rest = rest.rsplit_once('}').map_or(rest, |(_, v)| v).split_whitespace();
    let value = rest.next().is_some_and(|v| v.parse::<f64>().is_ok());
    // Behind the value stands nothing or a time stamp; a sentence that begins so is a log line.
    name_ok && value && rest.next().is_none_or(|t| t.parse::<f64>().is_ok() || t.starts_with('#'))
}

pub(super) fn is_kernel_line(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix('<').and_then(|l| l.split_once('>')).map_or(line, |(_, l)| l);
    if line.contains(" kernel: ") || is_talos_line(line) {
        return true;
    }
    // dmesg -x: "kern  :warn  : [ 12.3] …"
    let body = line
        .split_once(": [")
        .filter(|(f, _)| f.len() < 16)
        .map_or(line, |(_, _)| line.get(line.find('[').unwrap_or(0)..).unwrap_or(line));
    crate::time::parse_boot_prefix(body).is_some()
        || is_ctime_prefix(body)
        || crate::evidence::framing::parse_kmsg(line).is_some()
}

/// `talosctl dmesg`: `user: warning: [2026-01-12T20:27:31.913975631Z]: [talos] …`, `kern: info: [2026-…Z]: …`, also with the
/// node's name before it.
fn is_talos_line(line: &str) -> bool {
    const FACILITIES: &[&str] = &["kern", "user", "daemon", "syslog"];
    let Some((head, _)) = line.split_once("]: ") else { return false };
    let Some((before, stamp)) = head.rsplit_once(": [") else { return false };
    let Some((facility, level)) = before.rsplit_once(": ") else { return false };
    let facility = facility.rsplit(": ").next().unwrap_or_default().trim();
    FACILITIES.iter().any(|f| facility == *f || facility.ends_with(&format!(" {f}")))
        && level.bytes().all(|b| b.is_ascii_lowercase())
        && stamp.ends_with('Z')
        && crate::time::find_stamp(stamp).is_some()
}

/// `[Thu Aug  6 11:20:38 2026] `
fn is_ctime_prefix(line: &str) -> bool {
    line.strip_prefix('[').and_then(|l| l.split_once(']')).is_some_and(|(stamp, _)| {
        stamp.len() >= 23
            && stamp.len() <= 25
            && crate::time::find_stamp(line).is_some()
            && ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].iter().any(|d| stamp.starts_with(d))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, text: &str) -> &'static str {
        match recognise(name, text.as_bytes()) {
            Kind::Kube(_) => "kube",
            Kind::Inspect(_) => "inspect",
            Kind::Export(_) => "export",
            Kind::Metrics => "metrics",
            Kind::Series(_) => "series",
            Kind::Cgroup => "cgroup",
            Kind::Log { kernel: true } => "kernel",
            Kind::Log { kernel: false } => "log",
            Kind::Manifest(_) => "manifest",
            Kind::Processes(_) => "processes",
            Kind::Revisions(_) => "revisions",
            Kind::Summary(_) => "summary",
            Kind::Unusable(_) => "unusable",
        }
    }

    #[test]
    fn content_decides() {
        for (name, text, want) in [
            ("x", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n", "kube"),
            ("x", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", "kube"),
            ("x", "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[]}", "kube"),
            ("x", "[{\"Id\":\"a\",\"State\":{\"OOMKilled\":true},\"HostConfig\":{}}]", "inspect"),
            ("x.json", "[{\"message\":\"a\",\"timestamp\":1}]", "export"),
            (
                "x",
                "{\"line\":\"a\",\"labels\":{},\"timestamp\":\"\"}\n{\"line\":\"b\",\"labels\":{},\"timestamp\":\"\"}",
                "export",
            ),
            ("x", "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}", "series"),
            ("x", "[{\"metric\":{\"__name__\":\"up\"},\"value\":[1,\"1\"]}]", "series"),
            ("a/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", "cgroup"),
            ("memory.stat", "anon 0\nfile_mapped 0\nkernel_stack 0\n", "cgroup"),
            ("x", "{\"status\":{\"state\":\"CONTAINER_EXITED\"}}", "inspect"),
            ("x", "# HELP a_b c\n# TYPE a_b gauge\na_b{x=\"y\"} 1\n", "metrics"),
            ("x", "vllm:num_requests_running{a=\"b c\"} 3.0\n", "metrics"),
            ("x", "[51240.661902] tritonserver invoked oom-killer: gfp_mask=0xcc0\n", "kernel"),
            ("x", "[Thu Aug  6 11:20:38 2026] NVRM: Xid (PCI:0000:4a:00): 48\n", "kernel"),
            ("x", "kern  :warn  : [ 5521.220914] NVRM: Xid\n", "kernel"),
            ("x", "4,1234,5521220914,-;python invoked oom-killer\n", "kernel"),
            ("x", "Jul 03 22:40:06 node1 kernel: python invoked oom-killer\n", "kernel"),
            ("x", "Error: 500 Internal Server Error: model requires more system memory\n", "log"),
            ("x", "{\"log\":\"a\\n\",\"stream\":\"stderr\"}\n{\"log\":\"b\\n\"}\n", "log"),
            ("x", "INFO 04-02 09:14:07 [api_server.py:1043] vLLM\n", "log"),
            ("x.json", "{\"kind\":\"Pod\",", "unusable"),
            ("x.yaml", "apiVersion: v1\nkind: Pod\n  bad: [", "unusable"),
            ("p.json", "{\"processes\":[{\"pid\":7,\"name\":\"vllm\"}],\"left_out\":0}", "processes"),
            ("p.json", "{\"processes\":[{\"pid\":\"7\"}]}", "unusable"),
            ("manifest.json", "{\"schema\":\"dualplane.bundle/v1\"}", "manifest"),
            ("x", "\n \n", "unusable"),
        ] {
            assert_eq!(kind(name, text), want, "{text}");
        }
    }

    #[test]
    fn a_large_list_of_events_is_within_the_budgets() {
        let mut text = String::from("apiVersion: v1\nkind: List\nitems:\n");
        for i in 0..20_000 {
            text.push_str("- {apiVersion: v1, kind: Event, reason: BackOff, message: m, count: 1, type: Warning, involvedObject: {kind: Pod, name: p");
            text.push_str(&format!("{i}}}}}\n"));
        }
        assert!(matches!(recognise("events.yaml", text.as_bytes()), Kind::Kube(_)));
        let many = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\n".repeat(2000);
        assert!(matches!(recognise("pods.yaml", many.as_bytes()), Kind::Kube(o) if o.len() == 2000));
    }
}
