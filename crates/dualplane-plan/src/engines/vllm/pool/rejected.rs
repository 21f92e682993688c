//! What the engine rejects before it takes memory: what ranks cannot share, what a card has no kernels for, what one model or one
//! format of the cache asks for.

use crate::gpu::Gpu;
use crate::launch::{Launch, is_quantised};
use crate::model::{Attention, Dtype, Family, FeedForward, LinearScheme, Model, QuantMethod, Reach};
use crate::outcome::PlanError;

/// vLLM config/model.py `verify_with_parallel_config` and the layers' own `divide`.
pub(super) fn divisible(model: &Model, launch: &Launch) -> Result<(), PlanError> {
    if model.traits.remote_code && !launch.trust_remote_code {
        return Err(PlanError::contradiction(
            "--trust-remote-code",
            "the class of this model's configuration comes with the checkpoint: the engine starts only with this flag",
        ));
    }
    for (flag, n) in [
        ("--tensor-parallel-size", launch.tp),
        ("--pipeline-parallel-size", launch.pp),
        ("--data-parallel-size", launch.dp),
        ("--decode-context-parallel-size", launch.dcp),
    ] {
        if n == 0 || n > 4096 {
            return Err(PlanError::contradiction(flag, format!("{n} ranks")));
        }
    }
    let tp = launch.tp;
    if model.heads > 0 && !model.heads.is_multiple_of(tp) {
        return Err(PlanError::contradiction(
            "--tensor-parallel-size",
            format!(
                "Total number of attention heads ({}) must be divisible by tensor parallel size ({tp}).",
                model.heads
            ),
        ));
    }
    for layer in &model.layers {
        if let Attention::Gqa(g) = layer.attention {
            let (more, fewer) = (g.kv_heads.max(tp), g.kv_heads.min(tp).max(1));
            if !more.is_multiple_of(fewer) {
                return Err(PlanError::contradiction(
                    "--tensor-parallel-size",
                    format!("{} KV heads cannot be split or replicated across {tp} ranks", g.kv_heads),
                ));
            }
        }
        let heads = match layer.attention {
            Attention::Mamba1(m) => m.inner,
            Attention::ShortConv(c) => c.width,
            Attention::Mamba2(m) => m.heads,
            Attention::GatedDelta(g) => crate::arith::gcd(g.k_heads, g.v_heads),
            Attention::Kda(k) => k.heads,
            _ => continue,
        };
        if !heads.is_multiple_of(tp) {
            return Err(PlanError::contradiction(
                "--tensor-parallel-size",
                format!("{heads} state heads cannot be divided by {tp}"),
            ));
        }
        if let Attention::Mamba2(m) = layer.attention
            && !m.groups.is_multiple_of(tp)
            && m.groups != 1
        {
            return Err(PlanError::contradiction(
                "--tensor-parallel-size",
                format!("{} state groups cannot be divided by {tp}; only a single group is copied", m.groups),
            ));
        }
    }
    context_parallel(model, launch)?;
    if launch.pp > model.layers.len() as u64 {
        return Err(PlanError::contradiction("--pipeline-parallel-size", "more stages than layers"));
    }
    let experts = model.layers.iter().any(|l| matches!(l.feed_forward, FeedForward::Moe(_)));
    if launch.expert_parallel && !experts {
        return Err(PlanError::contradiction(
            "--enable-expert-parallel",
            "Number of experts in the model must be greater than 0 when expert parallelism is enabled.",
        ));
    }
    Ok(())
}

/// vLLM config/model.py: ranks that share the tokens of a request must hold copies of the same heads.
fn context_parallel(model: &Model, launch: &Launch) -> Result<(), PlanError> {
    let (tp, dcp) = (launch.tp, launch.dcp);
    if dcp == 1 {
        return Ok(());
    }
    let flag = "--decode-context-parallel-size";
    if !tp.is_multiple_of(dcp) {
        return Err(PlanError::contradiction(
            flag,
            format!("tensor parallel size {tp} is not divisible by {dcp}"),
        ));
    }
    let mut per_head = model.layers.iter().filter_map(|l| match l.attention {
        Attention::Gqa(g) => Some(g),
        _ => None,
    });
    if per_head.clone().any(|g| g.reach != Reach::Full) {
        return Err(PlanError::contradiction(
            flag,
            "sliding windows and chunks cannot be sharded across \
        ranks",
        ));
    }
    if let Some(g) = per_head.next() {
        let copies = tp / g.kv_heads.max(1);
        if dcp > copies {
            return Err(PlanError::contradiction(
                flag,
                format!("{dcp} exceeds the maximum of {copies} copies of a KV head"),
            ));
        }
    }
    Ok(())
}

/// Cards that are older than the engine's kernels.
pub(super) fn kernels(model: &Model, gpu: &Gpu) -> Result<(), PlanError> {
    let sm = gpu.sm();
    // The CPU back end has kernels of its own.
    if gpu.is_cpu() {
        return Ok(());
    }
    if sm < 70 {
        let why = format!(
            "the engine's builds hold kernels for compute capability 7.0 and later, and {} has {}.{}",
            gpu.name,
            sm / 10,
            sm % 10
        );
        return Err(PlanError::contradiction("--gpu", why));
    }
    let Some(q) = &model.quantization else { return Ok(()) };
    let mxfp4 = q.default == LinearScheme::Mxfp4;
    let least = if mxfp4 { 80 } else { least_capability(q.method) };
    if sm < least {
        let why = format!(
            "The quantization method {} is not supported for the current GPU. Minimum capability: {least}. Current capability: {sm}.",
            q.method.as_str()
        );
        return Err(PlanError::contradiction("--quantization", why));
    }
    Ok(())
}

/// `get_min_capability` of each method (vLLM 0.33.0, layers/quantization); older releases ask for as much or more.
const fn least_capability(method: QuantMethod) -> u32 {
    match method {
        QuantMethod::Gptq => 60,
        QuantMethod::Bitsandbytes => 70,
        QuantMethod::Fp8
        | QuantMethod::ModeloptFp4
        | QuantMethod::Awq
        | QuantMethod::CompressedTensors
        | QuantMethod::ModeloptMixed
        | QuantMethod::DeepseekV4Fp8 => 75,
        QuantMethod::Modelopt | QuantMethod::GptOssMxfp4 | QuantMethod::Mxfp4 => 80,
    }
}

/// What single families refuse.
pub(super) fn particular(
    model: &Model,
    launch: &Launch,
    gpu: &Gpu,
    dtype: Dtype,
    kv_dtype: &str,
) -> Result<(), PlanError> {
    // vLLM layers/rotary_embedding/mrope.py: positions in three dimensions share out what is rotated.
    let sections = ["rope_parameters", "rope_scaling"]
        .iter()
        .find_map(|k| model.text.get(k)?.get("mrope_section")?.as_array())
        .map(|s| s.iter().filter_map(serde_json::Value::as_u64).fold(0, u64::saturating_add));
    if let (Some(shared), Some(table)) = (sections.filter(|n| *n > 0), model.rotary.first())
        && shared != table.width / 2
    {
        return Err(PlanError::contradiction(
            "config.json: mrope_section",
            format!("its sum of {shared} is not half of the {} rotated elements", table.width),
        ));
    }
    if let Some(why) = crate::model::checks::rejected(model, launch.version, launch.tp) {
        return Err(why);
    }
    if crate::model::rotary::lacks_original(model) {
        return Err(PlanError::contradiction(
            "config.json: rope_scaling",
            "original_max_position_embeddings is missing, which this architecture's scaling rests on",
        ));
    }
    let sparse = model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(m) if m.indexer.is_some()));
    // FlashInfer's kernels of Blackwell take 16-bit floats of both kinds.
    if sparse && dtype != Dtype::Bfloat16 && is_quantised(kv_dtype) && gpu.sm() / 10 != 10 {
        return Err(PlanError::contradiction(
            "--dtype",
            "sparse MLA backends with an 8-bit cache support only bfloat16",
        ));
    }
    if model.family == Family::GptOss {
        let quantised = model.quantization.is_some();
        if quantised && dtype != Dtype::Bfloat16 {
            let why =
                format!("torch.{} is not supported for quantization method gpt_oss_mxfp4", dtype.as_str());
            return Err(PlanError::contradiction("--dtype", why));
        }
        if model.kv_heads < launch.tp {
            return Err(PlanError::contradiction(
                "--tensor-parallel-size",
                format!("gpt-oss cannot replicate its {} KV heads to {} ranks", model.kv_heads, launch.tp),
            ));
        }
        let world = launch.tp * launch.pp;
        let width = model.layers.iter().find_map(|l| match l.feed_forward {
            FeedForward::Moe(m) => Some(m.intermediate),
            _ => None,
        });
        if width.is_some_and(|w| !w.is_multiple_of(world)) {
            return Err(PlanError::contradiction(
                "--tensor-parallel-size",
                format!("gpt-oss requires an intermediate_size divisible by all {world} ranks"),
            ));
        }
    }
    let compressed = model.layers.iter().find_map(|l| match l.attention {
        Attention::Compressed(c) => Some(c.heads),
        _ => None,
    });
    if compressed.is_some_and(|h| h / launch.tp > 128) {
        return Err(PlanError::contradiction(
            "config.json: num_attention_heads",
            "DeepSeek-V4's decode kernel takes at most 128 heads per rank",
        ));
    }
    Ok(())
}
