//! `dualplane incidents` over a folder as the agent leaves it.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use crate::harness::{code, incidents_dir, run, stderr, stdout};
use crate::schema::follows;

const FIRST: &str = "20261121T213812.345Z-serving-llm-0-vllm-0-aaaaaaaa";
const LATER: &str = "20261121T213822.000Z-serving-llm-0-vllm-1-bbbbbbbb";
const DONE: &str = "20261121T214000.000Z-batch-job-x-job-0-cccccccc";

fn summary(id: &str, kind: &str, namespace: &str, first: bool) -> Value {
    json!({"schema": "dualplane.incident/v1", "id": id, "kind": kind, "state": "judged",
        "died_at": "2026-11-21T21:38:12.345Z", "node": "n", "namespace": namespace, "pod": "llm-0", "uid": "u",
        "container": "vllm", "restart": 0, "first": first, "class": "host_oom_killed", "plane": "host",
        "trigger": "kill \u{9b}2J", "bytes": 100})
}

/// A bundle of one of our incidents.
fn bundle(id: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all(id, incidents_dir().join("real-v2-pod-limit")).unwrap();
    compress_to_vec(tar.into_inner().unwrap().as_slice(), CompressionLevel::Fastest)
}

fn state() -> tempfile::TempDir {
    let d = tempfile::tempdir().unwrap();
    let dir = d.path().join("incidents");
    fs::create_dir_all(&dir).unwrap();
    let mut later = summary(LATER, "death", "serving", false);
    later["state"] = json!("dropped");
    for (id, s) in [
        (FIRST, summary(FIRST, "death", "serving", true)),
        (LATER, later),
        (DONE, summary(DONE, "end", "batch", true)),
    ] {
        fs::write(dir.join(format!("{id}.json")), s.to_string()).unwrap();
    }
    fs::write(dir.join(format!("{FIRST}.tar.zst")), bundle(FIRST)).unwrap();
    // What is none: another name inside, and garbage.
    fs::write(
        dir.join(format!("{FIRST}x.json")),
        summary("../../etc/passwd", "death", "serving", true).to_string(),
    )
    .unwrap();
    d
}

fn incidents(d: &Path, args: &[&str]) -> std::process::Output {
    run(&[&["incidents"], args, &["--state", d.to_str().unwrap()]].concat())
}

#[test]
fn the_list_shows_deaths_and_says_what_it_leaves_out() {
    let d = state();
    let o = incidents(d.path(), &["ls"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let text = stdout(&o);
    assert!(text.contains("first death") && text.contains(FIRST) && !text.contains(LATER), "{text}");
    assert!(
        stderr(&o).contains("2 more with --all") && stderr(&o).contains("cannot read 1 incident"),
        "{}",
        stderr(&o)
    );
    let all = stdout(&incidents(d.path(), &["ls", "--all"]));
    assert!(all.contains("(bundle gone)") && all.contains(DONE), "{all}");
    let o = incidents(d.path(), &["ls", "--all", "-o", "json"]);
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    follows(&v, "incidents");
    assert_eq!(v["items"].as_array().unwrap().len(), 3);
    assert!(!stdout(&o).contains('\u{9b}') && v["items"][0]["trigger"] == "kill \u{9b}2J", "{}", stdout(&o));
    let none = incidents(d.path(), &["ls", "-n", "other", "-o", "json"]);
    let none: Value = serde_json::from_slice(&none.stdout).unwrap();
    assert_eq!(none["items"], json!([]));
}

#[test]
fn an_incident_is_shown_and_handed_out() {
    let d = state();
    for id in ["last", FIRST, "20261121T213812"] {
        let o = incidents(d.path(), &["show", id]);
        assert_eq!(code(&o), 0, "{id}: {}", stderr(&o));
        assert!(stdout(&o).contains("host_oom_killed"), "{}", stdout(&o));
    }
    let out = d.path().join("out.tar.zst");
    let o = incidents(d.path(), &["export", "last", "--out", out.to_str().unwrap()]);
    assert_eq!((code(&o), fs::read(&out).unwrap()), (0, bundle(FIRST)), "{}", stderr(&o));
    assert_eq!(incidents(d.path(), &["export", "last", "--out", "-"]).stdout, bundle(FIRST));
}

#[test]
fn what_is_not_there_is_said() {
    let d = state();
    for (args, exit, said) in [
        (["show", "20261121"], 4, "several incidents"),
        (["show", "../x"], 4, "no incident"),
        (["export", LATER], 4, "deleted to make room for later ones"),
    ] {
        let o = incidents(d.path(), &args);
        assert_eq!(code(&o), exit, "{args:?}: {}", stderr(&o));
        assert!(stderr(&o).contains(said), "{args:?}: {}", stderr(&o));
    }
    let o = incidents(Path::new("/nowhere/at/all"), &["ls"]);
    assert_eq!(code(&o), 3);
    assert!(
        stderr(&o).contains("/nowhere/at/all/incidents") && stderr(&o).contains("--state"),
        "{}",
        stderr(&o)
    );
}
