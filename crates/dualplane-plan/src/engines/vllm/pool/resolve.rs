//! What the engine makes of flags that were left open.

use super::rejected::{divisible, kernels, particular};
use crate::engines::vllm::kv::backend_of;
use crate::gpu::Gpu;
use crate::launch::{Launch, MaxModelLen, Settled, is_quantised};
use crate::model::{Attention, Dtype, Family, Model, Reach};
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
    let backend = backend_of(model, launch, gpu.sm(), &kv_dtype, dtype)?;
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
