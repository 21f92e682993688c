//! The command line of `map`.

use clap::ValueEnum;

use super::{ClusterArgs, Colour};

#[derive(Debug, clap::Args)]
pub(crate) struct MapArgs {
    /// pod/NAME, deploy/NAME, sts/NAME, job/NAME or lws/NAME
    #[arg(
        required_unless_present_any = ["selector", "node", "gpu", "pid"],
        conflicts_with_all = ["node", "gpu", "pid"],
        value_name = "TARGET"
    )]
    pub(crate) targets: Vec<String>,
    /// Label selector, for example app=vllm
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with_all = ["node", "gpu", "pid"])]
    pub(crate) selector: Option<String>,
    /// Show all GPUs of a node and the pods that use them; with --gpu, search only this node
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Show the pods that use a GPU or MIG instance, given its UUID or a unique prefix
    #[arg(long, value_name = "UUID")]
    pub(crate) gpu: Option<String>,
    /// Show the pod of a process on this machine
    #[arg(long, value_name = "PID", conflicts_with_all = ["node", "gpu"])]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = MapFormat::Text)]
    pub(crate) output: MapFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapFormat {
    /// A tree with the source of each link
    Text,
    /// A tree with every source and its confidence
    Wide,
    /// dualplane.map/v1
    Json,
    /// The JSON document as YAML
    Yaml,
}
