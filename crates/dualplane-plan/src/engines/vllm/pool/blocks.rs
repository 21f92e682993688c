//! Blocks of a pool, and what the engine prints about them.

use crate::engines::vllm::kv::{Groups, Need};
use crate::outcome::Refusal;
use dualplane_base::Version;
use dualplane_base::units::GIB;

/// What a pool is cut into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool<'a> {
    pub(crate) groups: &'a Groups,
    /// Bytes of one block id on each pipeline stage.
    pub(crate) bytes_per_block: &'a [u64],
    pub(crate) need: Need,
    pub(crate) version: Version,
    /// Ranks that share the tokens of a request.
    pub(crate) shards: u64,
    /// Whether the first engine serves, which counts and says it otherwise.
    pub(crate) first_engine: bool,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Blocks {
    pub(crate) blocks: u64,
    pub(crate) tokens: u64,
    pub(crate) concurrency: f64,
    /// Length after auto-fit, in tokens.
    pub(crate) len: u64,
    pub(crate) refusal: Option<Refusal>,
}

/// Two decimals without trailing zeros, but at least one, as Python prints a rounded float.
pub(super) fn gib(bytes: u64) -> String {
    let text = format!("{:.2}", bytes as f64 / GIB as f64);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

impl Pool<'_> {
    fn printed(&self, len: u64) -> u64 {
        let need = Need { len, ..self.need };
        self.groups.groups.iter().map(|g| g.blocks_printed(&need)).fold(0, u64::saturating_add)
    }

    fn needed(&self, len: u64) -> u64 {
        let need = Need { len, ..self.need };
        self.groups.groups.iter().map(|g| g.blocks_needed(&need)).fold(0, u64::saturating_add)
    }

    /// Bytes of one request of the maximum length on the widest stage.
    pub(crate) fn needed_bytes(&self) -> u64 {
        let widest = self.bytes_per_block.iter().copied().max().unwrap_or(0);
        widest.saturating_mul(self.needed(self.need.len))
    }

    /// The longest request that fits, at most `most` tokens; 0: none does.
    fn longest(&self, bytes_per_block: u64, available: u64, most: u64) -> u64 {
        let fits = |len| bytes_per_block.saturating_mul(self.needed(len)) <= available;
        if most == 0 || !fits(1) {
            return 0;
        }
        let (mut left, mut right, mut result) = (1, most, 1);
        while left <= right {
            let mid = left + (right - left) / 2;
            if fits(mid) {
                result = mid;
                left = mid + 1;
            } else {
                right = mid - 1;
            }
        }
        result
    }

    /// What the engine makes of `available` bytes on each stage.
    pub(crate) fn cut(&self, available: &[u64], fit_len: bool) -> Blocks {
        let mut len = self.need.len;
        if self.groups.groups.is_empty() {
            return Blocks { blocks: 1, len, ..Blocks::default() };
        }
        let stages =
            || self.bytes_per_block.iter().copied().zip(available.iter().copied()).filter(|(b, _)| *b > 0);
        // One block is never handed out; the check has counted it since 0.30.0.
        let null = |b: u64| if self.version >= Version(0, 30, 0) { b } else { 0 };
        if fit_len {
            len = stages().map(|(b, a)| self.longest(b, a.saturating_sub(null(b)), len)).min().unwrap_or(len);
            if len == 0 {
                return Blocks { refusal: Some(cannot_fit()), ..Blocks::default() };
            }
        }
        let refusal = stages().find_map(|(b, a)| {
            // Below zero counts as nothing: the text is the same.
            let usable = a.saturating_sub(null(b));
            let needed = b.saturating_mul(self.needed(len));
            if usable == 0 {
                return Some(Refusal { message: self.nothing(), estimated_max_len: None });
            }
            (needed > usable).then(|| self.too_long(len, needed, usable, self.longest(b, usable, len)))
        });
        let blocks = stages().map(|(b, a)| a / b).min().unwrap_or(0);
        let per_request = self.printed(len);
        let concurrency = if per_request == 0 { 0.0 } else { blocks as f64 / per_request as f64 };
        let tokens = if self.version >= Version(0, 20, 1) {
            (concurrency * len as f64) as u64
        } else {
            let least =
                self.groups.groups.iter().filter_map(|g| g.first()).map(|s| s.block).min().unwrap_or(0);
            (blocks / self.groups.groups.len() as u64).saturating_mul(least).saturating_mul(self.shards)
        };
        // Until 0.8 the printed concurrency was the printed tokens over the length.
        let concurrency =
            if self.version < Version(0, 9, 0) && len > 0 { tokens as f64 / len as f64 } else { concurrency };
        let refusal = if self.first_engine { first_refusal(blocks, tokens, len) } else { refusal };
        Blocks { blocks, tokens, concurrency, len, refusal }
    }

    fn nothing(&self) -> String {
        if self.version >= Version(0, 21, 0) {
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the \
             engine (this flag also controls CPU memory reservation on the CPU backend, despite its name). See \
             https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
                .into()
        } else {
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the \
             engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
                .into()
        }
    }

    fn too_long(&self, len: u64, needed: u64, usable: u64, estimate: u64) -> Refusal {
        let estimated = if estimate > 0 {
            format!("Based on the available memory, the estimated maximum model length is {estimate}. ")
        } else {
            String::new()
        };
        // Read in 0.20.2 and 0.22.1, between which the text changed.
        let (whose, advice) = if self.version >= Version(0, 21, 0) {
            (
                "model's",
                "Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or \
                 decreasing `max_model_len` when initializing the engine.",
            )
        } else {
            (
                "models's",
                "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
            )
        };
        let message = format!(
            "To serve at least one request with the {whose} max seq len ({len}), ({} GiB KV cache is needed, which is \
             larger than the available KV cache memory ({} GiB). {estimated}{advice} See \
             https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.",
            gib(needed),
            gib(usable),
        );
        Refusal { message, estimated_max_len: (estimate > 0).then_some(estimate) }
    }
}

/// vLLM 0.6 worker/worker.py `raise_if_cache_size_invalid`.
fn first_refusal(blocks: u64, tokens: u64, len: u64) -> Option<Refusal> {
    let message = if blocks == 0 {
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
            .to_owned()
    } else if len > tokens {
        format!(
            "The model's max seq len ({len}) is larger than the maximum number of tokens that can be stored in KV cache \
             ({tokens}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
        )
    } else {
        return None;
    };
    Some(Refusal { message, estimated_max_len: (blocks > 0).then_some(tokens) })
}

fn cannot_fit() -> Refusal {
    Refusal {
        message: "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try \
                  increasing `gpu_memory_utilization`."
            .into(),
        estimated_max_len: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_as_python_prints_them() {
        assert_eq!(gib(4 * GIB), "4.0");
        assert_eq!(gib(GIB / 2), "0.5");
        assert_eq!(gib(2_080_374_784), "1.94");
    }
}
