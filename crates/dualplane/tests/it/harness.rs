//! Runs the binary with a scrubbed environment in a fresh directory.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn incidents_dir() -> PathBuf {
    root().join("testdata/incidents")
}

/// The labelled corpus beside the project, where it is there.
pub(crate) fn shared_incidents() -> Option<PathBuf> {
    let dir = root().join("../shared/corpus/incidents");
    dir.is_dir().then_some(dir)
}

pub(crate) fn dualplane() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_dualplane"));
    c.env_clear();
    c
}

pub(crate) fn run(args: &[&str]) -> Output {
    dualplane().args(args).output().unwrap()
}

pub(crate) fn run_stdin(args: &[&str], input: &[u8]) -> Output {
    let mut child = dualplane()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn stdout(o: &Output) -> String {
    String::from_utf8(o.stdout.clone()).unwrap()
}

pub(crate) fn stderr(o: &Output) -> String {
    String::from_utf8(o.stderr.clone()).unwrap()
}

pub(crate) fn code(o: &Output) -> i32 {
    o.status.code().expect("ended by itself, not by a signal")
}

/// A fresh directory with these files.
pub(crate) fn dir(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    dir
}

pub(crate) fn triage_json(target: &Path) -> Value {
    let o = run(&["triage", target.to_str().unwrap(), "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    serde_json::from_slice(&o.stdout).unwrap()
}

pub(crate) fn triage_files(files: &[(&str, &str)]) -> Value {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, t)| (*n, t.as_bytes())).collect();
    let dir = dir(&files);
    triage_json(dir.path())
}

pub(crate) fn class(v: &Value) -> &str {
    v["verdict"]["class"].as_str().unwrap()
}
