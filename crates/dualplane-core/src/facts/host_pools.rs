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

/// Where a log prints a pool's size.
struct Printed {
    signature: &'static str,
    group: &'static str,
    name: &'static str,
    flag: Option<&'static str>,
    /// A cache that says its limit again and again, as opposed to one pool a rank.
    bound: bool,
}

const fn printed(
    signature: &'static str,
    group: &'static str,
    name: &'static str,
    flag: Option<&'static str>,
    bound: bool,
) -> Printed {
    Printed { signature, group, name, flag, bound }
}

const HICACHE: &str = "SGLang hierarchical KV cache (pinned host pool)";
const OFFLOAD: &str = "weights offloaded to host memory";
const KV_OFFLOAD: &str = "KV offload region";
const PROMPT_CACHE: &str = "llama.cpp prompt cache";
const LMCACHE: &str = "LMCache CPU tier";

const PRINTED: &[Printed] = &[
    printed("sglang.host_pool", "host_pool", HICACHE, Some("--hicache-size"), false),
    printed("sglang.arg_cpu_offload", "cpu_offload", OFFLOAD, Some("--cpu-offload-gb"), false),
    printed("vllm.cpu_offloaded", "host_pool", OFFLOAD, Some("--cpu-offload-gb"), false),
    printed("vllm.arg_cpu_offload", "cpu_offload", OFFLOAD, Some("--cpu-offload-gb"), false),
    printed("vllm.mmap_file", "host_pool", KV_OFFLOAD, Some("--kv-offloading-size"), false),
    printed("vllm.arg_kv_offloading", "kv_offloading", KV_OFFLOAD, Some("--kv-offloading-size"), false),
    printed("vllm.cumem_sleep", "host_pool", "weights backed up by sleep mode", None, false),
    printed("lmcache.cpu_size_adjusted", "host_pool", LMCACHE, Some("LMCACHE_MAX_LOCAL_CPU_SIZE"), false),
    printed("lmcache.config_cpu_size", "host_pool", LMCACHE, Some("LMCACHE_MAX_LOCAL_CPU_SIZE"), false),
    printed("llama_cpp.prompt_cache_state", "limit", PROMPT_CACHE, Some("--cache-ram"), true),
    printed("llama_cpp.prompt_cache_limit", "limit", PROMPT_CACHE, Some("--cache-ram"), true),
];

/// All pools that the evidence shows.
#[must_use]
pub fn host_pools(bundle: &Bundle, facts: &Facts) -> Vec<HostPool> {
    let mut pools = Vec::new();
    for Printed { signature, group, name, flag, bound } in PRINTED {
        let hits: Vec<_> = facts
            .hits
            .iter()
            .filter(|h| h.id == *signature)
            .filter_map(|h| h.memory(group).map(|b| (b, h)))
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
                arithmetic: if ranks > 1 {
                    format!("{ranks} ranks × {first} = {sum}")
                } else {
                    format!("{sum} as printed")
                },
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
    let mut add =
        |name: &str, bytes: f64, arithmetic: String, flag: &'static str, ranks: f64, bound: bool| {
            if bytes >= 1.0 && !pools.iter().any(|p| p.name == name) {
                let bytes = Bytes::from_f64(bytes);
                pools.push(HostPool {
                    name: name.into(),
                    bytes,
                    arithmetic,
                    flag: Some(flag),
                    ranks: ranks as u64,
                    bound,
                    place: place.clone(),
                });
            }
        };
    let gib = GIB as f64;
    if let Some(g) = facts.engine.number(&["cpu-offload-gb"]) {
        add(
            OFFLOAD,
            g * tp * gib,
            format!("--cpu-offload-gb {g} per GPU × {tp} GPUs"),
            "--cpu-offload-gb",
            tp,
            false,
        );
    }
    if let Some(g) = facts.engine.number(&["kv-offloading-size"]) {
        add(
            KV_OFFLOAD,
            g * gib,
            format!("--kv-offloading-size {g} GiB over all ranks"),
            "--kv-offloading-size",
            1.0,
            false,
        );
    }
    if let Some(g) = facts.engine.number(&["hicache-size"]) {
        let sum = g * tp * 1e9;
        add(
            HICACHE,
            sum,
            format!("--hicache-size {g} GB per rank × {tp} ranks"),
            "--hicache-size",
            tp,
            false,
        );
    }
    if let Some(m) = facts.engine.number(&["cache-ram", "cram"]) {
        add(PROMPT_CACHE, m * MIB as f64, format!("--cache-ram {m} MiB"), "--cache-ram", 1.0, true);
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

/// What a growing cache really held when it was last printed.
#[must_use]
pub fn prompt_cache_in_use(facts: &Facts) -> Option<Bytes> {
    facts.last_memory("llama_cpp.prompt_cache_state", "usage").map(|(b, _)| b)
}
