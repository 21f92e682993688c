//! The rules as policies of an API server: `ValidatingAdmissionPolicy` with a binding each, from the same expressions.

use serde_json::{Value, json};

use crate::finding::Severity;
use crate::object::{PODS, kinds_with_pods, not_owned};
use crate::rule::{Each, Rule, Rules};
use crate::server::{GPU_CEL, Known};
use crate::suppress;

/// Beginning of the names of policies.
pub const PREFIX: &str = "dualplane-";

/// Kinds that policies look at, with their group, version and resource.
const RESOURCES: &[(&str, &str, &str)] = &[
    ("Pod", "", "pods"),
    ("Deployment", "apps", "deployments"),
    ("StatefulSet", "apps", "statefulsets"),
    ("DaemonSet", "apps", "daemonsets"),
    ("ReplicaSet", "apps", "replicasets"),
    ("Job", "batch", "jobs"),
    ("CronJob", "batch", "cronjobs"),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io", "leaderworkersets"),
    ("InferenceService", "serving.kserve.io", "inferenceservices"),
    ("LLMInferenceService", "serving.kserve.io", "llminferenceservices"),
    ("RayCluster", "ray.io", "rayclusters"),
    ("RayService", "ray.io", "rayservices"),
    ("Rollout", "argoproj.io", "rollouts"),
    ("ScaledObject", "keda.sh", "scaledobjects"),
];

/// Rules that an API server can hold objects against: those of one object, in CEL.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    Rules::embedded().list().iter().filter(|r| r.holds.is_some() && !resources(r).is_empty())
}

/// Policies and bindings of these rules.
#[must_use]
pub fn policies<'a>(rules: impl Iterator<Item = &'a Rule>) -> Vec<Value> {
    let known = Known::new(&Rules::embedded().servers);
    rules.filter_map(|r| Some([policy(r, &known)?, binding(r)])).flatten().collect()
}

/// Groups and resources of a rule.
fn resources(rule: &Rule) -> Vec<(&'static str, &'static str)> {
    let kind = |k: &str| match rule.each {
        Each::Object => rule.kinds.iter().any(|own| own == k),
        Each::All | Each::Service => false,
        _ => kinds_with_pods().any(|p| p == k) && rule.looks_at(k),
    };
    RESOURCES.iter().filter(|(k, ..)| kind(k)).map(|(_, group, resource)| (*group, *resource)).collect()
}

fn policy(rule: &Rule, known: &Known) -> Option<Value> {
    let holds = rule.holds.as_deref()?.trim();
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (group, resource) in resources(rule) {
        match groups.iter_mut().find(|(g, _)| *g == group) {
            Some((_, all)) => all.push(resource),
            None => groups.push((group, vec![resource])),
        }
    }
    let of_group = |(group, all): &(&str, Vec<&str>)| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": all});
    // `SERVER` stands for the test, which is written once.
    let server = known.cel();
    let server = if rule.each == Each::Gpu { format!("{server} && {GPU_CEL}") } else { server };
    let expression = wrapped(rule.each, holds).replace("SERVER", &server);
    let spec = json!({
        // A policy of ours never stops a cluster: where an expression fails, the object is admitted.
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": groups.iter().map(of_group).collect::<Vec<_>>()},
        "matchConditions": [
            // What a workload owns was judged with it: refusing its pods now would only stop what runs.
            {"name": "not-owned", "expression": not_owned()},
            {"name": "not-ignored", "expression": suppress::unless(&rule.id)},
        ],
        "variables": [{"name": "pods", "expression": PODS}],
        "validations": [{"expression": expression, "message": message(rule), "reason": "Invalid"}],
    });
    Some(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("{PREFIX}{}", rule.id), "labels": {"app.kubernetes.io/part-of": "dualplane"}},
        "spec": spec,
    }))
}

/// The expression over all parts of an object.
fn wrapped(each: Each, holds: &str) -> String {
    match each {
        Each::Pod => {
            format!("variables.pods.all(pod, !pod.containers.exists(c, SERVER) || ({holds}))")
        }
        Each::Container => format!(
            "variables.pods.all(pod, !pod.containers.exists(c, SERVER) || pod.containers.all(c, {holds}))"
        ),
        Each::Server | Each::Gpu => {
            format!("variables.pods.all(pod, pod.containers.all(c, !(SERVER) || ({holds})))")
        }
        Each::Volume => format!(
            "variables.pods.all(pod, !has(pod.volumes) || !pod.containers.exists(c, SERVER) || pod.volumes.all(v, {holds}))"
        ),
        // The linter looks at objects with a server only.
        Each::Object => format!("!variables.pods.exists(pod, pod.containers.exists(c, SERVER)) || ({holds})"),
        Each::Service | Each::All => holds.to_owned(),
    }
}

fn message(rule: &Rule) -> String {
    format!(
        "{}: {}. `dualplane lint --explain {}` says why and what to change.",
        rule.id, rule.title, rule.id
    )
}

fn binding(rule: &Rule) -> Value {
    // Errors are refused, all else is said and admitted.
    let action = if rule.severity == Severity::Error { "Deny" } else { "Warn" };
    let name = format!("{PREFIX}{}", rule.id);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "dualplane"}},
        "spec": {"policyName": name, "validationActions": [action]},
    })
}

/// What the chart of this project fills: by rule its severity and the policy's spec.
#[must_use]
pub fn chart() -> String {
    let known = Known::new(&Rules::embedded().servers);
    let one = |rule: &Rule| {
        let spec = policy(rule, &known)?.get("spec")?.clone();
        Some(json!({"id": rule.id, "severity": rule.severity.as_str(), "spec": spec}))
    };
    dualplane_base::yaml::manifest(&json!({"policies": rules().filter_map(one).collect::<Vec<_>>()}))
}

/// All of them as documents of YAML.
#[must_use]
pub fn yaml(policies: &[Value]) -> String {
    policies.iter().map(|p| format!("---\n{}", dualplane_base::yaml::manifest(p))).collect()
}
