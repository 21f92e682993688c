//! Rules as data: `knowledge/lint/*.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use dualplane_base::near::near;
use dualplane_base::packed::Block;
use serde::Deserialize;

use crate::finding::Severity;

/// What a rule looks at, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    /// The whole object, as `object`.
    Object,
    /// Pods with a model server, as `pod`: a pod's specification.
    Pod,
    /// Containers of pods with a model server, as `c`, beside `pod`.
    Container,
    /// Model servers, as `c`, beside `pod`.
    Server,
    /// Model servers with a GPU, as `c`, beside `pod`.
    Gpu,
    /// Volumes of pods with a model server, as `v`, beside `pod`.
    Volume,
    /// Model servers of a compose file, as `s`.
    Service,
    /// All objects together, at the end.
    All,
}

/// A change that fixes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Where, with dots: below what the rule looks at; below the object with a leading `/`.
    pub path: String,
    /// The value: CEL, as in `values`.
    pub value: String,
}

/// A rule.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable id, never reused.
    pub id: String,
    /// Severity.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// Why it matters.
    pub why: String,
    /// What to change; placeholders as in `message`.
    pub fix: String,
    /// Where this is known from.
    pub source: String,
    /// What it looks at.
    pub each: Each,
    /// Kinds of objects; all that have such parts where empty.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Kinds whose operator adds what the rule misses.
    #[serde(default)]
    pub not_kinds: Vec<String>,
    /// It holds without a look where none of these words stands in the container's image, command and environment.
    #[serde(default)]
    pub mentions: Vec<String>,
    /// CEL that is true where all is well.
    #[serde(default)]
    pub holds: Option<String>,
    /// Name of a check in Rust.
    #[serde(default)]
    pub check: Option<String>,
    /// What is wrong; `{name}` stands for a value.
    #[serde(default)]
    pub message: String,
    /// Placeholders: CEL over the same names.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Where the finding points to, with dots: below what the rule looks at.
    #[serde(default)]
    pub at: String,
    /// The fix as a value.
    #[serde(default)]
    pub set: Option<Set>,
}

/// Which containers are servers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Servers {
    /// Words of images that carry an engine without naming it.
    pub(crate) images: Vec<String>,
    /// Hosts of engines that count.
    pub(crate) hosts: Vec<String>,
    /// Words of images that are none.
    pub(crate) not_images: Vec<String>,
    /// Words of commands that are none.
    pub(crate) not_commands: Vec<String>,
}

/// All rules.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// In the order of their files.
    #[serde(rename = "rule")]
    list: Vec<Rule>,
    pub(crate) servers: Servers,
}

pub(crate) static TEXT: Block = include!(concat!(env!("OUT_DIR"), "/lint.rs"));

impl Rules {
    /// The embedded rules; none only if the text does not parse, which the tests of this crate exclude.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static ALL: OnceLock<Rules> = OnceLock::new();
        ALL.get_or_init(|| serde_json::from_str(TEXT.text()).unwrap_or_default())
    }

    /// All, in their order.
    #[must_use]
    pub fn list(&self) -> &[Rule] {
        &self.list
    }

    /// One by its id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.list.iter().find(|r| r.id == id)
    }

    /// Ids near to a word, for an answer to a wrong one.
    #[must_use]
    pub fn near(&self, word: &str) -> Vec<&str> {
        near(word, self.list.iter().map(|r| r.id.as_str()))
    }
}

impl Rule {
    /// Whether it looks at objects of this kind.
    #[must_use]
    pub fn looks_at(&self, kind: &str) -> bool {
        (self.kinds.is_empty() || self.kinds.iter().any(|k| k == kind))
            && !self.not_kinds.iter().any(|k| k == kind)
    }
}
