//! Flags of `gate`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct GateArgs {
    /// What the release must show; --init prints one to begin with
    #[arg(long, value_name = "FILE", required_unless_present = "init")]
    pub(crate) policy: Option<PathBuf>,
    /// Reports of `measure` of the build that is to be released, or folders of them
    #[arg(long, value_name = "REPORT", num_args = 1.., required_unless_present = "init")]
    pub(crate) candidate: Vec<PathBuf>,
    /// Reports of the build that is out: files of your repository, measured on the same hardware with the same requests
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    pub(crate) baseline: Vec<PathBuf>,
    /// Print a policy with every key and what it is for
    #[arg(long, conflicts_with_all = ["policy", "candidate", "baseline"])]
    pub(crate) init: bool,
    /// What chance is made of where windows are drawn again
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = GateFormat::Text)]
    pub(crate) output: GateFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateFormat {
    /// Lines for people
    Text,
    /// dualplane.gate/v1
    Json,
    /// A comment of a pull request
    Markdown,
    /// JUnit's XML
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}
