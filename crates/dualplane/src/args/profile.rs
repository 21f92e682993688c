//! Flags of `profile`.

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use dualplane_shape::{LONG, names};

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct ProfileArgs {
    /// Logs, traces and metrics that tell of requests: files, directories, `-` for standard input, or the URL of an engine's
    /// metrics page
    #[cfg_attr(
        feature = "live",
        arg(value_name = "SOURCE", required_unless_present_any = ["synthesise", "prometheus"])
    )]
    #[cfg_attr(not(feature = "live"), arg(value_name = "SOURCE", required_unless_present = "synthesise"))]
    pub(crate) sources: Vec<String>,
    /// A shape by its name, instead of one that was counted
    #[arg(long, visible_alias = "synthesize", value_name = "NAME", conflicts_with = "sources",
        value_parser = PossibleValuesParser::new(names()))]
    pub(crate) synthesise: Option<String>,
    /// Prometheus that scrapes the engine, for example http://HOST:9090 (token in the file that
    /// $DUALPLANE_PROMETHEUS_TOKEN_FILE names)
    #[cfg(feature = "live")]
    #[arg(long, value_name = "URL", conflicts_with_all = ["sources", "synthesise"])]
    pub(crate) prometheus: Option<String>,
    /// With --prometheus: only series with these labels, for example 'namespace="serving",model_name="m"'
    #[cfg(feature = "live")]
    #[arg(long, value_name = "LABELS", default_value = "", requires = "prometheus")]
    pub(crate) selector: String,
    /// With --prometheus: how far to look back, for example 1h or 7d
    #[cfg(feature = "live")]
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = super::resources::span)]
    pub(crate) since: u64,
    /// Name of the shape
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Requests at once, where no source tells them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) concurrency: Option<u64>,
    /// Requests per second, instead of those that were counted
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Prompt and answer above so many tokens together are long context
    #[arg(long, value_name = "TOKENS", default_value_t = LONG)]
    pub(crate) long: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ProfileFormat::Text)]
    pub(crate) output: ProfileFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileFormat {
    /// The two histograms, and the load
    Text,
    /// dualplane.shape/v1 as TOML, for `--shape FILE`
    Toml,
    /// dualplane.shape/v1 as JSON
    Json,
}

/// A rate above 0.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let n = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0 && *n <= 1e6);
    n.ok_or_else(|| "give requests per second, for example 2.5".to_owned())
}
