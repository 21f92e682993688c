//! The hook for pre-commit and the action for GitHub, run as those run them: the files of a real commit, the script of a step.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use regex::Regex;
use serde_json::Value;

use crate::harness::{code, dir, root, stderr, stdout};

const BAD: &[u8] = b"apiVersion: v1\nkind: Pod\nmetadata: {name: llm}\nspec:\n  containers:\n  - name: server\n    image: vllm/vllm-openai:v0.11.2\n    resources: {limits: {memory: 32, nvidia.com/gpu: 1}}\n";
const OTHER: &[u8] = b"apiVersion: v1\nkind: Service\nmetadata: {name: llm}\n";

/// The folder of the program before the usual ones.
fn path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_dualplane"));
    format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display())
}

fn sh(dir: &Path, script: &str, env: &[(&str, &str)]) -> Output {
    let mut c = Command::new("bash");
    c.args(["-c", script]).current_dir(dir).env_clear().env("PATH", path()).env("HOME", dir);
    c.envs(env.iter().copied()).output().unwrap()
}

fn git(dir: &Path, args: &str) -> String {
    let o = sh(dir, &format!("git -c user.name=a -c user.email=a@b {args}"), &[]);
    assert_eq!(code(&o), 0, "git {args}: {}", stderr(&o));
    stdout(&o)
}

/// What pre-commit does with a hook of the language `system`: its entry, and behind it the staged files that it names.
fn hook(dir: &Path) -> Option<Output> {
    let text = std::fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    let hooks: Value = serde_saphyr::from_str(&text).unwrap();
    let hook = &hooks[0];
    assert_eq!((&hook["id"], &hook["language"]), (&Value::from("dualplane-lint"), &Value::from("system")));
    let pattern = |key: &str| Regex::new(hook[key].as_str().unwrap()).unwrap();
    let (files, exclude) = (pattern("files"), pattern("exclude"));
    let staged = git(dir, "diff --staged --name-only --diff-filter=ACMRTUXB");
    let staged: Vec<&str> = staged.lines().filter(|f| files.is_match(f) && !exclude.is_match(f)).collect();
    let words: Vec<&str> = hook["entry"].as_str().unwrap().split(' ').chain(staged.iter().copied()).collect();
    (!staged.is_empty()).then(|| {
        let (program, args) = words.split_first().unwrap();
        let mut c = Command::new("env");
        c.arg(program).args(args).current_dir(dir).env_clear().env("PATH", path()).output().unwrap()
    })
}

#[test]
fn the_hook_stops_a_commit_that_brings_a_bad_manifest_and_no_other() {
    if !sh(Path::new("/"), "git --version", &[]).status.success() {
        return;
    }
    let d = dir(&[
        ("k8s/bad one.yaml", BAD),
        ("k8s/service.yaml", OTHER),
        ("empty.yaml", b""),
        ("package.json", b"{\"name\": \"x\", \"version\": \"1\"}\n"),
        ("values.yaml", b"replicas: 2\n"),
        ("chart/templates/pod.yaml", b"kind: Pod\nspec: {{ .Values.x }}\n"),
        ("README.md", b"kind: Pod\n"),
    ]);
    let d = d.path();
    git(d, "init -q");
    git(d, "add README.md chart");
    assert!(hook(d).is_none(), "templates and other files are none of its business");
    // Files of other tools, alone and together, pass.
    for file in ["empty.yaml", "package.json", "values.yaml", "k8s/service.yaml"] {
        git(d, &format!("add {file}"));
        let o = hook(d).unwrap();
        assert_eq!(code(&o), 0, "{file}: {}{}", stdout(&o), stderr(&o));
        git(d, "commit -qm x --no-verify");
        // One for itself next.
    }
    git(d, "add k8s");
    let o = hook(d).unwrap();
    let said = stdout(&o);
    assert_eq!(code(&o), 18, "{said}{}", stderr(&o));
    assert!(said.contains("k8s/bad one.yaml:8: error:") && said.contains("memory-limit-in-bytes"), "{said}");
}

fn script() -> String {
    let text = std::fs::read_to_string(root().join(".github/actions/lint/action.yml")).unwrap();
    let action: Value = serde_saphyr::from_str(&text).unwrap();
    let steps = action["runs"]["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[0]["shell"]), (1, &Value::from("bash")));
    let script = steps[0]["run"].as_str().unwrap();
    assert!(!script.contains("${{"), "a value in the text of a script is run");
    script.to_owned()
}

/// The step with these inputs; the others have their defaults.
fn action(dir: &Path, inputs: &[(&str, &str)]) -> Output {
    let defaults = [("INPUT_PATHS", "."), ("INPUT_CHART", ""), ("INPUT_ARGS", ""), ("INPUT_SARIF", "")];
    sh(dir, &script(), &[&defaults[..], inputs].concat())
}

#[test]
fn the_action_annotates_fails_and_writes_sarif() {
    let d = dir(&[("k8s/bad.yaml", BAD), ("ok/service.yaml", OTHER)]);
    let d = d.path();
    let o = action(d, &[]);
    let said = stdout(&o);
    assert_eq!(code(&o), 18, "{said}{}", stderr(&o));
    assert!(said.contains("::error file=./k8s/bad.yaml,line=8,title=memory-limit-in-bytes::"), "{said}");
    assert_eq!(code(&action(d, &[("INPUT_PATHS", "ok")])), 0);
    // SARIF is written whatever is found, and what is found still fails the step.
    for args in ["", "--fail-on error", "--severity error --fail-on error"] {
        let _ = std::fs::remove_file(d.join("out.sarif"));
        let o = action(d, &[("INPUT_SARIF", "out.sarif"), ("INPUT_ARGS", args), ("INPUT_PATHS", "k8s ok")]);
        assert_eq!(code(&o), 18, "{args}: {}", stderr(&o));
        let sarif: Value = serde_json::from_slice(&std::fs::read(d.join("out.sarif")).unwrap()).unwrap();
        assert!(!sarif["runs"][0]["results"].as_array().unwrap().is_empty(), "{args}");
    }
    // A wrong flag is no finding.
    let o = action(d, &[("INPUT_SARIF", "out.sarif"), ("INPUT_ARGS", "--no-such-flag")]);
    assert_eq!(code(&o), 2, "{}", stdout(&o));
    // Inputs are words and no text of the script.
    let o = action(
        d,
        &[("INPUT_PATHS", "$(touch gone) `touch gone` ;touch gone"), ("INPUT_ARGS", "$(touch gone)")],
    );
    assert_ne!(code(&o), 0);
    assert!(!d.join("gone").exists());
}

#[test]
fn the_action_renders_a_chart_and_says_when_the_program_is_missing() {
    let d = dir(&[("bin/helm", b"#!/bin/sh\necho \"$@\" >called\ncat bad.yaml\n"), ("bad.yaml", BAD)]);
    let d = d.path();
    std::fs::set_permissions(d.join("bin/helm"), PermissionsExt::from_mode(0o755)).unwrap();
    let with_helm = format!("{}:{}", d.join("bin").display(), path());
    let o = action(d, &[("INPUT_CHART", "./chart"), ("INPUT_PATHS", "nothing"), ("PATH", &with_helm)]);
    assert_eq!(code(&o), 18, "{}", stderr(&o));
    assert_eq!(std::fs::read_to_string(d.join("called")).unwrap(), "template ./chart\n");
    let o = action(d, &[("PATH", "/usr/bin:/bin")]);
    assert_eq!(code(&o), 2);
    assert!(stdout(&o).contains("::error title=dualplane is missing::"), "{}", stdout(&o));
}
