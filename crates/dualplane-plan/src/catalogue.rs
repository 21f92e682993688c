//! Models that are known without their files: the facts of `knowledge/models/`, looked up by id.

/// The facts of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// Hugging Face id.
    pub id: &'static str,
    /// Ids of models with the same configuration.
    pub aliases: &'static [&'static str],
    /// Where the facts come from.
    pub source: &'static str,
    /// `config.json`, without what says nothing about memory.
    pub config: &'static str,
    /// `hf_quant_config.json`.
    pub hf_quant_config: Option<&'static str>,
}

/// All models, in the order of their files. The texts are parsed only when one is asked for.
pub const CATALOGUE: &[CatalogueEntry] = include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// Small letters, no separators: `Qwen/Qwen3-8B` and `qwen/qwen3_8b` meet.
fn normal(id: &str) -> String {
    id.chars().filter(|c| c.is_alphanumeric() || *c == '/').map(|c| c.to_ascii_lowercase()).collect()
}

/// The model that an id means: forgiving about case and separators; the organisation may be left out or be another's
/// copy, where the name alone is unique.
#[must_use]
pub fn find(id: &str) -> Option<&'static CatalogueEntry> {
    // File names of configurations write `--` for the slash of an id.
    let want = normal(&id.trim().trim_end_matches('/').replacen("--", "/", 1));
    let name = want.rsplit('/').next().unwrap_or(&want).to_owned();
    if name.is_empty() {
        return None;
    }
    let names = |e: &CatalogueEntry| -> Vec<String> {
        std::iter::once(e.id).chain(e.aliases.iter().copied()).map(normal).collect()
    };
    if let Some(e) = CATALOGUE.iter().find(|e| names(e).contains(&want)) {
        return Some(e);
    }
    let mut same = CATALOGUE.iter().filter(|e| names(e).iter().any(|n| n.rsplit('/').next() == Some(&name)));
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

/// Ids that are near to one that is not known, at most `most`.
#[must_use]
pub fn near(id: &str, most: usize) -> Vec<&'static str> {
    let want = normal(id);
    let name = want.rsplit('/').next().unwrap_or(&want);
    let shared = |e: &&CatalogueEntry| {
        let own = normal(e.id);
        let own = own.rsplit('/').next().unwrap_or_default().to_owned();
        own.chars().zip(name.chars()).take_while(|(a, b)| a == b).count()
    };
    let mut all: Vec<_> = CATALOGUE.iter().filter(|e| shared(e) >= 4).collect();
    all.sort_by_key(|e| std::cmp::Reverse(shared(e)));
    all.into_iter().take(most).map(|e| e.id).collect()
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
        for e in CATALOGUE {
            let files =
                ModelFiles { config: e.config, hf_quant_config: e.hf_quant_config, ..ModelFiles::default() };
            let model = Model::read(&files);
            if let Err(why) = model {
                bad.push(format!("{}: {why}", e.id));
            }
            assert!(e.source.len() > 10, "{}", e.id);
            for id in std::iter::once(&e.id).chain(e.aliases) {
                assert!(ids.insert(normal(id)), "{id} stands twice");
                assert_eq!(find(id).map(|f| f.id), Some(e.id));
            }
        }
        assert!(bad.is_empty(), "{bad:#?}");
        assert!(CATALOGUE.len() >= 60, "only {}", CATALOGUE.len());
    }

    #[test]
    fn ids_are_forgiving() {
        assert_eq!(find("qwen3-8b").map(|e| e.id), Some("Qwen/Qwen3-8B"));
        assert_eq!(find("Qwen--Qwen3-8B").map(|e| e.id), Some("Qwen/Qwen3-8B"));
        assert_eq!(find("someone/QWEN3_8B").map(|e| e.id), Some("Qwen/Qwen3-8B"));
        assert_eq!(find("Qwen/Qwen3-8B-of-my-own"), None);
        assert_eq!(find(""), None);
        assert!(near("Qwen/Qwen3-9B", 5).first().is_some_and(|id| id.contains("Qwen3")));
    }
}
