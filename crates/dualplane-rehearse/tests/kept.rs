//! The simulation against what vLLM's own scheduler answered: `testdata/rehearse/vllm.jsonl`, made by `e2e/rehearse/oracle.py`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

use dualplane_rehearse::{Group, Keeps, Outcome, Policy, Prefix, Request, Settings, StepTime, rehearse};
use serde_json::Value;

fn number(v: &Value, key: &str) -> u32 {
    v.get(key).and_then(Value::as_u64).map_or(0, |n| n as u32)
}

fn settings(v: &Value) -> Settings {
    let flag = |key: &str| v[key].as_bool().unwrap();
    let group = |g: &Value| Group {
        block_size: number(g, "block_size"),
        keeps: match number(g, "window") {
            0 => Keeps::All,
            w => Keeps::Window(w),
        },
    };
    let blocks = number(v, "blocks");
    Settings {
        blocks,
        groups: v["groups"].as_array().unwrap().iter().map(group).collect(),
        max_num_seqs: number(v, "max_num_seqs"),
        max_num_batched_tokens: number(v, "max_num_batched_tokens"),
        max_model_len: number(v, "max_model_len"),
        long_prefill_token_threshold: number(v, "long_prefill_token_threshold"),
        chunked_prefill: flag("chunked_prefill"),
        whole_prompt_must_fit: flag("whole_prompt_must_fit"),
        watermark_blocks: (v["watermark"].as_f64().unwrap() * f64::from(blocks)) as u32,
        prefix_caching: flag("prefix_caching"),
        unnamed_first: true,
        policy: if v["policy"] == "priority" { Policy::Priority } else { Policy::Fcfs },
        asynchronous: flag("asynchronous"),
    }
}

fn request(v: &Value) -> Request {
    let prefix = v
        .get("prefix")
        .map(|p| Prefix { group: p[0].as_u64().unwrap() as u32, tokens: p[1].as_u64().unwrap() as u32 });
    Request {
        at: v["at"].as_f64().unwrap(),
        input: number(v, "input"),
        output: number(v, "output"),
        prefix,
        session: v.get("session").map(|s| s.as_u64().unwrap() as u32),
        cancel: v.get("cancel").and_then(Value::as_f64),
        priority: v.get("priority").map_or(0, |p| p.as_i64().unwrap() as i32),
        ..Request::default()
    }
}

/// FNV-1a, as the oracle's.
struct Digest(u64);

impl Digest {
    fn add(&mut self, n: u32) {
        for b in n.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

fn play(case: &Value) -> (Outcome, String, Vec<String>) {
    let requests: Vec<Request> = case["requests"].as_array().unwrap().iter().map(request).collect();
    let time: StepTime = serde_json::from_value(case["time"].clone()).unwrap();
    let mut digest = Digest(0xCBF2_9CE4_8422_2325);
    let mut trace = Vec::new();
    let outcome = rehearse(&settings(&case["settings"]), &requests, &time, |now, step, s| {
        for n in [s.used(), s.running(), s.waiting(), step.preempted, step.tokens] {
            digest.add(n);
        }
        trace.push(format!(
            "{now} {} {} {} {} {}",
            s.used(),
            s.running(),
            s.waiting(),
            step.preempted,
            step.tokens
        ));
    });
    (outcome, format!("{:016x}", digest.0), trace)
}

#[test]
fn every_step_is_the_engines() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/rehearse/vllm.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    let (mut cases, mut exact, mut preempting) = (0, 0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (found, digest, trace) = play(&case);
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
            if std::env::var("TRACE").is_ok_and(|t| t == case["seed"].to_string()) {
                std::fs::write("/tmp/rehearse.trace", trace.join("\n")).unwrap();
            }
        }
    }
    println!("{exact} of {cases} cases are the same in every step; {preempting} preempt");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 30 && preempting >= 10, "{cases} cases, {preempting} with preemptions");
}
