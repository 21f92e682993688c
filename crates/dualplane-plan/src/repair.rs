//! What a refused start needs: the arithmetic that plans and the advice of a verdict share.

use dualplane_base::Version;
use dualplane_base::units::Bytes;

/// vLLM's `--gpu-memory-utilization` where it is not given (config/cache.py of 0.19.1 and 0.20.0).
#[must_use]
pub fn default_utilisation(version: Version) -> f64 {
    if version >= Version(0, 20, 0) { 0.92 } else { 0.9 }
}

/// The share of the card that an engine takes where none is given; `plan` is what its head names.
#[must_use]
pub fn default_share(plan: &str, version: Option<Version>) -> Option<f64> {
    (plan == "vllm").then(|| version.map_or(0.9, default_utilisation))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_of_a_pool() {
        // 1,478 blocks of 2 MiB hold 23,648 tokens; 29,000 tokens are 1,813 blocks.
        let pool = Bytes(1478 << 21);
        assert_eq!(needed(pool, 23_648, 29_000, 16), Bytes(1813 << 21));
        assert_eq!(longest(pool, Bytes(1813 << 21), 29_000, 16), 23_648);
        assert_eq!(needed(pool, 0, 29_000, 16), Bytes(0));
        assert_eq!(longest(pool, Bytes(0), 29_000, 16), 29_000);
    }
}
