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
    /// Settings that are known to change memory and that no formula here follows.
    pub not_followed: Vec<String>,
}

impl CommandLine {
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
            not_followed: Vec::new(),
        }
    }
}
