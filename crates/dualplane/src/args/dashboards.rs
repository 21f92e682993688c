//! Flags of `dashboards`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Colour;
use super::rules::pair;

#[derive(Debug, clap::Args)]
pub(crate) struct DashboardsArgs {
    /// Boards by name [default: all]
    #[arg(value_name = "BOARD")]
    pub(crate) boards: Vec<String>,
    /// Write one file a board into this directory, as JSON unless -o says otherwise
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Engines that serve: vllm, sglang, tgi, tensorrt-llm, triton, llama.cpp, ray, or all
    #[arg(long, value_name = "ENGINE", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    /// What else Prometheus scrapes: ksm (kube-state-metrics), cadvisor, dcgm, agent, or all
    #[arg(long, value_name = "SOURCE", value_delimiter = ',')]
    pub(crate) source: Vec<String>,
    /// Set a threshold as for `rules`, for example host_memory_ratio=85%
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Namespace of the ConfigMaps
    #[arg(short, long, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// A label of the ConfigMaps, beside the one by which Grafana's sidecar finds them
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) label: Vec<(String, String)>,
    /// Output format [default: text, with --dir json]
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DashboardsFormat>,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DashboardsFormat {
    /// Boards and the questions of their panels
    Text,
    /// A board as Grafana imports it
    Json,
    /// ConfigMaps that the sidecar of Grafana's chart loads
    Configmap,
}
