//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Names the memory plane (host RAM or VRAM) that killed a GPU model-serving pod, the line that came first, why, and
/// what to change.
#[derive(Debug, Parser)]
#[command(name = "dualplane", version, after_help = crate::exit::help(), max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge the evidence at hand: a directory, files, or `-` for standard input
    Triage(TriageArgs),
    /// For developers of dualplane
    #[command(subcommand, hide = true)]
    Dev(DevCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TriageArgs {
    /// Directory, one or more files, or `-`
    #[arg(required = true, value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// Show all citations, actions and patches
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Let the class decide the exit code (table below `dualplane --help`)
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One screen for people
    Text,
    /// dualplane.verdict/v1
    Json,
    /// Hand-over note
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Measure verdicts against a labelled corpus: confusion matrix, every miss, figures with bounds
    Corpus(CorpusArgs),
    /// Draw what `triage` prints as SVG, for documents
    Picture {
        /// Target of `triage`
        target: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct CorpusArgs {
    /// Folder of incidents, each with a truth.json
    pub(crate) dir: PathBuf,
    /// Least share of right classes, percent
    #[arg(long, default_value_t = 97.0)]
    pub(crate) min_class: f64,
    /// Least share of right trigger lines among the cases that have one, percent
    #[arg(long, default_value_t = 97.0)]
    pub(crate) min_trigger: f64,
    /// Print misses of the phase as well
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
