//! Which engine, which version, which flags: from images, banners and command lines.

use std::collections::BTreeMap;

use super::Facts;
use crate::evidence::{Bundle, Container};

/// A flag as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Name with dashes, without leading dashes.
    pub name: String,
    /// Value; empty for a switch.
    pub value: String,
    /// Where it stands.
    pub file: String,
}

/// The engine of an incident.
#[derive(Debug, Clone, Default)]
pub struct Engine {
    /// `vllm`, `sglang`, `tgi`, `tensorrt_llm`, `triton`, `llama_cpp`, `ollama`, `ray`.
    pub name: Option<String>,
    /// Version, where printed.
    pub version: Option<String>,
    /// Flags from the container's arguments.
    pub flags: Vec<Flag>,
    /// Environment values that matter for memory.
    pub env: Vec<(String, String)>,
}

impl Engine {
    /// A flag by any of its names.
    #[must_use]
    pub fn flag(&self, names: &[&str]) -> Option<&str> {
        self.flags.iter().rev().find(|f| names.contains(&f.name.as_str())).map(|f| f.value.as_str())
    }

    /// A flag as a number.
    #[must_use]
    pub fn number(&self, names: &[&str]) -> Option<f64> {
        self.flag(names)?.parse().ok()
    }

    /// Whether this engine is the one.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Version as numbers for comparison, `0.11.2rc1` → `[0, 11, 2]`.
    #[must_use]
    pub fn version_at_least(&self, wanted: &[u64]) -> Option<bool> {
        let version = self.version.as_deref()?.trim_start_matches('v');
        let have: Vec<u64> = version
            .split('.')
            .map(|p| p.chars().take_while(char::is_ascii_digit).collect::<String>())
            .map_while(|p| p.parse().ok())
            .collect();
        (!have.is_empty()).then(|| have.as_slice() >= wanted)
    }
}

/// Words of images that name an engine, the more specific first.
const IMAGES: &[(&str, &str)] = &[
    ("sglang", "sglang"),
    ("text-generation-inference", "tgi"),
    ("tensorrt-llm", "tensorrt_llm"),
    ("tensorrt_llm", "tensorrt_llm"),
    ("vllm", "vllm"),
    ("tritonserver", "triton"),
    ("llama.cpp", "llama_cpp"),
    ("llama-cpp", "llama_cpp"),
    ("ollama", "ollama"),
    ("rayproject", "ray"),
];

const ENGINES: &[&str] = &["vllm", "sglang", "tgi", "tensorrt_llm", "triton", "llama_cpp", "ollama", "ray"];

pub(super) fn engine(bundle: &Bundle, facts: &Facts) -> Engine {
    let mut engine = Engine::default();
    let containers: Vec<(&str, &Container)> =
        bundle.pods.iter().flat_map(|p| p.containers.iter().map(|c| (p.file.as_str(), c))).collect();
    for (file, c) in &containers {
        engine.flags.extend(flags(&c.args, file));
        engine
            .env
            .extend(c.env.iter().filter(|(k, _)| k.contains("ALLOC_CONF") || k.contains("MEM")).cloned());
    }
    // Lines vote: an engine's own messages outnumber those of what it runs on.
    let mut votes: BTreeMap<&str, u64> = BTreeMap::new();
    for hit in &facts.hits {
        if let Some(e) =
            hit.engine.as_deref().and_then(|e| ENGINES.iter().find(|known| **known == canonical(e)))
        {
            *votes.entry(e).or_default() += hit.count.min(20);
        }
    }
    // Ray and Triton host other engines: they count only where no engine proper speaks.
    let proper = votes.iter().filter(|(e, _)| !matches!(**e, "ray" | "triton")).max_by_key(|(_, n)| **n);
    engine.name = proper.or_else(|| votes.iter().max_by_key(|(_, n)| **n)).map(|(e, _)| (*e).to_owned());
    let own = facts.hits.iter().filter(|h| h.engine.as_deref().map(canonical) == engine.name);
    engine.version = own
        .filter_map(|h| h.word("version"))
        .find(|v| v.trim_start_matches(['v', 'b']).starts_with(|c: char| c.is_ascii_digit()));
    for (_, c) in &containers {
        let by_image = IMAGES.iter().find(|(word, _)| c.image.contains(word));
        let by_args =
            ENGINES.iter().find(|e| c.args.iter().any(|a| a == *e || a.starts_with(&format!("{e}."))));
        if let Some(name) = by_image.map(|(_, n)| *n).or(by_args.copied()) {
            engine.name.get_or_insert_with(|| name.to_owned());
            if engine.version.is_none()
                && engine.name.as_deref() == Some(name)
                && !c.image.contains("lmcache")
            {
                engine.version = tag_version(&c.image);
            }
        }
    }
    engine
}

fn canonical(engine: &str) -> String {
    match engine {
        "llama.cpp" | "llamacpp" => "llama_cpp".into(),
        "tensorrt-llm" | "trtllm" => "tensorrt_llm".into(),
        e => e.replace('-', "_"),
    }
}

/// `vllm/vllm-openai:v0.11.2` → `0.11.2`; tags like `latest` or `nightly` tell nothing.
fn tag_version(image: &str) -> Option<String> {
    let tag = image.rsplit_once('/').map_or(image, |(_, t)| t).split_once(':')?.1;
    let version = tag.trim_start_matches('v').split(['-', '_', '+']).next()?;
    (version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.')).then(|| version.to_owned())
}

/// `--a=b`, `--a b`, `-a b`, `--switch`; a shell line in one argument is split at blanks.
fn flags(args: &[String], file: &str) -> Vec<Flag> {
    let words: Vec<&str> = args
        .iter()
        .flat_map(|a| if a.contains(" --") { a.split_whitespace().collect() } else { vec![a.as_str()] })
        .collect();
    let mut out = Vec::new();
    let mut it = words.iter().peekable();
    while let Some(word) = it.next() {
        let Some(name) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|n| !n.is_empty())
        else {
            continue;
        };
        if name.parse::<f64>().is_ok() {
            continue;
        }
        let (name, value) = match name.split_once('=') {
            Some((n, v)) => (n, v.to_owned()),
            None => match it.peek().filter(|next| !next.starts_with('-') || next.parse::<f64>().is_ok()) {
                Some(next) => {
                    let value = (**next).to_owned();
                    it.next();
                    (name, value)
                }
                None => (name, String::new()),
            },
        };
        let value = value.trim_matches(['"', '\'']).to_owned();
        out.push(Flag { name: name.replace('_', "-"), value, file: file.to_owned() });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_all_spellings() {
        let args: Vec<String> = [
            "serve",
            "m",
            "--max_model_len=4096",
            "--tp",
            "2",
            "-c",
            "131072",
            "--enforce-eager",
            "--x",
            "-1",
        ]
        .map(str::to_owned)
        .into();
        let e = Engine { flags: flags(&args, "pod.json"), ..Engine::default() };
        assert_eq!(e.number(&["max-model-len"]), Some(4096.0));
        assert_eq!(e.flag(&["tensor-parallel-size", "tp"]), Some("2"));
        assert_eq!(e.flag(&["enforce-eager"]), Some(""));
        assert_eq!(e.flag(&["x"]), Some("-1"));
        let shell = flags(&["vllm serve m --max-num-seqs 16".to_owned()], "f");
        assert_eq!(shell[0].value, "16");
    }

    #[test]
    fn versions() {
        assert_eq!(tag_version("vllm/vllm-openai:v0.11.2").as_deref(), Some("0.11.2"));
        assert_eq!(tag_version("lmsysorg/sglang:v0.5.8-cu126").as_deref(), Some("0.5.8"));
        assert_eq!(tag_version("localhost:5000/vllm"), None);
        assert_eq!(tag_version("rocm/vllm-dev:nightly"), None);
        let e = Engine { version: Some("0.11.1rc7".into()), ..Engine::default() };
        assert_eq!(e.version_at_least(&[0, 11]), Some(true));
        assert_eq!(e.version_at_least(&[0, 20, 2]), Some(false));
    }
}
