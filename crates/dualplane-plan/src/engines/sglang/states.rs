//! States of hybrids: bytes of one, and how many the engine keeps.
//!
//! Source: SGLang 0.5.23 configs/mamba_utils.py and mem_cache/kv_cache_configurator.py `_handle_max_mamba_cache`.

use super::code::CODE;
use crate::arith::{floor_div, mul};
use crate::launch::Launch;
use crate::model::{Attention, Dtype, Model};
use crate::outcome::PlanError;
use dualplane_base::Version;

/// Part of the rest that states get for each part of the KV pool.
const RATIO: f64 = 0.9;

/// Requests at once where tokens are drafted and no number is given (arg_groups/speculative_hook.py).
pub(super) const SPECULATING: u64 = 48;

/// States on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct States {
    /// Bytes of the states of one request over the layers of the fullest stage.
    pub(crate) each: u64,
    /// Layers with a state.
    pub(crate) layers: u64,
    /// States that a running request takes.
    pub(crate) per_request: u64,
}

/// Bytes of the states of one request; `None` where the model has none.
pub(crate) fn states(
    model: &Model,
    launch: &Launch,
    attention_tp: u64,
    stage_of: &[u64],
) -> Result<Option<States>, PlanError> {
    let dtype = state_dtype(model, launch);
    let mut layers = 0;
    let mut stages = vec![0_u64; usize::try_from(launch.pp).unwrap_or(1).min(4096)];
    for (layer, stage) in model.layers.iter().zip(stage_of) {
        let bytes = one(&layer.attention, attention_tp, dtype.bytes());
        layers += u64::from(bytes > 0);
        if let Some(sum) = usize::try_from(*stage).ok().and_then(|s| stages.get_mut(s)) {
            *sum = sum.saturating_add(bytes);
        }
    }
    let each = stages.into_iter().max().unwrap_or(0);
    if each == 0 {
        return Ok(None);
    }
    if launch.version < Version(0, 5, 16) {
        return Err(PlanError::unsupported(format!(
            "states of hybrids in SGLang {}; known from 0.5.16",
            launch.version
        )));
    }
    let drafts = launch.speculative.as_ref().map(|s| s.num_tokens);
    let open = launch.available_kv_bytes.is_none();
    if open && drafts.is_some_and(|n| n < 2 || launch.version < Version(0, 5, 23)) {
        return Err(PlanError::unsupported(
            "SGLang's states of hybrids with speculative decoding (0.5.23 with --speculative-num-draft-tokens)",
        ));
    }
    let per_request = match (launch.sglang.disable_radix_cache, model.architecture.as_str()) {
        (true, _) => 1,
        (false, a) if CODE.two_more_states.contains(&a) => 5,
        (false, _) => 3,
    };
    Ok(Some(States { each, layers, per_request }))
}

fn one(attention: &Attention, tp: u64, element: u64) -> u64 {
    // The convolution is kept in 16 bits.
    let (conv, width, state) = match *attention {
        Attention::Mamba2(m) => {
            let groups = if tp == 0 || m.groups.is_multiple_of(tp) { m.groups } else { tp.max(m.groups) };
            let conv = m.inner.saturating_add(mul([2, groups, m.state]));
            (conv, m.conv, mul([floor_div(m.heads, tp), m.head_dim, m.state]))
        }
        Attention::GatedDelta(g) => {
            let conv = mul([2, g.k_heads, g.k_dim]).saturating_add(mul([g.v_heads, g.v_dim]));
            (conv, g.conv, mul([floor_div(g.v_heads, tp), g.v_dim, g.k_dim]))
        }
        Attention::Kda(k) => {
            let conv = mul([3, k.heads, k.head_dim]);
            (conv, k.conv, mul([floor_div(k.heads, tp), k.head_dim, k.head_dim]))
        }
        // A convolution alone (configs/mamba_utils.py `Mamba2StateShape` without a state).
        Attention::ShortConv(c) => (c.width, c.conv, 0),
        _ => return 0,
    };
    mul([floor_div(conv, tp), width.saturating_sub(1), 2]).saturating_add(mul([state, element]))
}

/// 32 bits, unless the config or `--mamba-ssm-dtype` says otherwise.
fn state_dtype(model: &Model, launch: &Launch) -> Dtype {
    let declared = model.text.get("mamba_ssm_dtype").and_then(serde_json::Value::as_str);
    let asked = launch.mamba_ssm_cache_dtype.as_deref().filter(|d| *d != "auto");
    asked.or(declared).and_then(Dtype::parse).unwrap_or(Dtype::Float32)
}

impl States {
    /// How many states `rest` bytes give room for (below zero where there is none), and what is then left for the KV pool.
    pub(crate) fn cut(&self, rest: f64, launch: &Launch) -> (f64, f64) {
        let f = &launch.sglang;
        let ranks = if f.dp_attention { launch.dp.max(1) } else { 1 };
        let each = self.each as f64;
        // Each running request keeps a state for every token that is verified at once.
        let drafts = launch.speculative.as_ref().map_or(0, |s| s.num_tokens) as f64;
        let share = if self.per_request > 0 { drafts / self.per_request as f64 } else { 0.0 };
        let slots = if let Some(given) = f.max_mamba_cache_size {
            (given / ranks) as f64
        } else if let (true, Some(requests)) = (f.disable_radix_cache, launch.max_num_seqs) {
            (requests / ranks).max(1) as f64
        } else {
            let ratio = f.mamba_full_memory_ratio.unwrap_or(RATIO).max(0.0);
            let budget = rest * ratio / (1.0 + ratio);
            // One more is padding.
            ((budget - each * (1.0 + drafts)) / (each * (1.0 + share))).floor()
        };
        let most = (launch.max_num_seqs.unwrap_or(SPECULATING) / ranks).max(1) as f64;
        let running = most.min((slots.max(0.0) / self.per_request.max(1) as f64).floor());
        let verified = if drafts > 0.0 { each * (running + 1.0) * drafts } else { 0.0 };
        (slots, rest - verified - each * (slots + 1.0))
    }
}
