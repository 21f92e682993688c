//! Arguments of `dualplane top`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Only this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Only names that hold this text
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// What comes first
    #[arg(long, value_enum, default_value_t = SortBy::Memory)]
    pub(crate) sort: SortBy,
    /// Time between two readings: 500ms, 1s, 5s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: std::time::Duration,
    /// A unit of systemd besides containers: vllm.service; can be repeated
    #[arg(long, value_name = "UNIT")]
    pub(crate) service: Vec<String>,
    /// Print one frame and end; so it is where standard output is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Output format of one frame
    #[arg(short, long, value_enum, default_value_t = TopFormat::Text)]
    pub(crate) output: TopFormat,
    /// Play the minutes before a death out of a bundle: a .tar.zst or a directory
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["service", "state", "host_root", "gpu_table"])]
    pub(crate) replay: Option<PathBuf>,
    /// State of the node's agent, whose last verdicts are shown
    #[arg(long, value_name = "DIR", default_value = "/var/lib/dualplane")]
    pub(crate) state: PathBuf,
    /// Where the host's root is mounted, inside of a container
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) host_root: PathBuf,
    /// Play a table of GPU samples instead of asking the driver
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) gpu_table: Option<PathBuf>,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Share of the limit, else size of the working set
    Memory,
    /// VRAM
    Vram,
    /// KV cache in use
    Kv,
    /// Name
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopFormat {
    /// As on the screen
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
        _ => Err("give a time between 100ms and 3600s".into()),
    }
}
