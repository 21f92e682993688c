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
    /// GPUs of the server: indices, UUIDs or MIG UUIDs [default: CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES]
    #[arg(long, value_name = "LIST")]
    pub(crate) gpus: Option<String>,
    /// Memory limit of the server's container, for example 64Gi [default: DUALPLANE_MEMORY_LIMIT, then the manifest,
    /// then the cgroup of this process]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_limit: Option<String>,
    /// Repeat the check until the server fits or this time has passed, for example 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// Exit with code 0 if the result is unknown
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// The host's /proc, if mounted; identifies the processes on the GPU without hostPID
    #[arg(long, value_name = "DIR")]
    pub(crate) host_proc: Option<PathBuf>,
    /// Simulate the GPUs of this JSON file instead of reading the driver; see docs/agent.md
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) gpu_table: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = CheckFormat::Text)]
    pub(crate) output: CheckFormat,
    /// Show every GPU, every process on it and the engine's rule
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// One screen of text
    Text,
    /// dualplane.preflight/v1
    Json,
}
