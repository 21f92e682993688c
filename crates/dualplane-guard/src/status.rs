//! What the guard tells of itself as a document: for `guard status`, and for the page of metrics.

use std::sync::atomic::Ordering;

use dualplane_admission::server::Health;
use dualplane_base::text::printable;
use serde::{Deserialize, Serialize};

use crate::state::State;

/// Schema of the status.
pub const SCHEMA: &str = "dualplane.guard/v1";
/// Tenants on a page: each is two series, and callers name them.
const MAX_TENANTS: usize = 200;

/// Status of the guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Seconds since the start.
    pub up_seconds: f64,
    /// Counts only.
    pub shadow: bool,
    /// Takes nothing more.
    pub draining: bool,
    /// Requests that are under way.
    pub under_way: u64,
    /// Bytes of bodies that are held.
    pub buffered_bytes: u64,
    /// The servers.
    pub servers: Vec<ServerStatus>,
    /// Services of a cluster whose pods are servers.
    #[serde(default)]
    pub services: Vec<ServiceStatus>,
    /// Who waits.
    pub pools: Vec<PoolStatus>,
    /// Tenants with something running or waiting.
    pub tenants: Vec<TenantStatus>,
    /// Refusals by code since the start.
    pub refused: std::collections::BTreeMap<String, u64>,
    /// In shadow mode: what would have become of requests.
    pub would: std::collections::BTreeMap<String, u64>,
    /// Models whose servers count prompts otherwise than the tokenizer that was given.
    #[serde(default)]
    pub other_tokenizer: Vec<String>,
}

/// Status of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Name.
    pub name: String,
    /// Engine by its metrics.
    pub engine: Option<String>,
    /// Whether it answers.
    pub up: bool,
    /// What ended it last.
    pub last_death: Option<String>,
    /// Requests that run.
    pub running: u64,
    /// Tokens of its KV cache; null where nobody knows.
    pub kv_tokens: Option<u64>,
    /// Tokens that are given out at most now.
    pub kv_cap: Option<u64>,
    /// Tokens that requests are counted with.
    pub kv_held: u64,
    /// Used share of the KV cache as it says itself.
    pub kv_use: Option<f64>,
    /// Share of the budget that is given out, by the closed loop.
    pub share: f64,
    /// Why it is below 1.
    pub cause: Option<String>,
    /// Host RAM that cannot be reclaimed, bytes.
    pub host_held: Option<u64>,
    /// Its limit.
    pub host_limit: Option<u64>,
    /// Bytes that another request may take.
    pub host_free: Option<u64>,
    /// Why nothing is read of its host RAM.
    pub host_trouble: Option<String>,
}

/// Status of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// Endpoints that get requests; null while nothing was heard of it.
    pub servers: Option<u64>,
    /// Endpoints that get none now.
    pub idle: u64,
    /// Endpoints without the port that was asked for, or too many.
    pub left_out: u64,
    /// Why this may be out of date.
    pub trouble: Option<String>,
}

/// Status of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Name.
    pub name: String,
    /// Requests that wait.
    pub waiting: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Status of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// Name.
    pub name: String,
    /// Requests that run.
    pub running: u64,
    /// Tokens that they are counted with.
    pub kv_held: u64,
    /// Requests that wait.
    pub waiting: u64,
}

/// The status of now.
#[must_use]
pub fn status(state: &State) -> Status {
    let now = state.now();
    let services = state.services().into_iter().map(|(name, s)| ServiceStatus {
        name,
        servers: s.heard.then_some(s.behind.servers.len() as u64),
        idle: s.behind.idle as u64,
        left_out: s.behind.left_out as u64,
        trouble: s.trouble,
    });
    let services = services.collect();
    let gate = state.gate();
    let servers = gate.current.iter().filter_map(|n| {
        let (s, t, seen) = (gate.admission.servers().get(*n)?, gate.targets.get(*n)?, gate.seen.get(*n)?);
        let host = s.host.reading(now);
        Some(ServerStatus {
            name: printable(&t.name).into_owned(),
            engine: seen.engine.map(str::to_owned),
            up: s.health() != Health::Down,
            last_death: seen.last_death().map(|c| c.as_str().to_owned()),
            running: s.running(),
            kv_tokens: s.limits.kv,
            kv_cap: s.cap_now(now),
            kv_held: s.kv_held(),
            kv_use: s.said().kv_use,
            share: s.throttle().share(),
            cause: s.throttle().cause().map(|c| c.word().to_owned()),
            host_held: host.map(|h| h.held),
            host_limit: host.and_then(|h| h.limit),
            host_free: s.host.free(now),
            host_trouble: seen.host_trouble.clone(),
        })
    });
    let pools = gate.admission.pools().map(|(name, waiting, bytes, tokens)| PoolStatus {
        name: printable(name).into_owned(),
        waiting: waiting as u64,
        tokens,
        bytes,
    });
    let tenants = gate.admission.tenants().take(MAX_TENANTS).map(|(name, used, waiting)| TenantStatus {
        name: printable(name).into_owned(),
        running: used.running,
        kv_held: used.kv,
        waiting: waiting as u64,
    });
    let mut refused = std::collections::BTreeMap::new();
    for (e, n) in state.endings.all().into_iter().filter(|(e, _)| !e.code.is_empty()) {
        *refused.entry(e.code.to_owned()).or_insert(0) += n;
    }
    let would = gate.counters.would.iter().map(|(w, n)| ((*w).to_owned(), *n)).collect();
    let other_tokenizer = gate.learnt.mistrusted().map(|m| printable(m).into_owned()).collect();
    Status {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        up_seconds: std::time::Duration::from_millis(now).as_secs_f64(),
        shadow: gate.admission.policy().shadow,
        draining: state.is_draining(),
        under_way: state.under_way.load(Ordering::Relaxed),
        buffered_bytes: state.buffered(),
        servers: servers.collect(),
        services,
        pools: pools.collect(),
        tenants: tenants.collect(),
        refused,
        would,
        other_tokenizer,
    }
}
