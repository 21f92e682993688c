//! A selection as files: for Prometheus, for its operator, for a chart, and as tests for promtool.

use std::collections::{BTreeMap, BTreeSet};

use dualplane_base::yaml::manifest;
use serde_json::{Map, Value, json};

use crate::expression::series;
use crate::rule::{Alert, Case, Labels, Rules};
use crate::select::{Alerting, Recording, Selection};

/// Where the manual of this version lies.
const MANUAL: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/v", env!("CARGO_PKG_VERSION"), "/docs");

/// Groups: records first, as alerts of the same round read them; then a group for each family.
#[must_use]
pub fn groups(selection: &Selection) -> Vec<Value> {
    let records = records(selection);
    let group =
        |(name, rules): (&str, Vec<Value>)| json!({"name": format!("dualplane-{name}"), "rules": rules});
    let first = (!records.is_empty()).then_some(("records", records));
    first.into_iter().chain(families(selection, alert)).map(group).collect()
}

/// Alerts by family, in the order of the knowledge.
fn families<'s>(selection: &'s Selection, one: impl Fn(&'s Alerting) -> Value) -> Vec<(&'s str, Vec<Value>)> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for a in &selection.alerts {
        let family = a.alert.family.as_str();
        match out.iter_mut().find(|(f, _)| *f == family) {
            Some((_, rules)) => rules.push(one(a)),
            None => out.push((family, vec![one(a)])),
        }
    }
    out
}

fn records(selection: &Selection) -> Vec<Value> {
    selection.records.iter().map(|r| json!({"record": r.record.name, "expr": r.expr})).collect()
}

/// Labels that an alert adds to those of its series.
fn labels(a: &Alert) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("severity".into(), a.severity.as_str().into());
    if let Some(plane) = &a.plane {
        out.insert("plane".into(), plane.clone().into());
    }
    out
}

fn alert(a: &Alerting) -> Value {
    let own = a.alert;
    // Without a class of its own the series tell it.
    let class = own.class.as_deref().unwrap_or("{{ $labels.class }}");
    let plane = match own.plane.as_deref() {
        Some("host") => "Host RAM. ",
        Some("gpu") => "VRAM and GPU. ",
        Some("hardware") => "Hardware. ",
        _ => "",
    };
    json!({
        "alert": own.alert,
        "expr": a.expr,
        "for": a.hold,
        "labels": labels(own),
        "annotations": {
            "summary": own.summary,
            "description": format!("{plane}{}. {} First: {}", own.title, own.why, own.first),
            "command": own.first,
            "runbook_url": runbook(class),
        },
    })
}

/// Page of a class.
#[must_use]
pub fn runbook(class: &str) -> String {
    page(&format!("runbooks/{class}.md"))
}

/// A page of the manual of this version.
#[must_use]
pub fn page(name: &str) -> String {
    format!("{MANUAL}/{name}")
}

/// A rule file.
#[must_use]
pub fn rule_file(selection: &Selection) -> String {
    format!("# dualplane rules: {MANUAL}/alerts.md\n{}", manifest(&json!({"groups": groups(selection)})))
}

/// A `PrometheusRule` of the operator.
#[must_use]
pub fn prometheus_rule(selection: &Selection, namespace: Option<&str>, own: &[(String, String)]) -> String {
    let mut labels = Map::new();
    labels.insert("app.kubernetes.io/part-of".into(), "dualplane".into());
    labels.extend(own.iter().map(|(k, v)| (k.clone(), v.clone().into())));
    let mut metadata = Map::new();
    metadata.insert("name".into(), "dualplane".into());
    metadata.extend(namespace.map(|n| ("namespace".to_owned(), n.into())));
    metadata.insert("labels".into(), labels.into());
    manifest(&json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": {"groups": groups(selection)},
    }))
}

/// What the chart of this project fills: records, and alerts by family under the names by which values choose them.
#[must_use]
pub fn chart(template: &Selection) -> String {
    let rule = |a: &Alerting| {
        let mut out = Map::new();
        out.insert("id".into(), a.alert.id.clone().into());
        if a.alert.optional.is_some() {
            out.insert("optional".into(), true.into());
        }
        out.insert("rule".into(), alert(a));
        Value::Object(out)
    };
    let family = |(name, alerts): (&str, Vec<Value>)| json!({"name": name, "alerts": alerts});
    let families: Vec<Value> = families(template, rule).into_iter().map(family).collect();
    manifest(&json!({"records": records(template), "families": families}))
}

/// Values of the chart kube-prometheus-stack.
#[must_use]
pub fn values(selection: &Selection) -> String {
    manifest(&json!({"additionalPrometheusRulesMap": {"dualplane": {"groups": groups(selection)}}}))
}

/// Tests for `promtool test rules`, beside a rule file of the same selection with this name. A case is left out where the
/// selection reads less than it puts in.
#[must_use]
pub fn tests(selection: &Selection, rule_file: &str) -> String {
    let rules = Rules::embedded();
    let all: Vec<&str> = selection
        .records
        .iter()
        .map(|r| r.expr.as_str())
        .chain(selection.alerts.iter().map(|a| a.expr.as_str()))
        .collect();
    let read: BTreeSet<&str> = all.iter().flat_map(|e| series(e, rules)).collect();
    let input = |case: &Case| -> Option<Vec<(String, String)>> {
        let lines = input(case, rules);
        lines.iter().all(|(s, _)| read.contains(metric(s))).then_some(lines)
    };
    let mut out: Vec<Value> = Vec::new();
    for r in &selection.records {
        out.extend(r.record.test.iter().filter_map(|c| Some(recorded(r, c, input(c)?))));
    }
    for a in &selection.alerts {
        out.extend(a.alert.fires.iter().filter_map(|c| Some(fired(a, c, input(c)?, "fires"))));
        out.extend(a.alert.silent.iter().filter_map(|c| Some(fired(a, c, input(c)?, "is silent"))));
    }
    let order: Vec<Value> = groups(selection).iter().filter_map(|g| g.get("name").cloned()).collect();
    manifest(&json!({
        "rule_files": [rule_file],
        "evaluation_interval": "1m",
        "group_eval_order": order,
        "tests": out,
    }))
}

/// Lines of a case and its fixtures; a later line for the same series counts.
pub(crate) fn input(case: &Case, rules: &Rules) -> Vec<(String, String)> {
    let shared = case.uses.iter().filter_map(|u| rules.fixtures.get(u)).map(|f| f.input.as_str());
    let mut out: Vec<(String, String)> = Vec::new();
    for line in shared.chain([case.input.as_str()]).flat_map(str::lines) {
        let Some((series, values)) = line.split_once(" => ") else { continue };
        out.retain(|(s, _)| s != series);
        out.push((series.to_owned(), values.to_owned()));
    }
    out
}

/// The name in a series.
pub(crate) fn metric(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

fn test(name: String, input: Vec<(String, String)>, asked: Vec<Value>) -> Value {
    let series: Vec<Value> = input.into_iter().map(|(s, v)| json!({"series": s, "values": v})).collect();
    json!({"name": name, "interval": "1m", "input_series": series, "promql_expr_test": asked})
}

fn recorded(r: &Recording, case: &Case, input: Vec<(String, String)>) -> Value {
    let samples: Vec<Value> =
        case.expect.iter().map(|e| json!({"labels": selector("", &e.labels), "value": e.value})).collect();
    // Rates of real numbers end in noise.
    let expr = format!("round({}, 0.0001)", r.record.name);
    let asked =
        case.at.list().iter().map(|at| json!({"expr": expr, "eval_time": at, "exp_samples": samples}));
    test(format!("{}: {}", r.record.name, case.say), input, asked.collect())
}

/// `ALERTS` tells the labels that an alert fires with, without the text of its annotations.
fn fired(a: &Alerting, case: &Case, input: Vec<(String, String)>, how: &str) -> Value {
    let expr = format!("ALERTS{{alertname=\"{}\",alertstate=\"firing\"}}", a.alert.alert);
    let sample = |own: &Labels| {
        let mut all: BTreeMap<String, String> = own.clone();
        let added = labels(a.alert);
        all.extend(added.into_iter().filter_map(|(k, v)| Some((k, v.as_str()?.to_owned()))));
        all.insert("alertname".into(), a.alert.alert.clone());
        all.insert("alertstate".into(), "firing".into());
        json!({"labels": selector("ALERTS", &all), "value": 1})
    };
    let samples: Vec<Value> = case.labels.iter().map(sample).collect();
    let asked =
        case.at.list().iter().map(|at| json!({"expr": expr, "eval_time": at, "exp_samples": samples}));
    test(format!("{} {how}: {}", a.alert.id, case.say), input, asked.collect())
}

fn selector(name: &str, labels: &Labels) -> String {
    let each: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={}", Value::from(v.as_str()))).collect();
    format!("{name}{{{}}}", each.join(", "))
}
