//! Which attention kernel serves a model on a card, as far as it decides the size of blocks.
//!
//! Source: vLLM 0.33.0 platforms/cuda.py `_get_backend_priorities` and `get_supported_kernel_block_sizes` of each backend.

use super::kernel::{self, Ask, Kernel};
use crate::arith::floor_div;
use crate::launch::{Backend, Launch, is_quantised};
use crate::model::{Attention, Dtype, Family, Mla, Model, Reach};
use crate::outcome::PlanError;
use dualplane_base::Version;

const fn b(name: &'static str, preferred: u64, grain: u64) -> Backend {
    Backend { name, preferred, grain }
}

/// For people.
fn card(sm: u32) -> String {
    format!("compute capability {}.{}", sm / 10, sm % 10)
}

/// The backend of a model's attention.
pub(crate) fn choose(
    model: &Model,
    launch: &Launch,
    sm: u32,
    kv_dtype: &str,
    dtype: Dtype,
) -> Result<Backend, PlanError> {
    let mla = model.layers.iter().find_map(|l| match l.attention {
        Attention::Mla(m) => Some(m),
        _ => None,
    });
    if model.family == Family::DeepseekV4 {
        return Ok(b("DEEPSEEK_SPARSE_SWA", 256, 128));
    }
    if sm == 0 {
        return on_cpu(mla.is_some_and(|m| m.indexer.is_some()), mla.is_some());
    }
    match mla {
        Some(m) if m.indexer.is_some() => sparse(&m, launch, sm, kv_dtype),
        Some(_) if is_quantised(kv_dtype) && sm < 89 => Err(PlanError::contradiction(
            "--kv-cache-dtype",
            format!("FP8 KV cache is not supported by the Triton MLA backend on {}", card(sm)),
        )),
        Some(m) => prompts(&m, launch).map(|()| latent(launch, sm, kv_dtype)),
        None => per_head(model, launch, sm, kv_dtype, dtype),
    }
}

/// vLLM platforms/cpu.py `check_and_update_config`. With AMX the latent kernel takes blocks as the others do.
fn on_cpu(sparse: bool, latent: bool) -> Result<Backend, PlanError> {
    if sparse {
        return Err(PlanError::contradiction("--gpu", "Sparse Attention is not supported on CPU."));
    }
    Ok(if latent { b("CPU_MLA", 16, 16) } else { b("CPU_ATTN", 128, 1) })
}

/// Kernels of sparse latent attention, in the order in which vLLM 0.33.0 tries them (platforms/cuda.py
/// `_get_backend_priorities`; their own `supports_combination` and `get_supported_head_sizes`).
fn sparse(m: &Mla, launch: &Launch, sm: u32, kv_dtype: &str) -> Result<Backend, PlanError> {
    if launch.version < Version(0, 33, 0) {
        return sparse_before(sm, kv_dtype);
    }
    let width = m.kv_lora_rank.saturating_add(m.rope_dim);
    let plain = matches!(kv_dtype, "auto" | "bfloat16" | "float16");
    let usual = matches!(width, 512 | 576);
    // The 576 bytes of an entry are laid out for one width; the 8-bit layout has a name of its own.
    let flash = matches!(kv_dtype, "auto" | "bfloat16" | "fp8" | "fp8_ds_mla")
        && (width == 576 || width == 512 && sm / 10 == 9 && m.rope_dim == 0);
    let eight = plain || matches!(kv_dtype, "fp8" | "fp8_e4m3");
    let chosen = match sm / 10 {
        9 if plain => Some("FLASH_ATTN_MLA_SPARSE"),
        9 if flash => Some("FLASHMLA_SPARSE"),
        9 if eight && m.kv_lora_rank == 512 && matches!(m.rope_dim, 0 | 64) => {
            Some("FLASHINFER_MLA_SPARSE_SM90")
        }
        10 => {
            let heads = floor_div(m.heads, launch.tp);
            let shapes = if m.rope_dim == 0 {
                m.nope_dim == 256 && m.kv_lora_rank == 512
            } else {
                matches!(m.nope_dim, 128 | 192)
            };
            let infer = usual && eight && shapes;
            // FlashMLA pads few heads.
            let first = is_quantised(kv_dtype) || heads <= 16;
            match (infer, flash) {
                (true, false) => Some("FLASHINFER_MLA_SPARSE"),
                (true, true) if first => Some("FLASHINFER_MLA_SPARSE"),
                (_, true) => Some("FLASHMLA_SPARSE"),
                (false, false) => None,
            }
        }
        12 if usual => Some("FLASHINFER_MLA_SPARSE_SM120"),
        _ => None,
    };
    chosen.map(|name| b(name, 64, 64)).ok_or_else(|| {
        let why = format!(
            "no sparse MLA backend supports {} with heads of {width} and a cache of {kv_dtype}",
            card(sm)
        );
        PlanError::contradiction("--gpu", why)
    })
}

/// Releases before, of which the order is not known in full.
fn sparse_before(sm: u32, kv_dtype: &str) -> Result<Backend, PlanError> {
    match (sm / 10, kv_dtype) {
        (9, "auto" | "bfloat16" | "float16") => Ok(b("FLASH_ATTN_MLA_SPARSE", 64, 64)),
        (9, "fp8" | "fp8_ds_mla") => Ok(b("FLASHMLA_SPARSE", 64, 64)),
        (9, _) => Ok(b("FLASHINFER_MLA_SPARSE_SM90", 64, 64)),
        (10, kv) if is_quantised(kv) => Ok(b("FLASHINFER_MLA_SPARSE", 64, 64)),
        (10, _) => Ok(b("FLASHMLA_SPARSE", 64, 64)),
        (12, _) => Ok(b("FLASHINFER_MLA_SPARSE_SM120", 64, 64)),
        _ => Err(PlanError::contradiction("--gpu", format!("no sparse MLA backend supports {}", card(sm)))),
    }
}

/// Whether kernels for prompts exist for these widths of latent heads; sparse attention does without (platforms/interface.py
/// `get_mla_prefill_backend_cls`, v1/attention/backends/mla/prefill; release read: 0.33.0).
fn prompts(m: &Mla, launch: &Launch) -> Result<(), PlanError> {
    let widths = (m.nope_dim, m.rope_dim, m.v_dim);
    let known = [(128, 64, 128), (192, 64, 256), (64, 64, 128), (256, 0, 256)];
    if launch.version < Version(0, 33, 0) || known.contains(&widths) {
        return Ok(());
    }
    let (nope, rope, v) = widths;
    Err(PlanError::contradiction(
        "config.json: v_head_dim",
        format!("no MLA prefill backend takes heads of {nope} and {rope} with values of {v}"),
    ))
}

fn latent(launch: &Launch, sm: u32, kv_dtype: &str) -> Backend {
    match sm / 10 {
        9 if !is_quantised(kv_dtype) && launch.version >= Version(0, 20, 0) => b("FLASH_ATTN_MLA", 16, 16),
        // The next in line takes smaller blocks.
        9 if launch.block_size.is_some_and(|n| !n.is_multiple_of(64)) => b("TRITON_MLA", 16, 16),
        9 => b("FLASHMLA", 64, 64),
        10 if launch.version >= Version(0, 20, 0) => b("FLASHINFER_MLA", 32, 32),
        10 => b("CUTLASS_MLA", 128, 128),
        _ => b("TRITON_MLA", 16, 16),
    }
}

/// vLLM `is_mm_prefix_lm`: image tokens see each other in both directions.
pub(crate) fn sees_images_both_ways(model: &Model) -> bool {
    let kind = model.config.get("model_type").and_then(serde_json::Value::as_str);
    if kind.is_some_and(crate::model::family::pictures_both_ways) {
        return true;
    }
    // Gemma 4 says it in its config.
    let bidirectional = model.text.get("use_bidirectional_attention").and_then(serde_json::Value::as_str);
    model.encoder.is_some() && model.family == Family::Gemma4 && bidirectional == Some("vision")
}

/// Keys and values for each head: each layer takes a kernel of its own, and the block is one that all of them take
/// (platforms/interface.py `_preferred_block_size_for_backends`; their sizes divide each other).
fn per_head(
    model: &Model,
    launch: &Launch,
    sm: u32,
    kv_dtype: &str,
    dtype: Dtype,
) -> Result<Backend, PlanError> {
    let both_ways = sees_images_both_ways(model) && !launch.language_model_only;
    // Where no layer is told the cache's type it changes nothing.
    let cache = if model.traits.cache_dtype { kv_dtype } else { "auto" };
    let heads = model.layers.iter().filter_map(|l| match l.attention {
        Attention::Gqa(g) => Some(g),
        Attention::Expanded(m) => Some(m.expanded()),
        _ => None,
    });
    // Heads of several widths want the fourth FlashAttention for all of them; of each kind of layer the last one is looked at
    // (models/config.py `Gemma4Config`).
    let last = |full: bool| heads.clone().rfind(|h| (h.reach == Reach::Full) == full).map(|h| h.head_dim);
    let only_triton = match (last(true), last(false)) {
        (Some(a), Some(b)) if model.family == Family::Gemma4 && a != b => {
            !matches!(sm / 10, 9 | 10) || a.max(b) > 512
        }
        _ => false,
    };
    let mut chosen: Option<Backend> = None;
    for head in heads {
        let ask = Ask {
            sm,
            version: launch.version,
            dtype,
            cache,
            width: head.head_dim,
            sinks: head.sinks,
            crosses: head.reach == Reach::Encoder,
            both_ways,
            block: launch.block_size,
            only_triton,
        };
        let kernel = serving(model, &ask)?;
        let block = kernel.block(&ask);
        if chosen.is_none_or(|c| block > c.preferred) {
            chosen = Some(b(kernel.name, block, block));
        }
    }
    // Whoever does not attend has the engine's own default.
    Ok(chosen.unwrap_or(b("no attention", 16, 16)))
}

/// The kernel of a layer, if it does what the layer wants of it.
fn serving(model: &Model, ask: &Ask<'_>) -> Result<&'static Kernel, PlanError> {
    let cache = |why| Err(PlanError::contradiction("--kv-cache-dtype", why));
    let slopes = model.architecture == "BloomForCausalLM";
    // Which sizes of blocks are taken is said where all layers are known.
    let of = |ask: &Ask<'_>| kernel::of(ask).or_else(|| kernel::of(&Ask { block: None, ..*ask }));
    let Some(kernel) = of(ask) else {
        let wants = [(ask.sinks, " with sinks"), (ask.crosses, " that attend to an encoder")];
        let wants: String = wants.iter().filter_map(|(is, what)| is.then_some(*what)).collect();
        let (flag, cached) = match of(&Ask { cache: "auto", ..*ask }) {
            Some(_) => ("--kv-cache-dtype", format!(" and a cache of {}", ask.cache)),
            None => ("--gpu", String::new()),
        };
        let (width, card) = (ask.width, card(ask.sm));
        let why = format!("no attention backend takes heads of {width}{wants}{cached} on {card}");
        return Err(PlanError::contradiction(flag, why));
    };
    match kernel.name {
        // v1/attention/backends/triton_attn.py: 8 bits as the card itself reads them.
        "TRITON_ATTN" if ask.cache.starts_with("fp8") && ask.sm < 89 => {
            cache(format!("the Triton backends do not support an FP8 cache on {}", card(ask.sm)))
        }
        // v1/attention/backends/flash_attn.py: the third generation, which reads 8-bit caches, knows no slopes.
        "FLASH_ATTN" if slopes && is_quantised(ask.cache) => {
            cache("FlashAttention does not support fp8 kv-cache on this device.".to_owned())
        }
        "FLEX_ATTENTION" if slopes => {
            let why = format!(
                "FlexAttention, which heads of {} need here, does not support alibi slopes",
                ask.width
            );
            Err(PlanError::contradiction("--gpu", why))
        }
        _ => Ok(kernel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelFiles;

    fn chosen(config: &str, version: Version, sm: u32, kv_dtype: &str) -> Result<Backend, PlanError> {
        let model = Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap();
        choose(&model, &Launch { version, ..Launch::default() }, sm, kv_dtype, Dtype::Float16)
    }

    #[test]
    fn turing_reads_no_8_bit_cache_since_flashinfer_is_not_taken_there() {
        let llama = include_str!("../../../../../../testdata/plan/llama.json");
        let of = |version, kv| chosen(llama, version, 75, kv).map(|b| b.name);
        assert_eq!(of(Version(0, 33, 0), "auto").unwrap(), "TRITON_ATTN");
        assert!(of(Version(0, 33, 0), "fp8").unwrap_err().to_string().contains("capability 7.5"));
        assert_eq!(of(Version(0, 20, 0), "fp8").unwrap(), "FLASHINFER");
    }

    #[test]
    fn an_8_bit_cache_on_ampere_wants_heads_that_flashinfer_has() {
        let phi = |head: u64| {
            format!(
                r#"{{"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": {}, "intermediate_size": 8192,
                "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 2, "vocab_size": 32064,
                "max_position_embeddings": 4096}}"#,
                head * 32
            )
        };
        let of = |head, sm, kv| chosen(&phi(head), Version(0, 33, 0), sm, kv).map(|b| b.name);
        assert!(of(96, 80, "fp8").unwrap_err().to_string().contains("capability 8.0"));
        assert_eq!(of(96, 80, "auto").unwrap(), "FLASH_ATTN");
        assert_eq!(of(128, 80, "fp8").unwrap(), "FLASHINFER");
        assert_eq!(of(96, 89, "fp8").unwrap(), "TRITON_ATTN");
        assert_eq!(of(32, 89, "fp8").unwrap(), "TRITON_ATTN");
        assert!(of(8, 89, "fp8").unwrap_err().to_string().contains("heads of 8"));
        assert_eq!(of(8, 89, "auto").unwrap(), "FLASH_ATTN");
        assert_eq!(
            (of(8, 75, "auto").unwrap(), of(32, 75, "auto").unwrap()),
            ("FLEX_ATTENTION", "TRITON_ATTN")
        );
        let bloom = |width: u64| {
            let config = format!(
                r#"{{"architectures": ["BloomForCausalLM"], "model_type": "bloom", "hidden_size": {width}, "n_layer": 2, "n_head": 8,
                "vocab_size": 1024}}"#
            );
            chosen(&config, Version(0, 33, 0), 75, "auto").map(|b| b.name).map_err(|e| e.to_string())
        };
        assert!(bloom(64).unwrap_err().contains("alibi"));
        assert_eq!(bloom(256).unwrap(), "TRITON_ATTN");
    }

    /// Gemma 4 and Gemma 3 with widths of heads that no release of them has, too.
    #[test]
    fn the_smallest_block_that_all_kernels_of_a_model_take_counts() {
        let gemma = |narrow: u64, wide: u64| {
            format!(
                r#"{{"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "vision_config":
                {{"model_type": "gemma4_vision", "hidden_size": 64, "num_hidden_layers": 1}}, "text_config": {{
                "model_type": "gemma4_text", "use_bidirectional_attention": "vision", "hidden_size": 512, "head_dim": {narrow},
                "global_head_dim": {wide}, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 2,
                "intermediate_size": 1024, "vocab_size": 1024, "max_position_embeddings": 4096, "sliding_window": 512,
                "layer_types": ["sliding_attention", "full_attention"]}}}}"#
            )
        };
        let of = |narrow, wide, sm, kv| {
            chosen(&gemma(narrow, wide), Version(0, 33, 0), sm, kv).map(|b| b.preferred).unwrap()
        };
        for narrow in [128, 256] {
            assert_eq!((of(narrow, 512, 90, "auto"), of(narrow, 512, 90, "fp8")), (16, 64), "{narrow}");
            assert_eq!((of(narrow, 256, 90, "fp8"), of(narrow, 512, 100, "auto")), (16, 64), "{narrow}");
        }
        assert_eq!((of(128, 128, 90, "fp8"), of(96, 96, 100, "auto")), (16, 16));
    }

    #[test]
    fn the_cpu_has_blocks_of_its_own() {
        let llama = include_str!("../../../../../../testdata/plan/llama.json");
        assert_eq!(chosen(llama, Version(0, 32, 0), 0, "auto").unwrap().preferred, 128);
        let config =
            include_str!("../../../../../../testdata/plan/configs/deepseek-ai--DeepSeek-V3_config.json");
        assert_eq!(chosen(config, Version(0, 32, 0), 0, "auto").unwrap().preferred, 16);
    }
}
