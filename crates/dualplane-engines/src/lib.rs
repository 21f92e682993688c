//! What is known of an engine beside its messages: the head of `knowledge/engines/NAME.toml`. One descriptor serves facts,
//! plans, maps, advice, captures and the node agent, so that a new engine is one file. Beside it stands the one reader of
//! command lines.
//!
//! Like the core it is pure: no I/O, no clock, no environment.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod advice;
pub mod command_line;
mod find;
mod head;
mod inherit;
pub mod metrics;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

pub use advice::{
    Advice, Chart, Counsel, Flags, HostPool, Instances, Lever, Numbers, OnCpu, PinnedPool, PoolSize,
    PoolUnit, Printed, Settings, Step,
};
pub use find::Named;

pub use head::{HeadExamples, examples, head};
use metrics::Metrics;

/// What an engine is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Serves models itself.
    #[default]
    Engine,
    /// Runs engines: it is named only where none of them speaks.
    Host,
    /// Stands beside an engine (a KV tier) and is never the server itself.
    Helper,
}

/// An engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// Stable id: `llama_cpp`.
    pub id: String,
    /// As its makers write it: `llama.cpp`.
    pub name: String,
    /// Other spellings of the id.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What it is to the others.
    #[serde(default)]
    pub kind: Kind,
    /// Its flags are named where the engine is not known: the most used one.
    #[serde(default)]
    pub usual: bool,
    /// Id of the engine on which it is built. What its head does not say is taken from there.
    #[serde(default)]
    pub parent: Option<String>,
    /// Name of the plan that follows its arithmetic.
    #[serde(default)]
    pub plan: Option<String>,
    /// Words of image names, in small letters. The longest that stands in a name counts.
    #[serde(default)]
    pub images: Vec<String>,
    /// Commands that start it. `*` at the end of a word stands for any rest.
    #[serde(default)]
    pub launchers: Vec<String>,
    /// Last path parts of programs and process titles, as far as something that is neither letter nor digit.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Words in the names of its processes as the kernel and GPU tools print them, in small letters.
    #[serde(default)]
    pub processes: Vec<String>,
    /// Beginnings of the words by which its log lines say which process wrote them: `(EngineCore_0 pid=7)`, `[… TP2]`. They tell
    /// whose log it is where no line of its own does.
    #[serde(default)]
    pub log_tags: Vec<String>,
    /// Names of processes that it starts and others, too (MPI's).
    #[serde(default)]
    pub helpers: Vec<String>,
    /// Its processes bear its own name, never an interpreter's.
    #[serde(default)]
    pub native: bool,
    /// Where its API listens unless told otherwise.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Flags that tell otherwise.
    #[serde(default)]
    pub port_flags: Vec<String>,
    /// Beginnings of the names of its metrics.
    #[serde(default)]
    pub metrics_prefixes: Vec<String>,
    /// `owned_by` of its list of models.
    #[serde(default)]
    pub owned_by: Vec<String>,
    /// Paths of its API that tell of it, in the order in which they are asked.
    #[serde(default)]
    pub asks: Vec<String>,
    /// An error makes it send itself a SIGKILL: that the process was killed says nothing.
    #[serde(default)]
    pub kills_itself: bool,
    /// A load that does not fit is tried again with less.
    #[serde(default)]
    pub retries_load: bool,
    /// It takes all its memory of a card at start: how full a card is says nothing of its traffic.
    #[serde(default)]
    pub preallocates: bool,
    /// Words of images whose entrypoint is the server: the arguments of a pod without a command go to it.
    #[serde(default)]
    pub entrypoints: Vec<String>,
    /// Flags of a file whose settings override the command line.
    #[serde(default)]
    pub overriding_files: Vec<String>,
    /// Flags of a file of settings, which the command line overrides.
    #[serde(default)]
    pub settings_files: Vec<String>,
    /// Flags that have another name in such a file, and that name; a dot stands before a key of an inner map.
    #[serde(default)]
    pub file_keys: Vec<(String, String)>,
    /// Charts that deploy it, and where their values have its settings.
    #[serde(default)]
    pub charts: Vec<Chart>,
    /// Its levers.
    #[serde(default)]
    pub flags: Flags,
    /// Copies of a model on one card.
    #[serde(default)]
    pub instances: Option<Instances>,
    /// The lever on the size of one step.
    #[serde(default)]
    pub step: Option<Step>,
    /// Messages that carry its numbers.
    #[serde(default)]
    pub printed: Printed,
    /// What helps.
    #[serde(default)]
    pub advice: Advice,
    /// Host memory that it takes beside its heap.
    #[serde(default)]
    pub host_pool: Vec<HostPool>,
    /// Pinned memory that it takes at its start.
    #[serde(default)]
    pub pinned_pool: Option<PinnedPool>,
    /// How it shows that it has no GPU.
    #[serde(default)]
    pub on_cpu: Option<OnCpu>,
    /// How its answers are read.
    #[serde(default)]
    pub answer: Vec<Answer>,
    /// Its series.
    #[serde(default)]
    pub metrics: Option<Metrics>,
}

/// What an answer of an engine's API tells. Pointers are JSON pointers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Path without its leading slash.
    pub path: String,
    /// It is this engine's answer where this is there.
    #[serde(default)]
    pub known_by: String,
    /// And where it is this text.
    #[serde(default)]
    pub known_as: Option<String>,
    /// And where this is not there.
    #[serde(default)]
    pub unless: Option<String>,
    /// For a page of metrics: the series whose labels `keep` names.
    #[serde(default)]
    pub series: Option<String>,
    /// What is kept, and under which name.
    #[serde(default)]
    pub keep: Vec<(String, String)>,
    /// A list of models; the pointers below are then those of an item.
    #[serde(default)]
    pub list: Option<String>,
    /// Name under which the model is served: the first that is not empty.
    #[serde(default)]
    pub model: Vec<String>,
    /// Where the model came from.
    #[serde(default)]
    pub root: Option<String>,
    /// The longest request.
    #[serde(default)]
    pub max_len: Option<String>,
}

impl Descriptor {
    /// Where its metrics are.
    #[must_use]
    pub fn metrics_ports(&self) -> &[u16] {
        self.metrics.as_ref().map_or(&self.ports, |m| m.ports_or(&self.ports))
    }
}

/// All engines that are known, in the order of their files.
#[derive(Debug, Clone, Default)]
pub struct Engines(Arc<[Descriptor]>);

impl Engines {
    /// The engines that were embedded when this crate was built; none only if the text does not parse, which the tests of
    /// this crate exclude.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static ALL: OnceLock<Engines> = OnceLock::new();
        ALL.get_or_init(|| {
            let text = include_str!(concat!(env!("OUT_DIR"), "/engines.json"));
            Self::new(serde_json::from_str(text).unwrap_or_default())
        })
    }

    /// Engines of heads as they were written.
    #[must_use]
    pub fn new(mut all: Vec<Descriptor>) -> Self {
        inherit::fill(&mut all);
        Self(all.into())
    }

    /// These, and a team's own: one whose id is known replaces it.
    #[must_use]
    pub fn with(&self, own: Vec<Descriptor>) -> Self {
        if own.is_empty() {
            return self.clone();
        }
        let known = self.0.iter().filter(|d| own.iter().all(|o| o.id != d.id)).cloned();
        Self::new(known.chain(own.iter().cloned()).collect())
    }

    /// All.
    pub fn iter(&self) -> std::slice::Iter<'_, Descriptor> {
        self.0.iter()
    }

    /// The one of an id, or of another spelling of it.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Descriptor> {
        self.iter().find(|d| d.id == id).or_else(|| self.iter().find(|d| d.aliases.iter().any(|a| a == id)))
    }

    /// The one whose flags are named where the engine is not known.
    #[must_use]
    pub fn usual(&self) -> Option<&Descriptor> {
        self.iter().find(|d| d.usual)
    }
}
