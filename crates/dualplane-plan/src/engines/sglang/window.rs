//! The windows' pool where requests are counted beforehand: what all of them can hold at once, and the rest is for full layers.
//!
//! Source: SGLang 0.5.23 model_executor/pool_configurator.py `compute_swa_request_cap`, `SWARequestCapPoolConfigurator`.

use super::cells::Cells;
use super::pool::Pool;
use crate::arith::mul;
use dualplane_base::Version;
use dualplane_base::units::GIB;

/// Tokens after which a request gives back what has left its window (`SGLANG_SWA_EVICTION_INTERVAL`).
const EVICTED_EVERY: u64 = 128;

/// Chunks of prompts in flight while steps overlap.
const CHUNKS: u64 = 2;

impl Pool<'_> {
    /// Tokens of that pool; `None` where a ratio decides.
    pub(super) fn request_cap(&self) -> Option<u64> {
        let f = &self.launch.sglang;
        let windows =
            self.cells.iter().any(|c| c.window.layers > 0) && self.cells.iter().any(|c| c.full.layers > 0);
        if self.launch.version < Version(0, 5, 23) || !f.disable_radix_cache || !windows {
            return None;
        }
        let (asked, chunk) = (self.launch.max_num_seqs?, self.chunk?);
        let groups = if f.dp_attention { self.launch.dp.max(1) } else { 1 };
        let window = self.cells.iter().map(|c| c.window_tokens).max().unwrap_or(0);
        let page = self.page.max(1);
        let each = [window, EVICTED_EVERY, page, page].into_iter().fold(0, u64::saturating_add);
        let all =
            mul([each, (asked / groups).max(1)]).saturating_add(mul([CHUNKS, chunk])).saturating_add(page);
        Some(mul([all.div_ceil(page), page]))
    }

    /// What is told where nothing is left beside it.
    pub(super) fn no_room_beside(&self, window_tokens: u64, bytes: u64) -> String {
        let gib = |n: u64| n as f64 / GIB as f64;
        let windows = self.cells.iter().map(|c| mul([window_tokens, c.window.bytes])).max().unwrap_or(0);
        format!(
            "SWA pool cap ({window_tokens} tokens, {:.2} GiB) leaves no room for the full KV pool within the available \
             {:.2} GiB.",
            gib(windows),
            gib(bytes)
        )
    }

    /// Tokens of the full layers beside it.
    pub(super) fn beside(&self, cells: &Cells, bytes: u64, window_tokens: u64) -> u64 {
        let each = cells.full.bytes.saturating_add(cells.drafter);
        let left = bytes.saturating_sub(mul([window_tokens, cells.window.bytes]));
        left.checked_div(each).unwrap_or(0)
    }
}
