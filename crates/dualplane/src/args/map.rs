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
    /// Pods with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with_all = ["node", "gpu", "pid"])]
    pub(crate) selector: Option<String>,
    /// All GPUs of a node and who holds them; with --gpu, where to look
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Who holds a GPU or MIG instance: its UUID, or a beginning that only it has
    #[arg(long, value_name = "UUID")]
    pub(crate) gpu: Option<String>,
    /// The pod of a process of this machine
    #[arg(long, value_name = "PID", conflicts_with_all = ["node", "gpu"])]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = MapFormat::Text)]
    pub(crate) output: MapFormat,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapFormat {
    /// A tree, each link with its source
    Text,
    /// The same with every source and its confidence
    Wide,
    /// dualplane.map/v1
    Json,
    /// The same as YAML
    Yaml,
}
