//! Host memory that an engine says (or was told) it takes beside its own heap: offload tiers, pinned pools, prompt
//! caches, Memory-medium volumes. Their sum against the limit is what turns "OOMKilled" into an exact change.

use super::{Facts, Place};
use crate::evidence::Bundle;
use crate::units::{Bytes, GIB};
use dualplane_engines::{HostPool as Head, Kind, Numbers};

/// One consumer of host memory.
#[derive(Debug, Clone)]
pub struct HostPool {
    /// What it is.
    pub name: String,
    /// Its size, all ranks together.
    pub bytes: Bytes,
    /// How the size comes about.
    pub arithmetic: String,
    /// The flag or variable that sets it.
    pub flag: Option<String>,
    /// Bytes of one unit of its value.
    pub unit: u64,
    /// The unit in words.
    pub unit_words: String,
    /// How many ranks or processes share the size, for a flag that is per rank.
    pub ranks: u64,
    /// It is an upper bound that may not be reached (a cache that grows, a volume that may stay empty).
    pub bound: bool,
    /// Where.
    pub place: Place,
}

/// All pools that the evidence shows.
#[must_use]
pub(super) fn host_pools(bundle: &Bundle, facts: &Facts) -> Vec<HostPool> {
    let mut pools = Vec::new();
    let heads = || {
        // A tier beside an engine comes after the engine's own.
        let of = |helper: bool| facts.engine.all.iter().filter(move |d| (d.kind == Kind::Helper) == helper);
        of(false).chain(of(true)).flat_map(|d| &d.host_pool)
    };
    for head in heads() {
        for numbers in &head.printed {
            add(&mut pools, printed(head, numbers, facts));
        }
    }
    for head in heads() {
        add(&mut pools, given(head, bundle, facts));
    }
    volumes(bundle, &mut pools);
    pools
}

/// The first telling of a pool counts.
fn add(pools: &mut Vec<HostPool>, pool: Option<HostPool>) {
    pools.extend(pool.filter(|new| !pools.iter().any(|p| p.name == new.name)));
}

fn pool(head: &Head, bytes: Bytes, arithmetic: String, ranks: u64, place: Place) -> HostPool {
    let unit = crate::units::unit_bytes(&head.unit).map_or(GIB, |u| u as u64);
    HostPool {
        name: head.name.clone(),
        bytes,
        arithmetic,
        flag: head.flags.first().cloned(),
        unit,
        unit_words: head.unit_words.clone().unwrap_or_else(|| head.unit.clone()),
        ranks,
        bound: head.bound,
        place,
    }
}

/// What the log prints of a pool.
fn printed(head: &Head, numbers: &Numbers, facts: &Facts) -> Option<HostPool> {
    let hits: Vec<_> = facts
        .hits
        .iter()
        .filter(|h| numbers.is_of(&h.id))
        .filter_map(|h| h.memory(&numbers.group).map(|b| (b, h)))
        .filter(|(b, _)| b.0 > 0)
        .collect();
    let (first, hit) = hits.first()?;
    if head.bound {
        // A cache says its limit again and again: the last word counts once.
        let (last, hit) = hits.last()?;
        return Some(pool(head, *last, format!("limit {last} as printed"), 1, hit.place.clone()));
    }
    // Each rank prints its own pool; one process twice (a restart in the same log) counts once.
    let mut by_process: Vec<(&str, Bytes)> = Vec::new();
    for (b, h) in &hits {
        if let Some(entry) = by_process.iter_mut().find(|(p, _)| *p == h.process) {
            entry.1 = *b;
        } else {
            by_process.push((&h.process, *b));
        }
    }
    let told = by_process.iter().fold(Bytes(0), |s, (_, b)| s.saturating_add(*b));
    let seen = by_process.len() as u64;
    // A rank that was killed before it printed its pool, or whose line was cut, takes one all the same.
    let ranks = if head.per_gpu { seen.max(facts.engine.ranks() as u64) } else { seen };
    let sum = told.saturating_add(Bytes(first.0.saturating_mul(ranks - seen)));
    let arithmetic = match ranks {
        0 | 1 => format!("{sum} as printed"),
        n if n > seen => format!("{n} ranks × {first} = {sum} ({seen} of them printed it)"),
        n => format!("{n} ranks × {first} = {sum}"),
    };
    Some(pool(head, sum, arithmetic, ranks, hit.place.clone()))
}

/// A flag or variable that sets a pool, where the log did not print its size.
fn given(head: &Head, bundle: &Bundle, facts: &Facts) -> Option<HostPool> {
    let value = facts.engine.lever_number(&head.flags)?;
    let ranks = if head.per_gpu { facts.engine.ranks() } else { 1.0 };
    let bytes = value * ranks * crate::units::unit_bytes(&head.unit)?;
    if bytes < 1.0 {
        return None;
    }
    let file = bundle.pods.first().map(|p| p.file.clone()).unwrap_or_default();
    let arithmetic =
        head.arithmetic.replace("{value}", &value.to_string()).replace("{ranks}", &ranks.to_string());
    Some(pool(head, Bytes::from_f64(bytes), arithmetic, ranks as u64, Place { file, line: None }))
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
                    unit: GIB,
                    unit_words: String::new(),
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
