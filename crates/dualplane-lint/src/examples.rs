//! Tests: every rule against its good and bad manifests, natively and as the expression that an API server gets.
#![allow(clippy::disallowed_methods, reason = "tests read the files of knowledge/")]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::expression::{Expression, Scope, of};
use crate::finding::Severity;
use crate::linter::{Linter, Options};
use crate::object::{Object, PODS};
use crate::read::{Documents, parse};
use crate::rule::{Each, Rules};
use crate::{checks, policy};

/// A rule's id with its good and bad manifests.
struct Examples {
    id: String,
    good: Vec<String>,
    bad: Vec<String>,
}

fn examples() -> Vec<Examples> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge/lint");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut out = Vec::new();
    for file in files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
        let doc: Value = toml::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for rule in doc["rule"].as_array().into_iter().flatten() {
            let list = |key: &str| -> Vec<String> {
                rule[key].as_array().unwrap().iter().map(|e| e.as_str().unwrap().to_owned()).collect()
            };
            out.push(Examples {
                id: rule["id"].as_str().unwrap().into(),
                good: list("good"),
                bad: list("bad"),
            });
        }
    }
    out
}

/// The objects of an example; a first line `FILE: name` names its file.
fn objects(example: &str) -> Vec<Object> {
    let (file, text) = match example.strip_prefix("FILE: ").and_then(|r| r.split_once('\n')) {
        Some((file, text)) => (file, text),
        None => ("example.yaml", example),
    };
    let mut out = Vec::new();
    for document in Documents::new(text.as_bytes()) {
        let parsed = parse(file, &document.unwrap());
        assert!(parsed.problem.is_none(), "{:?}\n{example}", parsed.problem);
        out.extend(parsed.objects);
    }
    assert!(!out.is_empty(), "{example}");
    out
}

/// Findings of one rule in an example.
fn found(id: &str, example: &str) -> Vec<crate::Finding> {
    let linter = Linter::new(&Options { only: vec![id.to_owned()], ..Options::default() });
    let mut all = Vec::new();
    for o in objects(example) {
        assert_eq!(linter.errors(&o), Vec::<String>::new(), "{id}\n{example}");
        all.extend(linter.object(&o).findings);
    }
    all.extend(linter.end().findings);
    all
}

#[test]
fn bad_manifests_are_found_and_good_ones_are_not() {
    let mut wrong = Vec::new();
    for e in examples() {
        for good in &e.good {
            let f = found(&e.id, good);
            if !f.is_empty() {
                wrong.push(format!("{}: {} in the good manifest\n{good}", e.id, f[0].message));
            }
        }
        for bad in &e.bad {
            let f = found(&e.id, bad);
            let Some(first) = f.first() else {
                wrong.push(format!("{}: nothing in the bad manifest\n{bad}", e.id));
                continue;
            };
            let words = format!("{} {}", first.message, first.fix);
            let unfilled = words.split('{').skip(1).any(|r| {
                r.split('}')
                    .next()
                    .is_some_and(|w| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase()))
            });
            if unfilled || words.contains("increase ") {
                wrong.push(format!("{}: {words}", e.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Pointers to everything in a value.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        let at = format!("{at}/{key}");
        places(value, &at, out);
        out.push(at);
    }
}

/// A linter answers from memory what it was asked before, and what differs only where a rule does not look. Each example is
/// changed in many places, so that most questions are nearly ones that were answered.
#[test]
fn a_linter_that_has_seen_much_says_what_a_fresh_one_says() {
    let (seen, fresh) = (Linter::new(&Options::default()), Linter::with_memo(&Options::default(), 0));
    let said = |l: &Linter, o: &Object| serde_json::to_value(l.object(o).findings).unwrap();
    let mut asked = 0_usize;
    let mut found = 0;
    for e in examples() {
        for object in e.good.iter().chain(&e.bad).flat_map(|text| objects(text)) {
            let mut all = Vec::new();
            places(&object.value, "", &mut all);
            for (i, place) in all.iter().enumerate() {
                // A part of them: all would take minutes.
                asked += 1;
                if !asked.is_multiple_of(17) {
                    continue;
                }
                let mut changed = object.clone();
                if let Some(v) = changed.value.pointer_mut(place) {
                    *v = match i % 3 {
                        0 => Value::Null,
                        1 => Value::from("1"),
                        _ => serde_json::json!([{"name": "x", "value": "y"}]),
                    };
                }
                let want = said(&fresh, &changed);
                found += want.as_array().map_or(0, Vec::len);
                assert_eq!(said(&seen, &changed), want, "{}: {place} of\n{}", e.id, object.value);
            }
        }
    }
    assert!(asked / 17 > 200 && found > 200, "{asked} {found}");
}

/// The lines of a text without its comments and its blanks at the ends.
fn bare(text: &str) -> Vec<String> {
    text.lines()
        .map(|l| l.split(" # ").next().unwrap().trim_end().to_owned())
        .filter(|l| !l.is_empty())
        .collect()
}

/// Every fix of every rule, in texts full of comments: the value is another one, every comment is where it was, every other line
/// is the same and in its order.
#[test]
fn fixes_keep_comments_and_order() {
    let mut made = 0;
    for e in examples() {
        for example in
            e.bad.iter().filter(|t| !t.contains("|\n") && !t.starts_with("FILE") && !t.contains(" #"))
        {
            // A comment behind each line and one between each two.
            let mut text = String::from("# head\n");
            for (i, line) in example.lines().enumerate() {
                let pad: String = line.chars().take_while(|c| *c == ' ').collect();
                text.push_str(&format!("{line} # behind {i}\n{pad}# below {i}\n\n"));
            }
            let before = found(&e.id, &text);
            let edits: Vec<crate::Edit> = before.iter().flat_map(|f| f.edits.iter().cloned()).collect();
            // An example of several documents is fixed document by document elsewhere.
            if edits.is_empty() || objects(&text).len() > 1 {
                continue;
            }
            let p = crate::fix(&text, &edits);
            made += p.done.len();
            let comments = |t: &str| -> Vec<String> {
                t.lines().filter_map(|l| Some(l.split_once("# ")?.1.to_owned())).collect()
            };
            assert_eq!(comments(&p.text), comments(&text), "{}\n{}", e.id, p.text);
            let (old, new) = (bare(&text), bare(&p.text));
            // What is new is at most the edited values and the keys above them.
            let kept = old.iter().filter(|l| new.contains(l)).count();
            assert!(kept + edits.len() >= old.len(), "{}\n{}", e.id, p.text);
            let mut rest = new.iter();
            assert!(
                old.iter().filter(|l| new.contains(l)).all(|l| rest.any(|n| n == l)),
                "{}\n{}",
                e.id,
                p.text
            );
            if p.done.len() == edits.len() {
                assert!(found(&e.id, &p.text).len() < before.len(), "{}: still found\n{}", e.id, p.text);
            }
        }
    }
    assert!(made >= 10, "{made}");
}

#[test]
fn rules_are_complete() {
    assert!(crate::rule::TEXT.is_whole());
    let rules = Rules::embedded().list();
    assert!(rules.len() >= 50, "{}", rules.len());
    let mut ids = BTreeSet::new();
    let mut used = BTreeSet::new();
    for r in rules {
        assert!(ids.insert(&r.id), "{} stands twice", r.id);
        assert!(r.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", r.id);
        assert_eq!(r.holds.is_some(), r.check.is_none(), "{}: an expression or a check", r.id);
        if let Some(check) = &r.check {
            assert!(checks::named(check).is_some(), "{}: there is no check {check}", r.id);
            used.insert(check.as_str());
        } else {
            assert!(!r.message.is_empty(), "{} has no message", r.id);
        }
        assert_eq!(
            r.each == Each::All,
            r.check.as_deref().is_some_and(|c| { matches!(checks::named(c), Some(checks::Run::All(_))) }),
            "{}",
            r.id
        );
        let object = r.each == Each::Object;
        assert!(!object || !r.kinds.is_empty(), "{} does not say of which kinds", r.id);
        for text in [&r.title, &r.why, &r.fix, &r.source] {
            assert!(text.len() > 8 && !text.contains('\n'), "{}: {text}", r.id);
        }
        assert!(!r.title.ends_with('.') && r.why.ends_with('.'), "{}", r.id);
    }
    for (check, _) in checks::TABLE {
        assert!(used.contains(check), "no rule uses {check}");
    }
    let all = examples();
    assert_eq!(all.len(), rules.len());
    assert!(all.iter().all(|e| !e.good.is_empty() && !e.bad.is_empty()));
    // Errors, warnings and notes are all there.
    for s in [Severity::Error, Severity::Warning, Severity::Note] {
        assert!(rules.iter().any(|r| r.severity == s));
    }
}

/// What an API server would say of an object: the policies' own text, evaluated by our CEL.
fn refused(policy: &Value, object: &Object) -> bool {
    let mut scope = Scope::new();
    scope.set("object", of(&object.value));
    let pods = Expression::new(PODS).ask(&scope);
    let mut variables = std::collections::HashMap::new();
    if let Ok(pods) = pods {
        variables.insert("pods".to_owned(), pods);
    }
    let variables: cel::Value = variables.into();
    scope.set("variables", variables.try_into().unwrap());
    for condition in policy["spec"]["matchConditions"].as_array().unwrap() {
        let text = condition["expression"].as_str().unwrap();
        if !Expression::new(text).holds(&scope).unwrap_or_else(|e| panic!("{text}: {e}")) {
            return false;
        }
    }
    let text = policy["spec"]["validations"][0]["expression"].as_str().unwrap();
    !Expression::new(text).holds(&scope).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn policies_say_the_same_as_the_linter() {
    let all = examples();
    let mut checked = 0;
    for rule in policy::rules() {
        let [policy, binding] = &policy::policies(std::iter::once(rule))[..] else { panic!("{}", rule.id) };
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        let own = all.iter().find(|e| e.id == rule.id).unwrap();
        for (examples, want) in [(&own.good, false), (&own.bad, true)] {
            for example in examples {
                for object in objects(example) {
                    let kinds = policy["spec"]["matchConstraints"].to_string();
                    let resource = format!("\"{}s\"", object.kind.to_lowercase());
                    if kinds.contains(&resource) {
                        assert_eq!(refused(policy, &object), want, "{}\n{example}", rule.id);
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked >= 60, "only {checked} objects");
}

#[test]
fn what_is_owned_or_ignored_is_left_alone() {
    let bad = examples().into_iter().find(|e| e.id == "host-ipc").unwrap().bad.remove(0);
    let [policy, _] = &policy::policies(policy::rules().filter(|r| r.id == "host-ipc"))[..] else { panic!() };
    for metadata in [
        "{name: llm, ownerReferences: [{kind: ReplicaSet, name: x}]}",
        "{name: llm, annotations: {lint.dualplane.dev/host-ipc: \"one pod for each node\"}}",
    ] {
        let text = bad.replace("{name: llm}", metadata);
        assert!(found("host-ipc", &text).is_empty(), "{text}");
        assert!(!refused(policy, &objects(&text)[0]), "{text}");
    }
    let without_reason =
        bad.replace("{name: llm}", "{name: llm, annotations: {lint.dualplane.dev/host-ipc: \"\"}}");
    assert!(!found("host-ipc", &without_reason).is_empty());
}

/// What stands elsewhere is no all-clear: a model of KServe has its container in a ServingRuntime.
#[test]
fn a_workload_without_containers_is_one_that_no_rule_looks_at() {
    let text = "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: llm}\nspec: {predictor: {model: {modelFormat: {name: huggingface}}}}\n";
    let linter = Linter::new(&Options::default());
    assert!(linter.object(&objects(text)[0]).unknown);
    let own = text.replace(
        "model: {modelFormat: {name: huggingface}}",
        "containers: [{name: c, image: \"vllm/vllm-openai:v0.11.2\"}]",
    );
    assert!(!linter.object(&objects(&own)[0]).unknown);
    assert_eq!(found("host-ipc", &own.replace("containers:", "hostIPC: true, containers:")).len(), 1);
    let worker = own
        .replace("{predictor: {containers", "{predictor: {workerSpec: {hostIPC: true, containers")
        .replace("}]}}", "}]}}}");
    assert_eq!(found("host-ipc", &worker).len(), 1, "{worker}");
}

/// KubeRay mounts a volume on /dev/shm itself.
#[test]
fn nothing_is_missed_that_an_operator_adds() {
    let ray = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: llm}\nspec: {headGroupSpec: {template: {spec: {containers: [{name: c, image: \"vllm/vllm-openai:v0.11.2\", resources: {limits: {nvidia.com/gpu: 2}}}]}}}}\n";
    assert!(found("shm-missing", ray).is_empty());
    assert_eq!(found("memory-limit-missing", ray).len(), 1);
}

/// What a workload owns is told of the workload; what only an operator's own kind owns would be told of nobody.
#[test]
fn what_is_owned_is_told_of_its_owner_where_rules_look_at_that() {
    let of = |owner: &str| {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: llm, ownerReferences: [{{apiVersion: x/v1, kind: {owner}, name: llm, uid: u}}]}}\nspec: {{template: {{spec: {{hostIPC: true, containers: [{{name: c, image: \"vllm/vllm-openai:v0.11.2\"}}]}}}}}}\n"
        );
        found("host-ipc", &text).len()
    };
    for (owner, want) in [
        ("Rollout", 0),
        ("LeaderWorkerSet", 0),
        ("InferenceService", 1),
        ("NIMService", 1),
        ("VLLMRuntime", 1),
    ] {
        assert_eq!(of(owner), want, "{owner}");
    }
}
