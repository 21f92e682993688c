//! `dualplane top` as a real program: one frame of a machine that is made of files, a bundle replayed, a real terminal.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::fake_api::{FakeApi, Reply};
use crate::harness::{code, dir, dualplane, root, run, stderr, stdout};

const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";

/// A host with one container, whose process is this test itself, on GPU 0.
fn host() -> tempfile::TempDir {
    let d = tempfile::tempdir().unwrap();
    let (id, me) = ("a".repeat(64), std::process::id());
    let path = format!("/kubepods/burstable/pod{UID}/{id}");
    let group = d.path().join("sys/fs/cgroup").join(&path[1..]);
    fs::create_dir_all(&group).unwrap();
    fs::write(d.path().join("sys/fs/cgroup/cgroup.controllers"), "memory\n").unwrap();
    fs::write(group.join("memory.current"), "240000000\n").unwrap();
    fs::write(group.join("memory.max"), "250000000\n").unwrap();
    fs::write(
        group.join("memory.stat"),
        "anon 200000000\nfile 30000000\nshmem 10000000\ninactive_file 5000000\n",
    )
    .unwrap();
    fs::write(group.join("memory.events"), "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n").unwrap();
    fs::write(group.join("cgroup.procs"), format!("{me}\n")).unwrap();
    let proc = d.path().join(format!("proc/{me}"));
    fs::create_dir_all(&proc).unwrap();
    fs::write(d.path().join("proc/meminfo"), "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n").unwrap();
    fs::write(proc.join("cgroup"), format!("0::{path}\n")).unwrap();
    fs::write(proc.join("comm"), "python3\n").unwrap();
    fs::write(proc.join("cmdline"), "vllm\0serve\0a/b\0--api-key\0sk-0123456789abcdefghij\0").unwrap();
    fs::write(proc.join("status"), "PPid:\t1\nRssAnon:\t   1024 kB\n").unwrap();
    let links = d.path().join("var/log/containers");
    fs::create_dir_all(&links).unwrap();
    let target = format!("/var/log/pods/serving_llm-0_{UID}/vllm/3.log");
    symlink(target, links.join(format!("llm-0_serving_vllm-{id}.log"))).unwrap();
    let table = serde_json::json!({
        "devices": [{"uuid": "GPU-0", "index": 0, "name": "NVIDIA H100 80GB HBM3"}],
        "steps": [{"at_ms": 0,
            "readings": [{"device": 0, "total": 85_899_345_920_u64, "used": 42_949_672_960_u64, "celsius": 61}],
            "processes": [{"device": 0, "pid": me, "used": 40_802_189_312_u64}]}]});
    fs::write(d.path().join("gpus.json"), table.to_string()).unwrap();
    let summary = serde_json::json!({"schema": "dualplane.incident/v1", "id": "x", "kind": "death",
        "died_at": "2026-11-21T21:38:12.345Z", "node": "n", "namespace": "serving", "pod": "llm-0", "container": "vllm",
        "first": true, "class": "host_oom_killed", "plane": "host", "trigger": "oom \u{1b}[2J kill", "bytes": 1});
    fs::create_dir_all(d.path().join("state/incidents")).unwrap();
    fs::write(d.path().join("state/incidents/20261121T213812.345Z-x.json"), summary.to_string()).unwrap();
    fs::write(d.path().join("state/incidents/20261121T213812.345Z-y.json"), "garbage").unwrap();
    d
}

fn top(host: &Path, args: &[&str]) -> std::process::Output {
    let mut c = dualplane();
    c.arg("top").arg("--host-root").arg(host).arg("--gpu-table").arg(host.join("gpus.json"));
    c.arg("--state").arg(host.join("state")).args(args).output().unwrap()
}

#[test]
fn one_frame_shows_both_planes_and_the_last_verdict() {
    let d = host();
    let o = top(d.path(), &[]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let text = stdout(&o);
    let row = text.lines().find(|l| l.starts_with("serving/llm-0/vllm")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains("224M/238M  94%") && row.contains("38.0G") && row.contains(" 2 "), "{row}");
    assert!(text.contains("GPU 0") && text.contains("other 2.0G") && text.contains("512M/1.0G"), "{text}");
    let verdict = text.lines().find(|l| l.contains("host_oom_killed")).unwrap();
    assert!(verdict.contains("\\u{1b}[2J kill"), "{verdict}");
    assert!(!text.contains('\u{1b}'), "no colour and no escape in a pipe");
    assert!(stdout(&top(d.path(), &["--once", "--color", "always"])).contains("\u{1b}[1;31m"));
    let other = stdout(&top(d.path(), &["-n", "other"]));
    assert!(
        !other.lines().any(|l| l.starts_with("serving/")) && !other.contains("host_oom_killed"),
        "{other}"
    );
}

/// A frame follows the published schema; gives it back.
fn frame(o: &std::process::Output) -> Value {
    let v: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(o)));
    crate::schema::follows(&v, "top");
    v
}

#[test]
fn json_is_one_object_with_masked_commands() {
    let d = host();
    let o = top(d.path(), &["-o", "json"]);
    let v = frame(&o);
    assert_eq!(v["schema"], "dualplane.top/v1");
    let c = &v["containers"][0];
    assert_eq!(
        (c["working_set"].as_u64(), c["limit"].as_u64(), c["oom_kills"].as_u64()),
        (Some(235_000_000), Some(250_000_000), Some(2))
    );
    assert_eq!(
        (c["file"].as_u64(), c["swap"].as_u64()),
        (Some(20_000_000), None),
        "page cache without tmpfs; no swap file, no swap"
    );
    assert_eq!(c["vram"][0]["used"], 40_802_189_312_u64);
    assert_eq!((c["restarts"].as_u64(), c["last_class"].as_str()), (Some(3), Some("host_oom_killed")));
    let command = c["processes"][0]["command"].as_str().unwrap();
    assert!(
        command.starts_with("vllm serve a/b --api-key [redacted") && !command.contains("0123456789"),
        "{command}"
    );
    assert_eq!(v["gpus"][0]["holders"][0]["container"], "serving/llm-0/vllm");
    assert_eq!(v["incidents"].as_array().unwrap().len(), 1, "a summary that is none is left out");
    let o = top(d.path(), &["-o", "json", "--filter", "nothing"]);
    assert_eq!(frame(&o)["containers"].as_array().unwrap().len(), 0);
}

#[test]
fn a_machine_without_anything_says_what_is_missing() {
    let d = dir(&[]);
    let o = run(&["top", "--once", "--host-root", d.path().to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert!(stdout(&o).contains("! found no cgroup memory controller"), "{}", stdout(&o));
}

#[test]
fn a_bundle_is_played_to_its_death() {
    let d = tempfile::tempdir().unwrap();
    let from = root().join("testdata/incidents/forms-series-rss-at-limit");
    fs::copy(from.join("memory.json"), d.path().join("memory.json")).unwrap();
    fs::write(
        d.path().join("manifest.json"),
        r#"{"schema": "dualplane.bundle/v1", "died_at": "2026-07-03T20:43:00Z"}"#,
    )
    .unwrap();
    let target = d.path().to_str().unwrap();
    let o = run(&["top", "--replay", target, "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v = frame(&o);
    assert_eq!(v["containers"][0]["name"], "inference/llama-0/vllm");
    assert_eq!(v["containers"][0]["working_set"], 68_444_598_829_u64);
    let text = stdout(&run(&["top", "--replay", target]));
    assert!(text.contains("replay 4/4") && text.contains("✝ died"), "{text}");
}

/// A capture that asked a store for the series, as a real Prometheus answered.
#[test]
fn a_capture_with_the_series_of_a_store_is_played_to_its_death() {
    let page = fs::read(root().join("testdata/incidents/forms-series-rss-at-limit/memory.json")).unwrap();
    let died = json!({"exitCode": 137, "reason": "OOMKilled", "containerID": "containerd://a",
        "startedAt": "2026-07-03T20:00:00Z", "finishedAt": "2026-07-03T20:43:00Z"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "llama-0", "namespace": "inference", "uid": "u"},
        "spec": {"nodeName": "n1", "containers": [{"name": "vllm", "image": "x"}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "vllm", "restartCount": 1, "image": "x",
            "imageID": "", "ready": true, "state": {"running": {"startedAt": "2026-07-03T20:43:02Z"}},
            "lastState": {"terminated": died}}]}});
    let api = FakeApi::new(move |asked| match asked {
        a if a.contains("/api/v1/query_range?") && a.contains("container_memory_") => {
            Some(Reply::text(page.clone()))
        }
        a if a.contains("/api/v1/query_range?") => {
            Some(Reply::json(&json!({"status": "success", "data": {"resultType": "matrix", "result": []}})))
        }
        a if a.ends_with("/namespaces/inference/pods/llama-0") => Some(Reply::json(&pod)),
        _ => None,
    });
    let config: Value = serde_json::from_slice(&fs::read(api.path().join("config")).unwrap()).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let bundle = api.path().join("b.tar.zst");
    let bundle = bundle.to_str().unwrap();
    let o = api.run(&["capture", "pod/llama-0", "-n", "inference", "--prometheus", server, "--out", bundle]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert_eq!(api.asked("/api/v1/query_range?"), 6);
    let o = run(&["top", "--replay", bundle, "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v = frame(&o);
    let c = &v["containers"][0];
    assert_eq!(c["name"], "inference/llama-0/vllm");
    assert_eq!(
        (c["working_set"].as_u64(), c["limit"].as_u64()),
        (Some(68_444_598_829), Some(68_719_476_736)),
        "the last value before the end"
    );
    assert_eq!(c["vram"][0]["used"].as_u64(), Some(49_971 << 20));
    let text = stdout(&run(&["top", "--replay", bundle]));
    assert!(text.contains("replay 4/4") && text.contains("✝ died"), "{text}");
}

#[test]
fn bad_input_is_told() {
    let o = run(&["top", "--replay", "/nonexistent"]);
    assert_eq!((code(&o), stderr(&o).contains("cannot read /nonexistent")), (3, true));
    let empty = dir(&[("previous.log", b"hello\n")]);
    let o = run(&["top", "--replay", empty.path().to_str().unwrap()]);
    assert_eq!(
        (code(&o), stderr(&o).contains("no memory of a container over time")),
        (4, true),
        "{}",
        stderr(&o)
    );
    let d = dir(&[("gpus.json", b"{}")]);
    let o = run(&["top", "--once", "--gpu-table", d.path().join("gpus.json").to_str().unwrap()]);
    assert_eq!((code(&o), stderr(&o).contains("--gpu-table")), (2, true), "{}", stderr(&o));
    assert_eq!(code(&run(&["top", "--interval", "1ms"])), 2);
}

#[test]
fn every_option_is_documented() {
    let doc = fs::read_to_string(root().join("docs/top.md")).unwrap();
    let help = stdout(&run(&["top", "--help"]));
    let options: Vec<&str> = help
        .split_whitespace()
        .filter(|w| w.starts_with("--"))
        .map(|w| w.trim_end_matches([',', '.', ';']))
        .collect();
    assert!(options.len() > 8, "{help}");
    for option in options.into_iter().filter(|o| *o != "--help") {
        assert!(doc.contains(option), "docs/top.md does not name {option}");
    }
}

/// A pseudo-terminal of util-linux' `script`; skipped where that is missing.
fn on_a_terminal(host: &Path, keys: &[u8]) -> Option<(String, i32)> {
    let program = env!("CARGO_BIN_EXE_dualplane");
    let h = host.display();
    let line = format!(
        "stty cols 100 rows 30; {program} top --host-root {h} --gpu-table {h}/gpus.json --state {h}/state"
    );
    let mut child = Command::new("script")
        .args(["-q", "-e", "-f", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let (mut out, mut piece) = (Vec::new(), [0; 4096]);
    let mut from = child.stdout.take().unwrap();
    let mut keys = Some(keys);
    while let Ok(n @ 1..) = from.read(&mut piece) {
        out.extend_from_slice(&piece[..n]);
        // Before the first frame the terminal still makes a signal of Ctrl-C.
        if String::from_utf8_lossy(&out).contains("q quit")
            && let Some(keys) = keys.take()
        {
            child.stdin.as_mut().unwrap().write_all(keys).unwrap();
        }
    }
    let status = child.wait().unwrap();
    Some((String::from_utf8_lossy(&out).into_owned(), status.code().unwrap_or(-1)))
}

#[test]
fn a_terminal_is_given_back() {
    let d = host();
    for keys in [&b"q"[..], b"\rjjs/x\r?q\x03", b"\x03"] {
        let Some((out, code)) = on_a_terminal(d.path(), keys) else { return };
        assert_eq!(code, 0, "{out}");
        let (enter, leave) = (out.find("\u{1b}[?1049h"), out.rfind("\u{1b}[?1049l"));
        assert!(enter.is_some() && leave > enter, "the screen before comes back: {out:?}");
    }
}

/// As a kubelet tells whose cAdvisor does not find the runtime's socket: rows of the pod, and of nobody.
#[test]
fn the_sum_of_a_pod_is_played_where_no_container_is_named() {
    let d = tempfile::tempdir().unwrap();
    let row = |labels: &str, bytes: u64| {
        format!("container_memory_working_set_bytes{{{labels}}} {bytes} 1795413064000\n")
    };
    let sum = row(
        r#"container="",id="/kubepods/burstable/poda",image="",name="",namespace="serving",pod="llm-0""#,
        774_144,
    );
    let nobody =
        row(r#"container="",id="/kubepods/burstable",image="",name="",namespace="",pod="""#, 9_000_000);
    let sandbox =
        row(r#"container="POD",id="/kubepods/burstable/poda/b",namespace="serving",pod="llm-0""#, 4096);
    let named =
        row(r#"container="vllm",id="/kubepods/burstable/poda/c",namespace="serving",pod="llm-0""#, 700_000);
    let shown = |text: String| {
        fs::write(d.path().join("metrics.prom"), text).unwrap();
        let o = run(&["top", "--replay", d.path().to_str().unwrap(), "-o", "json"]);
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        let all = frame(&o)["containers"].as_array().unwrap().clone();
        all.iter().map(|c| (c["name"].to_string(), c["working_set"].as_u64())).collect::<Vec<_>>()
    };
    assert_eq!(shown(format!("{sum}{nobody}{sandbox}")), [("\"serving/llm-0\"".to_owned(), Some(774_144))]);
    assert_eq!(
        shown(format!("{sum}{nobody}{sandbox}{named}")),
        [("\"serving/llm-0/vllm\"".to_owned(), Some(700_000))]
    );
}
