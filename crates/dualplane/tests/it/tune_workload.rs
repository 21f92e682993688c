//! `tune --run --to`: a search that moves a workload of a cluster, against the tiny API server of `apply`.

use std::process::Output;

use serde_json::{Value, json};

use crate::apply::{Fake, Mood};
use crate::gate::MEASURE;
use crate::harness::{code, stderr, stdout};

/// A Deployment whose server begins with two requests at a time, beside a proxy.
fn to_tune(mood: Mood) -> Fake {
    let fake = Fake::new(mood);
    let mut state = fake.state.lock().unwrap();
    state.object["spec"]["template"]["spec"]["containers"] = json!([{"name": "mesh", "image": "envoy"},
        {"name": "server", "image": "x", "command": ["vllm"], "args": ["serve", "m", "--max-num-seqs", "2"]}]);
    state.object["status"] = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    drop(state);
    fake
}

fn sequences(fake: &Fake) -> u64 {
    let state = fake.state.lock().unwrap();
    let args =
        state.object.pointer("/spec/template/spec/containers/1/args").and_then(Value::as_array).unwrap();
    args.last().and_then(Value::as_str).unwrap().parse().unwrap()
}

fn search(fake: &Fake, measure: &str, more: &[&str]) -> Output {
    let fixed =
        ["tune", "--run", "--to", "deploy/llm", "--log", "log.json", "-o", "json", "--measure", measure];
    fake.run(&[&fixed[..], more].concat())
}

/// A search moves the Deployment, waits for its pods, and leaves it with the best that it measured.
#[test]
fn a_search_moves_a_workload_and_leaves_the_best() {
    let fake = to_tune(Mood::Good);
    let o = search(&fake, MEASURE, &[]);
    assert!(
        code(&o) != 0 && stderr(&o).contains("--yes was not given") && fake.writes() == 0,
        "{}",
        stderr(&o)
    );
    let o = search(&fake, MEASURE, &["--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(v["workload"], "serving/deployment/llm");
    let steps = v["steps"].as_array().unwrap();
    let decided = |what: &str| steps.iter().filter(|s| s["decision"] == what).count();
    // Each move but the start is one change, and one more where it was taken back.
    assert_eq!(fake.writes(), steps.len() - 1 + decided("revert"), "{v:#}");
    let best = steps.iter().rfind(|s| s["decision"] == "keep").unwrap();
    let flag = best["command"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(flag != "2" && sequences(&fake).to_string() == flag, "{flag}: {v:#}");
    assert!(
        stderr(&o).contains("+            - \"32\"") || stderr(&o).contains("recorded as"),
        "{}",
        stderr(&o)
    );
    // What was kept can be undone like every change.
    let o = fake.run(&["rollback", "--last", "--yes"]);
    assert!(code(&o) == 0 && sequences(&fake).to_string() != flag, "{}", stderr(&o));
}

/// A search that is broken off goes on with what it finds, and not where somebody else set the same flag.
#[test]
fn a_search_of_a_workload_goes_on() {
    let fake = to_tune(Mood::Good);
    let broken = format!("case \"$SERVER\" in *'seqs 2') ;; *) exit 127 ;; esac\n{MEASURE}");
    let o = search(&fake, &broken, &["--yes"]);
    assert!(code(&o) == 2 && stderr(&o).contains("could not run it") && fake.writes() == 1, "{}", stderr(&o));
    let moved = sequences(&fake);
    let set = |to: &str| {
        let mut state = fake.state.lock().unwrap();
        state.object["spec"]["template"]["spec"]["containers"][1]["args"][3] = json!(to);
    };
    set("7");
    let o = search(&fake, MEASURE, &["--yes"]);
    assert!(
        code(&o) != 0 && stderr(&o).contains("was changed since") && sequences(&fake) == 7,
        "{}",
        stderr(&o)
    );
    set(&moved.to_string());
    let o = search(&fake, MEASURE, &["--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert!(v["stopped"].is_string() && sequences(&fake) > 2, "{v:#}");
    // Another workload is another search.
    let o =
        fake.run(&["tune", "--run", "--log", "log.json", "--measure", MEASURE, "--", "vllm", "serve", "m"]);
    assert!(code(&o) == 3 && stderr(&o).contains("serving/deployment/llm"), "{}", stderr(&o));
}

/// A move whose pods do not come up is taken back.
#[test]
fn a_move_whose_pods_do_not_come_up_is_taken_back() {
    let fake = to_tune(Mood::NoPods);
    let o = search(&fake, MEASURE, &["--yes"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    let steps = v["steps"].as_array().unwrap();
    assert!(steps.len() > 1 && steps.iter().skip(1).all(|s| s["decision"] == "revert"), "{v:#}");
    assert!(sequences(&fake) == 2 && stderr(&o).contains("timed out progressing"), "{}", stderr(&o));
    for (to, says) in [("pod/llm", "is not deploy/NAME"), ("deploy", "is not deploy/NAME")] {
        let o = fake.run(&["tune", "--run", "--to", to, "--log", "o.json", "--measure", "true", "--yes"]);
        assert!(code(&o) == 2 && stderr(&o).contains(says), "{}", stderr(&o));
    }
}
