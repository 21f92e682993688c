//! Objects that look at model servers: autoscalers, disruption budgets, monitors.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_base::text::counted;
use serde_json::Value;

use super::seen::{Seen, Watcher, Workload};
use super::{Among, Said};

fn called(w: &Workload) -> String {
    format!("{} {}", w.kind, w.name)
}

/// Findings of watchers of a kind, each against its target.
fn each<'a>(
    seen: &'a Seen,
    kind: &'static str,
    target: &str,
    say: impl Fn(&Watcher, &Workload) -> Option<Said>,
) -> Vec<Among<'a>> {
    let one = |watcher: &'a Watcher| {
        let said = say(watcher, seen.target(watcher, target)?)?;
        Some(Among { watcher, said })
    };
    seen.of(kind).filter_map(one).collect()
}

/// What a metric of an HPA measures: the resource, or the kind of metric.
fn metrics(w: &Watcher) -> Vec<String> {
    let v = &w.object.value;
    let mut out: Vec<String> = list(v, "/spec/metrics")
        .iter()
        .map(|m| match str_at(m, "/type") {
            "Resource" => str_at(m, "/resource/name").to_owned(),
            "ContainerResource" => str_at(m, "/containerResource/name").to_owned(),
            other => other.to_owned(),
        })
        .collect();
    if v.pointer("/spec/targetCPUUtilizationPercentage").is_some() {
        out.push("cpu".into());
    }
    // Without any, the API server takes 80 % of the CPU.
    if out.is_empty() {
        out.push("cpu".into());
    }
    out
}

const SIGNALS: &str =
    "scale on the engine's queue instead: vllm:num_requests_waiting, or sglang:num_queue_reqs, per pod";

pub(super) fn hpa_on_cpu(seen: &Seen) -> Vec<Among<'_>> {
    each(seen, "HorizontalPodAutoscaler", "/spec/scaleTargetRef", |w, target| {
        metrics(w).iter().all(|m| m == "cpu").then(|| {
            let message = format!(
                "it scales {} by CPU alone, and a model server's queue and KV cache fill while its CPU stays idle",
                called(target)
            );
            Said::new(message, SIGNALS).at("/spec")
        })
    })
}

pub(super) fn hpa_on_memory(seen: &Seen) -> Vec<Among<'_>> {
    each(seen, "HorizontalPodAutoscaler", "/spec/scaleTargetRef", |w, target| {
        metrics(w).iter().any(|m| m == "memory").then(|| {
            let message = format!(
                "it scales {} by memory, which a model server takes at its start and keeps: more replicas never lower it",
                called(target)
            );
            Said::new(message, SIGNALS).at("/spec/metrics")
        })
    })
}

pub(super) fn keda_on_cpu(seen: &Seen) -> Vec<Among<'_>> {
    each(seen, "ScaledObject", "/spec/scaleTargetRef", |w, target| {
        let triggers = list(&w.object.value, "/spec/triggers");
        let blind = |t: &Value| matches!(str_at(t, "/type"), "cpu" | "memory");
        (!triggers.is_empty() && triggers.iter().all(blind)).then(|| {
            let message = format!(
                "its triggers for {} are CPU and memory alone, which do not follow the queue of a model server",
                called(target)
            );
            Said::new(message, "add a prometheus trigger on vllm:num_requests_waiting").at("/spec/triggers")
        })
    })
}

pub(super) fn vpa_evicts(seen: &Seen) -> Vec<Among<'_>> {
    each(seen, "VerticalPodAutoscaler", "/spec/targetRef", |w, target| {
        let v = &w.object.value;
        let mode = str_at(v, "/spec/updatePolicy/updateMode");
        let policies = list(v, "/spec/resourcePolicy/containerPolicies");
        let spared = policies.iter().any(|p| {
            let controlled = list(p, "/controlledResources");
            str_at(p, "/mode") == "Off"
                || !controlled.is_empty() && controlled.iter().all(|c| c.as_str() != Some("memory"))
        });
        (!matches!(mode, "Off" | "Initial") && !spared).then(|| {
            let mode = if mode.is_empty() { "Auto" } else { mode };
            let message = format!(
                "updateMode {mode} evicts pods of {} and sets their memory from what they use while they serve, which is \
                 less than loading takes",
                called(target)
            );
            let fix = "set updatePolicy.updateMode to Off, and take the limit from `dualplane plan --manifest`";
            Said::new(message, fix).at("/spec/updatePolicy")
        })
    })
}

/// An amount of a budget: pods of `replicas`.
fn pods(v: Option<&Value>, replicas: u64) -> Option<u64> {
    let text = text_of(v?);
    match text.strip_suffix('%') {
        // The API server rounds up.
        Some(percent) => Some(percent.parse::<u64>().ok()?.saturating_mul(replicas).div_ceil(100)),
        None => text.parse().ok(),
    }
}

/// Findings of budgets, each against the workloads that it selects.
fn budgets<'a>(
    seen: &'a Seen,
    say: impl Fn(&Workload, Option<u64>, Option<u64>) -> Option<Said>,
) -> Vec<Among<'a>> {
    let one = |watcher: &'a Watcher| {
        let v = &watcher.object.value;
        let all = seen.selected(watcher);
        // Of several workloads, which one a drain takes is not told.
        let [w] = all.as_slice() else { return None };
        let gone = pods(v.pointer("/spec/maxUnavailable"), w.replicas);
        let left = pods(v.pointer("/spec/minAvailable"), w.replicas);
        Some(Among { watcher, said: say(w, gone, left)? })
    };
    seen.of("PodDisruptionBudget").filter_map(one).collect()
}

pub(super) fn pdb_takes_all(seen: &Seen) -> Vec<Among<'_>> {
    budgets(seen, |w, gone, left| {
        let all = gone.is_some_and(|n| n >= w.replicas) || left == Some(0);
        (w.replicas > 1 && all).then(|| {
            let message = format!(
                "it lets a drain take all {} of {} at once, and each takes minutes to load again",
                counted(w.replicas, "replica"),
                called(w)
            );
            Said::new(message, "set maxUnavailable to 1").at("/spec")
        })
    })
}

pub(super) fn pdb_blocks_drains(seen: &Seen) -> Vec<Among<'_>> {
    budgets(seen, |w, gone, left| {
        let none = gone == Some(0) || left.is_some_and(|n| n >= w.replicas);
        (w.replicas > 0 && none).then(|| {
            let message = format!(
                "it lets no pod of {} ({}) be evicted: a node with a broken GPU or driver cannot be drained",
                called(w),
                counted(w.replicas, "replica")
            );
            let fix = if w.replicas > 1 {
                "set maxUnavailable to 1".to_owned()
            } else {
                "set replicas to 2 and maxUnavailable to 1, or remove the budget".to_owned()
            };
            Said::new(message, fix).at("/spec")
        })
    })
}

pub(super) fn monitor_without_port(seen: &Seen) -> Vec<Among<'_>> {
    let one = |watcher| {
        let w: &Watcher = watcher;
        let asked: Vec<&str> =
            list(&w.object.value, "/spec/podMetricsEndpoints").iter().map(|e| str_at(e, "/port")).collect();
        let all = seen.selected(w);
        let [target] = all.as_slice() else { return None };
        let missing = asked.iter().find(|p| !p.is_empty() && !target.ports.iter().any(|o| o == *p))?;
        let there: Vec<&str> = target.ports.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
        let message = format!(
            "it scrapes port `{missing}` of {}, whose server has {}: no metric of its memory is ever collected",
            called(target),
            if there.is_empty() { "no named port".to_owned() } else { format!("`{}`", there.join("`, `")) }
        );
        let fix = match there.first() {
            Some(p) => format!("set podMetricsEndpoints[].port to {p}"),
            None => format!("name the server's port {missing}"),
        };
        Some(Among { watcher: w, said: Said::new(message, fix).at("/spec/podMetricsEndpoints") })
    };
    seen.of("PodMonitor").filter_map(one).collect()
}
