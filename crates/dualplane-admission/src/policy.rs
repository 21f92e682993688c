//! How requests are treated: what tenants may, which kinds wait apart, how long and how many.

use std::collections::BTreeMap;

use crate::Ms;
use crate::cost::HostModel;

/// What a tenant may.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TenantPolicy {
    /// Its part of the service beside others.
    pub weight: f64,
    /// Requests at a time.
    pub running: Option<u64>,
    /// Requests that wait.
    pub waiting: Option<u64>,
    /// Share of all servers' KV cache.
    pub kv_share: f64,
}

impl Default for TenantPolicy {
    fn default() -> Self {
        Self { weight: 1.0, running: None, waiting: None, kv_share: 1.0 }
    }
}

/// Requests of one kind, which share a part of each server and wait apart from others.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Part of a server's KV cache that it may use.
    pub share: f64,
    /// Servers that take it, by number; empty: all.
    pub servers: Vec<usize>,
}

/// How requests are treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Counts only, and sends everything.
    pub shadow: bool,
    /// The longest that a request waits.
    pub max_wait: Ms,
    /// Requests that wait, all together.
    pub max_waiting: u64,
    /// Bytes of bodies that wait, all together.
    pub max_bytes: u64,
    /// What is expected of an output before any was seen and where the caller sets no bound.
    pub default_output: u64,
    /// Every request is counted with the whole of its bound: nothing is ever pushed out, and less runs at a time.
    pub worst_case: bool,
    /// What a request takes of host RAM.
    pub host: HostModel,
    /// Tenants that are not as all others.
    pub tenants: BTreeMap<String, TenantPolicy>,
    /// All others.
    pub tenant: TenantPolicy,
    /// At least one.
    pub pools: Vec<Pool>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            shadow: false,
            max_wait: 30_000,
            max_waiting: 1024,
            max_bytes: 256 << 20,
            default_output: 512,
            worst_case: false,
            host: HostModel::default(),
            tenants: BTreeMap::new(),
            tenant: TenantPolicy::default(),
            pools: vec![Pool { name: "all".into(), share: 1.0, servers: Vec::new() }],
        }
    }
}
