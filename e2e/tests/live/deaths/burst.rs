//! A burst of kills: the kernel cuts its records, and the lines that are left name nobody. Whoever died of something else, or
//! not at all, must not be told as killed because of them.

use std::time::{Duration, Instant};

use super::pods::Death;
use super::{HEALTHY, Namespace, agent, false_events, healthy, triage};
use crate::agent::incidents;
use crate::harness::create;

/// More than twice what the kernel prints whole in five seconds.
const KILLS: usize = 24;

/// They end beside the kills, each in a way that a kernel's kill could look like.
const OTHERS: &[(&str, &str)] = &[
    ("ends-with-an-error", "sh = 'sleep 3; exit 1'\nclass = 'unknown'\nexit_code = 1"),
    (
        "ends-by-sigkill",
        "sh = 'sleep 60 & p=$!; sleep 3; kill -9 $p; wait $p; exit $?'\nclass = 'unknown'\nexit_code = 137",
    ),
    ("ends-well", "sh = 'sleep 3; exit 0'\nclass = 'not_memory'\nexit_code = 0"),
];

fn made(name: &str, keys: &str) -> Death {
    Death::of(name, keys.parse().unwrap())
}

#[test]
fn kills_that_the_kernel_does_not_name_are_nobody_s() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let namespace = Namespace::new("deaths-burst");
    let _agent = agent(&state, "127.0.0.1:10984");
    let kill =
        "sh = 'sleep 2; victim child grow 128 16 20; exit 1'\nclass = 'host_oom_killed'\nexit_code = 1";
    let kills: Vec<Death> = (0..KILLS).map(|n| made(&format!("kill-{n}"), kill)).collect();
    let others: Vec<Death> = OTHERS.iter().map(|(name, keys)| made(name, keys)).collect();
    let alive = healthy();
    let all = || kills.iter().chain(&others);
    create(&all().chain(&alive).map(|d| d.manifest(namespace.0)).collect::<Vec<_>>().join("---\n"));

    let began = Instant::now();
    loop {
        let pods = namespace.pods();
        if all().all(|d| pods.get(&d.name).is_some_and(|pod| d.happened(pod, &namespace))) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(240), "not dead: {:?}", pods.keys());
        std::thread::sleep(Duration::from_secs(1));
    }

    // Nothing may say "killed" of these, live or by the agent.
    let mut wrong = Vec::new();
    for name in OTHERS.iter().chain(HEALTHY).map(|(name, _)| *name) {
        let report = triage(&["triage", &format!("pod/{name}"), "-n", namespace.0]).unwrap();
        let class = report.pointer("/verdict/class").and_then(|c| c.as_str()).unwrap_or_default();
        if !matches!(class, "unknown" | "not_memory") {
            wrong.push(format!("{name}: {}", report["verdict"]));
        }
    }
    let of_kills = |i: &serde_json::Value| i["pod"].as_str().is_some_and(|p| p.starts_with("kill-"));
    let judged = || -> Vec<serde_json::Value> {
        incidents(&state)
            .into_iter()
            .filter(|i| i["namespace"] == namespace.0 && i["state"] == "judged")
            .collect()
    };
    while judged().iter().filter(|i| of_kills(i)).count() < KILLS
        && began.elapsed() < Duration::from_secs(360)
    {
        std::thread::sleep(Duration::from_secs(2));
    }
    let judged = judged();
    for one in &judged {
        let class = one["class"].as_str().unwrap_or_default();
        let fits = match class {
            "unknown" => true,
            "host_oom_killed" => of_kills(one),
            "not_memory" => !of_kills(one),
            _ => false,
        };
        if !fits {
            wrong.push(format!("the agent: {one}"));
        }
    }
    let dead: Vec<Death> = kills.into_iter().chain(others).collect();
    wrong.extend(false_events(&namespace, &dead));
    assert_eq!(wrong, Vec::<String>::new());
    // The agent counts kills where the kernel's log is cut: the cgroup's own counter names its container.
    let known = judged.iter().filter(|i| of_kills(i) && i["class"] == "host_oom_killed").count();
    assert!(known >= KILLS, "the agent knows {known} of {KILLS} kills");
}
