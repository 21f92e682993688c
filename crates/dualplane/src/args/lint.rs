//! Flags of `lint`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{ClusterArgs, Colour};

#[derive(Debug, clap::Args)]
pub(crate) struct LintArgs {
    /// Files and directories with rendered manifests, compose files and Triton's config.pbtxt, or - for standard input
    #[arg(value_name = "PATH", required_unless_present_any = ["explain", "list", "emit", "live"])]
    pub(crate) paths: Vec<PathBuf>,
    /// Check the objects of a cluster; it only lists them
    #[arg(long, conflicts_with_all = ["paths", "fix"])]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// With --live: all namespaces
    #[arg(short = 'A', long, requires = "live", help_heading = "Cluster")]
    pub(crate) all_namespaces: bool,
    /// The GPU of servers whose manifest names none, for example H100-80GB
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// Check these rules only
    #[arg(long = "rule", value_name = "ID", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Leave these rules out
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
    /// The least severity that is shown
    #[arg(long, value_enum, default_value_t = Least::Warning, value_name = "SEVERITY")]
    pub(crate) severity: Least,
    /// The least severity that fails: the exit code is then 17 (warnings, notes) or 18 (errors)
    #[arg(long, value_enum, default_value_t = FailOn::Warning, value_name = "SEVERITY")]
    pub(crate) fail_on: FailOn,
    /// Exceptions with their reasons [default: .dualplane-lint.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) ignore_file: Option<PathBuf>,
    /// Findings that were there before: only new ones are shown and fail
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write all findings to a baseline
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Show the fixes that are values as patches of the files
    #[arg(long)]
    pub(crate) fix: bool,
    /// Write these fixes into the files
    #[arg(long, requires = "fix")]
    pub(crate) write: bool,
    /// Explain a rule: what it finds, why, what to change, and its source
    #[arg(long, value_name = "ID")]
    pub(crate) explain: Option<String>,
    /// List all rules
    #[arg(long)]
    pub(crate) list: bool,
    /// Print the rules as policies for the API server
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) emit: Option<Emit>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = LintFormat::Text)]
    pub(crate) output: LintFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Least {
    /// Also advice that the manifest alone cannot prove
    Note,
    /// What costs memory, time or replicas under usual conditions
    Warning,
    /// What fails
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Notes, warnings and errors
    Note,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
    /// Nothing that a rule finds
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding
    Policy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// Lines for people
    Text,
    /// dualplane.lint/v1
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
    /// GitLab's report of code quality
    Gitlab,
    /// JUnit's XML
    Junit,
}
