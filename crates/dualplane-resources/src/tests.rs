//! Series of servers, and what follows from them.

use std::collections::BTreeMap;

use dualplane_base::units::{Bytes, GIB};

use crate::record::containers;
use crate::scale::{Fault, Target, hpa, keda};
use crate::series::Series;
use crate::size::{Sizing, size};

const G: f64 = GIB as f64;
/// A sample each half minute.
const STEP: i64 = 30_000;

fn series(name: &str, pod: &str, id: &str, from: i64, values: &[f64]) -> Series {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let resource = if name.starts_with("kube_pod_container_resource") { "memory" } else { "" };
    let all =
        [("namespace", "serving"), ("pod", pod), ("container", "vllm"), ("id", id), ("resource", resource)];
    labels.extend(all.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| ((*k).into(), (*v).into())));
    let points = values.iter().enumerate().map(|(i, v)| (from + i as i64 * STEP, *v)).collect();
    Series { name: name.into(), labels, points }
}

/// One start: GiB of anonymous memory, tmpfs and page cache at each sample, and what the kernel's own peak said at the end.
fn start(id: &str, from: i64, parts: &[(f64, f64, f64)], kernel_peak: f64) -> Vec<Series> {
    let of = |f: fn(&(f64, f64, f64)) -> f64| parts.iter().map(|p| f(p) * G).collect::<Vec<_>>();
    let one = |name: &str, values: &[f64]| series(name, "llm-0", id, from, values);
    vec![
        one("container_memory_working_set_bytes", &of(|p| p.0 + p.1 + p.2)),
        one("container_memory_rss", &of(|p| p.0)),
        one("container_memory_cache", &of(|p| p.1 + p.2)),
        one("container_memory_total_inactive_file_bytes", &of(|_| 0.0)),
        one("container_memory_total_active_file_bytes", &of(|p| p.2)),
        one("container_memory_max_usage_bytes", &vec![kernel_peak * G; parts.len()]),
    ]
}

fn sized(all: &[Series]) -> Sizing {
    size(&containers(all)[0])
}

fn limit(gib: f64) -> Series {
    series("kube_pod_container_resource_limits", "llm-0", "", 0, &vec![gib * G; 60])
}

/// 8 GiB are held; weights were read through 40 GiB of page cache.
fn with_page_cache() -> Vec<Series> {
    start("/a", 0, &[(2.0, 0.0, 10.0), (6.0, 2.0, 40.0), (6.0, 2.0, 38.0), (6.0, 2.0, 5.0)], 48.0)
}

#[test]
fn page_cache_makes_no_limit_and_krr_counts_it() {
    let s = sized(&with_page_cache());
    assert!(s.exact);
    assert_eq!(s.ram.peak, Some(Bytes(8 * GIB)));
    assert_eq!((s.limit, s.headroom), (Some(Bytes(9 * GIB + GIB / 2)), 0.15));
    assert_eq!(s.krr, Some(Bytes::from_f64(48.0 * G * 1.15)));
    assert!(s.why.iter().any(|w| w.contains("which the kernel takes back")), "{:?}", s.why);
}

#[test]
fn a_spike_between_two_samples_is_in_the_kernels_peak() {
    let s = sized(&start("/a", 0, &[(2.0, 0.0, 1.0), (6.0, 0.0, 1.0), (5.0, 0.0, 1.0)], 20.0));
    assert_eq!((s.ram.peak, s.limit), (Some(Bytes(6 * GIB)), Some(Bytes(22 * GIB))));
    assert!(s.why[0].contains("between two samples, 30 s apart"), "{:?}", s.why);
    assert!(s.why.iter().any(|w| w.contains("it sees samples only")), "{:?}", s.why);
}

#[test]
fn a_peak_that_the_limit_cut_off_is_only_a_next_try() {
    let mut all = start("/a", 0, &[(2.0, 0.0, 0.0), (15.9, 0.0, 0.0)], 16.0);
    all.push(limit(16.0));
    let s = sized(&all);
    assert!(s.at_least && s.limit == Some(Bytes(24 * GIB)), "{s:?}");
    let mut all = start("/a", 0, &[(2.0, 0.0, 0.0), (9.0, 0.0, 0.0)], 9.0);
    all.push(limit(16.0));
    assert!(!sized(&all).at_least);
    all.push(series("container_oom_events_total", "llm-0", "/a", 0, &[0.0, 1.0]));
    assert!(sized(&all).at_least, "a process was killed");
}

/// The cgroup's counter of kills goes with the cgroup: kube-state-metrics alone tells how the start before ended.
#[test]
fn a_kill_that_only_the_next_start_tells_makes_the_limit_a_next_try() {
    let mut all = start("/a", 0, &[(2.0, 0.0, 0.0), (9.0, 0.0, 0.0)], 9.0);
    all.extend(start("/b", 100 * STEP, &[(2.0, 0.0, 0.0), (9.0, 0.0, 0.0)], 9.0));
    all.push(series("kube_pod_container_resource_limits", "llm-0", "", 0, &[16.0 * G; 200]));
    assert!(!sized(&all).at_least);
    let mut reason =
        series("kube_pod_container_status_last_terminated_reason", "llm-0", "", 100 * STEP, &[1.0; 3]);
    reason.labels.insert("reason".into(), "Error".into());
    all.push(reason.clone());
    assert!(!sized(&all).at_least, "another end");
    reason.labels.insert("reason".into(), "OOMKilled".into());
    all.push(reason);
    assert!(sized(&all).at_least && sized(&all).limit == Some(Bytes(24 * GIB)), "{:?}", sized(&all));
}

/// A limit that was raised after a kill is not the one that killed.
#[test]
fn a_limit_of_before_says_nothing_of_todays() {
    let mut all = start("/a", 0, &[(2.0, 0.0, 0.0), (15.9, 0.0, 0.0)], 16.0);
    all.push(series("container_oom_events_total", "llm-0", "/a", 0, &[0.0, 1.0]));
    all.push(series("container_spec_memory_limit_bytes", "llm-0", "/a", 0, &[16.0 * G; 2]));
    all.extend(start("/b", 100 * STEP, &[(2.0, 0.0, 0.0), (20.0, 0.0, 0.0)], 20.0));
    all.push(series("container_spec_memory_limit_bytes", "llm-0", "/b", 100 * STEP, &[64.0 * G; 2]));
    let s = sized(&all);
    assert_eq!((s.limit_now, s.at_least), (Some(Bytes(64 * GIB)), false), "{s:?}");
    // A larger one of before that killed says more than today's.
    let mut all = start("/a", 0, &[(2.0, 0.0, 0.0), (31.9, 0.0, 0.0)], 32.0);
    all.push(series("container_spec_memory_limit_bytes", "llm-0", "/a", 0, &[32.0 * G; 2]));
    all.extend(start("/b", 100 * STEP, &[(2.0, 0.0, 0.0), (9.0, 0.0, 0.0)], 9.0));
    all.push(series("container_spec_memory_limit_bytes", "llm-0", "/b", 100 * STEP, &[16.0 * G; 2]));
    let s = sized(&all);
    assert_eq!((s.limit, s.at_least), (Some(Bytes(48 * GIB)), true), "{s:?}");
}

#[test]
fn a_start_that_took_more_than_others_widens_the_headroom() {
    let mut all = Vec::new();
    for (i, peak) in [8.0, 8.1, 12.0, 8.0].iter().enumerate() {
        // Two days each.
        let parts: Vec<_> = (0..5760).map(|k| (if k == 3 { *peak } else { 4.0 }, 0.0, 0.0)).collect();
        all.extend(start(&format!("/{i}"), i as i64 * 6000 * STEP, &parts, *peak));
    }
    let s = sized(&all);
    assert_eq!((s.starts, s.days > 7.0, s.at_least), (4, true, false));
    assert!((s.headroom - 1.0 / 3.0).abs() < 0.01 && s.limit == Some(Bytes(16 * GIB)), "{s:?}");
}

#[test]
fn a_leak_is_told_with_the_time_that_is_left() {
    let parts: Vec<_> = (0..480).map(|k| (4.0 + f64::from(k) / 120.0, 0.0, 0.0)).collect();
    let s = sized(&start("/a", 0, &parts, 8.0));
    assert!(s.beware.iter().any(|b| b.starts_with("it grows by 1.00 GiB an hour")), "{:?}", s.beware);
    let flat: Vec<_> = (0..480).map(|k| (4.0 + f64::from(k % 7) / 100.0, 0.0, 0.0)).collect();
    assert!(sized(&start("/a", 0, &flat, 8.0)).beware.is_empty());
}

/// What holds for every input: the order of series means nothing, a neighbour's change nothing, and no limit is below what was
/// held.
#[test]
fn order_and_neighbours_change_nothing() {
    let mut all = with_page_cache();
    all.extend(start("/b", 100 * STEP, &[(3.0, 1.0, 7.0), (9.0, 1.0, 9.0)], 21.0));
    all.push(limit(64.0));
    let before = sized(&all);
    assert!(before.limit >= before.ram.peak);
    for turn in 0..all.len() {
        all.rotate_left(1);
        assert_eq!(sized(&all), before, "{turn}");
    }
    let neighbour = |s: &Series| {
        let mut s = s.clone();
        s.labels.insert("pod".into(), "zzz-0".into());
        s.points.iter_mut().for_each(|p| p.1 *= 3.0);
        s
    };
    let foreign: Vec<Series> = all.iter().map(neighbour).collect();
    all.extend(foreign);
    assert_eq!(sized(&all), before);
}

const TARGET: Target<'static> = Target {
    api: "apps/v1",
    kind: "Deployment",
    name: "llm",
    pods: "llm-[a-z]+",
    prometheus: "http://prometheus:9090",
    min: 1,
    max: 8,
};

#[test]
fn replicas_follow_the_part_of_host_ram_that_they_relieve() {
    let mut all = with_page_cache();
    all.push(limit(16.0));
    let text = keda(&sized(&all), &TARGET).unwrap();
    let object: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    let host = &object["spec"]["triggers"][2]["metadata"];
    let (query, threshold) = (host["query"].as_str().unwrap(), host["threshold"].as_str().unwrap());
    // 8 GiB are held anyway, and 0.85 of the limit are 13.6.
    assert!(query.contains(&format!("- {}, 0)", 8 * GIB)), "{query}");
    assert_eq!(threshold.parse::<f64>().unwrap(), (5.6 * G).round());
    assert_eq!(object["spec"]["maxReplicaCount"], 8);
}

/// The same measures, thresholds and pace in both forms; each query stands in a comment under the name that the HPA asks for.
#[test]
fn both_autoscalers_scale_alike() {
    let mut all = with_page_cache();
    all.push(limit(16.0));
    let s = sized(&all);
    let of = |text: &str| -> serde_json::Value { serde_saphyr::from_str(text).unwrap() };
    let text = hpa(&s, &TARGET).unwrap();
    let (a, b) = (of(&keda(&s, &TARGET).unwrap()), of(&text));
    let (a, b) = (&a["spec"], &b["spec"]);
    assert_eq!((&a["minReplicaCount"], &a["maxReplicaCount"]), (&b["minReplicas"], &b["maxReplicas"]));
    assert_eq!(a["advanced"]["horizontalPodAutoscalerConfig"]["behavior"], b["behavior"]);
    let (triggers, metrics) = (a["triggers"].as_array().unwrap(), b["metrics"].as_array().unwrap());
    assert_eq!((triggers.len(), metrics.len()), (3, 3));
    for (t, m) in triggers.iter().zip(metrics) {
        let (t, m) = (&t["metadata"], &m["external"]);
        assert_eq!(t["threshold"], m["target"]["averageValue"]);
        let line =
            format!("#   {}: {}\n", m["metric"]["name"].as_str().unwrap(), t["query"].as_str().unwrap());
        assert!(text.contains(&line), "{line}");
    }
    all.push(series("container_oom_events_total", "llm-0", "/a", 0, &[0.0, 1.0]));
    assert!(matches!(hpa(&sized(&all), &TARGET), Err(Fault::CutOff(_))));
}

#[test]
fn what_more_replicas_cannot_mend_is_no_autoscaler() {
    let mut all = with_page_cache();
    all.push(limit(9.5));
    let fault = keda(&sized(&all), &TARGET).unwrap_err();
    assert!(
        fault.to_string().contains("holds 8.00 GiB without much load, of a limit of 9.50 GiB"),
        "{fault}"
    );
    all.push(series("container_oom_events_total", "llm-0", "/a", 0, &[0.0, 1.0]));
    assert_eq!(keda(&sized(&all), &TARGET), Err(Fault::CutOff(Bytes(9 * GIB + GIB / 2))));
}

/// No replica follows one that still starts, however long that takes.
#[test]
fn replicas_come_one_at_a_time_as_fast_as_they_start() {
    for minutes in [1_u32, 4, 25, 90] {
        let parts: Vec<_> = (0..minutes * 2 + 20).map(|k| (f64::from(k.min(4)), 0.0, 0.0)).collect();
        let mut all = start("/a", 0, &parts, 4.0);
        let ready: Vec<f64> = (0..minutes * 2 + 20).map(|k| f64::from(u8::from(k >= minutes * 2))).collect();
        all.push(series("kube_pod_container_status_ready", "llm-0", "", 0, &ready));
        all.push(limit(16.0));
        let object: serde_json::Value =
            serde_saphyr::from_str(&keda(&sized(&all), &TARGET).unwrap()).unwrap();
        let behavior = &object["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"];
        let up = behavior["scaleUp"]["policies"][0]["periodSeconds"].as_u64().unwrap();
        // An HPA takes half an hour at most.
        assert_eq!(up, u64::from(minutes * 60).min(1800), "{minutes}");
        assert!(behavior["scaleDown"]["stabilizationWindowSeconds"].as_u64().unwrap() <= 3600);
    }
}
