//! Candidates that only metrics show: a recompute storm, an OOM kill that nobody logged, an Xid gauge.

use super::{Candidate, Source, Weight, end_phase};
use crate::evidence::metrics::{Sample, by_series};
use crate::evidence::{Bundle, Container, Pod, Termination};
use crate::facts::{Facts, Place};
use crate::knowledge::metrics::Metrics;
use crate::knowledge::{Knowledge, XidKind};
use crate::verdict::pressure::thresholds::KV_FULL;
use crate::verdict::proof::{Series, Xid};
use crate::verdict::rules::{first, symptoms};
use crate::verdict::{Cited, Class, Confidence, Phase, Subject};

fn place(s: &Sample) -> Place {
    Place { file: s.file.clone(), line: Some(s.line) }
}

fn cited(s: &Sample) -> Cited {
    Cited::at(Series::Sample { name: s.name.clone(), value: s.value }, &place(s))
}

fn candidate(
    rule: &'static str,
    class: Class,
    weight: Weight,
    what: String,
    signature: &str,
    sample: &Sample,
) -> Candidate {
    let mut c = Candidate::new(rule, class, Source::Metrics, what, signature).at(
        &place(sample),
        &sample.text,
        sample.stamp,
    );
    c.weight = weight;
    c.confidence = Confidence::Medium;
    c.supports.push(cited(sample));
    c
}

/// The sample is of the subject's pod, or of no pod in particular.
fn of_pod(s: &Sample, subject: &Subject) -> bool {
    may_be(s, "pod", subject.pod.as_deref()) && may_be(s, "namespace", subject.namespace.as_deref())
}

/// The label says this name, or one of the two is not known.
fn may_be(s: &Sample, label: &str, name: Option<&str>) -> bool {
    s.about(label).zip(name.filter(|n| !n.is_empty())).is_none_or(|(said, own)| said == own)
}

/// How much a counter grew. A single sample counts from its start; of a series only what it shows is of its time, and a
/// counter that falls was started again.
fn grown(series: &[&Sample]) -> f64 {
    match series {
        [] => 0.0,
        [one] => one.value,
        // Without times these are tellings of one moment.
        [first, ..] if first.stamp.is_none() => first.value,
        _ => series.windows(2).map(rise).sum(),
    }
}

fn rise(pair: &[&Sample]) -> f64 {
    match pair {
        [a, b] if b.value < a.value => b.value,
        [a, b] => b.value - a.value,
        _ => 0.0,
    }
}

/// The sample that shows a kill: the first of a counter that rose, or the only one there is.
fn rose<'a>(series: &[&'a Sample]) -> Option<&'a Sample> {
    let first = series.first().filter(|f| f.value > 0.0 && (series.len() == 1 || f.stamp.is_none()));
    first.copied().or_else(|| {
        let step = series.windows(2).find(|w| rise(w) > 0.0)?;
        step.get(1).copied()
    })
}

/// A recompute storm may print nothing: only the counter and a full cache show it.
pub(super) fn preemptions(bundle: &Bundle, subject: &Subject, facts: &Facts, all: &mut Vec<Candidate>) {
    let told = || facts.engine.all.iter().filter_map(|d| d.metrics.as_ref());
    let find = |names: &[&str]| {
        let of = |s: &&Sample| names.contains(&s.name.as_str()) && s.value.is_finite() && of_pod(s, subject);
        bundle.metrics.iter().filter(of).collect::<Vec<_>>()
    };
    let preempted = find(&told().flat_map(Metrics::preempted_names).collect::<Vec<_>>());
    let usage = find(&told().flat_map(Metrics::kv_use_names).collect::<Vec<_>>());
    let waiting = find(&told().flat_map(Metrics::waiting_names).collect::<Vec<_>>());
    let counters = by_series(preempted.iter().copied());
    let growth = counters.iter().map(|c| (c, grown(c))).find(|(_, n)| *n > 0.0);
    let Some((first, count)) = growth.and_then(|(c, n)| Some((*c.first()?, n))) else { return };
    let fullest = usage.iter().map(|s| s.value).fold(0.0, f64::max);
    if fullest < KV_FULL {
        return;
    }
    let what = format!(
        "the KV cache is {:.1} % full, and {} requests were preempted and recomputed",
        fullest * 100.0,
        count
    );
    let mut c = candidate(
        symptoms::preemption_counter::ID,
        Class::KvCacheCapacity,
        Weight::Degraded,
        what,
        "metrics.preemptions",
        first,
    );
    c.phase = Phase::Traffic;
    c.supports = preempted.iter().chain(&usage).chain(&waiting).take(6).map(|s| cited(s)).collect();
    all.push(c);
}

/// kube-state-metrics: the last end of a container was an OOM kill.
fn tells_oom_killed(s: &Sample) -> bool {
    s.value == 1.0
        && s.label("reason") == Some("OOMKilled")
        && s.name.starts_with("kube_pod_")
        && s.name.ends_with("terminated_reason")
}

/// cAdvisor: the kernel killed something in a container; the sample at which the counter rose.
fn oom_counted(bundle: &Bundle, of: impl Fn(&&Sample) -> bool) -> Option<&Sample> {
    let is_counter =
        |s: &&Sample| s.name == "container_oom_events_total" && s.about("container").is_some() && of(s);
    by_series(bundle.metrics.iter().filter(is_counter)).iter().find_map(|series| rose(series))
}

fn names(s: &Sample, pod: &Pod, container: &Container) -> bool {
    s.about("pod").is_none_or(|p| p == pod.name)
        && s.about("namespace").is_none_or(|n| pod.namespace.is_empty() || n == pod.namespace)
        && s.about("container") == Some(&container.name)
}

/// The counter of OOM kills in this very container, where it is above zero.
pub(in crate::verdict) fn oom_counter<'b>(
    bundle: &'b Bundle,
    pod: &Pod,
    container: &Container,
) -> Option<&'b Sample> {
    oom_counted(bundle, |s| names(s, pod, container))
}

/// The sample that calls this very container's last end an OOM kill.
pub(in crate::verdict) fn oom_reason<'b>(
    bundle: &'b Bundle,
    pod: &Pod,
    container: &Container,
) -> Option<&'b Sample> {
    bundle.metrics.iter().find(|s| tells_oom_killed(s) && names(s, pod, container))
}

/// kube-state-metrics and cAdvisor remember an OOM kill where the pod's status is not at hand (or lost it in a race).
pub(super) fn oom_killed(bundle: &Bundle, subject: &Subject, facts: &Facts, all: &mut Vec<Candidate>) {
    if subject.death.as_ref().is_some_and(Termination::oom_killed) {
        return;
    }
    let of_subject = |s: &&Sample| of_pod(s, subject) && may_be(s, "container", subject.container.as_deref());
    let reason = bundle.metrics.iter().filter(of_subject).find(|s| tells_oom_killed(s));
    // The counter is of a container that is still known: a kill in it, of whichever process.
    let counter = oom_counted(bundle, of_subject);
    let Some(sample) = reason.or(counter) else { return };
    let what = format!(
        "{} reports an OOM kill in container {}",
        sample.name,
        crate::text::name(sample.about("container").unwrap_or("?"))
    );
    let mut c = candidate(
        first::metrics_oom_kill::ID,
        Class::HostOomKilled,
        Weight::Fatal,
        what,
        "metrics.oom_killed",
        sample,
    );
    c.phase = end_phase(facts);
    c.against.push(Cited::plain(Series::NoProcess));
    all.push(c);
}

/// DCGM's gauge holds the last Xid until another comes; it is no line of the driver, so the kernel log outranks it.
pub(super) fn xids(
    bundle: &Bundle,
    knowledge: &Knowledge,
    facts: &Facts,
    subject: &Subject,
    all: &mut Vec<Candidate>,
) {
    if !facts.xids.is_empty() {
        return;
    }
    let gauge = |s: &&Sample| {
        let host = s.label("Hostname").or_else(|| s.label("hostname"));
        let here = host.zip(subject.node.as_deref()).is_none_or(|(h, n)| h == n);
        matches!(s.name.as_str(), "DCGM_FI_DEV_XID_ERRORS" | "DCGM_FI_DEV_XID_ERROR")
            && s.value > 0.0
            && here
            && of_pod(s, subject)
    };
    for s in bundle.metrics.iter().filter(gauge) {
        let Some(xid) = knowledge.xid(s.value as u32) else { continue };
        if matches!(xid.kind, XidKind::Cleanup | XidKind::Info) {
            continue;
        }
        let gpu = s.label("gpu").or_else(|| s.label("UUID")).unwrap_or("?");
        let what = format!("DCGM reports Xid {} on GPU {gpu}: {}", xid.code, xid.name);
        let mut c =
            candidate(symptoms::xid_gauge::ID, Class::XidHardware, Weight::Degraded, what, "metrics.xid", s);
        c.phase = end_phase(facts);
        c.against.push(Cited::plain(Xid::Gauge));
        all.push(c);
        return;
    }
}
