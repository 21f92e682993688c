//! The memory of a workload over weeks, from Prometheus.

use dualplane_base::drawn::LETTERS;
use dualplane_base::order::Order as _;
use dualplane_kube::api::ApiError;
use dualplane_kube::capture;
use dualplane_resources::record::{Container, METRICS, Owner, containers};
use dualplane_resources::scale::{self, Target};
use dualplane_resources::series::{Series, joined, read};
use dualplane_resources::size::Sizing;
use jiff::Timestamp;
use serde_json::Value;

use crate::args::{ResourcesArgs, ResourcesFormat};
use crate::commands::Failure;
use crate::commands::live::block_on;
use crate::commands::live::pods::Progress;
use crate::secret;

/// The least time between two samples, seconds: Prometheus' usual scrape interval is 15 or 30.
const STEP: u64 = 60;
/// Points of one series that Prometheus answers at once.
const POINTS: u64 = 11_000;
/// Answers for each metric, at most: beyond that, the step grows.
const PARTS: u64 = 4;

/// A workload's pods by their names.
struct Pods {
    /// As it was named.
    shown: String,
    /// Regular expression of the names, as PromQL anchors it.
    names: String,
    /// API and kind of the workload; none for one pod.
    workload: Option<(&'static str, &'static str)>,
}

fn pods(target: &str) -> Result<Pods, Failure> {
    let (kind, name) = target.split_once('/').unwrap_or(("pod", target));
    let valid = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c));
    let word = || Failure::NoObject {
        word: target.to_owned(),
        hint: "give deploy/NAME, sts/NAME, ds/NAME or pod/NAME".into(),
    };
    if !valid {
        return Err(word());
    }
    let own = name.replace('.', "[.]");
    let (names, workload) = match kind {
        "pod" | "pods" | "po" => (own, None),
        "deploy" | "deployment" | "deployments" => {
            (format!("{own}-[{LETTERS}]{{5,10}}-[{LETTERS}]{{5}}"), Some(("apps/v1", "Deployment")))
        }
        "sts" | "statefulset" | "statefulsets" => (format!("{own}-[0-9]+"), Some(("apps/v1", "StatefulSet"))),
        "ds" | "daemonset" | "daemonsets" => {
            (format!("{own}-[{LETTERS}]{{5}}"), Some(("apps/v1", "DaemonSet")))
        }
        // The leader of a group, and its workers.
        "lws" | "leaderworkerset" | "leaderworkersets" => {
            (format!("{own}-[0-9]+(-[0-9]+)?"), Some(("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")))
        }
        _ => return Err(word()),
    };
    Ok(Pods { shown: target.to_owned(), names, workload })
}

/// Scales the only workload that was named, by its only container or that of `-c`.
pub(super) fn scaled(args: &ResourcesArgs, sizes: &[Sizing]) -> Result<String, Failure> {
    let hpa = args.output == ResourcesFormat::Hpa;
    let flag = if hpa { "-o hpa" } else { "-o keda" };
    let fault = |why: &str| Failure::Flag { flag, why: why.to_owned() };
    let Some(url) = &args.prometheus else { return Err(fault("reads the load: give --prometheus URL")) };
    let ([target], [size]) = (args.targets.as_slice(), sizes) else {
        return Err(fault("scales one workload by one container: name one, and its container with -c"));
    };
    let pods = pods(target)?;
    let Some((api, kind)) = pods.workload.filter(|(_, kind)| *kind != "DaemonSet") else {
        return Err(fault("scales a workload with replicas: deploy/NAME, sts/NAME or lws/NAME"));
    };
    let Some(max) = args.max.filter(|max| *max >= args.min) else {
        return Err(fault(
            "give --max N, not below --min: as many replicas as nodes have cards and host RAM for",
        ));
    };
    let name = target.split_once('/').map_or(target.as_str(), |(_, name)| name);
    let prometheus = args.server_address.as_ref().unwrap_or(url);
    let target = Target { api, kind, name, pods: &pods.names, prometheus, min: args.min, max };
    if hpa { scale::hpa(size, &target) } else { scale::keda(size, &target) }
        .map_err(|e| Failure::NotScaled(e.to_string()))
}

pub(super) fn measured(args: &ResourcesArgs, url: &str) -> Result<Vec<Container>, Failure> {
    if capture::has_password(url) {
        let why = format!(
            "a password in a URL is seen by others; name a file with it in {}",
            secret::PROMETHEUS.file
        );
        return Err(Failure::Flag { flag: "--prometheus", why });
    }
    let mut out = Vec::new();
    for target in &args.targets {
        let pods = pods(target)?;
        let series = block_on(ask(args, url, &pods))?;
        out.extend(together(containers(&series), &args.namespace, &pods));
    }
    Ok(out)
}

async fn ask(args: &ResourcesArgs, url: &str, pods: &Pods) -> Result<Vec<Series>, Failure> {
    let failed = |e: ApiError| Failure::Online { what: "--prometheus".into(), why: e.to_string() };
    let store = capture::store(url, secret::PROMETHEUS.read()?).map_err(failed)?;
    let progress = Progress::new();
    let to = Timestamp::now().as_second();
    let since = args.since;
    let step = STEP.max(since.div_ceil(POINTS * PARTS));
    let part = i64::try_from(step * (POINTS - 1)).unwrap_or(i64::MAX);
    let mut all = Vec::new();
    for (i, metric) in METRICS.iter().enumerate() {
        progress.show(&format!("asks for {metric} ({} of {})", i + 1, METRICS.len()));
        let mut from = to.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX));
        while from < to {
            let end = from.saturating_add(part).min(to);
            let answer =
                store.range(&query(metric, &args.namespace, &pods.names, step), from, end, step).await;
            let answer = answer.inspect_err(|_| progress.clear()).map_err(failed)?;
            all.push(read(&named(answer, metric)));
            from = end.saturating_add(i64::try_from(step).unwrap_or(i64::MAX));
        }
    }
    progress.clear();
    Ok(joined(all))
}

/// The most within each step, so that no peak that was scraped is lost. Exporters' own labels may stand apart.
fn query(metric: &str, namespace: &str, pods: &str, step: u64) -> String {
    let of = |prefix: &str| {
        format!(
            "max_over_time({metric}{{{prefix}namespace=\"{namespace}\",{prefix}pod=~\"{pods}\"}}[{step}s])"
        )
    };
    format!("{} or {}", of(""), of("exported_"))
}

/// `max_over_time` takes the name away.
fn named(mut answer: Value, metric: &str) -> Value {
    let list = answer.pointer_mut("/data/result").and_then(Value::as_array_mut);
    for series in list.into_iter().flatten() {
        if let Some(labels) = series.get_mut("metric").and_then(Value::as_object_mut) {
            labels.insert("__name__".into(), metric.into());
        }
    }
    answer
}

/// Replicas of one workload share its template: what one of them takes, each may take.
fn together(all: Vec<Container>, namespace: &str, pods: &Pods) -> Vec<Container> {
    if pods.workload.is_none() {
        return all;
    }
    let mut out: Vec<Container> = Vec::new();
    for c in all {
        match out.iter_mut().find(|o| o.owner.container == c.owner.container) {
            Some(o) => {
                o.instances.extend(c.instances);
                o.step = o.step.max(c.step);
            }
            None => {
                let owner = Owner { namespace: namespace.to_owned(), pod: pods.shown.clone(), ..c.owner };
                out.push(Container { owner, ..c });
            }
        }
    }
    for c in &mut out {
        c.instances.order_by_key(|i| i.from);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_the_pods_that_their_controllers_name() {
        let names = |t: &str| pods(t).map(|p| p.names).unwrap_or_default();
        assert_eq!(names("deploy/llm"), format!("llm-[{LETTERS}]{{5,10}}-[{LETTERS}]{{5}}"));
        assert_eq!(names("sts/a.b"), "a[.]b-[0-9]+");
        assert_eq!(names("llm-0"), "llm-0");
        for bad in ["job/x", "deploy/", "deploy/a\"b", "Deploy/X", ""] {
            assert!(pods(bad).is_err(), "{bad}");
        }
    }
}
