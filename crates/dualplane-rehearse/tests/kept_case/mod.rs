//! Cases as they are kept: settings and requests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub)]

use dualplane_rehearse::{Group, Keeps, Policy, Prefix, Request, Settings};
use serde_json::Value;

fn number(v: &Value, key: &str) -> u32 {
    v.get(key).and_then(Value::as_u64).map_or(0, |n| n as u32)
}

pub fn settings(v: &Value) -> Settings {
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
        cells: None,
    }
}

pub fn requests(v: &Value) -> Vec<Request> {
    v.as_array().unwrap().iter().map(request).collect()
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
