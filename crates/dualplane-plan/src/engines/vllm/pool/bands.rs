//! What the engine subtracts besides weights and cannot be computed exactly: activations, CUDA graphs, the rest.
//!
//! Constants are fits and estimates over public start-up logs of vLLM, with the spread that was seen; each term says so.

use std::fmt::Write as _;

use crate::arith::{floor_div, mul};
use crate::launch::{Launch, Settled};
use crate::model::{Attention, FeedForward, Model, QkNorm};
use crate::quantity::{Plane, Quantity, Term};
use dualplane_base::Version;
use dualplane_base::units::{GIB, MIB};

/// Whether the second model runner serves this version by default (vLLM config/vllm.py `use_v2_model_runner`).
pub(crate) fn second_runner(launch: &Launch) -> bool {
    launch.v2_runner.unwrap_or(launch.version >= Version(0, 30, 0))
}

fn term(name: &str, quantity: Quantity, formula: String, source: &str) -> Term {
    Term { name: name.into(), plane: Plane::Gpu, quantity, formula, source: source.into() }
}

/// Bytes per row and vocabulary entry of the sampler's warm-up: least, expected, most, in tenths.
fn sampler_tenths(launch: &Launch) -> (u64, u64, u64) {
    if launch.version < Version(0, 17, 0) {
        (376, 384, 412)
    } else if !second_runner(launch) {
        (140, 200, 250)
    } else if launch.version < Version(0, 33, 0) {
        (20, 40, 60)
    } else {
        (100, 120, 140)
    }
}

/// The peak of activations while profiling on a stage: the larger of sampler and forward pass.
pub(crate) fn activation(model: &Model, launch: &Launch, s: &Settled, last: bool) -> Term {
    let rows = s.max_num_seqs.saturating_mul(1 + s.ahead).min(s.max_num_batched_tokens);
    // A model that writes blocks samples all tokens of each at once, with an unmeasured number of 32-bit copies of all logits
    // (vLLM models/config.py: more than 8 sequences do not fit an H200).
    let (rows, (low, mid, high)) = match model.canvas() {
        Some(canvas) => (s.max_num_seqs.saturating_mul(canvas), (40, 120, 400)),
        None => (rows, sampler_tenths(launch)),
    };
    let of = |tenths: u64| mul([rows, model.vocab_size, tenths]) / 10;
    let sampler = if last { Quantity::band(of(low), of(mid), of(high)) } else { Quantity::default() };
    let forward = forward(model, launch, s.max_num_batched_tokens);
    let source = "fitted on public start-up logs; vLLM v1/worker/gpu_model_runner.py profile_run";
    let (name, quantity, mut formula) = if sampler.expected >= forward.expected {
        let formula = format!(
            "{rows} rows x {} vocabulary x {:.1} B (sampler; larger than the forward pass)",
            model.vocab_size,
            mid as f64 / 10.0
        );
        ("activation.sampler", sampler.max(forward), formula)
    } else {
        let formula = format!(
            "forward pass of {} tokens (larger than the \
        sampler)",
            s.max_num_batched_tokens
        );
        ("activation.forward", forward.max(sampler), formula)
    };
    let quantity = match whole_prompts(model, launch, s) {
        None => quantity,
        Some(whole) => {
            let _ = write!(
                formula,
                "; up to one step with a whole prompt of {} tokens, because this version fixes the step \
                size of latent attention before it disables chunked prefill",
                s.max_model_len
            );
            Quantity { high: quantity.high.max(whole.expected), ..quantity }
        }
    };
    term(name, quantity, formula, source)
}

/// The forward pass of a whole prompt, where the step is not sure: the first engine settled 2,048 tokens for long
/// latent models, then forbade chunks, so that servers of long prompts had to be given the whole length (vLLM 0.7
/// config.py, pull request 13374).
fn whole_prompts(model: &Model, launch: &Launch, s: &Settled) -> Option<Quantity> {
    let latent = model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(_)));
    let open = launch.max_num_batched_tokens.is_none() && launch.chunked_prefill.is_none();
    (launch.is_first_engine() && launch.version < Version(0, 8, 0) && latent && open)
        .then(|| forward(model, launch, s.max_model_len.max(s.max_num_batched_tokens)))
}

/// The first engine's experts took a step in pieces of this many tokens (`VLLM_FUSED_MOE_CHUNK_SIZE`).
const EXPERT_CHUNK: u64 = 32_768;

/// Two bytes for each element that a layer holds at once: three of its width and of the residual stream, and one stream
/// more where queries and keys are normed (32-bit copies of them).
fn forward(model: &Model, launch: &Launch, tokens: u64) -> Quantity {
    let hidden = model.hidden_size;
    let in_experts = if launch.is_first_engine() { tokens.min(EXPERT_CHUNK) } else { tokens };
    let peak = model
        .layers
        .iter()
        .map(|l| {
            let normed = !matches!(l.attention, Attention::Gqa(g) if g.qk_norm == QkNorm::None);
            let streams = mul([tokens, if normed { 4 } else { 3 }, hidden]);
            let (width, sparse) = match l.feed_forward {
                FeedForward::Dense { intermediate, .. } => {
                    (mul([tokens, 3, floor_div(intermediate, launch.tp)]), false)
                }
                FeedForward::Moe(m) => {
                    let each = mul([3, floor_div(m.intermediate, launch.tp)]).saturating_add(hidden);
                    (mul([in_experts, m.top_k, each]), true)
                }
                FeedForward::None => (0, false),
            };
            (streams.saturating_add(width), sparse)
        })
        .max();
    let (elements, sparse) = peak.unwrap_or((0, false));
    // Kernels of experts cut their work differently: plus or minus one half.
    Quantity::within(mul([2, elements]), if sparse { 0.5 } else { 0.25 })
}

/// Rough size of the model, which decides the size of its graphs.
fn parameters(weights: u64, launch: &Launch) -> u64 {
    mul([weights / 2, launch.tp, launch.pp])
}

/// CUDA graphs as the engine estimates and subtracts them.
pub(crate) fn cuda_graphs(model: &Model, launch: &Launch, weights: u64) -> Term {
    let name = "cuda_graph";
    let off = launch.enforce_eager
        || launch.cuda_graphs.mode.as_deref().is_some_and(|m| m.eq_ignore_ascii_case("none"));
    if off {
        return term(
            name,
            Quantity::default(),
            "no CUDA graphs are captured".into(),
            "--enforce-eager, cudagraph_mode",
        );
    }
    if launch.version < Version(0, 20, 0) {
        let formula = "captured after the KV cache is sized, not subtracted".into();
        return term(name, Quantity::default(), formula, "vLLM before 0.20.0");
    }
    let v2 = second_runner(launch);
    let hybrid = model.layers.iter().any(|l| l.attention.is_state());
    let moe = model.layers.iter().any(|l| matches!(l.feed_forward, FeedForward::Moe(_)));
    let params = parameters(weights, launch);
    let (mid, half) = match (hybrid, moe, launch.tp * launch.pp > 1, params > 20_000_000_000) {
        (true, ..) => (2.4, 1.0),
        (_, true, true, _) => (if v2 { 3.0 } else { 2.5 }, 1.5),
        (_, true, ..) => (if v2 { 1.0 } else { 0.8 }, 0.5),
        (_, _, _, true) => (if v2 { 1.5 } else { 1.0 }, 0.6),
        _ => (if v2 { 1.0 } else { 0.55 }, 0.4),
    };
    let (mid, half): (f64, f64) =
        if launch.speculative.is_some() { (mid + 0.3, half + 0.3) } else { (mid, half) };
    let bytes = |gib: f64| (gib.max(0.0) * GIB as f64) as u64;
    let quantity = Quantity::band(bytes(mid - half), bytes(mid), bytes(mid + half));
    let formula = format!("estimate for this kind of model: {mid:.2} GiB, plus or minus {half:.2}");
    term(name, quantity, formula, "fitted on public start-up logs; vLLM profile_cudagraph_memory")
}

/// Memory outside of torch's allocator and the runner's own buffers.
pub(crate) fn non_torch(model: &Model, launch: &Launch, s: &Settled, last: bool, total_bytes: u64) -> Term {
    let ranks = launch.tp * launch.pp;
    let (low, mid, high) = match (launch.expert_parallel && ranks > 1, ranks) {
        (true, _) => (1000, 3000, 5800),
        // The first engine counted the context and whatever else was on the card.
        // It grew with the card: 0.05 to 0.8 GiB on small ones, 1.8 on 80 GB.
        (_, 1) if launch.is_first_engine() => (40, 200, (total_bytes / 40 / MIB).max(500)),
        _ if launch.is_first_engine() => (150, 900, 7500),
        (_, 1) => (40, 133, 240),
        (_, 2..=4) => (150, 400, 800),
        _ => (400, 950, 1600),
    };
    let mut quantity = Quantity::band(low * MIB, mid * MIB, high * MIB);
    let mut formula = format!("{mid} MiB on {ranks} ranks");
    if last && second_runner(launch) {
        // 32-bit counts and a bit mask for each sequence and entry (vLLM v1/worker/gpu/sample/penalties.py).
        let state = mul([s.max_num_seqs, model.vocab_size, 33]) / 8;
        quantity = quantity + Quantity::exact(state);
        formula = format!("{formula} + sampler state {} x {} x 4.125 B", s.max_num_seqs, model.vocab_size);
    }
    term("non_torch", quantity, formula, "fitted on public start-up logs; vLLM utils/mem_utils.py")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelFiles;
    use crate::{Gpu, MaxModelLen};

    fn activation_of(config: &str, launch: &Launch) -> Term {
        let model = Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap();
        let gpu = Gpu {
            name: String::new(),
            device_name: String::new(),
            total_bytes: 140 * GIB,
            capability: (9, 0),
            host_use: None,
        };
        let settled = super::super::settle(&model, launch, &gpu).unwrap();
        activation(&model, launch, &settled, true)
    }

    #[test]
    fn one_stream_more_where_queries_are_normed() {
        let config = |kind: &str| {
            format!(
                r#"{{"architectures": ["{kind}"], "hidden_size": 4096, "num_attention_heads": 32,
                "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 2, "vocab_size": 1000,
                "intermediate_size": 14336, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}}"#
            )
        };
        // Issue 10517 of vLLM printed 2.07 and 2.99 GiB for these two lengths.
        let launch = |len| Launch {
            version: Version(0, 6, 4),
            max_model_len: MaxModelLen::Tokens(len),
            ..Launch::default()
        };
        for (len, printed) in [(20_000, 2.07), (29_000, 2.99)] {
            let t = activation_of(&config("LlamaForCausalLM"), &launch(len));
            let got = t.quantity.expected as f64 / GIB as f64;
            assert!((got - printed).abs() < 0.02, "{len}: {got} against {printed}");
        }
        let (plain, normed) = (
            activation_of(&config("LlamaForCausalLM"), &launch(20_000)),
            activation_of(&config("Qwen3ForCausalLM"), &launch(20_000)),
        );
        assert_eq!(normed.quantity.expected - plain.quantity.expected, 2 * 20_000 * 4096);
    }

    #[test]
    fn steps_of_long_latent_models_were_not_sure_in_0_7() {
        let config =
            include_str!("../../../../../../testdata/plan/configs/deepseek-ai--DeepSeek-V3_config.json");
        let launch = |version| Launch {
            version,
            tp: 8,
            max_model_len: MaxModelLen::Tokens(128_000),
            ..Launch::default()
        };
        let open = activation_of(config, &launch(Version(0, 7, 3)));
        let settled =
            activation_of(config, &Launch { max_num_batched_tokens: Some(2048), ..launch(Version(0, 7, 3)) });
        assert_eq!(open.quantity.expected, settled.quantity.expected);
        assert!(open.quantity.high > 3 * settled.quantity.high);
        assert!(open.formula.contains("128000 tokens") && !settled.formula.contains("128000"));
        assert!(!activation_of(config, &launch(Version(0, 11, 0))).formula.contains("whole prompt"));
    }
}
