//! Deaths of a real vLLM, each judged live, by bundle and by the agent; and one that serves with a pool that is too small.
//!
//! A start takes a minute: of all of them one is drawn by the commit (or `$DEATHS_SEED`). `E2E_VLLM_DEATHS=1` runs all, as the
//! whole table of deaths does.

use std::path::Path;

use serde_json::Value;

use crate::agent::{incidents, start_at};
use crate::deaths::choice::{place, say, seed};
use crate::harness::{Namespace, create, kubectl, run, unpack, until_within};
use crate::model_server::{PATIENCE, Server, ask, completion, engine};

const NAMESPACE: &str = "e2e-vllm-deaths";
/// Name, memory limit, GiB of the pool, further arguments, class. The worker alone is killed where the limit holds the three
/// processes and not the pool, and vLLM then ends itself with exit code 1.
const DEATHS: &[(&str, &str, u32, &str, &str)] = &[
    ("over-its-limit-at-load", "1500Mi", 1, "", "host_oom_killed"),
    ("worker-over-the-limit", "3400Mi", 4, "", "host_oom_killed"),
    ("pool-below-one-request", "6Gi", 1, "--num-gpu-blocks-override 24", "kv_cache_capacity"),
    (IN_TRAFFIC, "3Gi", 1, "--max-logprobs -1", "host_oom_killed"),
];

/// It lives, and its requests take turns.
const PREEMPTS: &str = "preempts";

/// It serves, and dies of a request: the log-probabilities of 2,000 words for each of 3,400 tokens are some seven million
/// objects of Python in the process that answers, a gigabyte and more.
const IN_TRAFFIC: &str = "over-its-limit-in-traffic";

fn wait(what: &str, done: impl Fn() -> bool) {
    until_within(PATIENCE, what, || done().then_some(()));
}

fn status(name: &str, path: &str) -> String {
    kubectl(&["get", "pod", name, "-n", NAMESPACE, "-o", &format!("jsonpath={path}")])
}

fn class(report: &Value) -> &str {
    report.pointer("/verdict/class").and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn a_real_server_s_deaths_are_judged_alike_live_by_bundle_and_by_the_agent() {
    let asked =
        std::env::var("DEATHS").is_ok_and(|d| d == "all") || std::env::var_os("E2E_VLLM_DEATHS").is_some();
    let Some(folder) = engine() else { return };
    let mut chosen: Vec<&str> = DEATHS.iter().map(|d| d.0).chain([PREEMPTS]).collect();
    if !asked {
        let seed = seed();
        chosen.sort_by_key(|name| place(&seed, name));
        chosen.truncate(1);
        say(&format!("vllm_deaths: {} this time, DEATHS_SEED={seed} (E2E_VLLM_DEATHS=1 for all)", chosen[0]));
    }
    let _namespace = Namespace::fresh(NAMESPACE);
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let _agent = start_at(&state, "127.0.0.1:10986", &[]);
    let mut wrong = Vec::new();
    for (name, limit, pool, more, is) in DEATHS.iter().filter(|d| chosen.contains(&d.0)) {
        create(&Server { namespace: NAMESPACE, name, limit, pool: *pool, more }.pod(&folder));
        if *name == IN_TRAFFIC {
            wait("vLLM serves", || status(name, "{.status.containerStatuses[0].ready}") == "true");
            let address = status(name, "{.status.podIP}");
            let answer = ask(&address, &completion(20, r#""max_tokens": 8"#)).unwrap();
            assert!(answer.contains("completion_tokens"), "{answer}");
            let _ = ask(&address, &completion(200, r#""max_tokens": 1, "prompt_logprobs": 2000"#));
        }
        wait(name, || !status(name, "{.status.containerStatuses[0].state.terminated.exitCode}").is_empty());
        let target = format!("pod/{name}");
        let live = run(&["triage", &target, "-n", NAMESPACE, "-o", "json"]).json();
        let bundle = dir.path().join(format!("{name}.tar.zst"));
        run(&["capture", &target, "-n", NAMESPACE, "--out", &bundle.to_string_lossy()]).ok();
        let offline = run(&["triage", &bundle.to_string_lossy(), "-o", "json"]).json();
        let kept = || incidents(&state).into_iter().find(|i| i["pod"] == *name && i["state"] == "judged");
        wait("the agent's verdict", || kept().is_some());
        let agent = kept().unwrap();
        let said = [class(&live), class(&offline), agent["class"].as_str().unwrap_or_default()];
        eprintln!("vllm_deaths: {name}: {said:?}, {}", live["verdict"]["summary"]);
        let phase = live.pointer("/verdict/phase").and_then(Value::as_str).unwrap_or_default();
        if said != [*is; 3] || (*name == IN_TRAFFIC) != (phase == "traffic") {
            wrong.push(format!("{name} is {is}: {said:?}\n{live}\n{offline}\n{agent}"));
        }
        // Advice that sets what is set already.
        for action in live["actions"].as_array().unwrap() {
            for change in action["changes"].as_array().into_iter().flatten() {
                if change["was"].is_string() && change["was"] == change["value"] {
                    wrong.push(format!("{name}: sets what is set: {action}"));
                }
            }
        }
        kubectl(&["delete", "pod", name, "-n", NAMESPACE, "--wait"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if chosen.contains(&PREEMPTS) {
        preempts(&folder, dir.path());
    }
}

/// Forty blocks of 128 tokens for eight requests of 1,500: it serves all of them, one after another, and says so.
fn preempts(folder: &Path, dir: &Path) {
    let name = PREEMPTS;
    let more = "--num-gpu-blocks-override 40";
    create(&Server { namespace: NAMESPACE, name, limit: "6Gi", pool: 1, more }.pod(folder));
    wait("vLLM serves", || status(name, "{.status.containerStatuses[0].ready}") == "true");
    let address = status(name, "{.status.podIP}");
    let body = completion(20, r#""max_tokens": 1400, "ignore_eos": true"#);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(&address, &body).unwrap())).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|a| a.contains("completion_tokens")), "{answers:?}");
    let bundle = dir.join("preempts.tar.zst");
    run(&["capture", &format!("pod/{name}"), "-n", NAMESPACE, "--out", &bundle.to_string_lossy()]).ok();
    let files = unpack(&bundle);
    let page = files.iter().find(|(n, _)| n.starts_with("metrics/engine-")).expect("the engine's metrics");
    let page = String::from_utf8_lossy(&page.1).into_owned();
    let preemptions = page.lines().filter(|l| l.starts_with("vllm:num_preemptions_total{"));
    let count: f64 = preemptions.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    assert!(count > 0.0, "{page}");
    for target in [vec!["triage", "pod/preempts", "-n", NAMESPACE], vec!["triage", bundle.to_str().unwrap()]]
    {
        let report = run(&[target.as_slice(), &["-o", "json"]].concat()).json();
        // It lives and answers: nothing failed.
        assert!(matches!(class(&report), "not_memory" | "unknown"), "{report}");
    }
}
