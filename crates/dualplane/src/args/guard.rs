//! Arguments of `dualplane guard`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::examples;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GuardCommand>,
    #[command(flatten)]
    pub(crate) serve: GuardServeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GuardServeArgs {
    /// Configuration file; read again on SIGHUP
    #[arg(long, value_name = "FILE", required_unless_present = "upstream")]
    pub(crate) config: Option<PathBuf>,
    /// A server, without a configuration file: http://HOST:PORT; repeatable
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(crate) upstream: Vec<String>,
    /// Address for requests, or `stdin` for a listening socket there [default: 127.0.0.1:8010]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Address that serves /metrics, /status, /livez and /readyz, or `none` [default: 127.0.0.1:10981]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// Send every request and only count what would have been queued or refused
    #[arg(long)]
    pub(crate) shadow: bool,
    /// The model's tokenizer.json, to count the tokens of each prompt before it is sent
    #[arg(long, value_name = "FILE", requires = "upstream")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// Ask the server's /tokenize for the tokens of each prompt
    #[arg(long, requires = "upstream", conflicts_with = "tokenizer")]
    pub(crate) tokenize: bool,
    /// The server's cgroup below /sys/fs/cgroup, for its host RAM
    #[arg(long, value_name = "PATH", requires = "upstream")]
    pub(crate) cgroup: Option<String>,
    /// Where its cgroup is not in sight: the page of the node's agent, http://NODE:10980/metrics
    #[arg(long, value_name = "URL", requires_all = ["upstream", "container"], conflicts_with = "cgroup")]
    pub(crate) agent: Option<String>,
    /// The server on that page: NAMESPACE/POD/CONTAINER
    #[arg(long, value_name = "NAME", requires = "agent")]
    pub(crate) container: Option<String>,
    /// One JSON line per request, without its prompt, to `stdout` or a file
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<String>,
    /// One OpenTelemetry span per request, for a collector of OTLP over HTTP: http://HOST:4318
    #[arg(long, value_name = "URL")]
    pub(crate) traces: Option<String>,
    /// Node name, a label of every metric
    #[arg(long, value_name = "NAME", env = "NODE_NAME", hide_short_help = true)]
    pub(crate) node: Option<String>,
    /// Namespace of the guard's pod, a label of every metric
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", hide_short_help = true)]
    pub(crate) namespace: Option<String>,
    /// Name of the guard's pod, a label of every metric
    #[arg(long, value_name = "NAME", env = "POD_NAME", hide_short_help = true)]
    pub(crate) pod: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Check a configuration file without listening anywhere
    #[command(after_help = examples::GUARD_CHECK)]
    Check {
        /// Configuration file
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Show what a running guard holds, queues and refuses
    #[command(after_help = examples::GUARD_STATUS)]
    Status {
        /// Its address for metrics and status
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10981")]
        admin: String,
        /// Output format
        #[arg(short, long, value_enum, default_value_t = GuardFormat::Text)]
        output: GuardFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuardFormat {
    /// Servers, queues and tenants
    Text,
    /// dualplane.guard/v1
    Json,
}
