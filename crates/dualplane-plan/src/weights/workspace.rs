//! Buffers that stay beside the weights and grow with what a step may hold.

use serde_json::Value;

use super::tally::Tally;
use crate::arith::{floor_div, mul, round_up};
use crate::launch::{Settled, is_quantised};
use crate::model::keys::number;
use crate::model::{Attention, Model};
use crate::outcome::TensorClass::{Embeddings, Other, Unattached};
use dualplane_base::Version;
use dualplane_base::units::MIB;

pub(super) fn add(t: &mut Tally<'_>, model: &Model, settled: &Settled, stage: u64, stages: u64, of: &[u64]) {
    let tokens = settled.max_num_batched_tokens;
    let here = || model.layers.iter().zip(of).filter(|(_, s)| **s == stage).map(|(l, _)| &l.attention);
    // One table of selected tokens for all layers (vLLM models/deepseek_v2.py `topk_indices_buffer`).
    let selected = here().find_map(|a| match a {
        Attention::Mla(m) => m.indexer.map(|i| i.top_k),
        Attention::Compressed(c) => Some(c.indexer.top_k),
        _ => None,
    });
    if let Some(top_k) = selected {
        t.add(Other, [tokens, top_k, 4]);
    }
    sparse(t, model, settled, stage, of);
    // Until 0.30.0 each latent attention kept a workspace for long prefills (0.20.2: 128 MiB).
    let old = (Version(0, 8, 0)..Version(0, 31, 0)).contains(&t.rank.version)
        && here().any(|a| matches!(a, Attention::Mla(m) if m.indexer.is_none()));
    if old || settled.backend.name == "FLASHINFER_MLA" {
        // FlashInfer's workspace for latent attention.
        t.add(Unattached, [128, MIB]);
    }
    let streams = model.text.get("hc_mult").and_then(number).unwrap_or(0);
    if streams > 0 && stage + 1 == stages {
        t.add(Other, [streams, streams, model.hidden_size, 4]);
        t.add(Other, [streams.saturating_add(1), 4]);
        if settled.ahead > 0 {
            // The drafter reads all streams of a step.
            t.add(Other, [mul([streams, tokens]), model.hidden_size, t.rank.element]);
        }
    }
    inputs_of_layers(t, model, tokens, stage);
    // Features of the encoder that deep layers add (vLLM models/qwen3_vl.py `deepstack_input_embeds`).
    if stage == 0
        && let Some(e) = &model.encoder
    {
        let deep = e.raw.get("deepstack_visual_indexes").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        t.add(Other, [mul([deep, tokens]), model.hidden_size, t.rank.element]);
    }
}

/// What Gemma's wrappers keep of a step's embeddings for each layer, so that a captured graph finds it (vLLM
/// models/gemma4_mm.py and gemma3n_mm.py `per_layer_embeddings`).
fn inputs_of_layers(t: &mut Tally<'_>, model: &Model, tokens: u64, stage: u64) {
    let width = model.text.get("hidden_size_per_layer_input").and_then(number).unwrap_or(0);
    let wrapped = ["Gemma4ForConditionalGeneration", "Gemma3nForConditionalGeneration"];
    if stage == 0 && wrapped.contains(&model.architecture.as_str()) {
        t.add(Embeddings, [tokens, model.layers.len() as u64, width, t.rank.element]);
    }
}

/// Workspaces of sparse attention and its selector, held by kernels. Fitted on the engine's own code for 0.33.0, where
/// they are exact: v1/attention/backends/mla/flashmla_sparse.py and indexer.py.
fn sparse(t: &mut Tally<'_>, model: &Model, settled: &Settled, stage: u64, of: &[u64]) {
    let tokens = settled.max_num_batched_tokens;
    let here =
        model.layers.iter().zip(of).filter(|(_, s)| **s == stage).filter_map(|(l, _)| match l.attention {
            Attention::Mla(m) => m.indexer.map(|i| (m, i)),
            _ => None,
        });
    let (mut layers, mut selectors, mut first) = (0, 0, None);
    for (mla, indexer) in here {
        layers += 1;
        selectors += u64::from(indexer.own);
        first.get_or_insert((mla, indexer));
    }
    let Some((mla, indexer)) = first else { return };
    // Where they were held before 0.30.0 is not known.
    if t.rank.version < Version(0, 30, 0) {
        return;
    }
    // A row for each sequence of each selecting layer.
    t.add(
        Unattached,
        [selectors, settled.max_num_seqs.saturating_add(1), indexer.top_k.saturating_add(1), 4],
    );
    let heads = floor_div(mla.heads, t.rank.tp);
    let width = mla.kv_lora_rank.saturating_add(mla.rope_dim);
    match settled.backend.name {
        "FLASH_ATTN_MLA_SPARSE" => t.add(Unattached, [layers, tokens.saturating_add(1), 4]),
        // A 16-bit cache is read as it lies: only queries are laid out anew, for 64 heads.
        "FLASHMLA_SPARSE" if !is_quantised(&settled.kv_dtype) => {
            t.add(Unattached, [round_up(heads, 64), tokens, width, 2]);
        }
        "FLASHMLA_SPARSE" => {
            // Queries as given and padded to 64 heads, each with an output in the latent width, in 16 bits.
            let padded = heads.saturating_add(round_up(heads, 64));
            t.add(Unattached, [padded, tokens, width.saturating_add(mla.kv_lora_rank), 2]);
            // Gathered context: some times the longest request (config/vllm.py `sparse_mla_prefill_workspace_factor`).
            let times = if settled.max_model_len <= 256 * 1024 { 5 } else { 2 };
            t.add(Unattached, [times, settled.max_model_len, width, 2]);
        }
        // FlashInfer's workspace of 128 MiB, and one of 394 where heads are as wide as its kernel for long prompts takes first
        // (platforms/interface.py `get_mla_prefill_backend_cls`).
        "FLASHINFER_MLA_SPARSE" => {
            let ragged = (mla.nope_dim, mla.rope_dim, mla.v_dim) == (192, 64, 256);
            t.add(Unattached, [if ragged { 522 } else { 128 }, MIB]);
        }
        _ => {}
    }
}
