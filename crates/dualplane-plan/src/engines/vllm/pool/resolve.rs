//! What the engine makes of flags that were left open, and what it rejects before it takes memory.

use crate::engines::vllm::kv::backend_of;
use crate::gpu::Gpu;
use crate::launch::{Launch, MaxModelLen, Settled, is_quantised};
use crate::model::{Attention, Dtype, Family, FeedForward, LinearScheme, Model, QuantMethod, Reach};
use crate::outcome::PlanError;
use dualplane_base::Version;
use dualplane_base::units::GIB;

/// Settles a launch.
pub(crate) fn settle(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Settled, PlanError> {
    kernels(model, gpu)?;
    divisible(model, launch)?;
    let dtype = dtype(model, launch, gpu)?;
    let kv_dtype = match (launch.kv_cache_dtype.as_str(), &model.declared_kv_dtype) {
        // vLLM models/config.py: GLM's sparse attention reads 8 bits on these cards.
        ("auto", _) if model.architecture == "GlmMoeDsaForCausalLM" && gpu.capability.0 == 10 => {
            "fp8_e4m3".to_owned()
        }
        ("auto", Some(declared)) if launch.version >= Version(0, 15, 0) => declared.clone(),
        (given, _) => given.to_owned(),
    };
    known_kv_dtype(&kv_dtype)?;
    particular(model, launch, gpu, dtype, &kv_dtype)?;
    let backend = backend_of(model, launch, gpu.sm(), &kv_dtype)?;
    let (max_model_len, fit_len) = length(model, launch)?;
    let (seqs, tokens) = batch(model, launch, gpu, max_model_len)?;
    let hybrid = model.layers.iter().any(|l| l.attention.is_state());
    // Off for hybrids in 0.26.0, on in 0.28.0, off for the classes that never attend (vLLM engine/arg_utils.py,
    // config/model.py; `IsAttentionFree` of models/mamba.py and mamba2.py).
    let alone = ["MambaForCausalLM", "FalconMambaForCausalLM", "Mamba2ForCausalLM"]
        .contains(&model.architecture.as_str());
    let prefix_caching =
        launch.prefix_caching.unwrap_or(!hybrid || launch.version >= Version(0, 28, 0) && !alone);
    let ahead = launch.speculative.as_ref().map_or(0, |s| s.num_tokens);
    Ok(Settled {
        dtype,
        kv_dtype,
        backend,
        max_model_len,
        fit_len,
        max_num_seqs: seqs,
        max_num_batched_tokens: tokens,
        in_flight: tokens.saturating_mul(concurrent_batches(launch)),
        utilisation: utilisation(launch)?,
        prefix_caching,
        ahead,
    })
}

/// vLLM config/model.py `verify_with_parallel_config` and the layers' own `divide`.
fn divisible(model: &Model, launch: &Launch) -> Result<(), PlanError> {
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
fn kernels(model: &Model, gpu: &Gpu) -> Result<(), PlanError> {
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
fn particular(
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

fn dtype(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Dtype, PlanError> {
    let half = if gpu.sm() >= 80 || gpu.is_cpu() { Dtype::Bfloat16 } else { Dtype::Float16 };
    if launch.dtype == "auto" {
        return Ok(match model.dtype {
            // vLLM config/model.py: 32 bits are served in 16, and bfloat16 only where the card has it.
            // What is unstable in float16 is served in 32 bits there.
            _ if half == Dtype::Float16 && !model.traits.float16 => Dtype::Float32,
            Dtype::Float32 | Dtype::Bfloat16 | Dtype::Fp8 => half,
            Dtype::Float16 => Dtype::Float16,
        });
    }
    let asked = Dtype::parse(&launch.dtype)
        .ok_or_else(|| PlanError::contradiction("--dtype", format!("unknown dtype {}", launch.dtype)))?;
    if asked == Dtype::Bfloat16 && gpu.sm() < 80 && !gpu.is_cpu() {
        return Err(PlanError::contradiction(
            "--dtype",
            "Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
        ));
    }
    Ok(asked)
}

fn known_kv_dtype(kv_dtype: &str) -> Result<(), PlanError> {
    let known = [
        "auto",
        "fp8_e5m2",
        "fp8_inc",
        "fp8_ds_mla",
        "nvfp4",
        "fp8_per_token_head",
        "int8_per_token_head",
        "int4_per_token_head",
    ];
    if known.contains(&kv_dtype) || Dtype::parse(kv_dtype).is_some() {
        Ok(())
    } else if is_quantised(kv_dtype) || kv_dtype.starts_with("turboquant") {
        Err(PlanError::unsupported(format!("--kv-cache-dtype {kv_dtype}")))
    } else {
        Err(PlanError::contradiction("--kv-cache-dtype", format!("unknown dtype {kv_dtype}")))
    }
}

fn length(model: &Model, launch: &Launch) -> Result<(u64, bool), PlanError> {
    let stretched = model.stretched.filter(|_| launch.version < Version(0, 30, 0));
    let asked = launch.asked_len(
        stretched.unwrap_or(model.longest),
        "--max-model-len",
        "max_model_len",
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    )?;
    let own = stretched.unwrap_or(model.max_model_len);
    Ok((asked.unwrap_or(own), launch.max_model_len == MaxModelLen::Fit))
}

/// vLLM engine/arg_utils.py `get_batch_defaults`.
fn batch(model: &Model, launch: &Launch, gpu: &Gpu, max_model_len: u64) -> Result<(u64, u64), PlanError> {
    let a100 = gpu.device_name.to_ascii_lowercase().contains("a100") && launch.version >= Version(0, 10, 0);
    let (tokens, seqs) = if launch.is_first_engine() {
        (if first_in_chunks(model, launch, max_model_len) { 2048 } else { max_model_len.max(2048) }, 256)
    } else if gpu.is_cpu() {
        let ranks = launch.tp.saturating_mul(launch.pp);
        (ranks.saturating_mul(2048), ranks.saturating_mul(128))
    } else if gpu.total_bytes >= 160 * GIB && launch.version >= Version(0, 28, 0) {
        (16_384, 1024)
    } else if gpu.total_bytes >= 70 * GIB && !a100 {
        (8192, 1024)
    } else {
        (2048, 256)
    };
    let seqs = launch.max_num_seqs.unwrap_or(seqs);
    let tokens = launch.max_num_batched_tokens.unwrap_or_else(|| {
        let tokens = if launch.chunked_prefill == Some(false) { tokens.max(max_model_len) } else { tokens };
        let tokens = tokens.max(largest_item(model, launch));
        tokens.min(seqs.saturating_mul(max_model_len))
    });
    if seqs == 0 || tokens == 0 {
        return Err(PlanError::contradiction("--max-num-seqs", "nothing can be scheduled"));
    }
    let seqs = if launch.max_num_seqs.is_none() { seqs.min(tokens) } else { seqs };
    if tokens < seqs {
        return Err(PlanError::contradiction(
            "--max-num-batched-tokens",
            format!(
                "max_num_batched_tokens ({tokens}) must be greater than or equal to max_num_seqs ({seqs})."
            ),
        ));
    }
    // vLLM models/config.py `DiffusionGemmaModelForBlockDiffusionConfig`: what is as many as any default is not asked for.
    let seqs = if model.canvas().is_some() && seqs >= 128 { 8 } else { seqs };
    if launch.chunked_prefill == Some(false) && tokens < max_model_len {
        return Err(PlanError::contradiction(
            "--max-num-batched-tokens",
            format!(
                "max_num_batched_tokens ({tokens}) is smaller than max_model_len ({max_model_len}) without chunked prefill"
            ),
        ));
    }
    Ok((seqs, tokens))
}

/// Tokens of the largest picture or film that a step must take as a whole, where its tokens see each other in both directions:
/// 0 where a model leaves that open (vLLM engine/arg_utils.py `_get_min_mm_batched_tokens`; releases read: 0.32.0, 0.33.0).
fn largest_item(model: &Model, launch: &Launch) -> u64 {
    /// 32 frames of 70 tokens, each with two marks and six tokens of its time (vLLM models/gemma4_mm.py).
    const FILM: u64 = 32 * (70 + 2 + 6);
    let both_ways =
        model.text.get("use_bidirectional_attention").and_then(serde_json::Value::as_str) == Some("vision");
    let films = model.family == Family::Gemma4 && model.encoder.is_some() && !launch.language_model_only;
    if both_ways && films && launch.version >= Version(0, 32, 0) { FILM } else { 0 }
}

/// Whether the first engine cuts prompts into chunks: long ones, where nothing else forbids it.
///
/// Source: vLLM 0.7.3 and 0.8.1 engine/arg_utils.py. 0.7 forbade it to latent attention only after the budget was settled.
fn first_in_chunks(model: &Model, launch: &Launch, max_model_len: u64) -> bool {
    let whole = model.encoder.is_some()
        || launch.speculative.is_some()
        || launch.lora.is_some()
        || model.layers.iter().any(|l| match l.attention {
            Attention::Mla(_) => launch.version >= Version(0, 8, 0),
            Attention::Gqa(g) => matches!(g.reach, Reach::Sliding(_)),
            _ => false,
        });
    launch.chunked_prefill.unwrap_or(max_model_len > 32_768 && !whole)
}

/// vLLM config/vllm.py `max_concurrent_batches`.
fn concurrent_batches(launch: &Launch) -> u64 {
    if launch.version < Version(0, 26, 0) {
        return 1;
    }
    let v2 = launch.v2_runner.unwrap_or(launch.version >= Version(0, 30, 0));
    match (launch.async_scheduling.unwrap_or(true), v2) {
        (true, true) => launch.pp + 1,
        (true, false) if launch.pp == 1 => 2,
        _ => launch.pp,
    }
}

fn utilisation(launch: &Launch) -> Result<f64, PlanError> {
    let u =
        launch.gpu_memory_utilization.unwrap_or_else(|| crate::repair::default_utilisation(launch.version));
    if u > 0.0 && u <= 1.0 {
        Ok(u)
    } else {
        Err(PlanError::contradiction(
            "--gpu-memory-utilization",
            format!(
                "{u} must be greater than 0 and \
        at most 1"
            ),
        ))
    }
}

/// Whether a family's architecture is one whose weights and cache are known for this version.
pub(crate) const fn oldest(family: Family) -> Version {
    match family {
        Family::StateSpace | Family::Longcat | Family::Zamba | Family::Whisper => Version(0, 11, 0),
        Family::Decoder | Family::Opt | Family::Gemma | Family::Expanded => Version(0, 6, 0),
        Family::Deepseek => Version(0, 7, 0),
        Family::Llama4 | Family::NemotronH => Version(0, 8, 0),
        Family::QwenHybrid | Family::GptOss | Family::Gemma3n => Version(0, 10, 0),
        Family::MimoV2 => Version(0, 12, 0),
        Family::KimiLinear | Family::Gemma4 | Family::DeepseekV4 | Family::Recurrent => Version(0, 20, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{embedded, place};
    use crate::model::ModelFiles;

    fn settled(id: &str, card: &str, command: &str, version: Version) -> Result<Settled, PlanError> {
        let e = crate::catalogue::find(id).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(e.config()).unwrap();
        let mut line = crate::cli::parse(&[format!("vllm serve m {command}")], &[], None).unwrap();
        line.launch.version = version;
        config.as_object_mut().unwrap().extend(line.overrides.clone());
        let config = config.to_string();
        let files =
            ModelFiles { config: &config, hf_quant_config: e.hf_quant_config(), ..ModelFiles::default() };
        let model = Model::read(&files).unwrap();
        let served = crate::weights::as_served(&model, &line.launch)?;
        settle(&served, &line.launch, &place(&embedded().unwrap(), Some(card), None).unwrap().gpu)
    }

    #[test]
    fn cards_older_than_the_kernels_are_refused() {
        for (id, card, command, why) in [
            ("Qwen/Qwen3-1.7B", "P100", "", Some("capability 7.0")),
            ("Qwen/Qwen3-8B-AWQ", "V100-32GB", "", Some("method awq is not supported")),
            ("Qwen/Qwen3-8B", "V100-32GB", "--quantization fp8", Some("Minimum capability: 75")),
            ("Qwen/Qwen3-8B-AWQ", "T4", "", None),
            ("Qwen/Qwen3-8B", "V100-32GB", "", None),
        ] {
            let got = settled(id, card, command, Version(0, 33, 0)).map(|_| ()).map_err(|e| e.to_string());
            match why {
                Some(why) => assert!(got.as_ref().is_err_and(|e| e.contains(why)), "{id} on {card}: {got:?}"),
                None => assert_eq!(got, Ok(()), "{id} on {card}"),
            }
        }
    }

    #[test]
    fn yarn_stretched_the_context_before_0_30() {
        let yarn =
            r#"--rope-scaling '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}'"#;
        let asked = format!("{yarn} --max-model-len 131072");
        let of = |command: &str, version| {
            settled("Qwen/Qwen3-8B", "H100-80GB", command, version).map(|s| s.max_model_len).ok()
        };
        assert_eq!(of(&asked, Version(0, 10, 0)), Some(131_072));
        assert_eq!(of(yarn, Version(0, 10, 0)), Some(131_072));
        assert_eq!(of(&asked, Version(0, 33, 0)), None);
        assert_eq!(of(yarn, Version(0, 33, 0)), Some(40_960));
    }
}
