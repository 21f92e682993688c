//! Documents of each release are read by this one, and those of a later one are said to be newer.
//!
//! `testdata/releases/VERSION/` is written once, by the release, and never again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use dualplane_base::deprecation::{DEPRECATED, Deprecation, Release, Thing};
use dualplane_base::schema::SCHEMAS;
use serde_json::Value;

use crate::harness::{code, dir, root, run, stderr, stdout};

fn releases() -> Vec<PathBuf> {
    let dirs = std::fs::read_dir(root().join("testdata/releases")).unwrap().map(|e| e.unwrap().path());
    let all: Vec<PathBuf> = dirs.filter(|p| p.is_dir()).collect();
    assert!(!all.is_empty());
    all
}

#[test]
fn every_release_s_documents_are_read() {
    for release in releases() {
        let path = release.to_str().unwrap();
        let o = run(&["upgrade-check", path, "-o", "json"]);
        assert_eq!(code(&o), 0, "{}", stdout(&o));
        let said: Value = serde_json::from_str(&stdout(&o)).unwrap();
        let kinds: Vec<&str> =
            said["items"].as_array().unwrap().iter().filter_map(|i| i["document"].as_str()).collect();
        for kind in ["bundle", "verdict", "verdicts", "calibration", "shape"] {
            assert!(kinds.contains(&kind), "{path} keeps no {kind}");
        }
    }
}

/// Read, and understood as it was then.
#[test]
fn every_release_s_documents_say_what_they_said() {
    for release in releases() {
        let of = |name: &str| release.join(name).to_string_lossy().into_owned();
        let then: Value = serde_json::from_slice(&std::fs::read(of("bundle.verdict.json")).unwrap()).unwrap();
        let now: Value =
            serde_json::from_str(&stdout(&run(&["triage", &of("bundle.tar.zst"), "-o", "json"]))).unwrap();
        assert_eq!(then["verdict"]["class"], now["verdict"]["class"]);
        assert_eq!(then["trigger"]["signature"], now["trigger"]["signature"]);
        // Both fixes of the report are offered.
        let o = run(&["apply", &of("report.json"), "--dry-run", "--kubeconfig", "/nonexistent"]);
        let offered = stderr(&o);
        assert!(offered.contains("Set --hicache-size 74") && offered.contains("--action N"), "{offered}");
        for (flag, file) in [("--calibration", "calibration.toml"), ("--shape", "shape.toml")] {
            let o = run(&[
                "plan",
                "Qwen/Qwen3-0.6B",
                "--gpu",
                "H100-80GB",
                "--engine-version",
                "0.11.0",
                flag,
                &of(file),
            ]);
            assert_eq!(code(&o), 0, "{flag}: {}", stderr(&o));
        }
    }
}

#[test]
fn what_a_newer_version_wrote_is_said_to_be_newer() {
    let newest = |name: &str| SCHEMAS.iter().find(|s| s.name == name).unwrap().newest;
    let newer = |name: &str| format!("dualplane.{name}/v{}", newest(name) + 1);
    let report = format!(r#"{{"schema": "{}", "actions": []}}"#, newer("verdict"));
    let manifest = format!(r#"{{"schema": "{}"}}"#, newer("bundle"));
    let shape = format!("schema = \"{}\"\nall = 1\n", newer("shape"));
    let calibration = format!("schema = \"{}\"\n", newer("calibration"));
    let d = dir(&[
        ("report.json", report.as_bytes()),
        ("manifest.json", manifest.as_bytes()),
        ("shape.toml", shape.as_bytes()),
        ("calibration.toml", calibration.as_bytes()),
        ("cut.json", b"{\"schema\": \"dualplane.verdict/v2\", \"actions\": ["),
        ("log.txt", b"one line"),
    ]);
    let at = |name: &str| d.path().join(name).to_string_lossy().into_owned();
    let o = run(&["upgrade-check", d.path().to_str().unwrap()]);
    assert_eq!(code(&o), 5);
    let said = stdout(&o);
    assert_eq!(said.matches("update dualplane").count(), 4, "{said}");
    assert!(
        said.contains("cut.json: it is cut or damaged") && said.contains("does not read 5 documents"),
        "{said}"
    );
    for args in [
        vec!["apply", &at("report.json"), "--dry-run"],
        vec!["plan", "Qwen/Qwen3-0.6B", "--gpu", "H100-80GB", "--shape", &at("shape.toml")],
        vec!["plan", "Qwen/Qwen3-0.6B", "--gpu", "H100-80GB", "--calibration", &at("calibration.toml")],
    ] {
        let o = run(&args);
        assert!(code(&o) != 0 && stderr(&o).contains("update dualplane"), "{args:?}: {}", stderr(&o));
    }
    // A bundle may be all that is left: it is read, and the report says that some of it may not be.
    let o = run(&["triage", &at("manifest.json"), &at("log.txt"), "-o", "json"]);
    assert!(code(&o) == 0 && stdout(&o).contains("update dualplane"), "{}", stdout(&o));
}

#[test]
fn what_is_nobodys_of_ours_is_no_all_clear() {
    let d = dir(&[("other.json", b"{\"schema\": \"apps/v1\"}"), ("x.toml", b"a = 1")]);
    let o = run(&["upgrade-check", d.path().to_str().unwrap()]);
    assert_eq!(code(&o), 4, "{}", stdout(&o));
    assert_eq!(code(&run(&["upgrade-check", "/nonexistent"])), 3);
}

/// Fields that a schema marks as deprecated, by their paths. Lists stand for their items.
fn marked(schema: &Value) -> BTreeSet<String> {
    fn walk(node: &Value, whole: &Value, path: &str, depth: u32, out: &mut BTreeSet<String>) {
        if depth > 12 {
            return;
        }
        let of =
            node.get("$ref").and_then(Value::as_str).and_then(|r| whole.pointer(r.trim_start_matches('#')));
        if let Some(of) = of {
            walk(of, whole, path, depth + 1, out);
        }
        for (name, field) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if field.get("deprecated") == Some(&Value::Bool(true)) {
                out.insert(path.clone());
            }
            walk(field, whole, &path, depth + 1, out);
        }
        for key in ["items", "oneOf", "anyOf", "allOf"] {
            let inner = node.get(key).into_iter();
            for n in inner.flat_map(|v| v.as_array().map_or(std::slice::from_ref(v), Vec::as_slice)) {
                walk(n, whole, path, depth + 1, out);
            }
        }
    }
    let mut out = BTreeSet::new();
    walk(schema, schema, "", 0, &mut out);
    out
}

/// Who reads a schema sees the same as who reads standard error.
#[test]
fn schemas_mark_the_fields_that_go() {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().path());
    let mut seen = 0;
    for path in docs.filter(|p| p.to_string_lossy().ends_with(".schema.json")) {
        let name = path.file_name().unwrap().to_string_lossy().replace(".schema.json", "");
        let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let of = |d: &&Deprecation| d.of == name && matches!(d.thing, Thing::Field | Thing::Key);
        let table: BTreeSet<String> = DEPRECATED.iter().filter(of).map(|d| d.name.to_owned()).collect();
        assert_eq!(marked(&schema), table, "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} schemas");
    // The walk finds what it looks for: in lists, choices and named parts.
    let example = serde_json::json!({
        "properties": {
            "a": {"deprecated": true},
            "list": {"items": {"$ref": "#/$defs/part"}},
            "choice": {"oneOf": [{"type": "null"}, {"properties": {"b": {"deprecated": true}}}]},
        },
        "$defs": {"part": {"properties": {"c": {"deprecated": true}, "d": {}, "self": {"$ref": "#/$defs/part"}}}},
    });
    let found = marked(&example);
    for path in ["a", "choice.b", "list.c"] {
        assert!(found.contains(path), "{path}: {found:?}");
    }
    assert!(found.iter().all(|p| p == "a" || p.ends_with(".b") || p.ends_with(".c")), "{found:?}");
}

/// What we print to be pasted does not name what goes.
#[test]
fn our_own_rules_and_boards_name_nothing_that_goes() {
    let metrics: Vec<&Deprecation> = DEPRECATED.iter().filter(|d| d.thing == Thing::Metric).collect();
    for args in [&["rules"][..], &["dashboards", "-o", "configmap"]] {
        let o = run(args);
        let text = stdout(&o);
        assert!(code(&o) == 0 && text.contains("dualplane:"), "{args:?}");
        for d in &metrics {
            assert!(!d.is_named_in(&text), "{args:?}: {d}");
        }
    }
}

#[test]
fn the_list_of_what_goes_needs_no_files() {
    let o = run(&["upgrade-check"]);
    assert_eq!((code(&o), stdout(&o).lines().count()), (0, DEPRECATED.len() + 1), "{}", stdout(&o));
    let o = run(&["upgrade-check", "-o", "json"]);
    let said: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(said["deprecated"].as_array().unwrap().len(), DEPRECATED.len());
    assert_eq!(said["items"], serde_json::json!([]));
    // The page says so as well.
    let page = std::fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    let version = Release::of(env!("CARGO_PKG_VERSION")).unwrap();
    let none = format!("**Nothing is deprecated in {version}.**");
    assert_eq!(page.contains(&none), DEPRECATED.is_empty(), "{none}");
    for d in DEPRECATED {
        assert!(page.contains(d.name) && page.contains(d.instead), "docs/compatibility.md lacks {d}");
    }
}

/// The page and the table say the same.
#[test]
fn the_page_of_compatibility_names_every_document() {
    let page = std::fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    for s in SCHEMAS {
        let row = page.lines().find(|l| l.starts_with(&format!("| `{}` |", s.name)));
        let row = row.unwrap_or_else(|| panic!("docs/compatibility.md lacks {}", s.name));
        for command in s.read_by {
            assert!(row.contains(&format!("`{command}`")), "{row}: {command}");
        }
        let versions = match (s.read_by.is_empty(), s.oldest == s.newest) {
            (true, _) => String::new(),
            (false, true) => s.newest.to_string(),
            (false, false) => format!("{} to {}", s.oldest, s.newest),
        };
        assert_eq!(row.trim_end_matches('|').rsplit('|').next().unwrap().trim(), versions, "{row}");
    }
    assert_eq!(page.lines().filter(|l| l.starts_with("| `")).count(), SCHEMAS.len());
}
