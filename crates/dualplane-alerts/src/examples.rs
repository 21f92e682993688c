//! Tests of the data: names, labels, runbooks, series and cases. What the expressions do is promtool's to say.
#![allow(clippy::disallowed_methods, reason = "tests read the files of knowledge/ and docs/")]
#![allow(clippy::string_slice, reason = "a cut in the wrong place fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::emit::{self, input, metric};
use crate::expression::{placeholders, series, unfolded};
use crate::quantity::duration;
use crate::rule::{Case, Rules};
use crate::select::{Options, select};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All expressions, with the name of whose they are.
fn expressions(rules: &Rules) -> Vec<(&str, &str)> {
    let records = rules.records.iter().flat_map(|r| r.from.iter().map(|p| (r.name.as_str(), p.as_str())));
    let alerts = rules.alerts.iter().flat_map(|a| a.parts().iter().map(|p| (a.id.as_str(), p.as_str())));
    records.chain(alerts).collect()
}

fn cases(rules: &Rules) -> Vec<(&str, &Case)> {
    let records = rules.records.iter().flat_map(|r| r.test.iter().map(|c| (r.name.as_str(), c)));
    let alerts =
        rules.alerts.iter().flat_map(|a| a.fires.iter().chain(&a.silent).map(|c| (a.id.as_str(), c)));
    records.chain(alerts).collect()
}

#[test]
fn the_data_are_read_and_every_rule_is_whole() {
    let rules: Rules = serde_json::from_str(crate::rule::TEXT.text()).unwrap();
    assert!(rules.alerts.len() >= 30 && rules.records.len() >= 25);
    let mut ids = BTreeSet::new();
    for a in &rules.alerts {
        assert!(ids.insert(a.id.as_str()) && ids.insert(a.alert.as_str()), "{}: twice", a.id);
        assert!(a.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", a.id);
        assert!(
            a.alert.starts_with("Dualplane") && a.alert.chars().all(|c| c.is_ascii_alphanumeric()),
            "{}",
            a.alert
        );
        assert!(
            !a.fires.is_empty() && !a.silent.is_empty(),
            "{}: must fire in one case and be silent in one",
            a.id
        );
        assert!(a.fires.iter().all(|c| !c.labels.is_empty()), "{}: what fires has labels", a.id);
        assert!(a.silent.iter().all(|c| c.labels.is_empty()), "{}: what is silent has none", a.id);
        assert!(duration(&a.hold).is_some(), "{}: for = {}", a.id, a.hold);
        assert_eq!(a.expr.is_some(), a.from.is_empty(), "{}: one expression, or several", a.id);
        assert_eq!(a.parts().len() > 1, a.on.is_some(), "{}: `on` joins several expressions", a.id);
        for text in [&a.title, &a.why, &a.source, &a.first, &a.summary] {
            assert!(!text.is_empty() && !text.contains('\n'), "{}: {text}", a.id);
        }
        assert!(
            a.plane.as_deref().is_none_or(|p| ["host", "gpu", "hardware", "none"].contains(&p)),
            "{}",
            a.id
        );
        // Class and plane come together, from the alert or from its series.
        assert_eq!(a.plane.is_some(), a.class.is_some(), "{}", a.id);
        assert!(a.class.is_some() || a.parts().iter().all(|p| p.contains("class, plane")), "{}", a.id);
        for name in &a.without {
            assert!(
                a.parts().iter().any(|p| p.contains(name.as_str())),
                "{}: {name} is in no expression",
                a.id
            );
        }
    }
    for r in &rules.records {
        assert!(ids.insert(r.name.as_str()), "{}: twice", r.name);
        assert!(r.name.starts_with("dualplane:"), "{}", r.name);
        assert!(!r.test.is_empty() && r.test.iter().all(|c| !c.expect.is_empty()), "{}: no test", r.name);
        assert!(r.on.is_some() || r.from.len() == 1, "{}: `on` joins several expressions", r.name);
    }
    for (_, v) in rules.values() {
        assert!(!v.what.is_empty() && !v.why.is_empty() && v.default.is_finite());
    }
}

#[test]
fn every_class_has_a_runbook_with_a_first_command() {
    for a in Rules::embedded().alerts() {
        let Some(class) = &a.class else { continue };
        assert!(dualplane_base::Class::ALL.iter().any(|c| c.as_str() == class), "{}: {class}", a.id);
        let page = read(&format!("docs/runbooks/{class}.md"));
        assert!(page.contains("## First command"), "{class}");
        assert!(emit::runbook(class).ends_with(&format!("/docs/runbooks/{class}.md")));
    }
}

#[test]
fn placeholders_and_lists_of_labels_are_known_and_used() {
    let rules = Rules::embedded();
    let mut used = BTreeSet::new();
    for (name, text) in expressions(rules) {
        let text = unfolded(text, &rules.macros);
        for p in placeholders(&text) {
            let known = rules.values.contains_key(p) || rules.text.contains_key(p);
            assert!(known, "{name}: {{{p}}} stands for nothing");
            used.insert(p.to_owned());
        }
        for m in rules.macros.keys() {
            let call = format!("{m}(");
            let left = text.match_indices(&call).any(|(at, _)| {
                text[..at].chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
            });
            assert!(!left, "{name}: {m}() is left in {text}");
        }
    }
    let lists = rules.records.iter().map(|r| &r.on).chain(rules.alerts.iter().map(|a| &a.on));
    for on in lists.flatten() {
        assert!(rules.text.contains_key(on), "on = {on}");
        used.insert(on.clone());
    }
    for name in rules.values.keys() {
        assert!(used.contains(name), "no expression reads {name}");
    }
    for name in rules.text.keys() {
        assert!(used.contains(name), "nothing uses the text {name}");
    }
}

/// How the series of all sources and records begin.
fn heads(rules: &Rules) -> BTreeSet<String> {
    let metrics =
        rules.sources.values().flat_map(|s| &s.metrics).chain(rules.records.iter().map(|r| &r.name));
    metrics.map(|m| m[..=m.find(['_', ':']).unwrap()].to_owned()).collect()
}

/// Words of an expression that look like series: labels and functions begin in no such way.
fn looks_like_series<'t>(text: &'t str, heads: &BTreeSet<String>) -> Vec<&'t str> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split('"').step_by(2).flat_map(|p| p.split(|c| !name(c)));
    words.filter(|w| heads.iter().any(|h| w.starts_with(h.as_str()))).collect()
}

#[test]
fn every_series_is_of_a_source_or_recorded_and_every_listed_one_is_read() {
    let rules = Rules::embedded();
    let heads = heads(rules);
    let mut seen = BTreeSet::new();
    for (name, text) in expressions(rules) {
        let text = unfolded(text, &rules.macros);
        let known = series(&text, rules);
        for word in looks_like_series(&text, &heads) {
            assert!(known.contains(word), "{name}: no source exposes {word}");
        }
        seen.extend(known.into_iter().map(str::to_owned));
    }
    for (id, source) in rules.sources() {
        for m in &source.metrics {
            assert!(seen.contains(m), "source {id}: no rule reads {m}");
            let sources = rules.sources().filter(|(_, s)| s.metrics.contains(m)).count();
            assert_eq!(sources, 1, "{m} is of several sources");
        }
    }
}

/// The names that the heads of engines list are those that rules read: one of them would be renamed alone otherwise.
#[test]
fn engines_are_read_under_the_names_that_their_heads_list() {
    let rules = Rules::embedded();
    for (id, source) in rules.sources().filter(|(_, s)| s.engine) {
        let text = read(&format!("knowledge/engines/{id}.toml"));
        let doc: Value = toml::from_str(&text).unwrap();
        let metrics = &doc["engine"]["metrics"];
        for key in ["kv_use", "running", "waiting", "preemptions", "generated_tokens"] {
            for entry in metrics[key].as_array().into_iter().flatten() {
                let name = entry["name"].as_str().unwrap();
                // An exporter may complete the name of a counter.
                let total = format!("{name}_total");
                let listed = source.metrics.iter().any(|m| m == name || *m == total);
                assert!(listed, "{id}: {key} {name} is not in sources.toml");
            }
        }
        if let Some(first) = metrics["first_token"].as_str() {
            assert!(source.metrics.contains(&format!("{first}_bucket")), "{id}: {first}");
        }
    }
}

#[test]
fn our_agents_series_are_those_that_it_exposes() {
    let mut code = String::new();
    for file in ["agent", "containers", "gpus", "node"] {
        code += &read(&format!("crates/dualplane-agent/src/publish/metrics/{file}.rs"));
    }
    for m in &Rules::embedded().sources["agent"].metrics {
        assert!(code.contains(&format!("\"{m}\"")), "the agent exposes no {m}");
    }
}

#[test]
fn the_xids_are_those_of_hardware() {
    let doc: Value = toml::from_str(&read("knowledge/xid.toml")).unwrap();
    let hardware = doc["xid"].as_array().unwrap().iter().filter(|x| x["kind"] == "hardware");
    let codes: Vec<String> = hardware.map(|x| x["code"].to_string()).collect();
    assert_eq!(Rules::embedded().text["hardware_xids"], codes.join("|"));
}

#[test]
fn cases_put_in_series_that_rules_read() {
    let rules = Rules::embedded();
    let mut says = BTreeSet::new();
    for (name, case) in cases(rules) {
        assert!(says.insert((name, case.say.as_str())), "{name}: {} stands twice", case.say);
        assert!(
            !case.at.list().is_empty() && case.at.list().iter().all(|at| duration(at).is_some()),
            "{name}"
        );
        for used in &case.uses {
            assert!(rules.fixtures.contains_key(used), "{name}: no fixture {used}");
        }
        for line in case.input.lines().filter(|l| !l.trim().is_empty()) {
            assert!(line.contains(" => "), "{name}: {line}");
        }
        for (series, _) in input(case, rules) {
            let metric = metric(&series);
            assert!(rules.source_of(metric).is_some(), "{name}: no source exposes {metric}");
        }
    }
}

/// Templates name labels that the alert has, and numbers in words.
#[test]
fn templates_name_labels_that_are_there() {
    for a in Rules::embedded().alerts() {
        let labels: BTreeSet<&str> =
            a.fires.iter().flat_map(|c| c.labels.iter().flat_map(|l| l.keys().map(String::as_str))).collect();
        for text in [&a.summary, &a.first] {
            for name in text.split("$labels.").skip(1) {
                let name: String =
                    name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                assert!(labels.contains(name.as_str()), "{}: no case has the label {name}", a.id);
            }
            assert_eq!(text.matches("{{ ").count(), text.matches(" }}").count(), "{}: {text}", a.id);
        }
        // Container and plane are on all alerts of a server.
        if labels.contains("model") {
            assert!(["namespace", "pod", "container"].iter().all(|l| labels.contains(l)), "{}", a.id);
        }
    }
}

#[test]
fn all_forms_hold_the_same_groups() {
    let all: Vec<String> =
        Rules::embedded().alerts().iter().filter(|a| a.optional.is_some()).map(|a| a.id.clone()).collect();
    let s = select(&Options { enabled: all, ..Options::default() }).unwrap();
    let parse = |text: &str| -> Value { serde_saphyr::from_str(text).unwrap() };
    let file = parse(&emit::rule_file(&s));
    let own = [("release".to_owned(), "prometheus".to_owned())];
    let rule = parse(&emit::prometheus_rule(&s, Some("monitoring"), &own));
    let values = parse(&emit::values(&s));
    assert_eq!(file["groups"], rule["spec"]["groups"]);
    assert_eq!(file["groups"], values["additionalPrometheusRulesMap"]["dualplane"]["groups"]);
    assert_eq!(
        (&rule["metadata"]["namespace"], &rule["metadata"]["labels"]["release"]),
        (&"monitoring".into(), &"prometheus".into())
    );
    let rules: Vec<&Value> =
        file["groups"].as_array().unwrap().iter().flat_map(|g| g["rules"].as_array().unwrap()).collect();
    assert_eq!(rules.len(), Rules::embedded().alerts().len() + Rules::embedded().records().len());
    for rule in rules.iter().filter(|r| r["alert"].is_string()) {
        for key in ["summary", "description", "command", "runbook_url"] {
            assert!(rule["annotations"][key].as_str().is_some_and(|t| !t.is_empty()), "{rule}");
        }
        assert!(rule["annotations"]["runbook_url"].as_str().unwrap().starts_with("https://"));
        assert!(rule["labels"]["severity"].is_string());
    }
    // Every case is in the tests of all rules.
    let tests = parse(&emit::tests(&s, "rules.yaml"));
    assert_eq!(tests["tests"].as_array().unwrap().len(), cases(Rules::embedded()).len());
}
