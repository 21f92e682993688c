//! A command line as it was understood.

use serde::Serialize;

use super::{HostAsk, Launch, LlamaCppAsk, TgiAsk};
use crate::version::EngineKind;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandLine {
    /// The launch; its version is the newest known until one is found.
    pub launch: Launch,
    /// What only the host plane needs.
    pub host: HostAsk,
    /// What only llama.cpp is asked.
    pub llama_cpp: LlamaCppAsk,
    /// What only TGI is asked.
    pub tgi: TgiAsk,
    /// Model id or path, where one is named.
    pub model: Option<String>,
    /// Flags that this engine's table does not hold, as given, in order.
    pub unknown_flags: Vec<String>,
    /// Flags that were given and that not every release has.
    #[serde(skip)]
    pub changed: Vec<super::Changed>,
    /// Whether a flag of vLLM says how the model is cut, be it into one part.
    #[serde(skip)]
    pub says_ranks: bool,
    /// What `--hf-overrides`, `--rope-scaling` and `--rope-theta` set in the model's own configuration.
    pub overrides: serde_json::Map<String, serde_json::Value>,
    /// Settings that are known to change memory and that no formula here follows.
    pub not_followed: Vec<String>,
}

impl CommandLine {
    /// GPUs of one pod: what its specification says, the share of one node of `--nnodes`, or the local copies of data
    /// parallelism; else all.
    #[must_use]
    pub fn gpus_of_pod(&self) -> u64 {
        let all = self.launch.gpus();
        if let Some(n) = self.host.pod_gpus().filter(|n| *n > 0 && *n < all) {
            return n;
        }
        let copies = self.host.local_copies.filter(|n| *n > 0 && *n < self.launch.dp);
        let here = copies.map_or(all, |n| (all / self.launch.dp.max(1)).saturating_mul(n));
        match self.host.nodes {
            n if n > 1 && copies.is_none() => all.div_ceil(n),
            _ => here,
        }
    }

    /// The first flag that was given and that the release of the launch lacks.
    #[must_use]
    pub fn lacking(&self) -> Option<&super::Changed> {
        self.changed.iter().find(|c| c.lacks(self.launch.version))
    }

    /// Pods that the launch takes.
    #[must_use]
    pub fn pods(&self) -> u64 {
        self.launch.gpus().div_ceil(self.gpus_of_pod().max(1)).max(1)
    }

    /// A line of an engine on which nothing is given.
    #[must_use]
    pub fn of(engine: EngineKind) -> Self {
        Self {
            launch: Launch { engine, version: engine.newest(), ..Launch::default() },
            host: HostAsk::default(),
            llama_cpp: LlamaCppAsk::default(),
            tgi: TgiAsk::default(),
            model: None,
            unknown_flags: Vec::new(),
            changed: Vec::new(),
            says_ranks: false,
            overrides: serde_json::Map::new(),
            not_followed: Vec::new(),
        }
    }
}
