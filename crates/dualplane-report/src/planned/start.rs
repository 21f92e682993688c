//! A plan of a start that the engine refused, from what the evidence tells of it.

use dualplane_base::gpu::Gpu as Card;
use dualplane_plan::card::place;
use dualplane_plan::model::Attention;
use dualplane_plan::{Launch, MaxModelLen, Plan, Version};

use super::launch::known;
use super::{manifest, startlog};
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::evidence::Bundle;
use dualplane_core::facts::Facts;

/// What the engine's message says of a refused start.
#[derive(Debug, Clone, Copy, Default)]
pub struct RefusedStart {
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
pub fn of_start(bundle: &Bundle, facts: &Facts, cards: &[Card], told: RefusedStart) -> Option<Plan> {
    let log = startlog::read(facts).ok();
    let pod = manifest::workload(bundle).ok();
    let pool = told.available.map(|b| b.0).or_else(|| log.as_ref()?.printed.pool).filter(|b| *b > 0)?;
    let card = pod.as_ref().and_then(|w| w.card.clone());
    let total = log.as_ref().and_then(|l| l.printed.total).map(Bytes);
    // Arguments of the log are what was served; a pod's are a template until then.
    let of_log = log.map(|l| l.line).filter(|l| l.model.is_some());
    let line = of_log.or_else(|| pod.map(|w| w.line))?;
    let model = known(line.model.as_deref()?)?.model;
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
    let plan = dualplane_plan::plan(&model, &launch, &placed.gpu).ok()?;
    // Printed with two decimals.
    let agrees =
        told.needed.is_none_or(|Bytes(n)| plan.gpu.kv_cache.needed_bytes.abs_diff(n) <= GIB / 200 + n / 1000);
    (agrees && plan.refusal.is_some()).then_some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_core::evidence::RawFile;
    use dualplane_core::facts;
    use dualplane_core::knowledge::Knowledge;

    #[test]
    fn a_start_is_planned_from_what_it_printed() {
        let text = "INFO 10-27 09:43:05 [api_server.py:1839] vLLM API server version 0.11.0\n\
            INFO 10-27 09:43:05 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 40960}\n\
            (EngineCore_DP0 pid=3) INFO 09-30 11:20:11 [gpu_worker.py:298] Available KV cache memory: 4.00 GiB\n";
        let bundle = Bundle::from_files(vec![RawFile::new("start.log", text)]);
        let facts = facts::extract(&bundle, &Knowledge::embedded().unwrap());
        let cards = dualplane_plan::card::embedded().unwrap();
        let of = |told| of_start(&bundle, &facts, &cards, told);
        let p = of(RefusedStart { max_model_len: Some(40_960), ..RefusedStart::default() }).unwrap();
        // 36 layers x 8 heads x 128 x K and V x 2 bytes are 147,456 B a token.
        assert_eq!(p.gpu.kv_cache.needed_bytes, 40_960 * 147_456);
        let fit = (4 * GIB / (16 * 147_456)) * 16;
        assert_eq!(p.refusal.and_then(|r| r.estimated_max_len), Some(fit));
        // A message that says otherwise is of another start.
        assert!(of(RefusedStart { needed: Some(Bytes(9 * GIB)), ..RefusedStart::default() }).is_none());
    }
}
