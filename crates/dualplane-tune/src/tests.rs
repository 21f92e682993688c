//! The flow, its moves, and a search on servers that are made up: what is found of the best that a sweep finds.

use dualplane_engines::Engines;

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn levers() -> Levers {
    Levers::of(Engines::embedded().get("vllm").unwrap())
}

/// A server that is made up: a closed loop of clients, a step that takes longer with more sequences, a pool of blocks.
#[derive(Clone, Copy)]
struct Server {
    clients: f64,
    fixed: f64,
    each: f64,
    blocks_of_each: f64,
}

impl Server {
    fn measure(&self, command: &[String]) -> Numbers {
        let get = |flag: &str| value(command, &[flag.to_owned()]).and_then(|v| v.parse::<f64>().ok());
        let cap = get("--max-num-seqs").unwrap_or(256.0);
        let pool = get("--num-gpu-blocks-override").unwrap_or(100_000.0);
        let wanted = cap.min(self.clients);
        let held = (pool / self.blocks_of_each).floor().max(1.0);
        let running = wanted.min(held);
        let lost = (wanted - held).max(0.0);
        // What loses its place is computed twice.
        let wasted = 1.0 + 2.0 * lost.min(running) / running;
        let goodput = running / ((self.fixed + self.each * running) * 100.0 * wasted);
        Numbers {
            busy: Some(0.95),
            busy_of: Some("processors".into()),
            waiting: Some(self.clients - running),
            running: Some(running),
            waiting_peak: Some(self.clients - running),
            running_peak: Some(running),
            good_share: Some(1.0),
            goodput: Some(goodput),
            error_share: Some(0.0),
            host_share: Some(0.4),
            kv_share: Some((running * self.blocks_of_each / pool).min(1.0)),
            preemptions: Some((lost * 10.0) as u64),
            restarts: Some(0),
            ..Numbers::default()
        }
    }

    /// The best of a full sweep over both levers.
    fn best(&self) -> f64 {
        let mut best: f64 = 0.0;
        for seqs in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
            for blocks in [32, 64, 128, 256, 512, 1024, 4096, 16384] {
                let command =
                    words(&format!("vllm serve m --max-num-seqs {seqs} --num-gpu-blocks-override {blocks}"));
                best = best.max(self.measure(&command).goodput.unwrap());
            }
        }
        best
    }

    fn search(&self, start: &str) -> Log {
        let mut log = Log::new(&words(start));
        loop {
            match next(&log, &levers(), 8) {
                Next::Measure(command, proposal) => {
                    let numbers = self.measure(&command);
                    log.add(command, proposal.map(|p| *p), Some(numbers), 1);
                }
                Next::Stop(why) => {
                    log.stopped = Some(why);
                    return log;
                }
            }
        }
    }
}

#[test]
fn a_bad_start_reaches_nine_tenths_of_a_sweep_in_eight_steps() {
    for clients in [4.0, 16.0, 64.0, 200.0] {
        for (fixed, each) in [(0.02, 0.0005), (0.01, 0.002), (0.03, 0.0001)] {
            for blocks_of_each in [2.0, 6.0, 30.0] {
                let server = Server { clients, fixed, each, blocks_of_each };
                let best = server.best();
                for start in [
                    "vllm serve m --max-num-seqs 2",
                    "vllm serve m --num-gpu-blocks-override 64 --max-num-seqs 64",
                ] {
                    let log = server.search(start);
                    let found = log.best().unwrap().numbers.as_ref().unwrap().goodput.unwrap();
                    assert!(
                        found >= 0.9 * best,
                        "{clients} {fixed} {each} {blocks_of_each} {start}: {found} of {best}: {:#?}",
                        log.steps
                    );
                    assert!(log.steps.len() <= 9 && log.stopped.is_some());
                }
            }
        }
    }
}

/// A real vLLM on the CPU ran 12 requests of 192 tokens at once in 17 blocks of 128, none of them at its end: 32 clients need
/// two blocks each, not 32/12 of what there is.
#[test]
fn a_pool_is_made_for_requests_at_their_end() {
    let n = |running, blocks: u64, tokens| Numbers {
        running: Some(9.0),
        running_peak: Some(running),
        waiting_peak: Some(32.0 - running),
        kv_share: Some(1.0),
        kv_tokens: Some(blocks * 128),
        tokens_of_each: tokens,
        preemptions: Some(64),
        ..Numbers::default()
    };
    let to = |n: &Numbers, blocks: u64| -> u64 {
        let command = words(&format!("vllm serve m --num-gpu-blocks-override {blocks} --max-num-seqs 64"));
        proposals(n, &flow(n), &levers(), &command).first().unwrap().to.parse().unwrap()
    };
    assert_eq!(to(&n(12.0, 17, None), 17), 51);
    assert_eq!(to(&n(12.0, 17, Some(192.0)), 17), 4 * 17, "no more at once");
    assert_eq!(to(&n(20.0, 24, Some(192.0)), 24), 72, "64 blocks are nine tenths");
    // One that fits into a page takes all of it.
    assert_eq!(to(&n(14.0, 14, Some(1.0)), 14), 36, "32 blocks are nine tenths");
}

/// A search that was broken off anywhere goes on as if it had not been.
#[test]
fn a_log_is_resumed() {
    let server = Server { clients: 64.0, fixed: 0.01, each: 0.002, blocks_of_each: 6.0 };
    let whole = server.search("vllm serve m --num-gpu-blocks-override 64 --max-num-seqs 64");
    assert!(whole.steps.len() > 2);
    for n in 0..whole.steps.len() {
        let mut log =
            Log { steps: whole.steps.iter().take(n).cloned().collect(), ..Log::new(&whole.command) };
        // Broken off while a step ran: it has no result.
        if let Next::Measure(command, p) = next(&log, &levers(), 8) {
            log.steps.push(Step {
                proposal: p.map(|p| *p),
                command,
                numbers: None,
                decision: None,
                why: None,
            });
        }
        let text = json(&log).unwrap().to_string();
        let mut log: Log = serde_json::from_str(&text).unwrap();
        while let Next::Measure(command, proposal) = next(&log, &levers(), 8) {
            let numbers = server.measure(&command);
            log.add(command, proposal.map(|p| *p), Some(numbers), 1);
        }
        assert_eq!(log.steps, whole.steps, "broken off after {n}");
    }
}

#[test]
fn each_branch_follows_from_its_numbers() {
    let n = |busy: f64, waiting: f64, good: f64| Numbers {
        busy: Some(busy),
        waiting: Some(waiting),
        running: Some(8.0),
        running_peak: Some(12.0),
        waiting_peak: Some(waiting * 2.0),
        good_share: Some(good),
        kv_share: Some(0.6),
        ..Numbers::default()
    };
    let of = |n: &Numbers| flow(n).branch;
    assert_eq!(of(&n(0.3, 0.0, 1.0)), Some(Branch::HostSide));
    assert_eq!(of(&n(0.3, 9.0, 1.0)), Some(Branch::Batching));
    assert_eq!(of(&n(0.9, 0.0, 1.0)), Some(Branch::HeadroomAndCost));
    assert_eq!(of(&n(0.9, 9.0, 0.5)), Some(Branch::Admission));
    assert_eq!(of(&Numbers { host_share: Some(0.97), ..n(0.9, 0.0, 1.0) }), Some(Branch::SmallerEnvelope));
    assert_eq!(of(&Numbers { restarts: Some(1), ..n(0.3, 0.0, 1.0) }), Some(Branch::SmallerEnvelope));
    assert_eq!(
        of(&Numbers { kv_share: Some(1.0), preemptions: Some(3), ..n(0.9, 9.0, 1.0) }),
        Some(Branch::SmallerEnvelope)
    );
    // What is not known is said, and no branch is made up.
    let f = flow(&Numbers::default());
    assert!(f.branch.is_none() && f.missing.len() >= 2);
    let f = flow(&Numbers { good_share: None, ..n(0.9, 9.0, 1.0) });
    assert!(f.branch.is_none() && f.missing.iter().any(|m| m.contains("SLO")), "{f:?}");
}

#[test]
fn nothing_is_kept_that_is_no_better_or_not_safe() {
    let at = |goodput: f64| Numbers { goodput: Some(goodput), host_share: Some(0.5), ..Numbers::default() };
    let keeps = |now: &Numbers| judge(Some(&at(10.0)), now, 1).0 == Decision::Keep;
    assert!(keeps(&at(11.0)) && !keeps(&at(10.1)) && !keeps(&at(9.0)));
    assert!(!keeps(&Numbers { restarts: Some(1), ..at(20.0) }));
    assert!(!keeps(&Numbers { error_share: Some(0.1), ..at(20.0) }));
    assert!(!keeps(&Numbers { host_share: Some(0.99), ..at(20.0) }));
    assert!(!keeps(&Numbers { goodput: None, ..at(20.0) }));
    let noisy = Numbers { windows: vec![2.0, 3.0, 1.0, 20.0, 19.0, 18.0], ..at(10.0) };
    let now = Numbers { windows: vec![3.0, 2.0, 2.0, 21.0, 20.0, 19.0], ..at(11.0) };
    assert!(judge(Some(&noisy), &now, 1).1.contains("chance"));
}

/// Requests of a closed loop end in waves: a real run of vLLM on the CPU went from 1.98 to 4.80 good requests a second, with windows
/// of 2 s beside requests of 5 to 13 s.
#[test]
fn waves_of_requests_are_no_noise() {
    let of = |goods: &[u64], p50: f64, running: f64| {
        let windows: Vec<_> = (0..)
            .zip(goods)
            .map(|(i, good)| serde_json::json!({"from_seconds": 2 * i, "seconds": 2, "good": good}))
            .collect();
        let all: u64 = goods.iter().sum();
        let d = serde_json::json!({"n": 9, "mean": p50, "p50": p50, "p90": p50, "p95": p50, "p99": p50, "max": p50});
        let report = serde_json::json!({"schema": "dualplane.measure/v1", "tool": {"name": "t", "version": "1"}, "subject": {}, "hardware": {"gpus": []},
            "slo": {"e2e_seconds": 30.0}, "runs": [{"name": "1", "load": {"mode": "closed"}, "measured_seconds": 20.0, "e2e": d, "windows": windows,
            "queue": {"running_mean": running, "running_peak": running}, "requests": {"sent": all, "succeeded": all, "good": all},
            "throughput": {"good_requests_per_second": all as f64 / 20.0}}]});
        Numbers::of(&dualplane_gate::document::read(&report.to_string()).unwrap())
    };
    let start = of(&[8, 0, 3, 5, 8, 0, 8, 0, 8, 0], 13.0, 7.7);
    let more = of(&[0, 0, 32, 0, 6, 26, 0, 31, 1, 0], 5.3, 27.7);
    assert_eq!(more.windows.len(), 3);
    assert_eq!(judge(Some(&start), &more, 1).0, Decision::Keep, "{:?}", judge(Some(&start), &more, 1));
    // A single wave more is chance.
    let lucky = of(&[0, 0, 32, 0, 6, 26, 0, 31, 17, 0], 5.3, 27.7);
    assert!(judge(Some(&more), &lucky, 1).1.contains("chance"), "{:?}", judge(Some(&more), &lucky, 1));
}

#[test]
fn settings_are_read_and_set_where_they_stand() {
    let names = words("--max-num-seqs");
    for (command, was, now) in [
        ("vllm serve m", None, "vllm serve m --max-num-seqs 8"),
        ("vllm serve m --max-num-seqs 2 -x", Some("2"), "vllm serve m --max-num-seqs 8 -x"),
        ("vllm serve m --max_num_seqs=2 -x", Some("2"), "vllm serve m --max_num_seqs=8 -x"),
        ("vllm --max-num-seqs 1 --max-num-seqs 2", Some("2"), "vllm --max-num-seqs 1 --max-num-seqs 8"),
    ] {
        assert_eq!(value(&words(command), &names), was, "{command}");
        assert_eq!(set(&words(command), &names, "8").unwrap(), words(now), "{command}");
    }
    assert_eq!(set(&words("ollama serve"), &words("OLLAMA_NUM_PARALLEL"), "8"), None);
}

#[test]
fn the_document_follows_its_schema() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tune.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let server = Server { clients: 64.0, fixed: 0.01, each: 0.002, blocks_of_each: 6.0 };
    let mut log = server.search("vllm serve m --num-gpu-blocks-override 64 --max-num-seqs 64");
    log.finding = log.best().and_then(|s| s.numbers.as_ref()).map(flow);
    let mut asked = Log::new(&words("vllm serve m"));
    asked.finding = Some(flow(&Numbers::default()));
    for log in [log, asked] {
        let value = json(&log).unwrap();
        let errors: Vec<String> =
            schema.iter_errors(&value).map(|e| format!("{e} at {}", e.instance_path)).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        assert!(!text(&log, Default::default()).is_empty());
    }
    assert_eq!(Lever::ALL.len(), 11);
}
