//! The simulation against what vLLM's own scheduler answered: `testdata/rehearse/vllm.jsonl`, made by `e2e/rehearse/oracle.py`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout
)]

mod kept_case;

use dualplane_rehearse::{Outcome, StepTime, rehearse};
use kept_case::{requests, settings};
use serde_json::Value;

/// FNV-1a, as the oracle's.
struct Digest(u64);

impl Digest {
    fn add(&mut self, n: u32) {
        for b in n.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

fn play(case: &Value) -> (Outcome, String) {
    let requests = requests(&case["requests"]);
    let time: StepTime = serde_json::from_value(case["time"].clone()).unwrap();
    let mut digest = Digest(0xCBF2_9CE4_8422_2325);
    let outcome = rehearse(&settings(&case["settings"]), &requests, &time, |_, step, s| {
        for n in [s.used(), s.running(), s.waiting(), step.preempted, step.tokens] {
            digest.add(n);
        }
    });
    (outcome, format!("{:016x}", digest.0))
}

#[test]
fn every_step_is_the_engines() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/rehearse/vllm.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    let (mut cases, mut exact, mut preempting) = (0, 0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (found, digest) = play(&case);
        let answer = &case["answer"];
        let pairs = [
            ("steps", found.steps),
            ("preemptions", found.preemptions),
            ("peak_blocks", u64::from(found.peak_blocks)),
            ("peak_gauge_blocks", u64::from(found.peak_gauge_blocks)),
            ("longest_queue", u64::from(found.longest_queue)),
            ("most_running", u64::from(found.most_running)),
            ("finished", found.finished),
            ("cancelled", found.cancelled),
            ("rejected", found.rejected),
            ("stuck", found.stuck),
            ("cached_tokens", found.cached_tokens),
        ];
        let off: Vec<String> = pairs
            .iter()
            .filter(|(key, n)| answer[*key].as_u64() != Some(*n))
            .map(|(key, n)| format!("{key} {n}, the engine {}", answer[*key]))
            .collect();
        cases += 1;
        preempting += u32::from(found.preemptions > 0);
        let same = answer["digest"].as_str() == Some(&digest);
        exact += u32::from(same && off.is_empty());
        if !same || !off.is_empty() {
            wrong.push(format!(
                "case {}: digest {}: {}",
                case["seed"],
                if same { "same" } else { "differs" },
                off.join("; ")
            ));
        }
    }
    println!("{exact} of {cases} cases are the same in every step; {preempting} preempt");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 30 && preempting >= 10, "{cases} cases, {preempting} with preemptions");
}
