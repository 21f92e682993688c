//! Host memory that an engine says (or was told) it takes beside its own heap: offload tiers, pinned pools, prompt
//! caches, Memory-medium volumes. Their sum against the limit is what turns "OOMKilled" into an exact change.

use super::{Facts, Place};
use crate::evidence::Bundle;
use crate::units::{Bytes, GIB, MIB};

/// One consumer of host memory.
#[derive(Debug, Clone)]
pub struct HostPool {
    /// What it is.
    pub name: String,
    /// Its size, all ranks together.
    pub bytes: Bytes,
    /// How the size comes about.
    pub arithmetic: String,
    /// The flag that sets it, with the word for its value.
    pub flag: Option<&'static str>,
    /// How many ranks or processes share the size, for a flag that is per rank.
    pub ranks: u64,
    /// It is an upper bound that may not be reached (a cache that grows, a volume that may stay empty).
    pub bound: bool,
    /// Where.
    pub place: Place,
}

/// Signatures that print a pool's size: id, group, name, flag, whether each rank prints its own, whether it is a bound.
const PRINTED: &[(&str, &[&str], &str, Option<&str>, bool)] = &[
    ("sglang.", &["host_pool"], "SGLang hierarchical KV cache (pinned host pool)", Some("--hicache-size"), false),
    ("vllm.", &["cpu_offload", "offloaded"], "weights offloaded to host memory", Some("--cpu-offload-gb"), false),
    ("vllm.", &["kv_offload", "mmap"], "KV offload region", Some("--kv-offloading-size"), false),
    ("lmcache.", &["host_pool"], "LMCache CPU tier", Some("LMCACHE_MAX_LOCAL_CPU_SIZE"), false),
    ("llama_cpp.", &["cache_limit", "cache_size_limit", "limit"], "llama.cpp prompt cache", Some("--cache-ram"), true),
    ("ollama.", &["cache_limit", "limit"], "llama.cpp prompt cache", Some("--cache-ram"), true),
];

/// All pools that the evidence shows.
#[must_use]
pub fn host_pools(bundle: &Bundle, facts: &Facts) -> Vec<HostPool> {
    let mut pools = Vec::new();
    for (prefix, groups, name, flag, bound) in PRINTED {
        let hits: Vec<_> = facts
            .hits
            .iter()
            .filter(|h| h.id.starts_with(prefix))
            .filter_map(|h| groups.iter().find_map(|g| h.memory(g)).map(|b| (b, h)))
            .filter(|(b, _)| b.0 > 0)
            .collect();
        let Some((first, hit)) = hits.first() else { continue };
        let pool = if *bound {
            // A cache says its limit again and again: the last word counts once.
            let (last, hit) = hits.last().map_or((*first, *hit), |(b, h)| (*b, *h));
            HostPool {
                name: (*name).to_owned(),
                bytes: last,
                arithmetic: format!("limit {last} as printed"),
                flag: *flag,
                ranks: 1,
                bound: true,
                place: hit.place.clone(),
            }
        } else {
            // Each rank prints its own pool; one process twice (a restart in the same log) counts once.
            let mut by_process: Vec<(&str, Bytes)> = Vec::new();
            for (b, h) in &hits {
                if let Some(entry) = by_process.iter_mut().find(|(p, _)| *p == h.process) {
                    entry.1 = *b;
                } else {
                    by_process.push((&h.process, *b));
                }
            }
            let sum = by_process.iter().fold(Bytes(0), |s, (_, b)| s.saturating_add(*b));
            let ranks = by_process.len() as u64;
            HostPool {
                name: (*name).to_owned(),
                bytes: sum,
                arithmetic: if ranks > 1 { format!("{ranks} ranks × {first} = {sum}") } else { format!("{sum} as printed") },
                flag: *flag,
                ranks,
                bound: false,
                place: hit.place.clone(),
            }
        };
        if !pools.iter().any(|p: &HostPool| p.name == pool.name) {
            pools.push(pool);
        }
    }
    from_flags(facts, bundle, &mut pools);
    volumes(bundle, &mut pools);
    pools
}

/// Flags that set a pool, where the log did not print its size.
fn from_flags(facts: &Facts, bundle: &Bundle, pools: &mut Vec<HostPool>) {
    let file = bundle.pods.first().map(|p| p.file.clone()).unwrap_or_default();
    let place = Place { file, line: None };
    let tp = facts.engine.number(&["tensor-parallel-size", "tp-size", "tp"]).unwrap_or(1.0).max(1.0);
    let mut add = |name: &str, bytes: f64, arithmetic: String, flag: &'static str, ranks: f64, bound: bool| {
        if bytes >= 1.0 && !pools.iter().any(|p| p.name == name) {
            let bytes = Bytes::from_f64(bytes);
            pools.push(HostPool { name: name.into(), bytes, arithmetic, flag: Some(flag), ranks: ranks as u64, bound, place: place.clone() });
        }
    };
    let gib = GIB as f64;
    if let Some(g) = facts.engine.number(&["cpu-offload-gb"]) {
        add("weights offloaded to host memory", g * tp * gib, format!("--cpu-offload-gb {g} per GPU × {tp} GPUs"), "--cpu-offload-gb", tp, false);
    }
    if let Some(g) = facts.engine.number(&["kv-offloading-size"]) {
        add("KV offload region", g * gib, format!("--kv-offloading-size {g} GiB over all ranks"), "--kv-offloading-size", 1.0, false);
    }
    if let Some(g) = facts.engine.number(&["hicache-size"]) {
        let sum = g * tp * 1e9;
        add("SGLang hierarchical KV cache (pinned host pool)", sum, format!("--hicache-size {g} GB per rank × {tp} ranks"), "--hicache-size", tp, false);
    }
    if let Some(m) = facts.engine.number(&["cache-ram", "cram"]) {
        add("llama.cpp prompt cache", m * MIB as f64, format!("--cache-ram {m} MiB"), "--cache-ram", 1.0, true);
    }
}

/// Memory-medium volumes are charged to the container that writes them.
fn volumes(bundle: &Bundle, pools: &mut Vec<HostPool>) {
    for pod in &bundle.pods {
        for v in pod.volumes.iter().filter(|v| v.memory_medium) {
            if let Some(limit) = v.size_limit {
                pools.push(HostPool {
                    name: format!("Memory-medium volume {}", v.name),
                    bytes: limit,
                    arithmetic: format!("sizeLimit {}", limit.k8s()),
                    flag: None,
                    ranks: 1,
                    bound: true,
                    place: Place { file: pod.file.clone(), line: None },
                });
            }
        }
    }
}
