//! What a server says of itself: its model, its engine, and the page of its metrics.

use std::time::{Duration, Instant};

use dualplane_base::metrics::sample;
use dualplane_engines::metrics::{Counts, EngineMetrics, engines};
use serde_json::Value;

use crate::client::Target;

/// Of one page.
const MAX_PAGE: u64 = 4 << 20;

/// Engine and model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Name of its model.
    pub model: Option<String>,
    /// The most tokens of a request, where it says so.
    pub longest: Option<u64>,
    /// The engine's name.
    pub engine: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Tokens that the KV cache holds.
    pub kv_tokens: Option<u64>,
}

pub(crate) fn agent(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("dualplane/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

pub(crate) fn get(agent: &ureq::Agent, url: &str, key: Option<&str>) -> Option<String> {
    let mut ask = agent.get(url);
    if let Some(key) = key {
        ask = ask.header("authorization", format!("Bearer {key}"));
    }
    let mut answer = ask.call().ok()?;
    if answer.status().as_u16() != 200 {
        return None;
    }
    let body = answer.body_mut().with_config().limit(MAX_PAGE).read_to_vec().ok()?;
    Some(String::from_utf8_lossy(&body).into_owned())
}

/// Asks a server what it is.
#[must_use]
pub fn about(target: &Target, metrics: Option<&str>) -> About {
    let agent = agent(Duration::from_secs(5));
    let page = |path: &str| get(&agent, &format!("{}{path}", target.base()), target.key());
    let mut out = About::default();
    if let Some(models) = page("/v1/models").and_then(|t| serde_json::from_str::<Value>(&t).ok()) {
        let first = models.pointer("/data/0");
        out.model = first.and_then(|m| m.get("id")).and_then(Value::as_str).map(str::to_owned);
        out.longest = first.and_then(|m| m.get("max_model_len")).and_then(Value::as_u64);
    }
    if let Some(v) = page("/version").and_then(|t| serde_json::from_str::<Value>(&t).ok()) {
        out.version = v.get("version").and_then(Value::as_str).map(str::to_owned);
    }
    let mut read = Page::new(metrics.map_or_else(|| format!("{}/metrics", target.base()), str::to_owned));
    if let Some(told) = read.ask(target.key()) {
        out.engine = Some(told.engine.to_owned());
        out.kv_tokens = told.kv_tokens;
    }
    out
}

/// Waits until a server lists its models; `stop` ends the wait early.
///
/// # Errors
/// The time is up.
pub fn wait_ready(target: &Target, most: Duration, mut stop: impl FnMut() -> bool) -> Result<(), String> {
    let agent = agent(Duration::from_secs(2));
    let began = Instant::now();
    let url = format!("{}/v1/models", target.base());
    while began.elapsed() < most {
        if get(&agent, &url, target.key()).is_some() {
            return Ok(());
        }
        if stop() {
            return Err("the server ended before it answered".into());
        }
        // The server tells nobody when it is up: it is asked.
        std::thread::park_timeout(Duration::from_millis(200));
    }
    Err(format!("{url} did not answer within {} s", most.as_secs()))
}

/// A page of metrics that is asked again and again.
pub(crate) struct Page {
    url: String,
    agent: ureq::Agent,
    of: Option<&'static EngineMetrics>,
}

/// What a page told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) engine: &'static str,
    pub(crate) counts: Counts,
    pub(crate) prefix: Option<(f64, f64)>,
    pub(crate) kv_tokens: Option<u64>,
}

/// Tokens that the prefix cache was asked for, and those that it had.
const PREFIX: [[&str; 2]; 2] = [
    ["vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"],
    ["sglang:prompt_tokens_total", "sglang:cached_tokens_total"],
];

impl Page {
    pub(crate) fn new(url: String) -> Self {
        Self { url, agent: agent(Duration::from_millis(900)), of: None }
    }

    pub(crate) fn ask(&mut self, key: Option<&str>) -> Option<Told> {
        let page = get(&self.agent, &self.url, key)?;
        let found = match self.of {
            Some(of) => of.read(&page).map(|c| (of, c)),
            None => engines().iter().find_map(|e| e.read(&page).map(|c| (e, c))),
        };
        let (of, counts) = found?;
        self.of = Some(of);
        let (mut sums, mut kv_tokens) = ([[None; 2]; 2], None);
        for line in page.lines() {
            if line.starts_with("vllm:cache_config_info{") {
                kv_tokens = blocks(line).or(kv_tokens);
            } else if line.starts_with("sglang:max_total_num_tokens") {
                kv_tokens = sample(line).map(|(_, _, v, _)| v as u64).or(kv_tokens);
            }
            for (names, sums) in PREFIX.iter().zip(&mut sums) {
                for (name, sum) in names.iter().zip(sums) {
                    let own = line.strip_prefix(name).is_some_and(|r| r.starts_with(['{', ' ']));
                    if let Some((_, _, v, _)) = sample(line).filter(|_| own) {
                        *sum = Some(sum.unwrap_or(0.0) + v);
                    }
                }
            }
        }
        let prefix = sums.into_iter().find_map(|[asked, had]| asked.zip(had));
        Some(Told { engine: of.engine, counts, prefix, kv_tokens })
    }
}

/// `num_gpu_blocks` × `block_size` of vLLM's labels; both planes have one name there.
fn blocks(line: &str) -> Option<u64> {
    let (_, labels, ..) = sample(line)?;
    let of = |key: &str| labels.iter().find(|(k, _)| k == key).and_then(|(_, v)| v.parse::<u64>().ok());
    Some(of("num_gpu_blocks")?.saturating_mul(of("block_size")?))
}
