//! Flags of `resources`.

use clap::ValueEnum;

use super::Colour;
use super::rules::namespace;

#[derive(Debug, clap::Args)]
pub(crate) struct ResourcesArgs {
    /// Bundles of the agent, reports of `measure` (-o json), or files with answers of Prometheus; with --prometheus a
    /// workload: deploy/NAME, sts/NAME, pod/NAME
    #[arg(value_name = "TARGET", required = true)]
    pub(crate) targets: Vec<String>,
    /// Prometheus that has the memory of the workload over time, for example http://HOST:9090 (token in the file that
    /// $DUALPLANE_PROMETHEUS_TOKEN_FILE names)
    #[cfg(feature = "live")]
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus: Option<String>,
    /// Namespace of the workload
    #[arg(short, long, value_name = "NS", default_value = "default", value_parser = namespace)]
    pub(crate) namespace: String,
    /// Only containers with this name
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) container: Vec<String>,
    /// How far to look back, for example 14d or 36h
    #[cfg(feature = "live")]
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = span)]
    pub(crate) since: u64,
    /// With -o keda or hpa: replicas, at least
    #[cfg(feature = "live")]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) min: u32,
    /// With -o keda or hpa: replicas, at most: as many as nodes have cards and host RAM for
    #[cfg(feature = "live")]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max: Option<u32>,
    /// With -o keda: URL at which KEDA reaches Prometheus, where it is another one than --prometheus
    #[cfg(feature = "live")]
    #[arg(long, value_name = "URL")]
    pub(crate) server_address: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ResourcesFormat::Text)]
    pub(crate) output: ResourcesFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResourcesFormat {
    /// Lines for people
    Text,
    /// dualplane.resources/v1
    Json,
    /// The block of each container, for its manifest
    Yaml,
    /// A patch of the workload, for kubectl patch --patch-file
    Patch,
    /// By container, for values of a chart
    Values,
    /// A ScaledObject of KEDA, which scales a workload on both planes
    #[cfg(feature = "live")]
    Keda,
    /// A HorizontalPodAutoscaler on the same measures, for clusters with an adapter of Prometheus
    #[cfg(feature = "live")]
    Hpa,
}

/// A time as Prometheus writes it, in seconds.
#[cfg(feature = "live")]
pub(super) fn span(text: &str) -> Result<u64, String> {
    let seconds = dualplane_alerts::duration(text).filter(|s| *s >= 600.0 && *s <= 366.0 * 86_400.0);
    seconds.map(|s| s as u64).ok_or_else(|| "give a time from 10m to 366d, for example 14d or 36h".to_owned())
}
