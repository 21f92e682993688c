//! A model that is nowhere: what its parameters and layers allow, as three models of the same size.
//!
//! Weights follow from the count. The cache does not: it depends on KV heads, which published dense models of one size have
//! between four and as many as query heads. So the same size is planned with few, usual and many of them.

use crate::answer::{Answer, Named};
use crate::host::Checkpoint;
use crate::model::{Model, ModelFiles};
use crate::outcome::{PlanError, Verdict};
use crate::quantity::{Quantity, Unknown};
use dualplane_base::units::thousands;

/// Entries of the embedding where nothing is said: between Llama 2's 32,000 and Gemma's 262,144.
const VOCABULARY: u64 = 128_256;
/// Positions where nothing is said.
const POSITIONS: u64 = 32_768;
const HEAD: u64 = 128;

/// Few, usual and many KV heads for a dense model of `parameters` with so many layers.
///
/// # Errors
/// [`PlanError::Contradiction`] where no such model can be built: more layers than the parameters allow.
pub fn models(id: &str, parameters: u64, layers: Option<u64>, dtype: &str) -> Result<[Named; 3], PlanError> {
    // Published dense models: 1B has 16 to 22 layers, 8B 32, 14B 40 to 48, 32B 64, 70B 80, 405B 126.
    let usual = 12.0 * (parameters as f64 / 1e9).max(0.1).powf(0.45) + 4.0;
    let layers = layers.unwrap_or(usual as u64).clamp(1, 512);
    let p = parameters as f64;
    // Twelve matrices of width × width a layer and two of the vocabulary: p = 12 L h² + 2 V h.
    let (l, v) = (layers as f64, VOCABULARY as f64);
    let width = ((v * v + 12.0 * l * p).sqrt() - v) / (12.0 * l);
    // Published models have a number of heads that eight ranks divide, but for the smallest.
    let step = if width > (8 * HEAD) as f64 { 8 * HEAD } else { HEAD };
    let hidden = ((width / step as f64).round() as u64).max(1) * step;
    let heads = hidden / HEAD;
    let usual_kv = [8, 4, 2, 1].into_iter().find(|k| heads.is_multiple_of(*k)).unwrap_or(1);
    let few = [4, 2, 1].into_iter().find(|k| heads.is_multiple_of(*k)).unwrap_or(1);
    let of = |kv: u64| {
        let rest = parameters.saturating_sub(2 * VOCABULARY * hidden) / layers;
        let attention = 2 * hidden * hidden + 2 * hidden * kv * HEAD;
        // In steps that any number of ranks divides.
        let intermediate = rest.saturating_sub(attention) / (3 * hidden) / 256 * 256;
        if intermediate == 0 {
            return Err(PlanError::contradiction(
                "--layers",
                format!(
                    "{layers} layers leave no room for a feed-forward in {} parameters",
                    thousands(parameters)
                ),
            ));
        }
        let config = serde_json::json!({
            "architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "intermediate_size": intermediate,
            "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": HEAD, "num_hidden_layers": layers,
            "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "tie_word_embeddings": false,
            "torch_dtype": dtype,
        });
        let config = config.to_string();
        let model = Model::read(&ModelFiles { config: &config, ..ModelFiles::default() })?;
        let source = format!(
            "--params: a dense model of {} parameters in {layers} layers of {hidden}, with {few} to {heads} KV heads",
            thousands(parameters)
        );
        Ok(Named { id: id.to_owned(), source, model, gguf: None, files: Checkpoint::default() })
    };
    Ok([of(few)?, of(usual_kv)?, of(heads)?])
}

/// One answer of three: the usual one, with the bounds of all, and a verdict that holds for all.
#[must_use]
pub fn together(few: &Answer, usual: Answer, many: &Answer) -> Answer {
    let mut a = usual;
    let verdicts = [few.verdict(), a.verdict(), many.verdict()];
    if verdicts.iter().any(|v| *v != a.verdict()) {
        a.stages.verdict = Verdict::Uncertain;
        if let Some(e) = a.stages.ending.as_mut() {
            e.verdict = Verdict::Uncertain;
        } else {
            a.stages.ending =
                many.stages.ending.clone().or_else(|| few.stages.ending.clone()).map(|mut e| {
                    e.verdict = Verdict::Uncertain;
                    e
                });
        }
    }
    let ends = |f: &dyn Fn(&Answer) -> Option<Quantity>| Some((f(few)?, f(many)?));
    let mut says = String::new();
    if let Some((most, least)) = ends(&|x| x.plan.as_ref().ok().map(|p| p.gpu.kv_cache.tokens)) {
        if most.high > 0 {
            says = format!(": {} to {} tokens", thousands(least.low), thousands(most.high));
        }
        if let Ok(p) = a.plan.as_mut() {
            let band = |mid: Quantity, low: Quantity, high: Quantity| {
                Quantity::band(low.low, mid.expected, high.high)
            };
            let kv = &mut p.gpu.kv_cache;
            kv.tokens = band(kv.tokens, least, most);
            if let (Ok(f), Ok(m)) = (&few.plan, &many.plan) {
                let (f, m) = (&f.gpu.kv_cache, &m.gpu.kv_cache);
                kv.max_concurrency_hundredths = band(
                    kv.max_concurrency_hundredths,
                    m.max_concurrency_hundredths,
                    f.max_concurrency_hundredths,
                );
                kv.blocks = band(kv.blocks, m.blocks, f.blocks);
            }
        }
    }
    a.unknown.insert(
        0,
        Unknown {
            what: format!("everything about the model but its size; the cache depends on its KV heads{says}"),
            settle: "--model with its config.json, or --online".into(),
        },
    );
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::parameters;

    #[test]
    fn weights_follow_from_the_count_and_the_cache_has_a_wide_band() {
        let placed = crate::card::place(&crate::card::embedded().unwrap(), Some("H100"), None).unwrap();
        let line = crate::cli::parse(&["vllm serve x".to_owned()], &[], None).unwrap();
        let mut on_eight = line.clone();
        on_eight.launch.tp = 8;
        let sizes = ["1B", "1.5B", "3B", "7B", "14B", "24B", "27B", "70B", "123B", "405B"].map(|s| (s, None));
        for (size, layers) in sizes.into_iter().chain([("8B", Some(32)), ("32B", Some(64))]) {
            let all = models("x", parameters(size).unwrap(), layers, "bfloat16").unwrap();
            // A model of this size is cut over as many GPUs as a machine has.
            assert!(crate::answer(&all[1], &on_eight, &placed, None).unwrap().plan.is_ok(), "{size}");
            let [few, usual, many] = all.map(|n| crate::answer(&n, &line, &placed, None).unwrap());
            let bytes = usual.plan.as_ref().unwrap().gpu.weights_bytes.expected;
            let off = bytes as f64 / (parameters(size).unwrap() as f64 * 2.0);
            assert!((0.97..1.03).contains(&off), "{size}: {off}");
            let a = together(&few, usual, &many);
            let t = a.plan.unwrap().gpu.kv_cache.tokens;
            assert!(t.high == 0 || t.low * 2 < t.high, "{size}: {t:?}");
        }
        assert!(models("x", 20_000_000, Some(400), "bfloat16").is_err());
    }
}
