//! `profile` as a user runs it: a shape that `plan` reads, from a file, a pipe and by its name, and clear words where there is none.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{code, dir, root, run, stderr, stdout};
use crate::schema::follows;

const LOG: &str = "testdata/profile/serving.log";

#[test]
fn what_is_counted_follows_the_schema_and_a_plan_reads_it() {
    let log = root().join(LOG);
    let log = log.to_str().unwrap();
    let o = run(&["profile", log, "-o", "json"]);
    let shape: Value = serde_json::from_slice(&o.stdout).unwrap();
    follows(&shape, "shape");
    assert_eq!((shape["counted"].as_u64(), shape["tenants"].as_array().unwrap().len()), (Some(400), 2));
    assert!(
        shape["cancelled"]["share"].as_f64().unwrap() > 0.01
            && shape["prefix_share"].as_f64().unwrap() > 0.05
    );
    let toml = stdout(&run(&["profile", log, "-o", "toml", "--name", "support"]));
    let folder = dir(&[("shape.toml", toml.as_bytes())]);
    let file = folder.path().join("shape.toml");
    let plan =
        ["plan", "--gpu", "L4", "--model", "qwen3-8b", "--shape", file.to_str().unwrap(), "-o", "json"];
    let plan: Value = serde_json::from_slice(&run(&plan).stdout).unwrap();
    assert_eq!(plan["traffic"]["stated"]["profile"], "support");
}

#[test]
fn a_pipe_and_a_name_are_sources_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dualplane"))
        .args(["profile", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = std::fs::read(root().join(LOG)).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let shape: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(shape["counted"], 400);
    for name in ["chat", "rag", "long", "batch", "agents"] {
        let o = run(&["profile", "--synthesise", name, "--rate", "7", "-o", "json"]);
        let shape: Value = serde_json::from_slice(&o.stdout).unwrap();
        follows(&shape, "shape");
        assert_eq!((shape["name"].as_str(), shape["arrival_per_second"].as_f64()), (Some(name), Some(7.0)));
    }
}

#[test]
fn what_is_no_source_is_told_with_what_to_do() {
    let folder = dir(&[("empty.log", b"hello\n"), ("log.gz", &[0x1f, 0x8b, 8, 0])]);
    let of = |file: &str| run(&["profile", folder.path().join(file).to_str().unwrap()]);
    let o = of("empty.log");
    assert_eq!(code(&o), 4);
    assert!(
        stderr(&o).contains("no line of 1 tells") && stderr(&o).contains("--enable-log-requests"),
        "{}",
        stderr(&o)
    );
    let o = of("log.gz");
    assert!(code(&o) == 3 && stderr(&o).contains("zcat"), "{}", stderr(&o));
    assert_eq!(code(&of("none.log")), 3);
    assert_eq!(code(&run(&["profile"])), 2);
}
