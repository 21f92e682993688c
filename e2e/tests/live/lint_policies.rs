//! The rules of `lint` as policies of the real API server: what the linter finds in the good and bad manifests of each rule,
//! the API server says as well.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Ran, create, dualplane, kubectl, root, until};

/// Policies look at this namespace only, so that no other test meets them.
const NAMESPACE: &str = "e2e-lint";

/// Kinds of the rules' examples that an API server without further resources knows.
const BUILT_IN: [&str; 6] = ["Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// A rule's id, severity, and its good and bad manifests.
struct Rule {
    id: String,
    error: bool,
    good: Vec<String>,
    bad: Vec<String>,
}

fn rules() -> Vec<Rule> {
    let dir = std::fs::read_dir(root().join("knowledge/lint")).unwrap();
    let mut files: Vec<_> = dir.map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut out = Vec::new();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
        let doc: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
        for r in doc.get("rule").and_then(toml::Value::as_array).into_iter().flatten() {
            let list = |key: &str| -> Vec<String> {
                let all = r[key].as_array().unwrap().iter().map(|e| e.as_str().unwrap().to_owned());
                all.filter(|e| is_built_in(e)).collect()
            };
            if r.get("holds").is_some() {
                out.push(Rule {
                    id: r["id"].as_str().unwrap().to_owned(),
                    error: r["severity"].as_str() == Some("error"),
                    good: list("good"),
                    bad: list("bad"),
                });
            }
        }
    }
    out.retain(|r| !r.bad.is_empty());
    out
}

fn is_built_in(example: &str) -> bool {
    let kinds: Vec<&str> = example.lines().filter_map(|l| l.strip_prefix("kind: ")).collect();
    !kinds.is_empty() && kinds.iter().all(|k| BUILT_IN.contains(k))
}

/// The policies with bindings for our namespace; `warn`: all of them only say what they find.
fn policies(warn: bool) -> String {
    let emitted = Ran::of(dualplane().args(["lint", "--emit", "policy", "--severity", "note"])).ok().text();
    let mut out = String::new();
    for document in emitted.split("---\n").filter(|d| !d.trim().is_empty()) {
        out.push_str("---\n");
        if !document.contains("kind: ValidatingAdmissionPolicyBinding") {
            out.push_str(document);
            continue;
        }
        let actions = document.find("  validationActions:").expect("a binding has actions");
        let here = format!(
            "  matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {NAMESPACE}}}}}}}\n"
        );
        let (head, tail) = document.split_at(actions);
        out.push_str(head);
        out.push_str(&here);
        out.push_str(if warn { "  validationActions: [Warn]\n" } else { tail });
    }
    out
}

/// What the API server says of a manifest without keeping it.
fn asked(manifest: &str) -> Ran {
    let mut child = Command::new("kubectl")
        .args(["create", "--dry-run=server", "-n", NAMESPACE, "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    let o = child.wait_with_output().unwrap();
    Ran {
        code: o.status.code(),
        out: o.stdout,
        err: String::from_utf8_lossy(&o.stderr).into_owned(),
        took: std::time::Duration::ZERO,
    }
}

/// Rules whose policies an answer names.
fn named(answer: &str) -> BTreeSet<String> {
    let behind = answer.split("ValidatingAdmissionPolicy 'dualplane-").skip(1);
    behind.filter_map(|rest| rest.split('\'').next()).map(str::to_owned).collect()
}

#[test]
fn policies_find_what_the_linter_finds() {
    create(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"));
    create(&policies(true));
    let rules = rules();
    // A policy works a moment after it was created.
    let host_ipc = rules.iter().find(|r| r.id == "host-ipc").unwrap();
    until("the policies work", || named(&asked(&host_ipc.bad[0]).err).contains("host-ipc").then_some(()));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for rule in &rules {
        for (examples, bad) in [(&rule.good, false), (&rule.bad, true)] {
            for example in examples {
                let ran = asked(example);
                seen += 1;
                if ran.code != Some(0) {
                    wrong.push(format!(
                        "{}: the API server does not take its example: {}\n{example}",
                        rule.id, ran.err
                    ));
                } else if named(&ran.err).contains(&rule.id) != bad {
                    wrong
                        .push(format!("{}: found {}, expected {bad}: {}\n{example}", rule.id, !bad, ran.err));
                }
            }
        }
    }
    assert!(seen >= 60, "only {seen} examples");
    // No expression may be one that the API server cannot evaluate.
    let all: Value =
        serde_json::from_str(&kubectl(&["get", "validatingadmissionpolicies", "-o", "json"])).unwrap();
    for policy in all["items"].as_array().unwrap() {
        let name = policy["metadata"]["name"].as_str().unwrap();
        let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
        let undeclared = warnings.to_string().contains("undeclared reference");
        if name.starts_with("dualplane-") && undeclared {
            wrong.push(format!("{name}: {warnings}"));
        }
    }
    // As they are printed: errors are refused, the rest is only said.
    create(&policies(false));
    let in_bytes = rules.iter().find(|r| r.id == "memory-limit-in-bytes").unwrap();
    until("errors are refused", || (asked(&in_bytes.bad[0]).code != Some(0)).then_some(()));
    for rule in rules.iter().filter(|r| r.error) {
        for example in &rule.bad {
            let ran = asked(example);
            if ran.code == Some(0) || !ran.err.contains("dualplane lint --explain") {
                wrong.push(format!("{}: it is not refused: {}", rule.id, ran.err));
            }
        }
    }
    let ignored = in_bytes.bad[0].replace(
        "metadata: {name: llm}",
        "metadata: {name: llm, annotations: {lint.dualplane.dev/memory-limit-in-bytes: \"a test\"}}",
    );
    assert_ne!(ignored, in_bytes.bad[0]);
    if asked(&ignored).code != Some(0) {
        wrong.push("an annotation with a reason does not let an object pass".to_owned());
    }
    let label = "app.kubernetes.io/part-of=dualplane";
    kubectl(&["delete", "validatingadmissionpolicybindings,validatingadmissionpolicies", "-l", label]);
    kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
