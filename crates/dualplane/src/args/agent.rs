//! Arguments of `agent` and `incidents`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::Colour;

/// Where the agent keeps what it records.
pub(crate) const STATE: &str = "/var/lib/dualplane";

/// Where the kubelet tells what it gave.
const POD_RESOURCES: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// Folder of the ring and the incidents
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Disk for both, the oldest goes first
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub(crate) disk: String,
    /// Where /metrics, /healthz and /incidents answer; `none` for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10980")]
    pub(crate) listen: Listen,
    /// Answer /incidents on an address that is not of this machine alone: bundles hold logs
    #[arg(long)]
    pub(crate) serve_incidents: bool,
    /// Name of the node
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub(crate) node: Option<String>,
    /// A unit of systemd to record besides containers: vllm.service; can be repeated
    #[arg(long, value_name = "UNIT")]
    pub(crate) service: Vec<String>,
    /// Root of the kubelet's groups, where it has one of its own; can be repeated
    #[arg(long, value_name = "GROUP")]
    pub(crate) cgroup_root: Vec<String>,
    /// Ask the API server of this file; without it the account of the pod, where the agent runs in one
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Do not ask an API server, even in a pod that has an account
    #[arg(long)]
    pub(crate) no_cluster: bool,
    /// Copy each incident into a folder as well; can be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) copy_to: Vec<PathBuf>,
    /// Send each incident to a URL as well: {file}, {id}, {node}, {namespace} and {pod} are filled in; can be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) send_to: Vec<String>,
    /// By PUT to a name of its own, or by POST to one address
    #[arg(long, value_enum, default_value_t = SendMethod::Put, value_name = "METHOD", requires = "send_to")]
    pub(crate) send_method: SendMethod,
    /// File with more headers for --send-to, one `Name: value` in a line: values are secrets, and are read at the start
    #[arg(long, value_name = "FILE", requires = "send_to")]
    pub(crate) send_headers: Option<PathBuf>,
    /// File with the certificates (PEM) that --send-to trusts instead of the public ones
    #[arg(long, value_name = "FILE", requires = "send_to")]
    pub(crate) send_ca: Option<PathBuf>,
    /// File with the bearer token for --send-to, read anew each time
    #[arg(long, value_name = "FILE", requires = "send_to")]
    pub(crate) send_token: Option<PathBuf>,
    /// Send the token without TLS too, to another host than this
    #[arg(long, requires = "send_token")]
    pub(crate) send_token_in_clear: bool,
    /// The driver's library, where the loader does not find it
    #[arg(long, value_name = "FILE")]
    pub(crate) nvml: Option<PathBuf>,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) run_for: Option<u64>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// How incidents are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SendMethod {
    /// The bundle, then its summary, each to a name of its own
    Put,
    /// Both to one address
    Post,
}

/// Where the host's files are, for an agent that sees them elsewhere, and for tests.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HostArgs {
    /// Where the host's control groups are
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup", hide_short_help = true)]
    pub(crate) cgroups: PathBuf,
    /// Where the host's /proc is
    #[arg(long, value_name = "DIR", default_value = "/proc", hide_short_help = true)]
    pub(crate) proc_root: PathBuf,
    /// Where the host's /var/log is
    #[arg(long, value_name = "DIR", default_value = "/var/log", hide_short_help = true)]
    pub(crate) var_log: PathBuf,
    /// The kubelet's pod-resources socket, which tells the GPUs of a container; `none` to leave it alone
    #[arg(long, value_name = "SOCKET", default_value = POD_RESOURCES, hide_short_help = true)]
    pub(crate) pod_resources: PathBuf,
    /// The kernel's messages
    #[arg(long, value_name = "FILE", default_value = "/dev/kmsg", hide_short_help = true)]
    pub(crate) kmsg: PathBuf,
    /// Play a table of GPU samples instead of asking the driver
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) gpu_table: Option<PathBuf>,
}

/// An address, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Nowhere.
    None,
    /// There.
    At(SocketAddr),
}

impl std::str::FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        // `:10980` is every address, as many programs have it.
        let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
        full.parse()
            .map(Self::At)
            .map_err(|_| "it is an address and a port, such as 127.0.0.1:10980 or :10980".into())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentsCommand {
    /// List what the agent kept
    Ls {
        /// Only of a namespace
        #[arg(short, long, value_name = "NAME")]
        namespace: Option<String>,
        /// Ends that nobody called a death as well, and incidents whose bundle had to go
        #[arg(short, long)]
        all: bool,
        #[command(flatten)]
        common: IncidentsArgs,
    },
    /// Judge an incident again and show the report
    Show {
        /// Its id, or the beginning of it; `last` is the last one
        id: String,
        /// Show all citations, actions and patches
        #[arg(short, long)]
        verbose: bool,
        /// When to colour
        #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
        color: Colour,
        #[command(flatten)]
        common: IncidentsArgs,
    },
    /// Copy the bundle of an incident
    Export {
        /// Its id, or the beginning of it; `last` is the last one
        id: String,
        /// File to write, or - for standard output; else ID.tar.zst here
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        common: IncidentsArgs,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct IncidentsArgs {
    /// Folder of the agent
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = IncidentsFormat::Text)]
    pub(crate) output: IncidentsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IncidentsFormat {
    /// For people
    Text,
    /// `ls`: dualplane.incidents/v1; `show`: dualplane.verdict/v1
    Json,
}
