//! Flags of `tune`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct TuneArgs {
    /// Report of `measure`: which branch holds, and which lever to move
    #[arg(value_name = "REPORT", required_unless_present_any = ["run", "log"], conflicts_with = "run")]
    pub(crate) report: Option<PathBuf>,
    /// The engine whose settings are moved [default: the report's, or that of the command line]
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// Move levers one after another: measure, keep or go back, until nothing brings more
    #[arg(long, requires_all = ["measure", "log", "command"])]
    pub(crate) run: bool,
    /// What measures a step, a line for the shell: it starts $SERVER, sends requests, and writes a report of `measure` to
    /// standard output
    #[arg(long, value_name = "LINE", requires = "run")]
    pub(crate) measure: Option<String>,
    /// Each step is written to this file; where it is there, the search goes on. Without --run it is shown
    #[arg(long, value_name = "FILE", conflicts_with = "report")]
    pub(crate) log: Option<PathBuf>,
    /// Moves, at most
    #[arg(long, value_name = "N", default_value_t = 8, requires = "run", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) steps: u16,
    /// What chance is made of where noise is estimated
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = TuneFormat::Text)]
    pub(crate) output: TuneFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// The server's command line to begin with
    #[arg(last = true, value_name = "COMMAND", requires = "run")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TuneFormat {
    /// Lines for people
    Text,
    /// dualplane.tune/v1
    Json,
}
