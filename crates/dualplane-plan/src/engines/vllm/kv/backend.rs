//! Which attention kernel serves a model on a card, as far as it decides the size of blocks.
//!
//! Source: vLLM 0.33.0 platforms/cuda.py `_get_backend_priorities` and `get_supported_kernel_block_sizes` of each backend.

use super::kernel::{heads, latent};
use crate::arith::floor_div;
use crate::launch::{Backend, Launch, is_quantised};
use crate::model::{Attention, Dtype, Family, Mla, Model, Reach};
use crate::outcome::PlanError;
use dualplane_base::Version;

const fn b(name: &'static str, preferred: u64, grain: u64) -> Backend {
    Backend { name, preferred, grain, windowed: 0 }
}

/// For people.
fn card(sm: u32) -> String {
    format!("compute capability {}.{}", sm / 10, sm % 10)
}

/// For people: a cache that is not the layer's own.
fn cached(kv_dtype: &str) -> String {
    if kv_dtype == "auto" { String::new() } else { format!(" and a cache of {kv_dtype}") }
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
    let asked = Asked::of(launch)?;
    match mla {
        Some(m) if m.indexer.is_some() && launch.version < Version(0, 33, 0) => sparse_before(sm, kv_dtype),
        Some(layer) => {
            prompts(&layer, launch)?;
            let heads = floor_div(layer.heads, launch.tp);
            let (version, block, only) = (launch.version, launch.block_size, asked.latent);
            if let (Some(other), None, true) = (asked.heads, only, strict(version)) {
                return Err(not_valid(other.name, "latent attention", sm));
            }
            let ask = latent::Ask { sm, version, dtype, cache: kv_dtype, layer, heads, block, only };
            of_latent(&ask)
        }
        None => per_head(model, launch, sm, kv_dtype, dtype, &asked),
    }
}

/// `--attention-backend`: the kernel of that name.
#[derive(Debug, Default)]
struct Asked {
    heads: Option<&'static heads::Kernel>,
    latent: Option<&'static latent::Kernel>,
}

/// Whether a kernel that is asked for and cannot serve ends the start; releases before took another one.
fn strict(version: Version) -> bool {
    version >= Version(0, 15, 0)
}

impl Asked {
    fn of(launch: &Launch) -> Result<Self, PlanError> {
        let Some(asked) = launch.asked_backend() else { return Ok(Self::default()) };
        // Releases before 0.12 called them so.
        let name = asked.to_ascii_uppercase().replace("_VLLM_V1", "");
        let found = Self { heads: heads::named(&name), latent: latent::named(&name) };
        // Those of old releases; and of ROCm, for whose cards a plan is an estimate.
        let may_be_unknown = !strict(launch.version) || name.starts_with("ROCM_");
        if found.heads.is_some() || found.latent.is_some() || may_be_unknown {
            return Ok(found);
        }
        Err(PlanError::unsupported(format!("--attention-backend {asked}")))
    }
}

/// platforms/cuda.py `get_attn_backend_cls`: who is asked by name and cannot serve ends the start.
fn not_valid(name: &str, what: &str, sm: u32) -> PlanError {
    PlanError::contradiction("--attention-backend", format!("{name} does not take {what} on {}", card(sm)))
}

/// vLLM platforms/cpu.py `check_and_update_config`. With AMX the latent kernel takes blocks as the others do.
fn on_cpu(sparse: bool, latent: bool) -> Result<Backend, PlanError> {
    if sparse {
        return Err(PlanError::contradiction("--gpu", "Sparse Attention is not supported on CPU."));
    }
    Ok(if latent { b("CPU_MLA", 16, 16) } else { b("CPU_ATTN", 128, 1) })
}

/// The indexer of sparse attention has pages of its own (v1/attention/backends/mla/indexer.py).
const INDEXED: u64 = 64;

fn of_latent(ask: &latent::Ask<'_>) -> Result<Backend, PlanError> {
    let sparse = ask.layer.indexer.is_some();
    // Which sizes of blocks are taken is said where all layers are known.
    let of =
        |ask: &latent::Ask<'_>| latent::of(ask).or_else(|| latent::of(&latent::Ask { block: None, ..*ask }));
    let other = || of(&latent::Ask { only: None, ..*ask });
    let Some(kernel) = of(ask).or_else(|| other().filter(|_| !strict(ask.version))) else {
        let rows = format!("{} of {}", if sparse { "sparse rows" } else { "rows" }, ask.width());
        if let (Some(only), Some(_)) = (ask.only, other()) {
            let what = format!("{rows}{}", cached(ask.cache));
            return Err(not_valid(only.name, &what, ask.sm));
        }
        let (flag, with) = match of(&latent::Ask { cache: "auto", ..*ask }) {
            Some(_) => ("--kv-cache-dtype", cached(ask.cache)),
            None => ("--gpu", String::new()),
        };
        let why = format!("no MLA backend takes {rows}{with} on {}", card(ask.sm));
        return Err(PlanError::contradiction(flag, why));
    };
    // 8 bits as the card itself reads them.
    if kernel.name == "TRITON_MLA" && is_quantised(ask.cache) && ask.sm < 89 {
        return Err(PlanError::contradiction(
            "--kv-cache-dtype",
            format!("FP8 KV cache is not supported by the Triton MLA backend on {}", card(ask.sm)),
        ));
    }
    let block = if sparse { kernel.block.max(INDEXED) } else { kernel.block };
    Ok(b(kernel.name, block, block))
}

/// Kernels of sparse attention in releases before 0.33, of which the order is not known in full.
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
    if m.indexer.is_some() || launch.version < Version(0, 33, 0) || known.contains(&widths) {
        return Ok(());
    }
    let (nope, rope, v) = widths;
    Err(PlanError::contradiction(
        "config.json: v_head_dim",
        format!("no MLA prefill backend takes heads of {nope} and {rope} with values of {v}"),
    ))
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
    asked: &Asked,
) -> Result<Backend, PlanError> {
    let both_ways = sees_images_both_ways(model) && !launch.language_model_only;
    // models/config.py `DiffusionGemmaModelForBlockDiffusionConfig`.
    let non_causal = model.canvas().is_some();
    if let (Some("FLASHINFER"), true) = (asked.heads.map(|k| k.name), non_causal) {
        return Err(not_valid("FLASHINFER", "blocks that are written at once", sm));
    }
    // Where no layer is told the cache's type it changes nothing.
    let cache = if model.traits.cache_dtype { kv_dtype } else { "auto" };
    let heads = model.layers.iter().filter_map(|l| match l.attention {
        Attention::Gqa(g) => Some(g),
        Attention::Expanded(m) => Some(m.expanded()),
        _ => None,
    });
    // Heads of several widths want the fourth FlashAttention for all of them, if nobody asked for another; of each kind of
    // layer the last one is looked at (models/config.py `Gemma4Config`).
    let last = |full: bool| heads.clone().rfind(|h| (h.reach == Reach::Full) == full).map(|h| h.head_dim);
    let only = match (last(true), last(false)) {
        _ if asked.heads.is_some() => asked.heads,
        (Some(a), Some(b)) if model.family == Family::Gemma4 && a != b => {
            (!matches!(sm / 10, 9 | 10) || a.max(b) > 512).then_some(heads::TRITON_ATTN)
        }
        _ => None,
    };
    if let (Some(latent), Some(_), true) = (asked.latent, heads.clone().next(), strict(launch.version)) {
        return Err(not_valid(latent.name, "keys and values for each head", sm));
    }
    // The model's head is its widest one (config/model_arch.py `from_layers`), by which a backend is asked for the block of all.
    let widest = heads.clone().map(|h| h.head_dim).max().unwrap_or(0);
    let (mut chosen, mut windowed) = (None::<Backend>, 0);
    for head in heads {
        let ask = heads::Ask {
            sm,
            version: launch.version,
            dtype,
            cache,
            width: head.head_dim,
            sinks: head.sinks,
            crosses: head.reach == Reach::Encoder,
            both_ways,
            non_causal,
            block: launch.block_size,
            only,
        };
        let kernel = serving(model, &ask, asked)?;
        let block = kernel.block(&heads::Ask { width: widest, ..ask });
        if chosen.is_none_or(|c| block > c.preferred) {
            chosen = Some(b(kernel.name, block, block));
        }
        // Layers with a window choose for themselves (layers/attention/attention.py `_largest_kernel_block_within`).
        if matches!(head.reach, Reach::Sliding(_)) {
            windowed = windowed.max(kernel.block(&ask));
        }
    }
    // Whoever does not attend has the engine's own default.
    let chosen = chosen.unwrap_or(b("no attention", 16, 16));
    Ok(Backend { windowed, ..chosen })
}

/// The kernel of a layer, if it does what the layer wants of it.
fn serving(model: &Model, ask: &heads::Ask<'_>, asked: &Asked) -> Result<&'static heads::Kernel, PlanError> {
    let cache = |why| Err(PlanError::contradiction("--kv-cache-dtype", why));
    let slopes = model.architecture == "BloomForCausalLM";
    // Which sizes of blocks are taken is said where all layers are known.
    let of = |ask: &heads::Ask<'_>| heads::of(ask).or_else(|| heads::of(&heads::Ask { block: None, ..*ask }));
    let other = || of(&heads::Ask { only: None, ..*ask });
    let Some(kernel) = of(ask).or_else(|| other().filter(|_| !strict(ask.version))) else {
        let wants = [(ask.sinks, " with sinks"), (ask.crosses, " that attend to an encoder")];
        let wants: String = wants.iter().filter_map(|(is, what)| is.then_some(*what)).collect();
        let width = ask.width;
        if let (Some(only), Some(_)) = (asked.heads, other()) {
            let what = format!("heads of {width}{wants}{}", cached(ask.cache));
            return Err(not_valid(only.name, &what, ask.sm));
        }
        let (flag, with) = match of(&heads::Ask { cache: "auto", ..*ask }) {
            Some(_) => ("--kv-cache-dtype", cached(ask.cache)),
            None => ("--gpu", String::new()),
        };
        let card = card(ask.sm);
        let why = format!("no attention backend takes heads of {width}{wants}{with} on {card}");
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

    #[test]
    fn a_kernel_that_is_asked_for_serves_or_ends_the_start() {
        let llama = include_str!("../../../../../../testdata/plan/llama.json");
        let deepseek =
            include_str!("../../../../../../testdata/plan/configs/deepseek-ai--DeepSeek-V3_config.json");
        let of = |config, name: &str, by_env: bool, version, sm, kv| {
            let model = Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap();
            let mut launch = Launch { version, ..Launch::default() };
            let to =
                if by_env { &mut launch.attention_backend_by_env } else { &mut launch.attention_backend };
            *to = Some(name.to_owned());
            choose(&model, &launch, sm, kv, Dtype::Float16).map_err(|e| e.to_string())
        };
        let now = Version(0, 33, 0);
        let named = |name, version, sm| of(llama, name, false, version, sm, "auto").map(|b| b.name);
        assert_eq!(named("flashinfer", now, 90).unwrap(), "FLASHINFER");
        assert_eq!(
            (named("auto", now, 90).unwrap(), named("FLEX_ATTENTION", now, 90).unwrap()),
            ("FLASH_ATTN", "FLEX_ATTENTION")
        );
        assert!(named("FLASH_ATTN", now, 75).unwrap_err().contains("FLASH_ATTN does not take heads of"));
        assert_eq!(named("FLASH_ATTN", Version(0, 10, 0), 75).unwrap(), "FLASHINFER");
        assert!(of(llama, "FLASH_ATTN", false, now, 80, "fp8").unwrap_err().contains("and a cache of fp8"));
        assert!(named("FLASHMLA", now, 90).unwrap_err().contains("keys and values for each head"));
        assert!(named("XFORMERS", now, 90).unwrap_err().contains("XFORMERS"));
        assert_eq!(named("XFORMERS", Version(0, 10, 0), 90).unwrap(), "FLASH_ATTN");
        // The variable is read no more.
        let by_env = |version| of(llama, "TRITON_ATTN_VLLM_V1", true, version, 90, "auto").unwrap().name;
        assert_eq!((by_env(Version(0, 11, 0)), by_env(now)), ("TRITON_ATTN", "FLASH_ATTN"));
        let latent = |name| of(deepseek, name, false, now, 90, "auto");
        assert_eq!(
            (latent("FLASHMLA").unwrap().preferred, latent("triton_mla").unwrap().preferred),
            (64, 16)
        );
        assert!(latent("FLASH_ATTN").unwrap_err().contains("latent attention"));
        assert!(latent("FLASHMLA_SPARSE").unwrap_err().contains("rows of 576"));
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
