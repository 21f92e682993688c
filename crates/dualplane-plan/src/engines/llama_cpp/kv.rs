//! The KV cache: cells for each layer, allocated whole at the start.

use super::facts::{Cached, Facts};
use super::ggml::GgmlType;
use crate::arith::{mul, round_up};
use crate::launch::LlamaCppAsk;
use crate::outcome::PlanError;

/// Cells are allocated in steps of so many (src/llama-context.cpp, src/llama-kv-cache-iswa.cpp).
const PAD: u64 = 256;
/// `--parallel` where it is not given (tools/server/server.cpp): so many slots share one cache.
const SLOTS: u64 = 4;

/// Cells of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cells {
    /// Slots.
    pub(super) slots: u64,
    /// One cache is shared by all slots.
    pub(super) unified: bool,
    /// Tokens that one slot may hold.
    pub(super) slot_context: u64,
    /// Cells of a layer that looks back over everything, for each stream.
    pub(super) full: u64,
    /// Cells of a layer with a window, for each stream.
    pub(super) window: u64,
    /// Caches beside each other.
    pub(super) streams: u64,
    /// Tokens of a physical batch.
    pub(super) ubatch: u64,
}

impl Cells {
    /// For a context of so many tokens in all.
    pub(super) fn new(facts: &Facts, ask: &LlamaCppAsk, slots: Option<u64>, context: u64) -> Self {
        let unified = ask.unified.unwrap_or(slots.is_none());
        let slots = slots.unwrap_or(SLOTS).max(1);
        let context = if ask.ollama { mul([context, slots]) } else { context };
        let full = round_up(if unified { context } else { context / slots }.max(1), PAD);
        let batch = ask.batch.unwrap_or(2048).max(1);
        let ubatch = ask.ubatch.unwrap_or(512).clamp(1, batch).min(full);
        let reach = mul([facts.window, if unified { slots } else { 1 }]).saturating_add(ubatch);
        let window = if ask.swa_full { full } else { round_up(full.min(reach), PAD) };
        let streams = if unified { 1 } else { slots };
        Self { slots, unified, slot_context: full, full, window, streams, ubatch }
    }

    /// Tokens of all slots together.
    pub(super) const fn tokens(&self) -> u64 {
        self.full.saturating_mul(self.streams)
    }
}

/// Types of keys and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Types {
    pub(super) k: GgmlType,
    pub(super) v: GgmlType,
}

impl Types {
    pub(super) fn of(ask: &LlamaCppAsk) -> Result<Self, PlanError> {
        // Source: common/arg.cpp `kv_cache_types`.
        let known = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"];
        let of = |flag: &str, name: Option<&str>| {
            let name = name.unwrap_or("f16");
            let kind = GgmlType::by_name(name).filter(|t| known.contains(&t.name));
            kind.ok_or_else(|| {
                PlanError::contradiction(flag, format!("`{name}` is not a cache type: {}", known.join(", ")))
            })
        };
        let types = Self {
            k: of("--cache-type-k", ask.cache_type_k.as_deref())?,
            v: of("--cache-type-v", ask.cache_type_v.as_deref())?,
        };
        if types.v.block > 1 && ask.flash_attention == Some(false) {
            // Source: src/llama-context.cpp, the text as it prints it.
            return Err(PlanError::contradiction(
                "--cache-type-v",
                "V cache quantization requires flash_attn (--flash-attn is off)",
            ));
        }
        Ok(types)
    }

    /// Bytes of the keys and values of a layer.
    pub(super) fn bytes(&self, layer: &Cached, cells: &Cells) -> u64 {
        let n = if layer.window { cells.window } else { cells.full };
        mul([self.k.row(layer.k).saturating_add(self.v.row(layer.v)), n, cells.streams])
    }
}

/// Bytes of the recurrent state of a layer, one for each slot in 32-bit numbers.
pub(super) fn state(layer: &Cached, cells: &Cells) -> u64 {
    mul([layer.state, 4, cells.slots])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(window: u64) -> Facts {
        Facts { window, ..Facts::default() }
    }

    #[test]
    fn slots_divide_a_context_unless_they_share_it() {
        let ask = LlamaCppAsk::default();
        let c = Cells::new(&facts(0), &ask, Some(4), 8192);
        assert_eq!((c.full, c.streams, c.tokens()), (2048, 4, 8192));
        let c = Cells::new(&facts(0), &ask, None, 8192);
        assert_eq!((c.full, c.streams, c.slots), (8192, 1, 4));
    }

    #[test]
    fn windows_hold_a_batch_more() {
        // Printed for gpt-oss with one slot: "creating SWA KV cache, size = 768 cells" (128 + 512, padded).
        let c = Cells::new(&facts(128), &LlamaCppAsk::default(), Some(1), 32_768);
        assert_eq!((c.full, c.window), (32_768, 768));
        let whole = LlamaCppAsk { swa_full: true, ..LlamaCppAsk::default() };
        assert_eq!(Cells::new(&facts(128), &whole, Some(1), 32_768).window, 32_768);
    }

    #[test]
    fn types_are_checked() {
        let ask = |v: &str, fa| LlamaCppAsk {
            cache_type_v: Some(v.into()),
            flash_attention: fa,
            ..LlamaCppAsk::default()
        };
        assert!(Types::of(&ask("q8_0", None)).is_ok());
        assert!(Types::of(&ask("q8_0", Some(false))).is_err());
        assert!(Types::of(&ask("fp8", None)).is_err());
    }
}
