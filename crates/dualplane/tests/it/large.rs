//! Logs too large to hold: the same answer as from the small log that is hidden in them, at any length, in bounded memory.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::harness::{class, code, dir, dualplane, incidents_dir, stderr};

const IDLE: &str = "DEBUG [core.py:812] EngineCore loop active.\n";
const DEATH: &str = "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.01 GiB is allocated by PyTorch, and 899.74 MiB is reserved by PyTorch but unallocated.\n";

fn idle(mib: usize) -> (String, u64) {
    let lines = (mib << 20) / IDLE.len();
    (IDLE.repeat(lines), lines as u64)
}

/// In an address space that could not hold the log.
fn triage(target: &Path, limit_mib: u32) -> Value {
    let o = Command::new("sh")
        .args(["-c", &format!("ulimit -v {}; exec \"$0\" triage \"$1\" -o json", limit_mib << 10)])
        .arg(env!("CARGO_BIN_EXE_dualplane"))
        .arg(target)
        .output()
        .unwrap();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    serde_json::from_slice(&o.stdout).unwrap()
}

#[test]
fn what_stood_in_a_small_log_is_found_in_a_large_one() {
    let (padding, lines) = idle(13);
    for name in ["real-k8s-pid1-oom", "sglang-hicache-over-limit", "real-k8s-child-oom-then-sigterm"] {
        let from = incidents_dir().join(name);
        let small = triage(&from, 4096);
        let d = dir(&[]);
        for entry in std::fs::read_dir(&from).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            if path.extension().is_some_and(|e| e == "log") && !bytes.starts_with(b"{") {
                bytes.splice(0..0, padding.bytes());
            }
            std::fs::write(d.path().join(path.file_name().unwrap()), bytes).unwrap();
        }
        let large = triage(d.path(), 1024);
        assert_eq!(large["verdict"]["class"], small["verdict"]["class"], "{name}");
        assert_eq!(large["verdict"]["phase"], small["verdict"]["phase"], "{name}");
        let (a, b) = (&small["trigger"], &large["trigger"]);
        assert_eq!((&a["file"], &a["text"]), (&b["file"], &b["text"]), "{name}");
        if a["file"].as_str().is_some_and(|f| f.ends_with(".log")) {
            assert_eq!(b["line"].as_u64().unwrap(), a["line"].as_u64().unwrap() + lines, "{name}");
        }
    }
}

#[test]
fn a_log_need_not_fit_into_memory() {
    let (padding, lines) = idle(16);
    let d = dir(&[("a.log", b"INFO vLLM API server version 0.11.0\n")]);
    let path = d.path().join("a.log");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    for _ in 0..10 {
        file.write_all(padding.as_bytes()).unwrap();
    }
    file.write_all(DEATH.as_bytes()).unwrap();
    file.write_all(padding.as_bytes()).unwrap();
    drop(file);
    let v = triage(&path, 150);
    assert_eq!(class(&v), "cuda_oom_load", "{v:#}");
    assert_eq!(v["trigger"]["line"], 10 * lines + 2);
    assert!(v.to_string().contains("\"engine_version\":\"0.11.0\""), "{v:#}");
}

#[test]
fn streams_and_packed_logs_are_sifted_too() {
    let (padding, lines) = idle(10);
    let text = format!("{padding}{DEATH}{padding}");
    let mut child = dualplane()
        .args(["triage", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let o = child.wait_with_output().unwrap();
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!((&v["trigger"]["line"], class(&v)), (&Value::from(lines + 1), "cuda_oom_runtime"));
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let d = dir(&[("previous.log.gz", &gz.finish().unwrap())]);
    let v = triage(d.path(), 350);
    assert_eq!((&v["trigger"]["line"], class(&v)), (&Value::from(lines + 1), "cuda_oom_runtime"));
}

#[test]
fn many_rotated_logs_share_the_room() {
    let (padding, _) = idle(2);
    let d = dir(&[]);
    for i in 0..40 {
        let death = if i == 17 { DEATH } else { "" };
        std::fs::write(d.path().join(format!("0.log.{i}")), format!("{padding}{death}{padding}")).unwrap();
    }
    let v = triage(d.path(), 350);
    assert_eq!((v["trigger"]["file"].as_str(), class(&v)), (Some("0.log.17"), "cuda_oom_runtime"));
}

#[test]
fn a_flood_of_errors_hides_nothing_and_misses_nothing() {
    let line = "ERROR 11-21 23:33:10 [core.py:718] RuntimeError: NCCL error: unhandled system error\n";
    let text = format!("{DEATH}{}", line.repeat((20 << 20) / line.len()));
    let d = dir(&[("a.log", text.as_bytes())]);
    let v = triage(d.path(), 350);
    assert_eq!(v["trigger"]["line"], 1);
    // What repeats others is read: nothing of it is missing.
    assert!(!v["missing"].to_string().contains("repeat"), "{}", v["missing"]);
}

#[test]
fn a_line_of_many_mib_is_said_to_be_cut() {
    let d = dir(&[("a.log", "x CUDA out of memory ".repeat(1 << 20).as_bytes())]);
    let v = triage(d.path(), 350);
    assert!(v["missing"].to_string().contains("line 1 is longer than 64 KiB"), "{}", v["missing"]);
}
