//! Arguments of `agent` and `incidents`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{Colour, examples};

/// Where the agent keeps what it records.
pub(crate) const STATE: &str = "/var/lib/dualplane";

/// Where the kubelet tells what it gave.
const POD_RESOURCES: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// Directory for the ring buffer and the incidents
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Disk budget for both; the oldest data is deleted first
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub(crate) disk: String,
    /// Address that serves /metrics, /livez, /readyz and /incidents, or `none`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10980")]
    pub(crate) listen: Listen,
    /// Serve /incidents to other machines too; bundles contain logs
    #[arg(long)]
    pub(crate) serve_incidents: bool,
    /// Node name
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub(crate) node: Option<String>,
    /// systemd unit to record in addition to containers, for example vllm.service; repeatable
    #[arg(long, value_name = "UNIT")]
    pub(crate) service: Vec<String>,
    /// cgroup root of the kubelet, if it runs with --cgroup-root; repeatable
    #[arg(long, value_name = "GROUP")]
    pub(crate) cgroup_root: Vec<String>,
    /// Kubeconfig for the API server [default: the service account of the agent's pod]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Do not contact an API server, even with a service account
    #[arg(long)]
    pub(crate) no_cluster: bool,
    /// Also copy each incident to this directory; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) copy_to: Vec<PathBuf>,
    /// Also send each incident to this URL; {file}, {id}, {node}, {namespace} and {pod} are replaced; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) send_to: Vec<String>,
    /// HTTP method for --send-to
    #[arg(long, value_enum, default_value_t = SendMethod::Put, value_name = "METHOD", requires = "send_to")]
    pub(crate) send_method: SendMethod,
    /// File with extra headers for --send-to, one `Name: value` per line; read once at start-up, values are kept secret
    #[arg(long, value_name = "FILE", requires = "send_to")]
    pub(crate) send_headers: Option<PathBuf>,
    /// File with the CA certificates (PEM) that --send-to trusts instead of the public ones
    #[arg(long, value_name = "FILE", requires = "send_to")]
    pub(crate) send_ca: Option<PathBuf>,
    /// File with the bearer token for --send-to; read again before each request
    #[arg(long, value_name = "FILE", requires = "send_to")]
    pub(crate) send_token: Option<PathBuf>,
    /// Allow sending the token to another host without TLS
    #[arg(long, requires = "send_token")]
    pub(crate) send_token_in_clear: bool,
    /// Path of the NVML library, if the loader cannot find it
    #[arg(long, value_name = "FILE")]
    pub(crate) nvml: Option<PathBuf>,
    /// Without NVML, read GPUs from this page of the DCGM exporter, for example http://localhost:9400/metrics
    #[arg(long, value_name = "URL")]
    pub(crate) dcgm_exporter: Option<String>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) run_for: Option<u64>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// How incidents are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SendMethod {
    /// PUT the bundle and its summary as two objects
    Put,
    /// POST both to the same URL
    Post,
}

/// Where the host's files are, for an agent that sees them elsewhere, and for tests.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HostArgs {
    /// The host's cgroup file system
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup", hide_short_help = true)]
    pub(crate) cgroups: PathBuf,
    /// The host's /proc
    #[arg(long, value_name = "DIR", default_value = "/proc", hide_short_help = true)]
    pub(crate) proc_root: PathBuf,
    /// The host's /var/log
    #[arg(long, value_name = "DIR", default_value = "/var/log", hide_short_help = true)]
    pub(crate) var_log: PathBuf,
    /// The kubelet's pod-resources socket, which lists the GPUs of each container, or `none`
    #[arg(long, value_name = "SOCKET", default_value = POD_RESOURCES, hide_short_help = true)]
    pub(crate) pod_resources: PathBuf,
    /// The kernel log device
    #[arg(long, value_name = "FILE", default_value = "/dev/kmsg", hide_short_help = true)]
    pub(crate) kmsg: PathBuf,
    /// Simulate the GPUs of this JSON file instead of reading the driver; see docs/agent.md
    #[arg(long, value_name = "FILE", hide_short_help = true)]
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
            .map_err(|_| "expected an address and a port, such as 127.0.0.1:10980 or :10980".into())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentsCommand {
    /// List the recorded incidents
    #[command(after_help = examples::INCIDENTS_LS)]
    Ls {
        /// Only this namespace
        #[arg(short, long, value_name = "NAME")]
        namespace: Option<String>,
        /// Include containers that ended for an unknown reason, and incidents whose bundle was deleted
        #[arg(short, long, conflicts_with = "server")]
        all: bool,
        /// With --server: only deaths of this value, like class=host_oom_killed, node=h100-07, since=2026-11-01T00:00:00Z, q=TEXT or each=true
        #[arg(long, value_name = "KEY=VALUE", requires = "server")]
        filter: Vec<String>,
        /// With --server: so many, the newest [default: 50]
        #[arg(long, value_name = "N", requires = "server")]
        limit: Option<usize>,
        #[command(flatten)]
        common: IncidentsArgs,
    },
    /// Judge an incident again and print the report
    #[command(after_help = examples::INCIDENTS_SHOW)]
    Show {
        /// Incident ID or a unique prefix of it, or `last`
        id: String,
        /// Show every citation, action and patch
        #[arg(short, long)]
        verbose: bool,
        /// When to use colour
        #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
        color: Colour,
        #[command(flatten)]
        common: IncidentsArgs,
    },
    /// Copy the bundle of an incident to a file
    #[command(after_help = examples::INCIDENTS_EXPORT)]
    Export {
        /// Incident ID or a unique prefix of it, or `last`
        id: String,
        /// Output file, or - for standard output [default: ./ID.tar.zst]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        common: IncidentsArgs,
    },
}

#[cfg(feature = "live")]
impl IncidentsCommand {
    /// The server that is asked instead of this machine's agent.
    pub(crate) fn server(&self) -> Option<&str> {
        let (Self::Ls { common, .. } | Self::Show { common, .. } | Self::Export { common, .. }) = self;
        common.server.as_deref()
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct IncidentsArgs {
    /// The agent's state directory
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Ask the server of a fleet instead of the agent of this machine, such as `https://fleet.example:8377` (docs/server.md)
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// File with the token for --server
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) server_token: Option<PathBuf>,
    /// Certificates that --server is trusted by, PEM [default: the public ones]
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) server_ca: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = IncidentsFormat::Text)]
    pub(crate) output: IncidentsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IncidentsFormat {
    /// A table or a report
    Text,
    /// dualplane.incidents/v1 (`ls`; of a server dualplane.fleet-incidents/v1) or dualplane.verdict/v2 (`show`)
    Json,
}
