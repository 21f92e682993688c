//! Names are not identities: what is told of a pod of the same name in another namespace, of the pod that had this name before,
//! and of another node, changes nothing of a report. StatefulSets of two teams, and one that was rolled out anew, make such twins.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::{copies, small_incidents, triage};
use dualplane_core::evidence::{Bundle, Event, Pod, RawFile};
use dualplane_report as report;
use serde_json::{Value, json};

const ELSEWHERE: &str = "another-team";
const UID: &str = "0e1d2c3b-1111-4222-8333-444455556666";
const NODE: &str = "another-node-77";

/// What a report decides and advises, without where it stands in the files.
fn told(files: Vec<RawFile>) -> String {
    fn without(v: &mut Value) {
        match v {
            Value::Object(map) => {
                for key in ["line", "file", "files", "missing"] {
                    map.remove(key);
                }
                map.values_mut().for_each(without);
            }
            Value::Array(all) => all.iter_mut().for_each(without),
            _ => {}
        }
    }
    let all: Value = serde_json::from_str(&report::json::render(&triage(files)).unwrap()).unwrap();
    let mut kept = json!({});
    for key in ["verdict", "trigger", "sequence", "actions", "others", "pressure", "subject"] {
        kept[key] = all[key].clone();
    }
    without(&mut kept);
    serde_json::to_string_pretty(&kept).unwrap()
}

/// Incidents of one pod that has a name, a namespace and an identity, with the time of its end.
fn known() -> Vec<(String, Vec<RawFile>, Pod, String)> {
    let mut out = Vec::new();
    for (name, files) in small_incidents() {
        let reports = triage(copies(&files));
        let [one] = reports.as_slice() else { continue };
        let subject = &one.verdict.subject;
        let pods: Vec<&Pod> =
            one.bundle.pods.iter().filter(|p| Some(&p.name) == subject.pod.as_ref()).collect();
        let [pod] = pods.as_slice() else { continue };
        let plain = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
        if pod.namespace.is_empty() || pod.uid.len() != 36 || !plain(&pod.name) {
            continue;
        }
        let end = subject.death.as_ref().and_then(|d| d.finished).map(dualplane_base::time::Stamp::show);
        let Some(end) = end.filter(|e| dualplane_base::time::parse_rfc3339(e).is_some()) else { continue };
        out.push((name, files, (*pod).clone(), end));
    }
    assert!(out.len() > 40, "{}", out.len());
    out
}

/// Every event that an incident has, by its reason and the first words of its message.
fn events() -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for (_, files) in small_incidents() {
        for e in Bundle::from_files(files).events {
            let start = |e: &Event| (e.reason.clone(), e.message.chars().take(24).collect::<String>());
            if matches!(e.object.0.as_str(), "Pod" | "Node") && !out.iter().any(|o| start(o) == start(&e)) {
                out.push(e);
            }
        }
    }
    assert!(out.len() > 20, "{}", out.len());
    out
}

/// The events as a list of the API: of the twin, or of another node.
fn as_list(file: &str, events: &[Event], pod: &Pod, namespace: &str, at: &str) -> RawFile {
    let items: Vec<Value> = events
        .iter()
        .map(|e| {
            let of_pod = e.object.0 == "Pod";
            json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": e.reason, "message": e.message,
                "metadata": {"name": "e", "namespace": if of_pod { namespace } else { "default" }},
                "involvedObject": {"kind": e.object.0, "namespace": if of_pod { namespace } else { "" },
                    "name": if of_pod { pod.name.as_str() } else { NODE }, "uid": UID},
                "firstTimestamp": at, "lastTimestamp": at, "count": 3})
        })
        .collect();
    RawFile::new(
        file,
        serde_json::to_vec(&json!({"apiVersion": "v1", "kind": "List", "items": items})).unwrap(),
    )
}

/// The same as `kubectl get events -A` prints it: no identity, but a namespace.
fn as_table(events: &[Event], pod: &Pod) -> RawFile {
    let mut text = format!(
        "{:<14}{:<12}{:<9}{:<26}{:<50}MESSAGE\n",
        "NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT"
    );
    for e in events.iter().filter(|e| e.object.0 == "Pod") {
        let object = format!("pod/{}", pod.name);
        let message = e.message.replace('\n', " ");
        text +=
            &format!("{ELSEWHERE:<14}{:<12}{:<9}{:<26}{object:<50}{message}\n", "2m", "Warning", e.reason);
    }
    RawFile::new("zz-events.txt", text)
}

/// Every container of the twin is at its limit, was killed, and its server is full.
fn metrics(pod: &Pod) -> RawFile {
    let mut text = String::new();
    for c in &pod.containers {
        let labels = format!("namespace=\"{ELSEWHERE}\",pod=\"{}\",container=\"{}\"", pod.name, c.name);
        let uid = format!("uid=\"{UID}\",");
        for (name, more, value) in [
            ("container_memory_working_set_bytes", "", "68719476000"),
            ("container_memory_rss", "", "68719476000"),
            ("container_spec_memory_limit_bytes", "", "68719476736"),
            ("container_oom_events_total", "", "3"),
            ("kube_pod_container_status_last_terminated_reason", "reason=\"OOMKilled\",", "1"),
            ("kube_pod_container_status_terminated_reason", "reason=\"OOMKilled\",", "1"),
            ("vllm:kv_cache_usage_perc", "", "1"),
            ("vllm:num_preemptions_total", "", "4711"),
            ("vllm:num_requests_waiting", "", "300"),
        ] {
            let more = if name.starts_with("kube_") { format!("{uid}{more}") } else { more.to_owned() };
            text += &format!("{name}{{{more}{labels}}} {value}\n");
        }
    }
    RawFile::new("zz-metrics.prom", text)
}

#[test]
fn what_is_told_of_a_twin_changes_nothing() {
    let events = events();
    let mut wrong = Vec::new();
    for (name, files, pod, end) in known() {
        let with = |more: Vec<RawFile>| told(copies(&files).into_iter().chain(more).collect());
        let before = told(copies(&files));
        // Where nobody knows the pod's node, another one may be it.
        let ours: Vec<Event> =
            events.iter().filter(|e| e.object.0 == "Pod" || pod.node.is_some()).cloned().collect();
        let twins = [
            ("events elsewhere", as_list("zz-elsewhere.json", &ours, &pod, ELSEWHERE, &end)),
            ("events of the one before", as_list("zz-before.json", &ours, &pod, &pod.namespace, &end)),
            ("a table of events", as_table(&events, &pod)),
            ("metrics", metrics(&pod)),
        ];
        // All at once, and where that differs one after another: what is wrong is then named.
        if with(twins.iter().flat_map(|(_, f)| copies(std::slice::from_ref(f))).collect()) == before {
            continue;
        }
        for (what, file) in twins {
            let after = with(vec![file]);
            if after != before {
                let differs = before.lines().zip(after.lines()).find(|(a, b)| a != b);
                wrong.push(format!("{name} with {what}: {differs:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}
