//! Flags of `preflight`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::cluster::duration;
use super::{Colour, LaunchArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// GPUs of the server: indices, UUIDs, MIG UUIDs; else CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES
    #[arg(long, value_name = "LIST")]
    pub(crate) gpus: Option<String>,
    /// Memory limit of the server's container: 64Gi; else DUALPLANE_MEMORY_LIMIT, the manifest, or the own cgroup
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_limit: Option<String>,
    /// Look again for so long until it fits: 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// End with code 0 also where it cannot be told
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// /proc of the host, where it is mounted: names the holders without hostPID
    #[arg(long, value_name = "DIR")]
    pub(crate) host_proc: Option<PathBuf>,
    /// Play a table of GPUs instead of asking the driver
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) gpu_table: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = CheckFormat::Text)]
    pub(crate) output: CheckFormat,
    /// Show every GPU, every holder and the engine's rule
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// One screen for people
    Text,
    /// dualplane.preflight/v1
    Json,
}
