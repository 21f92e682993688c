//! The configuration: TOML, every key known, every value checked before a port is bound.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dualplane_admission::Policy;
use dualplane_admission::server::{Limits, Server};
use dualplane_base::units::parse_k8s_memory;
use http::HeaderName;
use serde::Deserialize;

use crate::clients::Peer;
use crate::pool::Rule;
use crate::service::{Kubernetes, Service, ServiceConfig};
use crate::tenant::TenantBy;
use crate::tokenizer::{TokenizerConfig, Tokenizers};

/// As an address: the socket on which to listen is open already, and is the standard input.
pub const STDIN: &str = "stdin";
/// Where the guard listens unless told otherwise: beside the 8000 of most servers.
pub const LISTEN: &str = "127.0.0.1:8010";
/// Where it tells of itself, beside the agent's 10980.
pub const ADMIN: &str = "127.0.0.1:10981";

/// Why a configuration is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no TOML, or has a key that is not known.
    #[error("{path}: {why}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// With the line.
        why: String,
    },
    /// A value cannot be.
    #[error("{key}: {why}")]
    Value {
        /// The key, with its table.
        key: String,
        /// What is wrong and what would be right.
        why: String,
    },
}

pub(crate) fn bad<T>(key: impl Into<String>, why: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Value { key: key.into(), why: why.into() })
}

/// An amount of memory as people write it: `32Mi`, or bytes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// With a unit.
    Text(String),
}

impl Size {
    pub(crate) fn bytes(&self, key: &str) -> Result<u64, ConfigError> {
        let n = match self {
            Self::Bytes(n) => Some(*n),
            Self::Text(t) => parse_k8s_memory(t).map(|b| b.0),
        };
        match n.filter(|n| *n > 0) {
            Some(n) => Ok(n),
            None => bad(key, "expected a size such as \"32Mi\""),
        }
    }
}

fn mib(n: u64) -> Size {
    Size::Bytes(n << 20)
}

/// The file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address for requests.
    pub listen: String,
    /// Address for `/metrics`, `/status`, `/livez`, `/readyz`, or `none`.
    pub admin: String,
    /// Counts only, and sends everything.
    pub shadow: bool,
    /// `none`, `stdout` or a file.
    pub access_log: String,
    /// How long streams may go on after SIGTERM.
    pub drain_seconds: u64,
    /// TLS for requests.
    pub tls: Option<Tls>,
    /// OpenTelemetry.
    pub traces: Option<TracesConfig>,
    /// Bounds of connections and bodies.
    pub limits: Bounds,
    /// Who waits, and how long.
    pub queue: QueueConfig,
    /// How cost and budget are computed.
    pub admission: AdmissionConfig,
    /// Who is told apart, and who may what.
    pub tenants: Tenants,
    /// Kinds of requests that wait apart, the first that matches.
    pub pool: Vec<PoolConfig>,
    /// The servers.
    pub server: Vec<ServerConfig>,
    /// Tokenizers of models.
    pub tokenizer: Vec<TokenizerConfig>,
    /// Services of a cluster whose pods are servers.
    pub service: Vec<ServiceConfig>,
    /// How to ask for them.
    pub kubernetes: Kubernetes,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: LISTEN.into(),
            admin: ADMIN.into(),
            shadow: false,
            access_log: "none".into(),
            drain_seconds: 300,
            tls: None,
            traces: None,
            limits: Bounds::default(),
            queue: QueueConfig::default(),
            admission: AdmissionConfig::default(),
            tenants: Tenants::default(),
            pool: Vec::new(),
            server: Vec::new(),
            tokenizer: Vec::new(),
            service: Vec::new(),
            kubernetes: Kubernetes::default(),
        }
    }
}

/// Certificate and key, PEM; read again when they change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Chain of certificates.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// Spans of requests, for a collector of OpenTelemetry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracesConfig {
    /// Of OTLP over HTTP, such as `http://otel-collector:4318`.
    pub endpoint: String,
    /// Share of the traces that begin here. Where a caller's trace goes on, the caller has chosen.
    #[serde(default = "whole")]
    pub share: f64,
    /// File with a bearer token.
    pub token: Option<PathBuf>,
}

impl TracesConfig {
    /// All traces, to this endpoint.
    #[must_use]
    pub fn to(endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), share: whole(), token: None }
    }
}

/// Bounds of what comes in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// A body.
    pub body: Size,
    /// Bodies that are held at a time, all together.
    pub buffered: Size,
    /// Connections at a time.
    pub connections: usize,
    /// For the head of a request.
    pub head_seconds: u64,
    /// Between two parts of a body.
    pub body_idle_seconds: u64,
    /// For a whole body.
    pub body_seconds: u64,
    /// Until a server takes a connection.
    pub connect_seconds: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body: mib(32),
            buffered: mib(256),
            connections: 10_000,
            // A connection that waits for its next request counts, too: gateways keep theirs for 60 s.
            head_seconds: 75,
            body_idle_seconds: 30,
            body_seconds: 300,
            connect_seconds: 3,
        }
    }
}

/// The queue.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// The longest that a request waits.
    pub wait_seconds: f64,
    /// Requests that wait.
    pub requests: u64,
    /// Bytes of bodies that wait.
    pub bytes: Size,
    /// Header in which a caller may ask for a shorter wait, in milliseconds.
    pub wait_header: String,
    /// Header with a priority within the tenant, 0 to 9.
    pub priority_header: String,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            wait_seconds: 30.0,
            requests: 1024,
            bytes: mib(128),
            wait_header: "x-dualplane-max-wait-ms".into(),
            priority_header: "x-dualplane-priority".into(),
        }
    }
}

/// Cost and budget.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdmissionConfig {
    /// Expected of an output while nothing is learnt and the caller sets no bound.
    pub output_tokens: u64,
    /// Counts the whole of a caller's bound instead of what is learnt.
    pub worst_case: bool,
    /// Share of the KV cache that is given out.
    pub kv_share: f64,
    /// Share of the host RAM's limit that stays free.
    pub host_reserve: f64,
    /// A server that came back takes everything again after this time.
    pub return_seconds: u64,
    /// Requests at a time while nothing is known of a server's KV cache.
    pub unknown_requests: u64,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            output_tokens: 512,
            worst_case: false,
            kv_share: 0.95,
            host_reserve: 0.1,
            return_seconds: 30,
            unknown_requests: 8,
        }
    }
}

/// Tenants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tenants {
    /// `key`, `none`, `header:NAME` or `jwt:CLAIM`.
    pub by: String,
    /// Of each that is not named.
    pub default: TenantConfig,
    /// By name.
    pub named: BTreeMap<String, TenantConfig>,
}

impl Default for Tenants {
    fn default() -> Self {
        Self { by: "key".into(), default: TenantConfig::default(), named: BTreeMap::new() }
    }
}

/// What a tenant may.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantConfig {
    /// Its part beside others.
    pub weight: f64,
    /// Requests at a time.
    pub running: Option<u64>,
    /// Requests that wait.
    pub waiting: Option<u64>,
    /// Share of all servers' KV cache.
    pub kv_share: f64,
}

impl Default for TenantConfig {
    fn default() -> Self {
        Self { weight: 1.0, running: None, waiting: None, kv_share: 1.0 }
    }
}

/// A kind of requests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolConfig {
    /// Its name.
    pub name: String,
    /// Prompts from this many tokens on.
    pub min_prompt_tokens: Option<u64>,
    /// Prompts up to this many.
    pub max_prompt_tokens: Option<u64>,
    /// With pictures, or without.
    pub images: Option<bool>,
    /// With an adapter (a field for it, or one of `models`), or without.
    pub adapter: Option<bool>,
    /// Names of models.
    #[serde(default)]
    pub models: Vec<String>,
    /// Part of a server's KV cache.
    #[serde(default = "whole")]
    pub share: f64,
    /// Servers that take it, by name; empty: all.
    #[serde(default)]
    pub servers: Vec<String>,
}

fn whole() -> f64 {
    1.0
}

/// A server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// `http://HOST:PORT`, or `https://HOST`.
    pub url: String,
    /// Name in metrics; by default host and port.
    pub name: Option<String>,
    /// Page of its metrics, or `none`; by default the API's port and then those that engines are known for.
    pub metrics: Option<String>,
    /// Tokens of its KV cache, where it does not say so itself.
    pub kv_tokens: Option<u64>,
    /// Tokens of a block.
    pub block_tokens: Option<u64>,
    /// Requests at a time.
    pub requests: Option<u64>,
    /// Its cgroup below /sys/fs/cgroup.
    pub cgroup: Option<String>,
    /// The agent's page of metrics, where its cgroup is not in sight.
    pub agent: Option<String>,
    /// NAMESPACE/POD/CONTAINER on that page.
    pub container: Option<String>,
    /// It does not page its memory.
    #[serde(default)]
    pub unpaged: bool,
    /// It keeps prefixes that requests share once (vLLM and SGLang do unless told otherwise).
    #[serde(default)]
    pub prefix_cache: bool,
    /// Asks its /tokenize for the tokens of each prompt.
    #[serde(default)]
    pub tokenize: bool,
}

impl ServerConfig {
    /// Of a URL alone.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            name: None,
            metrics: None,
            kv_tokens: None,
            block_tokens: None,
            requests: None,
            cgroup: None,
            agent: None,
            container: None,
            unpaged: false,
            prefix_cache: false,
            tokenize: false,
        }
    }
}

/// A server that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Name in metrics.
    pub name: String,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// `HOST:PORT`.
    pub authority: String,
    /// Both, as connections to it are told apart.
    pub(crate) peer: Peer,
    /// Path before every request's own, without a slash at its end.
    pub prefix: String,
    /// The Service that it stands behind.
    pub service: Option<String>,
    /// What was said of it.
    pub said: ServerConfig,
}

/// A configuration that was checked.
#[derive(Debug, Clone)]
pub struct Checked {
    /// As it was written.
    pub config: Config,
    /// Where to listen; `None`: on the socket that is its standard input.
    pub listen: Option<SocketAddr>,
    /// Where to tell.
    pub admin: Option<SocketAddr>,
    /// Servers: of the file, then those that were found.
    pub targets: Vec<Target>,
    /// Services.
    pub services: Vec<Service>,
    /// For admission.
    pub policy: Policy,
    /// Pools.
    pub rules: Vec<Rule>,
    /// Tenants.
    pub by: TenantBy,
    /// In which callers say how urgent a request is.
    pub priority: HeaderName,
    /// In which they say how long it may wait.
    pub max_wait: HeaderName,
    /// Tokenizers, read.
    pub tokenizers: Tokenizers,
    /// Longest body.
    pub body: u64,
    /// Bodies at a time.
    pub buffered: u64,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or has a key that is not known.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text)
            .map_err(|e| ConfigError::Syntax { path: path.to_owned(), why: e.to_string().trim().to_owned() })
    }
}

impl Checked {
    /// A server as admission begins with it.
    #[must_use]
    pub fn server(&self, target: &Target) -> Server {
        let a = &self.config.admission;
        Server::new(self.limits(target), a.host_reserve, a.return_seconds * 1000)
    }

    /// Its room, as far as the configuration says.
    #[must_use]
    pub fn limits(&self, target: &Target) -> Limits {
        let a = &self.config.admission;
        Limits {
            kv: target.said.kv_tokens,
            one: None,
            block: target.said.block_tokens.unwrap_or(Limits::default().block),
            ceiling: a.kv_share,
            requests: target.said.requests,
            blind_requests: a.unknown_requests,
            unpaged: target.said.unpaged,
        }
    }
}
