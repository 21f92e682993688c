//! What a server says of itself: its model, its engine, and the page of its metrics.

use std::time::{Duration, Instant};

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
    /// Why it lists no model.
    pub silent: Option<String>,
}

/// Asks pages at this URL.
pub(crate) fn agent(url: &str, timeout: Duration) -> ureq::Agent {
    let builder = ureq::Agent::config_builder();
    // Reading all certificates of a machine takes some milliseconds.
    let encrypts = url.get(..6).is_some_and(|s| s.eq_ignore_ascii_case("https:"));
    let builder = if encrypts { builder.tls_config(crate::tls::of_pages()) } else { builder };
    builder
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
    ask(agent, url, key).ok()
}

/// A page, or why there is none.
fn ask(agent: &ureq::Agent, url: &str, key: Option<&str>) -> Result<String, String> {
    let mut ask = agent.get(url);
    if let Some(key) = key {
        ask = ask.header("authorization", format!("Bearer {key}"));
    }
    let mut answer = ask.call().map_err(|e| e.to_string())?;
    match answer.status().as_u16() {
        200 => {}
        401 | 403 => {
            return Err("it asks for a key: name a file with it in DUALPLANE_ENGINE_TOKEN_FILE".into());
        }
        status => return Err(format!("HTTP status {status}")),
    }
    let body = answer.body_mut().with_config().limit(MAX_PAGE).read_to_vec().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Asks a server what it is.
#[must_use]
pub fn about(target: &Target, metrics: Option<&str>) -> About {
    let agent = agent(&target.base(), Duration::from_secs(5));
    let page = |path: &str| ask(&agent, &format!("{}{path}", target.base()), target.key());
    let mut out = About::default();
    match page("/v1/models") {
        Ok(text) => {
            let models = serde_json::from_str::<Value>(&text).unwrap_or_default();
            let first = models.pointer("/data/0");
            out.model = first.and_then(|m| m.get("id")).and_then(Value::as_str).map(str::to_owned);
            out.longest = first.and_then(|m| m.get("max_model_len")).and_then(Value::as_u64);
        }
        Err(why) => out.silent = Some(why),
    }
    if let Some(v) = page("/version").ok().and_then(|t| serde_json::from_str::<Value>(&t).ok()) {
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
    let agent = agent(&target.base(), Duration::from_secs(2));
    let began = Instant::now();
    let mut said = String::new();
    let url = format!("{}/v1/models", target.base());
    while began.elapsed() < most {
        match ask(&agent, &url, target.key()) {
            Ok(_) => return Ok(()),
            Err(why) => said = why,
        }
        if stop() {
            return Err("the server ended before it answered".into());
        }
        // The server tells nobody when it is up: it is asked.
        std::thread::park_timeout(Duration::from_millis(200));
    }
    Err(format!("{url} did not answer within {} s: {said}", most.as_secs()))
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

impl Page {
    pub(crate) fn new(url: String) -> Self {
        let agent = agent(&url, Duration::from_millis(900));
        Self { url, agent, of: None }
    }

    pub(crate) fn ask(&mut self, key: Option<&str>) -> Option<Told> {
        let page = get(&self.agent, &self.url, key)?;
        let found = match self.of {
            Some(of) => of.read(&page).map(|c| (of, c)),
            None => engines().iter().find_map(|e| e.read(&page).map(|c| (e, c))),
        };
        let (of, counts) = found?;
        self.of = Some(of);
        let prefix = counts.prefix_asked.zip(counts.prefix_had);
        let kv_tokens = counts.pool_tokens.map(|n| n as u64);
        Some(Told { engine: of.engine, counts, prefix, kv_tokens })
    }
}
