//! Models that are known without their files: the facts of `knowledge/models/`, looked up by id.

mod near;
mod sibling;
mod texts;

pub use near::{near, parameters};
pub use sibling::{Sibling, sibling};

use std::sync::LazyLock;

use dualplane_base::order::Order as _;

use texts::Place;

/// The facts of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// Hugging Face id.
    pub id: &'static str,
    /// Ids of models with the same configuration.
    pub aliases: Vec<&'static str>,
    /// Where the facts come from.
    pub source: &'static str,
    config: Place,
    hf_quant_config: Option<Place>,
}

impl CatalogueEntry {
    /// `config.json`, without what says nothing about memory.
    #[must_use]
    pub fn config(&self) -> &'static str {
        self.config.text()
    }

    /// `hf_quant_config.json`.
    #[must_use]
    pub fn hf_quant_config(&self) -> Option<&'static str> {
        self.hf_quant_config.map(Place::text)
    }
}

/// All models, in the order of their files. The texts are parsed only when one is asked for.
pub static CATALOGUE: LazyLock<Vec<CatalogueEntry>> = LazyLock::new(texts::entries);

/// Names of Ollama's library that are not the model's own.
const TYPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/typed.rs"));

/// Words that publishers put behind the name of one and the same configuration.
const ENDINGS: [&str; 8] = ["instruct", "chat", "it", "hf", "base", "pt", "latest", "fp16"];

/// Small letters, and no separators but between digits: `Qwen/Qwen3-8B` and `qwen/qwen3_8b` meet, `opt-1.3b` and `opt-13b` do
/// not.
fn normal(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    let mut apart = false;
    for c in id.chars() {
        if !(c.is_alphanumeric() || c == '/') {
            apart = true;
            continue;
        }
        if apart && c.is_ascii_digit() && out.ends_with(|p: char| p.is_ascii_digit()) {
            out.push('.');
        }
        out.push(c.to_ascii_lowercase());
        apart = false;
    }
    out
}

/// Without those between digits as well, as `llama31-8b`: for a name that is none as it stands.
fn run_together(normal: &str) -> String {
    normal.replace('.', "")
}

/// The name alone, without organisation.
fn name_of(normal: &str) -> &str {
    normal.rsplit('/').next().unwrap_or(normal)
}

/// A name without what is added for tuning, and without the maker's word that some spellings have.
fn bare(name: &str) -> &str {
    let mut name = name.strip_prefix("meta").unwrap_or(name);
    while let Some(shorter) = ENDINGS.iter().find_map(|e| name.strip_suffix(e)) {
        name = shorter;
    }
    name
}

fn ids(e: &CatalogueEntry) -> impl Iterator<Item = &'static str> + use<'_> {
    std::iter::once(e.id).chain(e.aliases.iter().copied())
}

/// Every id of the catalogue that holds `pattern`, with its entry, in order.
#[must_use]
pub fn list(pattern: &str) -> Vec<(&'static str, &'static CatalogueEntry)> {
    let want = normal(pattern);
    let mut out: Vec<_> = CATALOGUE
        .iter()
        .flat_map(|e| ids(e).map(move |i| (i, e)))
        .filter(|(i, _)| normal(i).contains(&want))
        .collect();
    out.order_by_key(|(i, _)| i.to_ascii_lowercase());
    out
}

/// The model that an id means: forgiving about case and separators; the organisation may be left out or be another's
/// copy, where the name alone is unique. `llama3.1:8b` is the name of Ollama's library.
#[must_use]
pub fn find(id: &str) -> Option<&'static CatalogueEntry> {
    let id = id.trim().trim_end_matches('/');
    // File names of configurations write `--` for the slash of an id.
    let want = normal(&id.replacen("--", "/", 1));
    let name = name_of(&want).to_owned();
    if name.is_empty() {
        return None;
    }
    if let Some(e) = CATALOGUE.iter().find(|e| ids(e).any(|i| normal(i) == want)) {
        return Some(e);
    }
    // A tag may say the quantisation of a GGUF, which is no other model: `llama3.1:8b-instruct-q4_K_M`.
    let typed = id.to_ascii_lowercase();
    let typed = typed.strip_suffix(":latest").unwrap_or(&typed);
    let tag = typed.split_once(':').map(|(family, tag)| {
        let size = tag.split('-').next().unwrap_or(tag);
        format!("{family}:{size}")
    });
    let library = |n: &str| TYPED.iter().find(|(t, _)| *t == n).and_then(|(_, id)| find(id));
    if let Some(e) = library(typed).or_else(|| library(tag.as_deref()?)) {
        return Some(e);
    }
    one(|n| n == name)
        .or_else(|| one(|n| bare(n) == bare(&name)))
        .or_else(|| tag.map(|t| normal(&t)).and_then(|t| one(|n| bare(n) == bare(&t))))
        .or_else(|| of_maker(|n| n == name))
        .or_else(|| of_maker(|n| bare(n) == bare(&name)))
        .or_else(|| library_of(&name))
        .or_else(|| begun(id))
        .or_else(|| of_maker(|n| run_together(bare(n)) == run_together(bare(&name))))
}

/// Whether an id names a copy of a quantised entry by another publisher, whose files may leave other layers as they were.
#[must_use]
pub fn is_copy(id: &str, entry: &CatalogueEntry) -> bool {
    let org = |i: &str| i.split_once('/').map(|(org, _)| org.to_ascii_lowercase());
    let quantised = entry.hf_quant_config.is_some() || entry.config().contains("quantization_config");
    let Some(asked) = org(&id.replacen("--", "/", 1)) else { return false };
    quantised && ids(entry).all(|i| org(i).as_ref() != Some(&asked))
}

/// The model and scheme that a name says: of one that the catalogue has no entry for, and of a copy whose entry would say more
/// than that. Which scheme each module has is its publisher's own choice, and says nothing of another's files.
#[must_use]
pub fn as_named(id: &str, entry: Option<&CatalogueEntry>) -> Option<Sibling> {
    let more = entry.is_none_or(|entry| {
        let texts = [Some(entry.config()), entry.hf_quant_config()];
        texts.into_iter().flatten().any(|text| text.contains("\"quantized_layers\"")) && is_copy(id, entry)
    });
    if more { sibling(id) } else { None }
}

/// Publishers of copies of others' models: what they changed is the quantisation, a template or a tokenizer.
const COPIERS: [&str; 9] = [
    "casperhansen",
    "hugging-quants",
    "intel",
    "nousresearch",
    "nvidia",
    "redhatai",
    "thebloke",
    "trelis",
    "unsloth",
];

/// The only model with such a name among those that their makers published.
fn of_maker(right: impl Fn(&str) -> bool) -> Option<&'static CatalogueEntry> {
    let copied = |i: &str| {
        i.split_once('/').is_some_and(|(org, _)| COPIERS.contains(&org.to_ascii_lowercase().as_str()))
    };
    let mut found = CATALOGUE.iter().filter(|e| ids(e).any(|i| !copied(i) && right(name_of(&normal(i)))));
    let first = found.next()?;
    found.all(|e| shape(e.config()) == shape(first.config())).then_some(first)
}

/// A configuration without what no memory depends on.
fn shape(config: &str) -> Option<serde_json::Value> {
    let mut all: serde_json::Value = serde_json::from_str(config).ok()?;
    for key in ["rope_theta", "model_type"] {
        all.as_object_mut()?.remove(key);
    }
    Some(all)
}

/// `mistral-7b` is the library's `mistral:7b`.
fn library_of(name: &str) -> Option<&'static CatalogueEntry> {
    TYPED.iter().find(|(t, _)| t.contains(':') && normal(t) == name).and_then(|(_, id)| find(id))
}

/// A name that was broken off at a dash, where it fits the names of one model only: `qwen3-next-80b`. What is quantised
/// says so.
fn begun(id: &str) -> Option<&'static CatalogueEntry> {
    let typed = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase().replace(['_', ' '], "-");
    if typed.len() < 5 || !typed.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let begins = |i: &str| {
        let name = i.rsplit('/').next().unwrap_or(i).to_ascii_lowercase();
        let name = name.strip_prefix("meta-").unwrap_or(&name);
        name.strip_prefix(&typed).is_some_and(|rest| rest.starts_with('-'))
    };
    let plain = |e: &&CatalogueEntry| {
        e.hf_quant_config.is_none()
            && (!e.config().contains("quantization_config") || e.id.contains("gpt-oss"))
    };
    let mut found = CATALOGUE.iter().filter(|e| ids(e).any(begins)).filter(plain);
    let first = found.next()?;
    found.all(|e| shape(e.config()) == shape(first.config())).then_some(first)
}

/// The id that a hub knows, of a name as people type it.
#[must_use]
pub fn id_of(name: &str) -> Option<&'static str> {
    let want = normal(name);
    let own = CATALOGUE.iter().flat_map(ids).find(|i| normal(i) == want);
    let short = || CATALOGUE.iter().flat_map(ids).find(|i| name_of(&normal(i)) == want);
    let typed = || TYPED.iter().find(|(t, _)| t.eq_ignore_ascii_case(name)).map(|(_, id)| *id);
    own.or_else(typed).or_else(short).or_else(|| find(name).map(|e| e.id))
}

/// The only entry with a name that is `right`; several are one where they say the same.
fn one(right: impl Fn(&str) -> bool) -> Option<&'static CatalogueEntry> {
    let mut same = CATALOGUE.iter().filter(|e| ids(e).any(|i| right(name_of(&normal(i)))));
    let first = same.next()?;
    same.all(|e| e.config() == first.config() && e.hf_quant_config() == first.hf_quant_config())
        .then_some(first)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::{Model, ModelFiles};

    #[test]
    fn every_entry_is_a_model_with_a_source() {
        let mut ids = BTreeSet::new();
        let mut bad = Vec::new();
        for e in CATALOGUE.iter() {
            let files = ModelFiles {
                config: e.config(),
                hf_quant_config: e.hf_quant_config(),
                ..ModelFiles::default()
            };
            let model = Model::read(&files);
            if let Err(why) = model {
                bad.push(format!("{}: {why}", e.id));
            }
            assert!(e.source.len() > 10, "{}", e.id);
            for id in std::iter::once(&e.id).chain(&e.aliases) {
                assert!(ids.insert(normal(id)), "{id} stands twice");
                assert_eq!(find(id).map(|f| f.id), Some(e.id));
            }
        }
        assert!(bad.is_empty(), "{bad:#?}");
        assert!(CATALOGUE.len() >= 300, "only {}", CATALOGUE.len());
        assert!(list("").len() >= 400 && list("").is_sorted_by_key(|(i, _)| i.to_ascii_lowercase()));
        for (_, id) in TYPED {
            assert!(find(id).is_some(), "{id}");
        }
    }

    /// Billions of parameters that a name says: `Qwen3-30B-A3B` has 30.
    fn said(name: &str) -> Option<f64> {
        // Names that round far, or count what is active: what their publishers count.
        let published = [
            ("llama4maverick", 400.0),
            ("llama4scout", 109.0),
            ("falcon3.1b", 1.67),
            ("gemma2.2b", 2.61),
            ("olmoe1b7b", 6.92),
            ("granite3.0.1ba400m", 1.33),
            // Towers of 1.3 beside the text's 3.1.
            ("qwen2.5omni3b", 4.4),
        ];
        let own = normal(name);
        if let Some((_, n)) = published.iter().find(|(p, _)| name_of(&own).starts_with(p)) {
            return Some(*n);
        }
        name.split(['-', '_', '/']).find_map(|w| {
            let digits = w.strip_suffix(['b', 'B'])?;
            digits.parse::<f64>().ok().filter(|n| *n > 0.0)
        })
    }

    #[test]
    fn sixteen_bit_entries_weigh_what_their_names_say() {
        let gpu = crate::Gpu {
            name: String::new(),
            device_name: String::new(),
            total_bytes: 1 << 43,
            capability: (9, 0),
            host_use: None,
        };
        let mut seen = 0;
        let mut wrong = Vec::new();
        for e in CATALOGUE
            .iter()
            .filter(|e| e.hf_quant_config.is_none() && !e.config().contains("quantization_config"))
        {
            let Some(said) = said(e.id) else { continue };
            let model = Model::read(&ModelFiles { config: e.config(), ..ModelFiles::default() }).unwrap();
            let launch = crate::Launch { dtype: "bfloat16".into(), ..crate::Launch::default() };
            let Ok(plan) = crate::plan(&model, &launch, &gpu) else { continue };
            seen += 1;
            let have = plan.gpu.weights_bytes.expected as f64 / 2e9;
            // Names are round: Gemma counts without its embedding, Qwen3-VL without its encoder.
            if !(0.88..=1.3).contains(&(have / said)) {
                wrong.push(format!("{}: {have:.2}", e.id));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(seen >= 120, "only {seen}");
    }

    #[test]
    fn ids_are_forgiving() {
        assert_eq!(find("qwen3-8b").map(|e| e.id), Some("Qwen/Qwen3-8B"));
        assert_eq!(find("Qwen--Qwen3-8B").map(|e| e.id), Some("Qwen/Qwen3-8B"));
        assert_eq!(find("someone/QWEN3_8B").map(|e| e.id), Some("Qwen/Qwen3-8B"));
        assert_eq!(find("Qwen/Qwen3-8B-of-my-own"), None);
        // A name that several sizes begin with is none of them.
        for open in ["", "qwen", "qwen3", "llama-3", "Qwen2.5-VL"] {
            assert_eq!(find(open), None, "{open}");
        }
        for (typed, id) in [
            ("llama3.1:8b", "meta-llama/Meta-Llama-3.1-8B"),
            ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Meta-Llama-3.1-8B"),
            ("qwen3:14b", "Qwen/Qwen3-14B"),
            ("gemma3:27b", "google/gemma-3-27b-it"),
            ("mistral", "mistralai/Mistral-7B-v0.3"),
            ("deepseek-r1:70b", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"),
            ("phi4", "microsoft/phi-4"),
            ("opt-13b", "facebook/opt-13b"),
            ("opt-1.3b", "facebook/opt-1.3b"),
            ("llama31-8b", "meta-llama/Meta-Llama-3.1-8B"),
            ("Llama-3-8B", "meta-llama/Meta-Llama-3-8B"),
            ("gpt-oss:20b", "openai/gpt-oss-20b"),
            ("Qwen2.5-VL-7B", "Qwen/Qwen2.5-VL-7B-Instruct"),
            ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
            ("mistral-7b", "mistralai/Mistral-7B-Instruct-v0.3"),
            ("mixtral-8x7b", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
            ("Qwen3-Next-80B", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
            ("qwen3-coder-480b", "Qwen/Qwen3-Coder-480B-A35B-Instruct"),
            ("bartowski/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ] {
            let found = find(typed).map(|e| e.id);
            let same = |f: &str| find(id).zip(find(f)).is_some_and(|(a, b)| a.config() == b.config());
            assert!(found.is_some_and(same), "{typed}: {found:?}");
        }
        assert_eq!(id_of("llama3.1:8b"), Some("meta-llama/Llama-3.1-8B-Instruct"));
        assert_eq!(id_of("qwen3-14b"), Some("Qwen/Qwen3-14B"));
        assert_eq!(id_of("/models/mine"), None);
    }
}
