//! Arguments of `dualplane top`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Only this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Only containers whose name contains this text
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Sort order
    #[arg(long, value_enum, default_value_t = SortBy::Memory)]
    pub(crate) sort: SortBy,
    /// Time between two samples, for example 500ms, 1s or 5s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: std::time::Duration,
    /// systemd unit to show in addition to containers, for example vllm.service; repeatable
    #[arg(long, value_name = "UNIT")]
    pub(crate) service: Vec<String>,
    /// Print one frame and exit; the default if standard output is not a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Output format of one frame
    #[arg(short, long, value_enum, default_value_t = TopFormat::Text)]
    pub(crate) output: TopFormat,
    /// Replay the minutes before a failure from a bundle (.tar.zst or directory)
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["service", "state", "host_root", "gpu_table"])]
    pub(crate) replay: Option<PathBuf>,
    /// State directory of the node's agent, to show its latest verdicts
    #[arg(long, value_name = "DIR", default_value = "/var/lib/dualplane")]
    pub(crate) state: PathBuf,
    /// Mount point of the host's root file system, when run in a container
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) host_root: PathBuf,
    /// Simulate the GPUs of this JSON file instead of reading the driver; see docs/agent.md
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) gpu_table: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Share of the memory limit, or the working set if there is no limit
    Memory,
    /// VRAM in use
    Vram,
    /// KV cache in use
    Kv,
    /// Name
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopFormat {
    /// The screen as text
    Text,
    /// dualplane.top/v1, one object
    Json,
}

fn interval(text: &str) -> Result<std::time::Duration, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(n) => (n, 1.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1000.0),
    };
    let ms = number.trim().parse::<f64>().map(|n| n * factor);
    match ms {
        Ok(ms) if (100.0..=3_600_000.0).contains(&ms) => Ok(std::time::Duration::from_millis(ms as u64)),
        _ => Err("the interval must be between 100ms and 3600s".into()),
    }
}
