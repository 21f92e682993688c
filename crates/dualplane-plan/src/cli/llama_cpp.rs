//! Command lines of llama-server, and of Ollama, which starts it.

use super::numbers::{count, human, real, wrong};
use super::words::{self, Given, Known, Take::Switch, Take::Value};
use super::{CommandLine, EngineKind};
use crate::engines::llama_cpp::name_and_quant;
use crate::launch::MaxModelLen;
use crate::launch::Split;
use crate::outcome::PlanError;

/// Source: llama.cpp common/arg.cpp.
pub(super) const FLAGS: &[Known] = &[
    ("model", &["m"], Value),
    ("hf-repo", &["hf", "hfr"], Value),
    ("hf-file", &["hff"], Value),
    ("ctx-size", &["c"], Value),
    ("parallel", &["np"], Value),
    ("n-gpu-layers", &["ngl", "gpu-layers"], Value),
    ("split-mode", &["sm"], Value),
    ("tensor-split", &["ts"], Value),
    ("main-gpu", &["mg"], Value),
    ("ubatch-size", &["ub"], Value),
    ("batch-size", &["b"], Value),
    ("cache-type-k", &["ctk"], Value),
    ("cache-type-v", &["ctv"], Value),
    ("cache-ram", &["cram"], Value),
    ("mlock", &[], Switch),
    ("mmap", &[], Switch),
    ("load-mode", &["lm"], Value),
    ("swa-full", &[], Switch),
    ("flash-attn", &["fa"], Value),
    ("kv-unified", &["kvu"], Switch),
    ("no-kv-unified", &["no-kvu"], Switch),
    ("kv-offload", &["kvo"], Switch),
    ("no-kv-offload", &["nkvo"], Switch),
    ("fit", &[], Value),
    ("fit-target", &["fitt"], Value),
    ("fit-ctx", &["fitc"], Value),
    ("cpu-moe", &["cmoe"], Switch),
    ("n-cpu-moe", &["ncmoe"], Value),
    ("override-tensor", &["ot"], Value),
    ("model-draft", &["md"], Value),
    ("mmproj", &["mm"], Value),
    ("lora", &[], Value),
    ("host", &[], Value),
    ("port", &[], Value),
    ("threads", &["t"], Value),
    ("threads-batch", &["tb"], Value),
    ("jinja", &[], Switch),
    ("metrics", &[], Switch),
    ("cont-batching", &["cb"], Switch),
    ("alias", &["a"], Value),
    ("api-key", &[], Value),
    ("chat-template", &[], Value),
    ("temp", &[], Value),
    ("top-p", &[], Value),
    ("top-k", &[], Value),
    ("n-predict", &["n", "predict"], Value),
];

pub(super) fn parse(args: &[String]) -> Result<CommandLine, PlanError> {
    let words = words::flags(args, FLAGS);
    let mut line = CommandLine::of(EngineKind::LlamaCpp);
    line.model = words.loose.into_iter().next();
    for given in &words.flags {
        if given.known {
            flag(given, &mut line)?;
        } else {
            line.unknown_flags.push(given.flag());
        }
    }
    quantisation(&mut line);
    if words.flags.iter().any(|g| g.name == "hf-repo") {
        usual(&mut line);
    }
    Ok(line)
}

/// `ollama serve`, `ollama run MODEL`: what it starts is told by its environment.
pub(super) fn ollama(args: &[String]) -> CommandLine {
    let mut line = CommandLine::of(EngineKind::LlamaCpp);
    line.llama_cpp.ollama = true;
    line.launch.max_num_seqs = Some(1);
    line.model = args.iter().find(|w| !w.starts_with('-')).cloned();
    quantisation(&mut line);
    usual(&mut line);
    line
}

/// What a repository or a library gives where no quantisation is named: llama.cpp's `-hf` and Ollama take `Q4_K_M`;
/// gpt-oss is published in MXFP4 only.
fn usual(line: &mut CommandLine) {
    if line.launch.quantization.is_some() {
        return;
    }
    let own = line.model.as_deref().is_some_and(|m| m.to_ascii_lowercase().contains("gpt-oss"));
    line.launch.quantization = Some(if own { "MXFP4" } else { "Q4_K_M" }.to_owned());
    line.llama_cpp.usual_quantization = true;
}

/// The quantisation stands in the name of the file or behind the repository.
fn quantisation(line: &mut CommandLine) {
    if let Some(quant) = line.model.as_deref().and_then(|m| name_and_quant(m).1) {
        line.launch.quantization.get_or_insert(quant);
    }
}

fn switch(given: &Given) -> Result<Option<bool>, PlanError> {
    match given.value().to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "enabled" | "" => Ok(Some(true)),
        "off" | "0" | "false" | "disabled" => Ok(Some(false)),
        "auto" | "-1" => Ok(None),
        _ => Err(wrong(given, "must be on, off or auto")),
    }
}

fn flag(given: &Given, line: &mut CommandLine) -> Result<(), PlanError> {
    let automatic = given.value().trim().starts_with('-') || given.value() == "auto";
    let (l, a, h) = (&mut line.launch, &mut line.llama_cpp, &mut line.host);
    match given.name.as_str() {
        "model" | "hf-repo" => line.model = Some(given.value().to_owned()),
        "hf-file" => l.quantization = name_and_quant(given.value()).1,
        // 0 is the model's own.
        "ctx-size" => {
            l.max_model_len = match count(given)? {
                0 => MaxModelLen::Model,
                n => MaxModelLen::Tokens(n),
            }
        }
        "parallel" => l.max_num_seqs = if automatic { None } else { Some(count(given)?.clamp(1, 4096)) },
        "n-gpu-layers" => {
            a.gpu_layers = match given.value() {
                "all" => Some(u64::MAX >> 1),
                _ if automatic => None,
                _ => Some(count(given)?),
            }
        }
        "split-mode" => {
            a.split = match given.value() {
                "none" => Split::None,
                "layer" => Split::Layer,
                "row" => Split::Row,
                "tensor" => Split::Tensor,
                _ => return Err(wrong(given, "must be none, layer, row or tensor")),
            }
        }
        "tensor-split" => {
            let parts = given.value().split([',', '/', ':']).take(64);
            a.tensor_split = parts
                .map(|p| p.trim().parse::<f64>().ok().filter(|s| s.is_finite() && (0.0..=1e9).contains(s)))
                .collect::<Option<_>>()
                .ok_or_else(|| wrong(given, "is not a list of shares such as 3,1"))?;
            l.pp = (a.tensor_split.len() as u64).max(1);
        }
        "ubatch-size" => a.ubatch = Some(count(given)?),
        "batch-size" => a.batch = Some(count(given)?),
        "cache-type-k" => a.cache_type_k = Some(given.value().to_owned()),
        "cache-type-v" => a.cache_type_v = Some(given.value().to_owned()),
        "swa-full" => a.swa_full = given.on,
        "flash-attn" => a.flash_attention = switch(given)?,
        "kv-unified" => a.unified = Some(given.on),
        "no-kv-unified" => a.unified = Some(!given.on),
        "kv-offload" => a.kv_in_ram = !given.on,
        "no-kv-offload" => a.kv_in_ram = given.on,
        "fit" => a.no_fit = switch(given)? == Some(false),
        "fit-target" => a.fit_target = Some((real(given)?.min(1e9) as u64) << 20),
        "fit-ctx" => a.fit_context = Some(count(given)?),
        "cpu-moe" if given.on => a.experts_in_ram = u64::MAX,
        "n-cpu-moe" => a.experts_in_ram = count(given)?,
        // MiB; -1 is without a limit, 0 none.
        "cache-ram" if automatic => {
            line.not_followed.push("--cache-ram -1: the prompt cache has no limit".into());
        }
        "cache-ram" => {
            let mib = human(given.value()).filter(|n| *n < 1 << 40);
            h.prompt_cache_bytes = Some(mib.ok_or_else(|| wrong(given, "is not an integer"))? << 20);
        }
        "mlock" => h.locked = given.on,
        "mmap" => h.mapped = given.on,
        "load-mode" => {
            h.mapped = given.value().contains("mmap") || given.value() == "auto";
            h.locked = given.value().contains("mlock");
        }
        "override-tensor" | "model-draft" | "mmproj" | "lora" => {
            line.not_followed.push(format!("{} {}", given.flag(), given.value()));
        }
        _ => {}
    }
    Ok(())
}

/// Environment of llama-server (`LLAMA_ARG_*` as its flags) and of Ollama.
pub(super) fn environment(line: &mut CommandLine, key: &str, value: &str) -> bool {
    if line.launch.engine != EngineKind::LlamaCpp {
        return false;
    }
    let number = value.trim().parse::<u64>().ok().filter(|n| *n < 1 << 40);
    match (key, number) {
        ("LLAMA_ARG_CTX_SIZE", Some(n)) if line.launch.max_model_len == MaxModelLen::Model && n > 0 => {
            line.launch.max_model_len = MaxModelLen::Tokens(n);
        }
        ("LLAMA_ARG_N_PARALLEL", Some(n)) => {
            line.launch.max_num_seqs.get_or_insert(n.clamp(1, 4096));
        }
        ("LLAMA_ARG_N_GPU_LAYERS", Some(n)) => {
            line.llama_cpp.gpu_layers.get_or_insert(n);
        }
        ("LLAMA_ARG_MODEL" | "LLAMA_ARG_HF_REPO", _) if line.model.is_none() => {
            line.model = Some(value.to_owned());
            quantisation(line);
        }
        ("OLLAMA_CONTEXT_LENGTH", Some(n)) if n > 0 => line.launch.max_model_len = MaxModelLen::Tokens(n),
        ("OLLAMA_NUM_PARALLEL", Some(n)) if n > 0 => line.launch.max_num_seqs = Some(n.min(4096)),
        ("OLLAMA_KV_CACHE_TYPE", _) => {
            line.llama_cpp.cache_type_k = Some(value.to_owned());
            line.llama_cpp.cache_type_v = Some(value.to_owned());
        }
        ("OLLAMA_FLASH_ATTENTION", _) => {
            line.llama_cpp.flash_attention = Some(!matches!(value.trim(), "0" | "false" | ""));
        }
        ("OLLAMA_GPU_OVERHEAD" | "GGML_CUDA_ENABLE_UNIFIED_MEMORY", _) => {
            line.not_followed.push(format!("{key}={value}"));
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CommandLine {
        super::super::parse(&[text.to_owned()], &[], None).unwrap()
    }

    #[test]
    fn flags_of_llama_server() {
        let l = line(
            "llama-server -m /m/Qwen3-8B-Q4_K_M.gguf -c 0 -ngl 99 -ts 3,1 -ctk q8_0 -ctv q8_0 -fa on --no-mmap -cram 4096 -np 4 -nkvo",
        );
        let a = &l.llama_cpp;
        assert_eq!((a.gpu_layers, a.tensor_split.len(), l.launch.pp), (Some(99), 2, 2));
        assert_eq!(
            (a.cache_type_k.as_deref(), a.flash_attention, a.kv_in_ram),
            (Some("q8_0"), Some(true), true)
        );
        assert_eq!((l.host.mapped, l.host.prompt_cache_bytes), (false, Some(4 << 30)));
        assert_eq!((l.launch.max_model_len, l.launch.max_num_seqs), (MaxModelLen::Model, Some(4)));
        assert_eq!(l.launch.quantization.as_deref(), Some("Q4_K_M"));
        assert!(l.unknown_flags.is_empty());
        assert_eq!(
            line("llama-server -hf unsloth/Qwen3-8B-GGUF:UD-Q4_K_XL").launch.quantization.unwrap(),
            "UD-Q4_K_XL"
        );
        let bad: Vec<String> = ["llama-server", "-m", "x.gguf", "-ts", "a,b"].map(str::to_owned).into();
        assert!(super::super::parse(&bad, &[], None).unwrap_err().to_string().contains("--tensor-split"));
    }

    #[test]
    fn ollama_is_told_by_its_environment() {
        let l =
            line("OLLAMA_CONTEXT_LENGTH=8192 OLLAMA_NUM_PARALLEL=2 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve");
        assert_eq!((l.llama_cpp.ollama, l.launch.max_num_seqs), (true, Some(2)));
        assert_eq!(l.launch.max_model_len, MaxModelLen::Tokens(8192));
        assert_eq!(l.llama_cpp.cache_type_v.as_deref(), Some("q8_0"));
    }
}
