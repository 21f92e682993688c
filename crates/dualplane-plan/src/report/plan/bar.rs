//! The five consumers of a GPU, for bars of characters and of SVG.

use crate::{GpuPlan, Quantity};

/// One consumer.
pub(super) struct Share {
    pub(super) name: &'static str,
    pub(super) quantity: Quantity,
    /// Character of the bar, so that it can be read without colour.
    pub(super) mark: char,
    /// Colour of the SVG.
    pub(super) colour: &'static str,
}

/// Weights, activations, CUDA graphs, the rest outside of torch, KV cache, and what the engine leaves alone.
pub(super) fn shares(g: &GpuPlan) -> Vec<Share> {
    let share = |name, quantity, mark, colour| Share { name, quantity, mark, colour };
    let left = g.total_bytes.saturating_sub(g.requested_bytes);
    vec![
        share("weights", g.weights_bytes, '█', "#6d8fd6"),
        share("activations", g.activation_bytes, '▓', "#d9a0ff"),
        share("CUDA graphs", g.cuda_graph_bytes, '▒', "#ffd166"),
        share("non-torch", g.non_torch_bytes, '░', "#ff8f6b"),
        share("KV cache", g.kv_cache.available_bytes, '=', "#7bd88f"),
        share("not requested", Quantity::exact(left), '·', "#5b6270"),
    ]
}

/// How many of `cells` each share takes; their sum is `cells` or less. A consumer that is there has at least one.
pub(super) fn cells(shares: &[Share], cells: usize) -> Vec<usize> {
    let whole: u128 = shares.iter().map(|s| u128::from(s.quantity.expected)).sum();
    if whole == 0 {
        return vec![0; shares.len()];
    }
    let mut left = cells;
    let mut out: Vec<usize> = shares
        .iter()
        .map(|s| {
            let n = (u128::from(s.quantity.expected) * cells as u128 / whole) as usize;
            let n = n.max(usize::from(s.quantity.expected > 0)).min(left);
            left -= n;
            n
        })
        .collect();
    // What rounding left goes to the largest.
    if let Some(most) = out.iter_mut().max() {
        *most += left;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_sum_to_the_width() {
        let of = |n: u64| Share { name: "", quantity: Quantity::exact(n), mark: ' ', colour: "" };
        assert_eq!(cells(&[of(50), of(1), of(49)], 10), [5, 1, 4]);
        assert_eq!(cells(&[of(999), of(1)], 10), [9, 1]);
        assert_eq!(cells(&[of(0)], 10), [0]);
        assert_eq!(cells(&[of(u64::MAX), of(u64::MAX)], 7).iter().sum::<usize>(), 7);
    }
}
