//! Flags of the two commands that change a cluster.

use std::path::PathBuf;

use super::{ClusterArgs, Colour};

#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Report from `triage -o json`, or a patch in JSON or YAML; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Number of the patch, if the report contains several
    #[arg(long, value_name = "N")]
    pub(crate) action: Option<usize>,
    /// Object to change: deploy/NAME, sts/NAME, ds/NAME, lws/NAME, rs/NAME or pod/NAME [default: the one named in the
    /// patch or report]
    #[arg(long, value_name = "KIND/NAME")]
    pub(crate) to: Option<String>,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation; required without a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Change the object even if Helm, Argo CD, Flux or an operator will revert it
    #[arg(long)]
    pub(crate) force_managed: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    /// ID of the change to undo, or a unique prefix; without it, all changes are listed
    #[arg(value_name = "ID", conflicts_with = "last")]
    pub(crate) id: Option<String>,
    /// Undo the most recent change
    #[arg(long)]
    pub(crate) last: bool,
    /// Undo the change even if the values were modified since; overwrites those modifications
    #[arg(long, conflicts_with = "keep_changed")]
    pub(crate) force: bool,
    /// Keep values that were modified since and undo the rest
    #[arg(long)]
    pub(crate) keep_changed: bool,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation; required without a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Output format of the list
    #[arg(short, long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) output: ListFormat,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ListFormat {
    /// A table
    Text,
    /// dualplane.changes/v1
    Json,
}
