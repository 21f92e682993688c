//! `dualplane lint`: the real program on good, bad and hostile manifests.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{code, dir, dualplane, root, run, stderr, stdout};
use crate::schema::follows;

const BAD: &str = "# ours\napiVersion: v1\nkind: Pod\nmetadata: {name: llm, namespace: serving}\nspec:\n  hostIPC: true\n  terminationGracePeriodSeconds: 5   # quick\n  containers:\n  - name: server\n    image: vllm/vllm-openai:v0.11.2\n    args: [--model, example/own-model]\n    resources: {limits: {memory: 32, nvidia.com/gpu: 1}}\n";

fn piped(args: &[&str], input: &[u8]) -> std::process::Output {
    let mut child = dualplane()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let o = child.wait_with_output().unwrap();
    writer.join().unwrap();
    o
}

#[test]
fn findings_name_the_object_the_line_and_the_value() {
    let o = piped(&["lint", "-"], BAD.as_bytes());
    let text = stdout(&o);
    assert_eq!(code(&o), 18, "{text}");
    for words in [
        "-:12: error: Pod serving/llm, container server  [memory-limit-in-bytes]",
        "fix: write its unit: 32Gi or 32Mi",
        "-:6: warning: Pod serving/llm  [host-ipc]",
        "checked 1 object in 1 file, found 1 error, 2 warnings and 0 notes",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn exit_codes_follow_the_severity_that_fails() {
    let warning = BAD.replace("memory: 32,", "memory: 32Gi,");
    let good = warning.replace("  hostIPC: true\n", "").replace("Seconds: 5 ", "Seconds: 60 ");
    for (text, args, want) in [
        (BAD, &["lint", "-"][..], 18),
        (BAD, &["lint", "-", "--fail-on", "never"], 0),
        (&warning, &["lint", "-"], 17),
        (&warning, &["lint", "-", "--fail-on", "error"], 0),
        (&good, &["lint", "-"], 0),
        (&good, &["lint", "-", "--severity", "note", "--fail-on", "note"], 17),
        ("a: [", &["lint", "-"], 3),
        // Values and settings pass, so that a hook on all YAML of a commit does; nothing at all does not.
        ("replicas: 2\n", &["lint", "-"], 0),
        ("# nothing\n", &["lint", "-"], 4),
        (&good, &["lint", "-", "--rule", "shm-mising"], 2),
        (&good, &["lint", "-", "--gpu", "H1000"], 2),
    ] {
        let o = piped(args, text.as_bytes());
        assert_eq!(code(&o), want, "{args:?}\n{text}\n{}{}", stdout(&o), stderr(&o));
    }
    assert_eq!(code(&run(&["lint", "/nonexistent"])), 3);
}

#[test]
fn every_format_is_what_its_readers_expect() {
    let of = |format: &str| stdout(&piped(&["lint", "-", "-o", format], BAD.as_bytes()));
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    follows(&json, "lint");
    assert_eq!(json["summary"]["errors"], 1);
    let sarif: Value = serde_json::from_str(&of("sarif")).unwrap();
    assert_eq!(
        (&sarif["version"], sarif["runs"][0]["results"].as_array().unwrap().len()),
        (&"2.1.0".into(), 3)
    );
    for result in sarif["runs"][0]["results"].as_array().unwrap() {
        let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
        assert!(rules.iter().any(|r| r["id"] == result["ruleId"]));
        assert!(result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64().unwrap() > 1);
    }
    let github = of("github");
    assert!(github.contains("::error file=-,line=12,title=memory-limit-in-bytes::"), "{github}");
    assert!(github.lines().all(|l| l.starts_with("::")));
    let gitlab: Value = serde_json::from_str(&of("gitlab")).unwrap();
    assert_eq!(gitlab.as_array().unwrap().len(), 3);
    let junit = of("junit");
    assert!(
        junit.starts_with("<?xml") && junit.contains("failures=\"3\"") && junit.ends_with("</testsuites>\n")
    );
}

#[test]
fn annotations_exceptions_and_a_baseline_hold_findings_back() {
    let annotated =
        BAD.replace("{name: llm,", "{name: llm, annotations: {lint.dualplane.dev/host-ipc: \"ours\"},");
    let o = piped(&["lint", "-"], annotated.as_bytes());
    assert!(
        !stdout(&o).contains("host-ipc]") && stdout(&o).contains("1 finding is suppressed"),
        "{}",
        stdout(&o)
    );
    let d = dir(&[
        ("pod.yaml", BAD.as_bytes()),
        ("ignore.toml", b"[[ignore]]\nrule = \"grace-short\"\nobject = \"Pod/*/llm\"\nreason = \"a test\"\n"),
        ("wrong.toml", b"[[ignore]]\nrule = \"grace-short\"\nreason = \"\"\n"),
    ]);
    let at = |name: &str| d.path().join(name).to_string_lossy().into_owned();
    let o = run(&["lint", &at("pod.yaml"), "--ignore-file", &at("ignore.toml")]);
    assert!(!stdout(&o).contains("grace-short"), "{}", stdout(&o));
    let o = run(&["lint", &at("pod.yaml"), "--ignore-file", &at("wrong.toml")]);
    assert!(code(&o) == 2 && stderr(&o).contains("no reason"), "{}", stderr(&o));
    assert_eq!(code(&run(&["lint", &at("pod.yaml"), "--write-baseline", &at("base.json")])), 0);
    let o = run(&["lint", &at("pod.yaml"), "--baseline", &at("base.json")]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    // Lines that move change nothing; a new finding is told.
    let moved = format!(
        "# one line more\n{}",
        BAD.replace(
            "  hostIPC: true\n",
            "  hostIPC: true\n  volumes: [{name: s, hostPath: {path: /dev/shm}}]\n"
        )
    );
    std::fs::write(at("pod.yaml"), moved).unwrap();
    let o = run(&["lint", &at("pod.yaml"), "--baseline", &at("base.json")]);
    assert!(code(&o) == 17 && stdout(&o).contains("shm-of-the-node"), "{}", stdout(&o));
}

#[test]
fn fixes_change_single_values_and_keep_comments() {
    let text = BAD.replace("memory: 32,", "memory: 64Gi,");
    let d = dir(&[("pod.yaml", text.as_bytes())]);
    let at = d.path().join("pod.yaml");
    let o = run(&["lint", at.to_str().unwrap(), "--fix"]);
    assert!(stdout(&o).contains("+  terminationGracePeriodSeconds: 120   # quick"), "{}", stdout(&o));
    assert_eq!(std::fs::read_to_string(&at).unwrap(), text);
    run(&["lint", at.to_str().unwrap(), "--fix", "--write"]);
    assert_eq!(std::fs::read_to_string(&at).unwrap(), text.replace("Seconds: 5 ", "Seconds: 120 "));
}

/// A flag is a value where it is a word of its own; what a shell reads is left alone.
#[test]
fn fixes_change_flags_where_they_stand_alone() {
    let with = |args: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: llm}}\nspec:\n  containers:\n  - name: server\n    \
             image: vllm/vllm-openai:v0.11.2\n{args}    resources: {{limits: {{memory: 32Gi, nvidia.com/gpu: 1}}}}\n"
        )
    };
    let fixed = |args: &str| {
        let d = dir(&[("pod.yaml", with(args).as_bytes())]);
        let at = d.path().join("pod.yaml");
        let o = run(&["lint", at.to_str().unwrap(), "--fix", "--write", "--rule", "share-too-high"]);
        (std::fs::read_to_string(&at).unwrap(), stdout(&o) + &stderr(&o))
    };
    for (before, after) in [
        (
            "    args: [--model, example/own-model, --gpu-memory-utilization, \"0.98\"] # ours\n",
            "    args: [--model, example/own-model, --gpu-memory-utilization, \"0.92\"] # ours\n",
        ),
        (
            "    args:\n    - --model=example/own-model\n    - --gpu-memory-utilization=0.98 # ours\n",
            "    args:\n    - --model=example/own-model\n    - --gpu-memory-utilization=0.92 # ours\n",
        ),
        (
            "    command: [vllm, serve, example/own-model, '--gpu-memory-utilization=0.98']\n",
            "    command: [vllm, serve, example/own-model, '--gpu-memory-utilization=0.92']\n",
        ),
    ] {
        let (text, said) = fixed(before);
        assert_eq!(text, with(after), "{said}");
    }
    for left in [
        "    command: [sh, -c, \"vllm serve example/own-model --gpu-memory-utilization 0.98\"]\n",
        "    args: [--model, a/b, --gpu-memory-utilization, \"0.9\", --gpu-memory-utilization, \"0.98\"]\n",
    ] {
        let (text, said) = fixed(left);
        assert_eq!(text, with(left), "{said}");
        assert!(said.contains("left for you to decide"), "{said}");
    }
}

#[test]
fn broken_input_costs_only_itself() {
    let text = format!(
        "a: [\n---\n{BAD}---\nkind: Pod\nmetadata: {{name: x}}\nspec: {{{{ toYaml .Values.spec }}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\n---\napiVersion: example.com/v1\nkind: Unheard\nmetadata: {{name: x}}\n"
    );
    let o = piped(&["lint", "-"], text.as_bytes());
    let said = stdout(&o);
    for words in [
        "-:1: document 1 was not checked: it is not YAML: unclosed bracket",
        "memory-limit-in-bytes",
        "helm template CHART | dualplane lint -",
        "no rule looks at ConfigMap (1), Unheard (1)",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    let d = dir(&[
        ("chart/Chart.yaml", b"name: x\n"),
        ("chart/templates/a.yaml", b"kind: {{ .Values.kind }}\n"),
        ("pod.yaml", BAD.as_bytes()),
    ]);
    let o = run(&["lint", d.path().to_str().unwrap()]);
    assert!(
        stdout(&o).replace("\n  ", " ").contains("is a chart, and its templates were not checked"),
        "{}",
        stdout(&o)
    );
    // A chart alone was asked for, and nothing of it was checked.
    let o = run(&["lint", d.path().join("chart").to_str().unwrap()]);
    assert!(code(&o) == 3 && stdout(&o).contains("helm template"), "{} {}", code(&o), stdout(&o));
    for hostile in [
        "[".repeat(100_000).into_bytes(),
        b"\xff\xfe\x00".to_vec(),
        b"a: &a [*a]\n".to_vec(),
        "x".repeat(9 << 20).into_bytes(),
        b"{\"kind\":\"List\",\"items\":[{\"kind\"".to_vec(),
    ] {
        let o = piped(&["lint", "-"], &hostile);
        assert!(matches!(code(&o), 0 | 3), "{} {}", code(&o), stderr(&o));
    }
    let many = "---\na: 1\n".repeat(20_000);
    assert_eq!(code(&piped(&["lint", "-"], many.as_bytes())), 0);
    let json = format!("{{\"kind\":\"List\",\"items\":[{}]}}", ["{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostIPC\":true,\"containers\":[{\"name\":\"c\",\"image\":\"vllm/vllm-openai:v0.11.2\"}]}}"; 3].join(","));
    let o = piped(&["lint", "-", "--rule", "host-ipc", "-o", "json"], json.as_bytes());
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(v["findings"][2]["pointer"], "/items/2/spec/hostIPC");
}

/// Rules look at servers that they know; what else asks for a GPU is named, so that silence is no all-clear.
#[test]
fn a_gpu_without_a_known_engine_is_said() {
    let own = BAD.replace("vllm/vllm-openai", "registry.example/own-server");
    let o = piped(&["lint", "-", "-o", "json"], own.as_bytes());
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    follows(&v, "lint");
    assert_eq!((code(&o), v["findings"].as_array().unwrap().len()), (0, 0), "{v}");
    let said = v["remarks"][0].as_str().unwrap();
    assert!(said.contains("1 container asks for a GPU") && said.contains("own-server"), "{said}");
    let proxied = BAD.replace("vllm/vllm-openai", "proxy.example/router/vllm/vllm-openai");
    assert_eq!(code(&piped(&["lint", "-"], proxied.as_bytes())), 18);
}

/// Notes never push errors out of the count or the list.
#[test]
fn errors_behind_many_notes_are_counted_and_listed() {
    let note = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: s, image: 'vllm/vllm-openai:v0.11.2', resources: {limits: {memory: 32Gi, nvidia.com/gpu: 1}}}]}\n";
    let text = format!("{}---\n{BAD}", note.repeat(4_000));
    let o = piped(&["lint", "-", "--severity", "note"], text.as_bytes());
    let said = stdout(&o);
    let last = said.split("checked ").last().unwrap();
    assert!(code(&o) == 18 && last.contains("found 1 error,") && last.contains("are not listed"), "{last}");
    assert!(said.contains("[memory-limit-in-bytes]"), "{last}");
}

/// Manifests of this repository and good manifests of each engine have nothing that fails.
#[test]
fn good_manifests_have_no_findings() {
    for path in ["deploy/agent.yaml", "deploy/rbac.yaml", "testdata/manifests"] {
        let o = run(&["lint", root().join(path).to_str().unwrap(), "--severity", "note"]);
        assert_eq!(code(&o), 0, "{path}: {}{}", stdout(&o), stderr(&o));
        assert!(stdout(&o).contains("found 0 errors, 0 warnings and 0 notes"), "{path}: {}", stdout(&o));
        // Nothing of them is passed over.
        assert!(!stdout(&o).contains("no rule looked there"), "{path}: {}", stdout(&o));
    }
    let o = run(&["lint", root().join("testdata/manifests").to_str().unwrap(), "-o", "json"]);
    let all: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert!(all["summary"]["objects"].as_u64() >= Some(60), "{}", all["summary"]);
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it lint` writes the chart's policies anew.
#[test]
fn the_chart_has_the_same_policies() {
    let text = dualplane_lint::policy::chart();
    assert!(text.matches("severity: ").count() >= 35, "{text}");
    expectorate::assert_contents(root().join("deploy/helm/dualplane/policies.yaml"), &text);
}

#[test]
fn policies_are_printed_with_their_bindings() {
    let o = run(&["lint", "--emit", "policy", "--severity", "note"]);
    let text = stdout(&o);
    let count = |kind: &str| text.lines().filter(|l| *l == format!("kind: {kind}")).count();
    assert_eq!(count("ValidatingAdmissionPolicy"), count("ValidatingAdmissionPolicyBinding"));
    assert!(count("ValidatingAdmissionPolicy") >= 35, "{}", count("ValidatingAdmissionPolicy"));
    // Our own linter reads them, and no rule looks at them.
    assert!(
        stdout(&piped(&["lint", "-"], text.as_bytes()))
            .contains("no rule looks at ValidatingAdmissionPolicy")
    );
}

#[test]
fn the_table_of_rules_in_the_manual_is_what_the_program_lists() {
    let page = root().join("docs/lint.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once("writes this table -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end -->").unwrap();
    let table = stdout(&run(&["lint", "--list"]));
    let new = format!("{head}writes this table -->\n\n{table}\n<!-- end -->{tail}");
    expectorate::assert_contents(page, &new);
    let explained = stdout(&run(&["lint", "--explain", "shm-missing"]));
    assert!(explained.contains("why:") && explained.contains("source:"), "{explained}");
}
