//! Flags of `rehearse`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Colour, LaunchArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct RehearseArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// KV cache size that the engine printed, for example 41.60GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) available_kv: Option<String>,
    /// Kind of requests: chat, code, rag, long, batch or agents
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["shape", "trace"])]
    pub(crate) traffic: Option<String>,
    /// Requests as a file says them (dualplane.shape/v1, see `dualplane profile`)
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub(crate) shape: Option<PathBuf>,
    /// Single requests: a JSON object a line with `at` in seconds, `input` and `output` in tokens
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Requests before a death, from what a bundle tells of them; the launch is the bundle's too
    #[arg(long, value_name = "TARGET", conflicts_with = "from_incident")]
    pub(crate) incident: Option<PathBuf>,
    /// Requests per second over all servers, instead of the shape's
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// Seconds of requests to draw
    #[arg(long, value_name = "N", default_value = "600", value_parser = positive)]
    pub(crate) seconds: f64,
    /// Other numbers, other requests of the same shape
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Rehearse with these flags too, for example --with '--max-num-seqs 96'
    #[arg(long = "with", value_name = "FLAGS", allow_hyphen_values = true)]
    pub(crate) with: Vec<String>,
    /// Time of a step: base=0.012,token=0.00002,request=0.0001,context=0 in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) step_time: Option<String>,
    /// Log of a running vLLM, whose statistics give the time of a step
    #[arg(long, value_name = "FILE", conflicts_with = "step_time")]
    pub(crate) step_time_from: Option<PathBuf>,
    /// Do not look for the largest safe rate and length
    #[arg(long)]
    pub(crate) no_search: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = RehearseFormat::Text)]
    pub(crate) output: RehearseFormat,
    /// Exit with 0 where the load holds, 10 where that is uncertain, 32 (kv_cache_capacity) where it does not
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RehearseFormat {
    /// One screen, with the cache and the queue over time
    Text,
    /// dualplane.rehearsal/v1
    Json,
    /// The cache and the queue over time as a picture
    Svg,
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    let n = text.parse::<f64>().map_err(|e| e.to_string())?;
    if n.is_finite() && n > 0.0 { Ok(n) } else { Err("it must be above 0".into()) }
}
