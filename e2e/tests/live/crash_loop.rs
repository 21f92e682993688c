//! A crash loop is judged alike while it goes on: asked again and again, in whatever state the kubelet is in.
//!
//! `E2E_LONG` asks each minute for ten minutes, in which the kubelet's waits grow to minutes and its events are held back.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::harness::{create, kubectl, run, server};

/// Loops, what their containers run, and what each is.
const LOOPS: &[(&str, &str, &str)] = &[
    ("loop-oom", "tail /dev/zero", "host_oom_killed"),
    ("loop-port", "echo 'OSError: [Errno 98] Address already in use'; exit 1", "not_memory"),
    ("loop-hook", "sleep 600", "not_memory"),
];

/// Deletes the loops, also where the test fails.
struct Loops;

impl Drop for Loops {
    fn drop(&mut self) {
        let mut args = vec!["delete", "pod", "-n", "serving", "--wait=false", "--ignore-not-found"];
        args.extend(LOOPS.iter().map(|(name, ..)| *name));
        kubectl(&args);
    }
}

#[test]
fn the_verdict_of_a_crash_loop_stays_while_it_goes_on() {
    let (every, times) = match std::env::var_os("E2E_LONG") {
        Some(_) => (Duration::from_secs(60), 10),
        None => (Duration::from_secs(6), 15),
    };
    let _loops = Loops;
    for (name, script, _) in LOOPS {
        let hook = if *name == "loop-hook" {
            "    lifecycle: {postStart: {exec: {command: [sh, -c, 'exit 1']}}}\n"
        } else {
            ""
        };
        create(&format!("{}{hook}", server(name, name, script)));
    }
    let restarted = |name: &str| {
        let path = "jsonpath={.status.containerStatuses[0].restartCount}";
        kubectl(&["get", "pod", name, "-n", "serving", "-o", path]).trim().parse::<u64>().unwrap_or(0) > 0
    };
    let began = Instant::now();
    while !LOOPS.iter().all(|(name, ..)| restarted(name)) {
        assert!(began.elapsed() < Duration::from_secs(120), "the loops do not begin");
        std::thread::sleep(Duration::from_secs(1));
    }
    let mut wrong = Vec::new();
    let mut states = BTreeSet::new();
    for asked in 0..times {
        for (name, _, class) in LOOPS {
            let target = format!("pod/{name}");
            let report = run(&["triage", &target, "-n", "serving", "-o", "json"]).ok().json();
            let state = kubectl(&[
                "get",
                "pod",
                name,
                "-n",
                "serving",
                "-o",
                "jsonpath={.status.containerStatuses[0].state}",
            ]);
            states.insert(state.split('"').nth(1).unwrap_or_default().to_owned());
            if report["verdict"]["class"] != *class {
                wrong.push(format!("{name}, look {asked}, {state}: {}", report["verdict"]));
            }
        }
        std::thread::sleep(every);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), times * LOOPS.len(), wrong.join("\n"));
    assert!(states.len() > 1, "the loops were always in one state: {states:?}");
}
