//! How layers and heads divide over ranks, in every engine that splits as vLLM does.

use crate::arith::floor_div;

/// Layers of each stage: the remainder goes one each to the stages before the last, from the end.
///
/// Source: vLLM distributed/utils.py `get_pp_indices`.
pub(crate) fn partition(layers: u64, stages: u64) -> Vec<u64> {
    let stages = stages.clamp(1, 4096);
    let base = floor_div(layers, stages);
    let rest = layers - base * stages;
    (0..stages)
        .map(|s| {
            // Counted from the end, the last stage has place 1 and gets none of the remainder.
            let place = stages - s;
            base + u64::from(place >= 2 && place <= rest + 1)
        })
        .collect()
}

/// The stage of each layer.
pub(crate) fn stage_of(layers: u64, stages: u64) -> Vec<u64> {
    partition(layers, stages)
        .into_iter()
        .enumerate()
        .flat_map(|(s, n)| std::iter::repeat_n(s as u64, usize::try_from(n).unwrap_or(0)))
        .collect()
}

/// KV heads of one rank: at least one, copied where there are more ranks than heads.
pub(crate) fn kv_heads(heads: u64, tp: u64) -> u64 {
    floor_div(heads, tp).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_avoids_the_last_stage() {
        assert_eq!(partition(80, 3), [27, 27, 26]);
        assert_eq!(partition(61, 2), [31, 30]);
        assert_eq!(partition(61, 4), [15, 15, 16, 15]);
        assert_eq!(partition(64, 1), [64]);
        assert_eq!(stage_of(5, 2), [0, 0, 0, 1, 1]);
    }
}
