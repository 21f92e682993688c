//! Engines' own command lines: which engine, which model, and what was asked of it.

mod container;
mod llama_cpp;
pub(crate) mod numbers;
mod others;
mod sglang;
mod vllm;
mod vllm_changes;
mod vllm_flags;

use super::engines::llama_cpp::{name_and_quant, names_gguf};
pub use super::launch::CommandLine;
use super::launch::PodAsk;
use super::outcome::PlanError;
use super::version::EngineKind;
use dualplane_base::Version;
use dualplane_base::near::{distance, near};
use dualplane_base::packed::Block;
use dualplane_engines::Engines;
pub(crate) use dualplane_engines::command_line as words;
use dualplane_engines::command_line::{assignment, split};
pub use numbers::human;

/// Reads a command line as words, or as one text that a shell would split.
///
/// `image` tells the engine where the words are arguments only; its tag may tell the version.
///
/// # Errors
/// [`PlanError::Unsupported`] where no engine is recognised, [`PlanError::Contradiction`] naming the flag whose value is
/// not what it takes.
pub fn parse(
    words: &[String],
    env: &[(String, String)],
    image: Option<&str>,
) -> Result<CommandLine, PlanError> {
    let commands = split(words, env);
    let found = commands.iter().find_map(|c| Some((c, engine_of(c)?)));
    let mut env = env.to_vec();
    let mut image = image;
    let mut pod = None;
    let (engine, args) = match found {
        Some((command, (engine, at))) => {
            env.extend(exported(&commands));
            env.extend(command.iter().take(at).filter_map(|w| assignment(w)));
            (engine, command.get(at..).unwrap_or_default())
        }
        None => match commands.iter().find_map(|c| container(c)) {
            Some(run) => {
                env.extend(run.env);
                image = Some(run.image);
                pod = Some(run.pod);
                (run.engine, run.args)
            }
            None => match image.and_then(engine_of_image) {
                Some(engine) => (engine, commands.last().map_or(&[][..], Vec::as_slice)),
                None => return Err(PlanError::unsupported(unrecognised(words))),
            },
        },
    };
    let mut line = match engine {
        EngineKind::Vllm => vllm::parse(args)?,
        EngineKind::LlamaCpp if ollama(&commands, image) => llama_cpp::ollama(args),
        EngineKind::LlamaCpp => llama_cpp::parse(args)?,
        other => others::parse(other, args)?,
    };
    if let Some(pod) = pod {
        line.host.pod = pod;
    }
    environment(&mut line, &env);
    if let Some(version) = image.and_then(Version::of_image) {
        line.launch.version = version;
        line.launch.version_known = true;
    }
    Ok(line)
}

/// The command of a model that is named alone, with the defaults of what serves it: llama.cpp for GGUF files, else vLLM.
///
/// # Errors
/// As [`parse`].
pub fn alone(model: Option<&str>, flags: &[String]) -> Result<CommandLine, PlanError> {
    let words = |start: &[&str]| -> Vec<String> {
        start.iter().map(|w| (*w).to_owned()).chain(flags.iter().cloned()).collect()
    };
    match model {
        Some(m) if names_gguf(m) => {
            let flag = if m.ends_with(".gguf") { "-m" } else { "-hf" };
            parse(&words(&["llama-server", flag, m]), &[], None)
        }
        // A tag of Ollama's library that says how it is quantised: `llama3.1:8b-instruct-q4_K_M`.
        Some(m) if flags.is_empty() && m.contains(':') && name_and_quant(m).1.is_some() => {
            parse(&words(&["ollama", "run", m]), &[], None)
        }
        _ if flags.is_empty() => Ok(CommandLine::of(EngineKind::Vllm)),
        _ => parse(&words(&["vllm", "serve"]), &[], None),
    }
}

/// `export A=b` and `A=b` in commands of their own, before the one that starts the engine.
fn exported(commands: &[Vec<String>]) -> Vec<(String, String)> {
    let all = commands.iter().filter(|c| {
        let names = c.iter().filter(|w| assignment(w).is_some()).count();
        let words =
            c.iter().filter(|w| !matches!(w.as_str(), "export" | "set" | "-a" | "-x" | "declare")).count();
        names > 0 && names == words
    });
    all.flatten().filter_map(|w| assignment(w)).collect()
}

/// Every flag of a release of SGLang, most of which change no memory that is followed here.
static OF_SGLANG: Block = include!(concat!(env!("OUT_DIR"), "/sglang_flags.rs"));

/// The flag of an engine that is nearest to one that it does not have, where a slip of a few letters explains it.
#[must_use]
pub fn nearest(engine: EngineKind, flag: &str) -> Option<String> {
    let name = words::plain(flag);
    let table = flags(engine);
    // A flag that the table lacks and the engine has is no slip.
    if engine == EngineKind::Sglang && OF_SGLANG.text().lines().any(|l| l.trim_start_matches('-') == name) {
        return None;
    }
    names(table)
        .filter(|n| n.len() > 3)
        .map(|n| (distance(n, &name), n))
        .min()
        .filter(|(far, n)| *far <= 2.max(n.len() / 4))
        .map(|(_, n)| n)
        .or_else(|| shortened(table, &name))
        .map(|n| format!("--{n}"))
}

/// Flags of an engine that share words with one that it does not have, at most three.
#[must_use]
pub fn alike(engine: EngineKind, flag: &str) -> Vec<String> {
    let name = words::plain(flag);
    // One letter is no word, and `max` is in every second flag.
    near(&name, flags(engine).iter().map(|(n, ..)| *n).filter(|n| n.len() > 3))
        .into_iter()
        .filter(|n| {
            let words = |t: &str| t.split('-').filter(|w| w.len() > 2).map(str::to_owned).collect::<Vec<_>>();
            let own = words(&name);
            words(n).iter().filter(|w| own.contains(w)).count() >= 2.min(own.len())
        })
        .map(|n| format!("--{n}"))
        .collect()
}

/// Whether some engine has this flag.
#[must_use]
pub fn is_engines(flag: &str) -> bool {
    let name = words::plain(flag);
    EngineKind::ALL.iter().any(|e| names(flags(*e)).any(|n| n == name))
}

fn flags(engine: EngineKind) -> &'static [words::Known] {
    match engine {
        EngineKind::Vllm => &vllm_flags::FLAGS,
        EngineKind::Sglang => sglang::FLAGS,
        EngineKind::Tgi => others::TGI,
        EngineKind::TensorrtLlm => others::TENSORRT_LLM,
        EngineKind::LlamaCpp => llama_cpp::FLAGS,
    }
}

fn names(table: &'static [words::Known]) -> impl Iterator<Item = &'static str> {
    table.iter().flat_map(|(n, others, _)| std::iter::once(*n).chain(others.iter().copied()))
}

/// The only flag whose words begin with those that were typed: `gpu-mem-util` is `gpu-memory-utilization`.
fn shortened(table: &[words::Known], name: &str) -> Option<&'static str> {
    let begins = |full: &str| {
        let (full, typed) = (full.split('-'), name.split('-'));
        full.clone().count() == typed.clone().count()
            && full.zip(typed).all(|(f, t)| t.len() > 1 && f.starts_with(t))
    };
    let mut found = table.iter().map(|(n, ..)| *n).filter(|n| begins(n));
    found.next().filter(|_| found.next().is_none())
}

/// Whether the table of an engine's flags holds all of them, so that another one is an error.
#[must_use]
pub fn knows_all_flags(engine: EngineKind) -> bool {
    engine == EngineKind::Vllm
}

/// Whether Ollama is what starts llama.cpp.
fn ollama(commands: &[Vec<String>], image: Option<&str>) -> bool {
    image.is_some_and(|i| i.contains("ollama"))
        || commands.iter().flatten().any(|w| w.rsplit('/').next() == Some("ollama"))
}

/// An engine's image that a container tool runs.
struct Run<'a> {
    engine: EngineKind,
    image: &'a str,
    args: &'a [String],
    env: Vec<(String, String)>,
    /// What the tool gives the container of memory and GPUs.
    pod: PodAsk,
}

/// `docker run -e A=b vllm/vllm-openai:v0.11.0 --model M`.
fn container(command: &[String]) -> Option<Run<'_>> {
    let tools = ["docker", "podman", "nerdctl"];
    if !command.iter().any(|w| tools.contains(&w.as_str())) || !command.iter().any(|w| w == "run") {
        return None;
    }
    let (at, engine) = command.iter().enumerate().find_map(|(i, w)| {
        // An image has a path; options and mounted folders (`-v ~/vllm:/x`) stand behind a dash.
        let image = w.contains('/') && !w.starts_with(['-', '/', '.', '~']) && !w.contains(":/");
        Some((i, image.then(|| engine_of_image(w)).flatten()?))
    })?;
    Some(Run {
        engine,
        image: command.get(at)?,
        args: command.get(at + 1..).unwrap_or_default(),
        env: command.iter().take(at).filter_map(|w| assignment(w)).collect(),
        pod: container::limits(command.get(..at).unwrap_or_default()),
    })
}

fn unrecognised(words: &[String]) -> String {
    let shown: String = words.join(" ").chars().take(60).collect();
    if words.first().is_some_and(|w| w.starts_with('-')) {
        return format!(
            "`{shown}` names neither a model nor an engine: give MODEL before `--`, or the engine's whole command behind it"
        );
    }
    format!(
        "the command `{shown}` does not start a supported engine (vllm serve MODEL, python -m \
        vllm.entrypoints.openai.api_server, sglang, text-generation-launcher, trtllm-serve, llama-server)"
    )
}

/// The engine and where its arguments begin.
fn engine_of(command: &[String]) -> Option<(EngineKind, usize)> {
    let (head, at) = Engines::embedded().by_command(command)?;
    Some((EngineKind::named(head.plan.as_deref()?)?, at))
}

/// The engine that an image carries, where its arithmetic is known.
#[must_use]
pub fn engine_of_image(image: &str) -> Option<EngineKind> {
    EngineKind::named(Engines::embedded().by_image(image)?.engine.plan.as_deref()?)
}

/// Environment values that change memory.
fn environment(line: &mut CommandLine, env: &[(String, String)]) {
    let on = |v: &str| !matches!(v.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    for (key, value) in env {
        if llama_cpp::environment(line, key, value) {
            continue;
        }
        match key.as_str() {
            "VLLM_ATTENTION_BACKEND" => {
                line.launch.attention_backend_by_env = Some(value.trim().to_owned());
            }
            // Only the CPU back end reads it; there it is the pool, whatever the flag says.
            "VLLM_CPU_KVCACHE_SPACE" => {
                line.launch.cpu_kv_cache_bytes = value.trim().parse::<f64>().ok().and_then(gib_of);
            }
            "VLLM_USE_V2_MODEL_RUNNER" => line.launch.v2_runner = Some(on(value)),
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN" => line.launch.allow_long_max_model_len = on(value),
            "SGLANG_MAMBA_SSM_DTYPE" => line.launch.mamba_ssm_cache_dtype = Some(value.trim().to_owned()),
            "VLLM_MQ_MAX_CHUNK_BYTES_MB" => line.host.queue_chunk_mib = numbers::human(value),
            "LMCACHE_MAX_LOCAL_CPU_SIZE" => {
                line.host.lmcache_bytes = value.trim().parse::<f64>().ok().and_then(gib_of);
            }
            "RUNAI_STREAMER_MEMORY_LIMIT" => line.host.streamer_bytes = numbers::human(value),
            // Read by the shard at its start (server/text_generation_server/models/globals.py).
            "TGI_WIGGLE_ROOM" => {
                let share = value.trim().parse::<f64>().ok().filter(|s| *s > 0.0 && *s < 1.0);
                line.tgi.room = share.map(|s| (s * 1000.0) as u64);
            }
            // What the process sees of the machine's GPUs: indices or UUIDs.
            "CUDA_VISIBLE_DEVICES" | "HIP_VISIBLE_DEVICES" | "NVIDIA_VISIBLE_DEVICES" => {
                let seen = value.split(',').filter(|v| container::device(v)).count();
                if seen > 0 && line.host.pod.gpus.is_none() {
                    line.host.pod.gpus = u64::try_from(seen).ok();
                }
            }
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN" => line.launch.allow_long_max_model_len = on(value),
            "VLLM_USE_V1" if !on(value) => line.not_followed.push(format!("{key}={value}")),
            "VLLM_PP_LAYER_PARTITION"
            | "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
            | "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING"
            | "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE" => {
                line.not_followed.push(format!("{key}={value}"));
            }
            _ => {}
        }
    }
}

fn gib_of(gib: f64) -> Option<u64> {
    (gib.is_finite() && (0.0..1e6).contains(&gib)).then_some((gib * dualplane_base::units::GIB as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CommandLine {
        parse(&[text.to_owned()], &[], None).unwrap()
    }

    #[test]
    fn engines_by_their_commands() {
        for (text, engine, model) in [
            ("vllm serve a/b --tp 2", EngineKind::Vllm, "a/b"),
            ("python3 -m vllm.entrypoints.openai.api_server --model a/b", EngineKind::Vllm, "a/b"),
            ("cd /x && exec /usr/bin/vllm serve --enforce-eager a/b", EngineKind::Vllm, "a/b"),
            ("python -m sglang.launch_server --model-path a/b --tp 4", EngineKind::Sglang, "a/b"),
            ("text-generation-launcher --model-id a/b --num-shard 2", EngineKind::Tgi, "a/b"),
            ("trtllm-serve a/b --tp_size 2", EngineKind::TensorrtLlm, "a/b"),
            ("llama-server -m /m.gguf -c 8192", EngineKind::LlamaCpp, "/m.gguf"),
        ] {
            let l = line(text);
            assert_eq!((l.launch.engine, l.model.as_deref()), (engine, Some(model)), "{text}");
        }
        assert!(parse(&["sleep".into(), "1".into()], &[], None).is_err());
    }

    #[test]
    fn containers_and_variables_before_the_command() {
        let l = line(
            "docker run --gpus all -v ~/.cache/vllm:/root/x -e VLLM_ATTENTION_BACKEND=FLASHINFER -p 8000:8000 vllm/vllm-openai:v0.11.2 --model a/b -tp 2",
        );
        assert_eq!((l.launch.tp, l.model.as_deref(), l.launch.version), (2, Some("a/b"), Version(0, 11, 2)));
        assert_eq!(l.launch.attention_backend_by_env.as_deref(), Some("FLASHINFER"));
        for text in [
            "VLLM_USE_V2_MODEL_RUNNER=0 vllm serve a/b",
            "env VLLM_USE_V2_MODEL_RUNNER=0 vllm serve a/b",
            "export VLLM_USE_V2_MODEL_RUNNER=0 && exec vllm serve a/b",
            "export HF_HOME=/x VLLM_USE_V2_MODEL_RUNNER=0; cd /x; vllm serve a/b",
        ] {
            assert_eq!(line(text).launch.v2_runner, Some(false), "{text}");
        }
        assert!(line("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve a/b").launch.allow_long_max_model_len);
        assert_eq!(nearest(EngineKind::Vllm, "--max-modle-len").as_deref(), Some("--max-model-len"));
        assert_eq!(
            nearest(EngineKind::Vllm, "--gpu_memory_utilisation").as_deref(),
            Some("--gpu-memory-utilization")
        );
        assert_eq!(nearest(EngineKind::Vllm, "--quux"), None);
    }

    #[test]
    fn arguments_of_an_image_and_its_version() {
        let words: Vec<String> = ["--model=$(M)", "--max-model-len", "32k"].map(str::to_owned).into();
        let env = [
            ("M".to_owned(), "a/b".to_owned()),
            ("VLLM_ATTENTION_BACKEND".to_owned(), "FLASHINFER".to_owned()),
        ];
        let l = parse(&words, &env, Some("vllm/vllm-openai:v0.11.2-cu129")).unwrap();
        assert_eq!(l.model.as_deref(), Some("a/b"));
        assert_eq!((l.launch.version, l.launch.version_known), (Version(0, 11, 2), true));
        assert_eq!(l.launch.max_model_len, crate::MaxModelLen::Tokens(32_000));
        assert_eq!(l.launch.attention_backend_by_env.as_deref(), Some("FLASHINFER"));
    }

    #[test]
    fn what_a_container_tool_gives_is_the_pod() {
        let l = line("docker run --gpus 2 -m 8g --shm-size 1g vllm/vllm-openai:v0.11.0 --model a/b -tp 2");
        let pod = &l.host.pod;
        assert_eq!((pod.limit.map(|b| b.0), pod.gpus), (Some(8 << 30), Some(2)));
        assert_eq!(pod.shm, Some(Some(dualplane_base::units::Bytes(1 << 30))));
        assert_eq!(line("CUDA_VISIBLE_DEVICES=0,3 vllm serve a/b").host.pod.gpus, Some(2));
        assert_eq!(line("CUDA_VISIBLE_DEVICES= vllm serve a/b").host.pod.gpus, None);
    }

    #[test]
    fn slips_have_a_nearest_flag() {
        let near = |flag| nearest(EngineKind::Vllm, flag);
        assert_eq!(near("--gpu-mem-util").as_deref(), Some("--gpu-memory-utilization"));
        assert_eq!(near("--max-modle-len").as_deref(), Some("--max-model-len"));
        assert_eq!(near("--something-else"), None);
        assert_eq!(near("--max-num-sequences"), None);
        assert_eq!(
            alike(EngineKind::Vllm, "--max-num-sequences").first().map(String::as_str),
            Some("--max-num-seqs")
        );
        assert!(alike(EngineKind::Vllm, "--quux").is_empty());
        // Near to `--enable-hicache`, and a flag of its own.
        assert_eq!(nearest(EngineKind::Sglang, "--enable-lmcache"), None);
        assert_eq!(nearest(EngineKind::Sglang, "--enable-hicahe").as_deref(), Some("--enable-hicache"));
    }
}
