//! What a refused start needs, from what it printed: the arithmetic that plans and the advice of a verdict share.

use super::card::place;
use super::launch::{Launch, MaxModelLen};
use super::model::{Attention, Model, ModelFiles};
use super::outcome::Plan;
use super::version::Version;
use super::{catalogue, manifest, startlog};
use crate::evidence::Bundle;
use crate::facts::Facts;
use crate::knowledge::gpu::Gpu as Card;
use crate::units::{Bytes, GIB};

/// vLLM's `--gpu-memory-utilization` where it is not given (config/cache.py of 0.19.1 and 0.20.0).
#[must_use]
pub fn default_utilisation(version: Version) -> f64 {
    if version >= Version(0, 20, 0) { 0.92 } else { 0.9 }
}

/// Bytes that a request of `len` tokens takes of a pool that holds `tokens`: whole blocks of `block` tokens, of a model
/// whose layers all keep every token.
#[must_use]
pub fn needed(pool: Bytes, tokens: u64, len: u64, block: u64) -> Bytes {
    let (have, want) = (tokens / block.max(1), len.div_ceil(block.max(1)));
    if have == 0 {
        return Bytes(0);
    }
    Bytes(u64::try_from(u128::from(pool.0) * u128::from(want) / u128::from(have)).unwrap_or(u64::MAX))
}

/// The longest request that a pool of `available` bytes holds where one of `len` tokens needs `needed`, in whole blocks,
/// with the same assumption.
#[must_use]
pub fn longest(available: Bytes, needed: Bytes, len: u64, block: u64) -> u64 {
    let blocks = u128::from(len.div_ceil(block.max(1)));
    let fit = u128::from(available.0) * blocks / u128::from(needed.0.max(1));
    u64::try_from(fit).unwrap_or(u64::MAX).saturating_mul(block).min(len)
}

/// What the engine's message says of a refused start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// `max_model_len`, in tokens.
    pub max_model_len: Option<u64>,
    /// Bytes needed.
    pub needed: Option<Bytes>,
    /// Bytes of the pool.
    pub available: Option<Bytes>,
}

/// A plan of the launch in the evidence with the pool that it printed.
///
/// `None` where model, version or pool are not known, and where the plan does not agree with what the message says: then
/// it is not the plan of this start.
#[must_use]
pub fn of_start(bundle: &Bundle, facts: &Facts, cards: &[Card], told: Told) -> Option<Plan> {
    let log = startlog::read(bundle, facts).ok();
    let pod = manifest::workload(bundle).ok();
    let pool = told.available.map(|b| b.0).or_else(|| log.as_ref()?.printed.pool).filter(|b| *b > 0)?;
    let card = pod.as_ref().and_then(|w| w.card.clone());
    let total = log.as_ref().and_then(|l| l.printed.total).map(Bytes);
    // Arguments of the log are what was served; a pod's are a template until then.
    let of_log = log.map(|l| l.line).filter(|l| l.model.is_some());
    let line = of_log.or_else(|| pod.map(|w| w.line))?;
    let entry = catalogue::find(line.model.as_deref()?)?;
    let files =
        ModelFiles { config: entry.config, hf_quant_config: entry.hf_quant_config, safetensors_index: None };
    let model = Model::read(&files).ok()?;
    let version = facts.engine.version.as_deref().and_then(Version::parse);
    let version = version.or_else(|| line.launch.version_known.then_some(line.launch.version))?;
    // Without a card only layers whose pages are the same on every card are counted.
    let plain = model.layers.iter().all(|l| matches!(l.attention, Attention::Gqa(_)));
    if card.is_none() && !(plain && line.launch.kv_cache_dtype == "auto") {
        return None;
    }
    let placed = place(cards, card.as_deref(), total.or(card.is_none().then_some(Bytes(80 * GIB)))).ok()?;
    let launch = Launch {
        version,
        version_known: true,
        available_kv_bytes: Some(pool),
        allow_long_max_model_len: true,
        max_model_len: told.max_model_len.map_or(line.launch.max_model_len, MaxModelLen::Tokens),
        ..line.launch
    };
    let plan = super::plan(&model, &launch, &placed.gpu).ok()?;
    // Printed with two decimals.
    let agrees =
        told.needed.is_none_or(|Bytes(n)| plan.gpu.kv_cache.needed_bytes.abs_diff(n) <= GIB / 200 + n / 1000);
    (agrees && plan.refusal.is_some()).then_some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RawFile;
    use crate::facts;
    use crate::knowledge::{Knowledge, gpu};

    #[test]
    fn whole_blocks_of_a_pool() {
        // 1,478 blocks of 2 MiB hold 23,648 tokens; 29,000 tokens are 1,813 blocks.
        let pool = Bytes(1478 << 21);
        assert_eq!(needed(pool, 23_648, 29_000, 16), Bytes(1813 << 21));
        assert_eq!(longest(pool, Bytes(1813 << 21), 29_000, 16), 23_648);
        assert_eq!(needed(pool, 0, 29_000, 16), Bytes(0));
        assert_eq!(longest(pool, Bytes(0), 29_000, 16), 29_000);
    }

    #[test]
    fn a_start_is_planned_from_what_it_printed() {
        let text = "INFO 10-27 09:43:05 [api_server.py:1839] vLLM API server version 0.11.0\n\
            INFO 10-27 09:43:05 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 40960}\n\
            (EngineCore_DP0 pid=3) INFO 09-30 11:20:11 [gpu_worker.py:298] Available KV cache memory: 4.00 GiB\n";
        let bundle = Bundle::from_files(vec![RawFile::new("start.log", text)]);
        let facts = facts::extract(&bundle, &Knowledge::embedded().unwrap());
        let cards = gpu::embedded().unwrap();
        let of = |told| of_start(&bundle, &facts, &cards, told);
        let p = of(Told { max_model_len: Some(40_960), ..Told::default() }).unwrap();
        // 36 layers x 8 heads x 128 x K and V x 2 bytes are 147,456 B a token.
        assert_eq!(p.gpu.kv_cache.needed_bytes, 40_960 * 147_456);
        let fit = (4 * GIB / (16 * 147_456)) * 16;
        assert_eq!(p.refusal.and_then(|r| r.estimated_max_len), Some(fit));
        // A message that says otherwise is of another start.
        assert!(of(Told { needed: Some(Bytes(9 * GIB)), ..Told::default() }).is_none());
    }
}
