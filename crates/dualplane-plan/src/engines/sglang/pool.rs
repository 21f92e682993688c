//! From what is left after the weights to tokens, requests, and what the engine prints.

use super::cells::Cells;
use super::states::{SPECULATING, States};
use crate::arith::floor_div;
use crate::launch::Launch;
use crate::outcome::Refusal;
use dualplane_base::Version;
use dualplane_base::units::GIB;

/// What a pool is cut by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool<'a> {
    pub(crate) launch: &'a Launch,
    /// Cells of each pipeline stage.
    pub(crate) cells: &'a [Cells],
    pub(crate) states: Option<States>,
    pub(crate) page: u64,
    pub(crate) context: u64,
    /// Tokens of a prompt that one step takes.
    pub(crate) chunk: Option<u64>,
    pub(crate) kv_dtype: &'a str,
}

/// Memory at the time of the cut, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Free before the weights were loaded.
    pub(crate) before: f64,
    /// Free after.
    pub(crate) after: f64,
    /// Static share.
    pub(crate) share: f64,
    /// What encoders take later.
    pub(crate) encoder: f64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cut {
    pub(crate) tokens: u64,
    /// Tokens of the windows' pool.
    pub(crate) window_tokens: u64,
    /// Slots for states.
    pub(crate) states: u64,
    /// Bytes of the KV pool: what was left for it, or what it was printed as.
    pub(crate) bytes: u64,
    /// Requests at once.
    pub(crate) requests: u64,
    pub(crate) refusal: Option<Refusal>,
}

fn refuse(message: String) -> Cut {
    Cut { refusal: Some(Refusal { message, estimated_max_len: None }), ..Cut::default() }
}

impl Pool<'_> {
    fn ratio(&self) -> f64 {
        self.launch.sglang.swa_full_tokens_ratio.unwrap_or(0.8)
    }

    fn paged(&self, tokens: u64) -> u64 {
        floor_div(tokens, self.page).saturating_mul(self.page.max(1))
    }

    /// Bytes of the states' pool, which has one slot more than are handed out.
    pub(crate) fn state_bytes(&self, cut: &Cut) -> u64 {
        match self.states {
            Some(s) if cut.states > 0 => s.each.saturating_mul(cut.states.saturating_add(1)),
            _ => 0,
        }
    }

    /// From free memory.
    pub(crate) fn cut(&self, m: &Memory) -> Cut {
        if m.after <= 0.0 {
            // The weights do not load.
            return refuse("torch.OutOfMemoryError: CUDA out of memory.".into());
        }
        // Ranks agree on the least of them in 32 bits (utils/common.py `get_available_gpu_memory`).
        let ranks = self.launch.tp.saturating_mul(self.launch.pp);
        let agreed = |bytes: f64| if ranks > 1 { f64::from(bytes as f32) } else { bytes };
        let mut rest = agreed(m.after) - agreed(m.before) * (1.0 - m.share) - m.encoder;
        let mut slots = 0;
        if let Some(states) = &self.states {
            let (n, left) = states.cut(rest, self.launch);
            if n <= 0.0 {
                return refuse(format!(
                    "Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed \
                     max_mamba_cache_size={n:.0} (total_rest_memory={:.2} GB, mamba_cache_per_req={:.2} MB).",
                    rest / GIB as f64,
                    states.each as f64 / f64::from(1 << 20)
                ));
            }
            (slots, rest) = (n as u64, left);
        }
        if rest <= 0.0 && self.launch.version >= Version(0, 5, 16) {
            return refuse(too_heavy(m));
        }
        let bytes = rest.max(0.0) as u64;
        let cap = self.request_cap();
        let room = |c: &Cells| match cap {
            Some(window_tokens) => self.beside(c, bytes, window_tokens),
            None => (bytes as f64 / c.bytes(self.ratio())).floor() as u64,
        };
        let kept = self.cells.iter().filter(|c| c.bytes(self.ratio()) > 0.0);
        let tokens = self.paged(kept.map(room).min().unwrap_or(self.context));
        if let (Some(cap), 0) = (cap, tokens) {
            return refuse(self.no_room_beside(cap, bytes));
        }
        let mut cut = self.of_tokens(tokens, m.share, slots);
        cut.bytes = bytes;
        cut
    }

    /// From the pool that the engine printed: it holds one page more than the tokens, and a drafter's pool is apart.
    pub(crate) fn printed(&self, bytes: u64, share: f64) -> Cut {
        let tokens = self
            .cells
            .iter()
            .map(|c| Cells { drafter: 0, ..*c }.bytes(self.ratio()))
            .filter(|b| *b > 0.0)
            .map(|b| (bytes as f64 / b).round() as u64)
            .min()
            .unwrap_or(self.context);
        let mut cut = self.of_tokens(self.paged(tokens.saturating_sub(self.page.max(1))), share, u64::MAX);
        cut.bytes = bytes;
        cut
    }

    fn of_tokens(&self, tokens: u64, share: f64, slots: u64) -> Cut {
        let limit = self.launch.sglang.max_total_tokens.filter(|n| *n < tokens);
        let tokens = limit.map_or(tokens, |n| self.paged(n));
        if tokens == 0 {
            return refuse(nothing(self.launch.version, share));
        }
        let windows = self.cells.iter().any(|c| c.window.layers > 0);
        let full = self.cells.iter().any(|c| c.full.layers > 0);
        let ratio = if full { self.ratio() } else { 1.0 };
        let cap = self.request_cap();
        let window_tokens = match cap {
            Some(n) => limit.map_or(n, |most| n.min(most)),
            None if windows => self.paged((tokens as f64 * ratio) as u64),
            None => 0,
        };
        let window = self.cells.iter().map(|c| c.window_tokens).max().unwrap_or(0);
        // Chunks of Llama 4 are told to the scheduler as a window of the same length.
        if cap.is_none() && windows && full && window.saturating_add(self.page) >= window_tokens {
            return refuse(format!(
                "SWA pool ({window_tokens} tokens) cannot hold even one request: the prefill admission floor is \
                 sliding_window_size ({window}) + page_size ({}). Increase --swa-full-tokens-ratio or the total KV \
                 budget.",
                self.page
            ));
        }
        Cut {
            tokens,
            window_tokens,
            states: if slots == u64::MAX { 0 } else { slots },
            bytes: 0,
            requests: self.requests(tokens, slots),
            refusal: None,
        }
    }

    /// `resolve_max_num_reqs`.
    fn requests(&self, tokens: u64, slots: u64) -> u64 {
        let estimated = (tokens as f64 / self.context.max(1) as f64 * 512.0) as u64;
        let ranks = if self.launch.sglang.dp_attention { self.launch.dp.max(1) } else { 1 };
        // arg_groups/speculative_hook.py
        let drafted = self.launch.speculative.is_some() && self.launch.version >= Version(0, 5, 23);
        let asked = self.launch.max_num_seqs.or(drafted.then_some(SPECULATING)).map(|n| (n / ranks).max(1));
        let most = asked.unwrap_or_else(|| estimated.clamp(2048, 4096)).min(tokens / 2);
        match self.states {
            Some(s) if slots != u64::MAX => most.min(floor_div(slots, s.per_request)),
            _ => most,
        }
    }

    /// The lines of a start.
    pub(crate) fn lines(&self, cut: &Cut) -> String {
        let mut out = Vec::new();
        let dtype = if self.launch.version >= Version(0, 5, 5) {
            format!("dtype: torch.{}, ", torch(self.kv_dtype))
        } else {
            String::new()
        };
        let gb = |bytes: u64| bytes as f64 / GIB as f64;
        let sizes = |cells: &Cells, part: &super::cells::Part, tokens: u64| {
            // One more page than is handed out.
            let rows = tokens.saturating_add(self.page.max(1));
            let (k, all) = (part.keys.saturating_mul(rows), part.bytes.saturating_mul(rows));
            if cells.latent {
                format!("KV size: {:.2} GB", gb(all))
            } else {
                format!("K size: {:.2} GB, V size: {:.2} GB", gb(k), gb(all.saturating_sub(k)))
            }
        };
        if let Some(cells) = self.cells.first() {
            for (part, tokens) in [(&cells.window, cut.window_tokens), (&cells.full, cut.tokens)] {
                if part.layers > 0 {
                    out.push(format!(
                        "KV Cache is allocated. {dtype}#tokens: {tokens}, {}",
                        sizes(cells, part, tokens)
                    ));
                }
            }
        }
        let chunk = self.chunk.map_or("-1".to_owned(), |n| n.to_string());
        out.push(format!(
            "max_total_num_tokens={}, chunked_prefill_size={chunk}, max_running_requests={}, context_len={}",
            cut.tokens, cut.requests, self.context
        ));
        if cut.tokens < self.context && self.launch.version >= Version(0, 5, 23) {
            out.push(format!(
                "KV pool holds {} tokens, fewer than --context-length {}. One full-length request cannot fit, so long \
                 requests will be refused or truncated at serving time.",
                cut.tokens, self.context
            ));
        }
        out.join("\n")
    }
}

fn torch(kv_dtype: &str) -> &str {
    match kv_dtype {
        "fp8_e4m3" | "fp8" => "float8_e4m3fn",
        "fp8_e5m2" => "float8_e5m2",
        other => other,
    }
}

/// mem_cache/kv_cache_configurator.py `_profile_available_bytes`.
fn too_heavy(m: &Memory) -> String {
    let least = 1.0 - m.after / m.before;
    let suggested = (least * 1000.0).ceil() / 1000.0;
    format!(
        "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={}. Raise --mem-fraction-static \
         above {suggested:.3} (minimum viable = 1 - available/pre = {least:.4}). If using speculative decoding, draft \
         weights are now counted.",
        m.share
    )
}

/// Source: pool_configurator.py of 0.5.23, model_runner.py of 0.4.3 to 0.5.9.
fn nothing(version: Version, share: f64) -> String {
    let text = "Not enough memory. Please try to increase --mem-fraction-static.";
    match version {
        v if v < Version(0, 5, 5) => text.into(),
        v if v < Version(0, 5, 16) => {
            format!("{text} Current value: self.server_args.mem_fraction_static={share}")
        }
        // The share is told to the message only after the check.
        _ => text.into(),
    }
}
