//! Tools of those who work on dualplane: verdicts against labels, plans against engines' own answers and start-ups.
//!
//! The binary has them as `dualplane dev`, behind its feature `dev`; what is published is built without.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod advice;
mod chance;
mod corpus;
mod cpu;
mod cuts;
mod harvest;
mod label;
mod literals;
mod llama;
mod mutate;
mod oracle;
mod picture;
mod sglang;
mod startups;
mod sweep;
mod table;

use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use dualplane_core::knowledge::KnowledgeError;
use dualplane_input::InputError;

pub use advice::AdviceArgs;
pub use corpus::CorpusArgs;
pub use cpu::CpuArgs;
pub use cuts::CutsArgs;
pub use harvest::{CoverageArgs, HarvestArgs};
pub use llama::LlamaArgs;
pub use mutate::MutateArgs;
pub use oracle::OracleArgs;
pub use sglang::SglangArgs;
pub use startups::StartupsArgs;

/// The tools.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Measure verdicts against labelled incidents: confusion matrix, every miss, and pass or fail
    Corpus(corpus::CorpusArgs),
    /// Count the advice on labelled incidents that a patch can carry out
    Advice(advice::AdviceArgs),
    /// Take evidence away from labelled incidents at random, and count verdicts that its rest cannot carry
    Cuts(cuts::CutsArgs),
    /// Compare plans with recorded answers of the engine's own code
    Oracle(oracle::OracleArgs),
    /// Change configs of every architecture at random, and compare plans of them with the engine's own code
    Mutate(mutate::MutateArgs),
    /// Compare the buffers of plans with those that llama.cpp's own code simulates
    Llama(llama::LlamaArgs),
    /// Compare plans for SGLang with what its own code answered
    Sglang(sglang::SglangArgs),
    /// Compare plans for the CPU with what a real vLLM said and held there
    Cpu(cpu::CpuArgs),
    /// Plan one model many times, to measure the speed
    Sweep {
        /// config.json
        config: PathBuf,
        /// Number of plans
        #[arg(long, default_value_t = 100_000)]
        points: u64,
    },
    /// Compare plans with the logs of real start-ups
    Startups(startups::StartupsArgs),
    /// Render a `triage` report as SVG, for the documentation
    Picture {
        /// Target of `triage`
        target: PathBuf,
    },
    /// Collect what an engine can print from its source, for `coverage`
    Harvest(harvest::HarvestArgs),
    /// Hold the knowledge against harvested messages: which of them it decides, by engine and version
    Coverage(harvest::CoverageArgs),
    /// Print the literals of all signatures, one per line, for `grep -F -f`
    Literals,
}

/// What a tool found.
#[derive(Debug)]
pub struct Outcome {
    /// For standard output.
    pub text: String,
    /// Whether all bounds were held.
    pub good: bool,
}

impl Outcome {
    /// A text without bounds.
    fn of(text: String) -> Self {
        Self { text, good: true }
    }
}

/// What ends a tool without its result.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// A file is not there or cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Path as given.
        path: PathBuf,
        /// Reason of the system.
        source: io::Error,
    },
    /// A target cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Embedded knowledge is broken.
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
    /// A label or an answer is no JSON of its form.
    #[error("not JSON of its form: {0}")]
    Json(#[from] serde_json::Error),
    /// A configuration of which there is no plan.
    #[error("{path}: {why}")]
    Rejected {
        /// File.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A folder or file without labels.
    #[error("{0} holds no incident with a truth.json")]
    NoLabels(PathBuf),
}

/// Runs a tool.
///
/// # Errors
/// Where its files cannot be read, or hold nothing to measure.
pub fn run(tool: &Tool) -> Result<Outcome, DevError> {
    match tool {
        Tool::Corpus(args) => corpus::run(args),
        Tool::Advice(args) => advice::run(args),
        Tool::Cuts(args) => cuts::run(args),
        Tool::Oracle(args) => oracle::run(args),
        Tool::Mutate(args) => mutate::run(args),
        Tool::Llama(args) => llama::run(args),
        Tool::Sglang(args) => sglang::run(args),
        Tool::Cpu(args) => cpu::run(args),
        Tool::Sweep { config, points } => sweep::run(config, *points),
        Tool::Startups(args) => startups::run(args),
        Tool::Picture { target } => picture::run(target),
        Tool::Harvest(args) => harvest::run(args),
        Tool::Coverage(args) => harvest::coverage(args),
        Tool::Literals => literals::run(),
    }
}

fn read(path: &Path) -> Result<String, DevError> {
    std::fs::read_to_string(path).map_err(|source| DevError::Unreadable { path: path.into(), source })
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}
