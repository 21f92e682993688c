//! Flags of the two commands that change a cluster.

use std::path::PathBuf;

use super::{ClusterArgs, Colour};

#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Report of `triage -o json`, or a patch (JSON or YAML); - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which patch of the report, where it has several
    #[arg(long, value_name = "N")]
    pub(crate) action: Option<usize>,
    /// What to change: deploy/NAME, sts/NAME, ds/NAME, lws/NAME, rs/NAME, pod/NAME; else what the patch or the report names
    #[arg(long, value_name = "KIND/NAME")]
    pub(crate) to: Option<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask; needed where nobody can be asked
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Change it although Helm, Argo CD, Flux or an operator will revert it
    #[arg(long)]
    pub(crate) force_managed: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    /// The change to undo, by its id or the beginning of it; without, all changes are listed
    #[arg(value_name = "ID", conflicts_with = "last")]
    pub(crate) id: Option<String>,
    /// Undo the last change that was applied
    #[arg(long)]
    pub(crate) last: bool,
    /// Undo it although others changed the same values since: theirs are lost
    #[arg(long, conflicts_with = "keep_changed")]
    pub(crate) force: bool,
    /// Leave values that others changed since, and undo the rest
    #[arg(long)]
    pub(crate) keep_changed: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask; needed where nobody can be asked
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Output format of the list
    #[arg(short, long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) output: ListFormat,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// When to colour
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
