//! `profile` as a user runs it: a shape that `plan` reads, from a file, a pipe and by its name, and clear words where there is none.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::dashboards::prometheus::{Prometheus, is_there, promtool};
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

/// Minutes of three models of a vLLM: one with short prompts, 60 requests a minute, one with long ones, 6 a minute, and one as the
/// first that came half an hour ago.
fn page(now: u64) -> String {
    let bounds = [50, 100, 200, 500, 1000, 2000, 5000];
    let mut out = String::new();
    for (name, of) in [("prompt", [300_u64, 1800]), ("generation", [40, 150])] {
        let name = format!("vllm:request_{name}_tokens");
        for (model, minutely, tokens, first) in
            [("short", 60, of[0], 0), ("long", 6, of[1], 0), ("young", 60, of[0], 150)]
        {
            let mut series = |suffix: &str, le: &str, each: u64| {
                for minute in first..180 {
                    let (n, time) = ((minute - first) * each, now - (180 - minute) * 60);
                    out += &format!("{name}_{suffix}{{model_name=\"{model}\"{le}}} {n} {time}\n");
                }
            };
            for bound in bounds {
                let below = if tokens <= bound { minutely } else { 0 };
                series("bucket", &format!(",le=\"{bound}.0\""), below);
            }
            series("bucket", ",le=\"+Inf\"", minutely);
            series("sum", "", minutely * tokens);
            series("count", "", minutely);
        }
    }
    out + "# EOF\n"
}

#[test]
fn a_real_prometheus_tells_the_shape_of_one_model_and_of_all() {
    if !is_there() {
        return;
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let d = dir(&[("series.om", page(now).as_bytes()), ("prometheus.yml", b"{}\n")]);
    promtool(d.path(), &["tsdb", "create-blocks-from", "openmetrics", "-q", "series.om", "data"]);
    let server = Prometheus::start(d.path());
    let url = format!("http://127.0.0.1:{}", server.port);
    let asked = |more: &[&str]| -> Value {
        let args = ["profile", "--prometheus", &url, "--since", "2h", "-o", "json"];
        let o = run(&[&args[..], more].concat());
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        let shape = serde_json::from_slice(&o.stdout).unwrap();
        follows(&shape, "shape");
        shape
    };
    let mean = |shape: &Value, key: &str| {
        let of = |r: &Value, k: &str| r[k].as_f64().unwrap();
        let all = shape["requests"].as_array().unwrap();
        let weight: f64 = all.iter().map(|r| of(r, "weight")).sum();
        all.iter().map(|r| of(r, key) * of(r, "weight")).sum::<f64>() / weight
    };
    let near = |got: f64, want: f64| assert!((got - want).abs() < 0.05 * want, "{got}, not {want}");
    // A minute at the end has not come yet, so that 118 or 119 of 120 are counted.
    let short = asked(&["--selector", "model_name=\"short\""]);
    near(short["counted"].as_f64().unwrap(), 7200.0);
    near(mean(&short, "input"), 300.0);
    near(mean(&short, "output"), 40.0);
    near(short["arrival_per_second"].as_f64().unwrap(), 1.0);
    let all = asked(&["--selector", "model_name=~\"short|long\""]);
    near(all["counted"].as_f64().unwrap(), 7920.0);
    near(mean(&all, "input"), (300.0 * 10.0 + 1800.0) / 11.0);
    // What came half an hour ago has its rate, and not a quarter of it.
    let young = asked(&["--selector", "model_name=\"young\""]);
    assert!((0.8..1.05).contains(&young["arrival_per_second"].as_f64().unwrap()), "{young}");
    // A model that is not there.
    let none = run(&["profile", "--prometheus", &url, "--selector", "model_name=\"other\""]);
    assert_ne!(code(&none), 0, "{}", stdout(&none));
    assert!(stderr(&none).contains("with the labels of --selector"), "{}", stderr(&none));
}
