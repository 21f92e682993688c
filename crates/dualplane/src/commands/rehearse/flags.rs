//! Flags of the engine that a rehearsal reads or replaces, and the time of a step.

use dualplane_plan::Launch;
use dualplane_plan::cli::{self, CommandLine};
use dualplane_rehearse::StepTime;
use dualplane_rehearse::planned::Asked;

use super::Failure;

/// Words of `--with`.
pub(super) fn split(text: &str) -> Result<Vec<String>, Failure> {
    let commands = dualplane_engines::command_line::split(&[format!("{text} ")], &[]);
    let words: Vec<String> = commands.into_iter().next().unwrap_or_default();
    match words.first() {
        Some(first) if first.starts_with('-') => Ok(words),
        _ => Err(Failure::Flag {
            flag: "--with",
            why: format!("`{text}` are no flags of the engine; use --with '--max-num-seqs 96'"),
        }),
    }
}

/// Copies the field of one flag from one launch to another.
type Copy = fn(&mut Launch, &Launch);

/// Flags that a rehearsal can replace: those that decide the pool, or how it is used.
const REPLACED: &[(&str, Copy)] = &[
    ("--max-num-seqs", |to, from| to.max_num_seqs = from.max_num_seqs),
    ("--max-num-batched-tokens", |to, from| to.max_num_batched_tokens = from.max_num_batched_tokens),
    ("--max-model-len", |to, from| to.max_model_len = from.max_model_len),
    ("--gpu-memory-utilization", |to, from| to.gpu_memory_utilization = from.gpu_memory_utilization),
    ("--kv-cache-memory-bytes", |to, from| to.kv_cache_memory_bytes = from.kv_cache_memory_bytes),
    ("--num-gpu-blocks-override", |to, from| to.num_gpu_blocks_override = from.num_gpu_blocks_override),
    ("--kv-cache-dtype", |to, from| to.kv_cache_dtype.clone_from(&from.kv_cache_dtype)),
    ("--block-size", |to, from| to.block_size = from.block_size),
    ("--enable-prefix-caching", |to, from| to.prefix_caching = from.prefix_caching),
    ("--enable-chunked-prefill", |to, from| to.chunked_prefill = from.chunked_prefill),
    ("--async-scheduling", |to, from| to.async_scheduling = from.async_scheduling),
    ("--tensor-parallel-size", |to, from| to.tp = from.tp),
    ("-tp", |to, from| to.tp = from.tp),
    ("--data-parallel-size", |to, from| to.dp = from.dp),
    ("-dp", |to, from| to.dp = from.dp),
    ("--enforce-eager", |to, from| to.enforce_eager = from.enforce_eager),
    ("--quantization", |to, from| to.quantization.clone_from(&from.quantization)),
    // Only the scheduler is asked these: `asked` reads them.
    ("--scheduling-policy", |_, _| {}),
    ("--watermark", |_, _| {}),
    ("--long-prefill-token-threshold", |_, _| {}),
];

/// The launch with these flags instead of its own.
pub(super) fn replace(line: &mut CommandLine, with: &[String]) -> Result<(), Failure> {
    let other = cli::alone(line.model.as_deref().or(Some("m")), with)?;
    for word in with.iter().filter(|w| w.starts_with('-')) {
        copy_of(word)?(&mut line.launch, &other.launch);
    }
    Ok(())
}

/// The launch without these flags: the engine's defaults count.
pub(super) fn take_out(line: &mut CommandLine, without: &[String]) -> Result<(), Failure> {
    let plain = CommandLine::of(line.launch.engine);
    for word in without {
        copy_of(word)?(&mut line.launch, &plain.launch);
    }
    Ok(())
}

/// Whether a rehearsal heeds this flag.
pub(super) fn is_replaced(word: &str) -> bool {
    copy_of(word).is_ok()
}

fn copy_of(word: &str) -> Result<Copy, Failure> {
    let name = name(word);
    if let Some((_, copy)) = REPLACED.iter().find(|(flag, _)| *flag == name) {
        return Ok(*copy);
    }
    let known: Vec<&str> = REPLACED.iter().map(|(f, _)| *f).collect();
    let why = format!("{word} cannot be replaced in a rehearsal; these can: {}", known.join(" "));
    Err(Failure::Flag { flag: "--with", why })
}

/// Underscores, dashes and `=value` make no difference; `--no-x` and `--x` are one flag.
fn name(word: &str) -> String {
    let bare = word.split('=').next().unwrap_or(word).replace('_', "-");
    bare.strip_prefix("--no-").map_or(bare.clone(), |rest| format!("--{rest}"))
}

/// What only the scheduler is asked.
pub(super) fn asked(command: &[String]) -> Result<Asked, Failure> {
    let value = |flag: &str| {
        command.iter().enumerate().rev().find(|(_, w)| w.starts_with("--") && name(w) == flag).and_then(
            |(i, w)| w.split_once('=').map(|(_, v)| v.to_owned()).or_else(|| command.get(i + 1).cloned()),
        )
    };
    let wrong = |flag: &'static str, v: &str| Failure::Flag { flag, why: format!("`{v}` is no number") };
    let long = match value("--long-prefill-token-threshold") {
        Some(v) => v.parse().map_err(|_| wrong("--long-prefill-token-threshold", &v))?,
        None => 0,
    };
    let watermark = match value("--watermark") {
        Some(v) => v.parse().map_err(|_| wrong("--watermark", &v))?,
        None => 0.0,
    };
    let by_priority = value("--scheduling-policy").is_some_and(|v| v == "priority");
    let context_shift = command.iter().any(|w| w == "--context-shift");
    Ok(Asked { by_priority, long_prefill_token_threshold: long, watermark, context_shift })
}

/// `base=0.012,token=0.00002,request=0.0001,context=0`.
pub(super) fn step_time(text: &str) -> Result<StepTime, Failure> {
    let wrong = |why: String| Failure::Flag {
        flag: "--step-time",
        why: format!(
            "{why}; use base=0.012,token=0.00002 in seconds, with request= and context= where they are known"
        ),
    };
    let mut t = StepTime { base: 0.0, token: 0.0, request: 0.0, context: 0.0 };
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong(format!("`{part}` has no `=`")))?;
        let n: f64 = value.trim().parse().map_err(|_| wrong(format!("`{value}` is no number")))?;
        match key.trim() {
            "base" => t.base = n,
            "token" => t.token = n,
            "request" => t.request = n,
            "context" => t.context = n,
            other => return Err(wrong(format!("`{other}` is none of base, token, request, context"))),
        }
    }
    if t.is_sound() { Ok(t) } else { Err(wrong("a step must take time".into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_replaced_and_the_others_stay() {
        let words = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut line =
            cli::parse(&words("vllm serve m --max_num_seqs 256 --enforce-eager --block-size=16"), &[], None)
                .unwrap();
        replace(&mut line, &split("--max-num-seqs 96 --no-enable-prefix-caching").unwrap()).unwrap();
        let l = &line.launch;
        assert_eq!((l.max_num_seqs, l.block_size, l.prefix_caching), (Some(96), Some(16), Some(false)));
        assert!(l.enforce_eager);
        assert!(replace(&mut line, &words("--swap-space 4")).is_err() && split("96").is_err());
        let found = asked(&words("vllm serve m --scheduling-policy priority --watermark=0.05")).unwrap();
        assert!(found.by_priority && (found.watermark - 0.05).abs() < 1e-12);
        assert!(asked(&words("vllm serve m --watermark much")).is_err());
    }

    #[test]
    fn the_time_of_a_step_is_read() {
        let t = step_time("base=0.01,token=2e-5").unwrap();
        assert_eq!((t.base, t.token, t.request), (0.01, 2e-5, 0.0));
        for wrong in ["", "base", "base=x", "base=0", "bass=1", "base=-1", "base=nan"] {
            assert!(step_time(wrong).is_err(), "{wrong}");
        }
    }
}
