//! Flags of `tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{ClusterArgs, Colour};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TuneArgs {
    /// Report of `measure`: which branch holds, and which lever to move
    #[arg(value_name = "REPORT", required_unless_present_any = ["run", "log", "live"], conflicts_with = "run")]
    pub(crate) report: Option<PathBuf>,
    /// A server that runs, or its page of metrics: what holds there now, without sending it anything
    #[arg(long, value_name = "URL", conflicts_with_all = ["report", "run", "log"])]
    pub(crate) live: Option<String>,
    /// With --live: a process of the server on this machine, whose RAM, processors and cards are read as well
    #[arg(long, value_name = "PID", requires = "live")]
    pub(crate) pid: Option<u32>,
    /// With --live: how many seconds are watched
    #[arg(long, value_name = "N", default_value_t = 30, requires = "live", value_parser = clap::value_parser!(u32).range(2..=86_400))]
    pub(crate) seconds: u32,
    /// The engine whose settings are moved [default: the report's, or that of the command line]
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// Move levers one after another: measure, keep or go back, until nothing brings more
    #[arg(long, requires = "log")]
    pub(crate) run: bool,
    /// With --run: where the server answers when it is started; `dualplane measure` sends it requests
    #[arg(long, value_name = "URL", requires = "run", conflicts_with = "measure")]
    pub(crate) target: Option<String>,
    /// With --run: the workload that is moved: deploy/NAME, sts/NAME or ds/NAME. Each move is an `apply` that waits for its pods, and
    /// what brings nothing is rolled back
    #[arg(long, value_name = "KIND/NAME", requires = "run", conflicts_with = "command")]
    pub(crate) to: Option<String>,
    /// With --to: do not ask for confirmation; required without a terminal
    #[arg(short, long, requires = "to")]
    pub(crate) yes: bool,
    /// With --to: change the workload even if Helm, Argo CD, Flux or an operator will revert it
    #[arg(long, requires = "to")]
    pub(crate) force_managed: bool,
    /// With --to: how long a move may take until all pods serve, for example 20m
    #[arg(long, value_name = "TIME", default_value = "20m", requires = "to", value_parser = super::cluster::duration)]
    pub(crate) rollout_timeout: Duration,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// With --target: flags of `dualplane measure` for a step
    #[arg(
        long,
        value_name = "FLAGS",
        requires = "target",
        allow_hyphen_values = true,
        default_value = "--traffic chat --concurrency 32 --duration 60s"
    )]
    pub(crate) load: String,
    /// What measures a step, a line for the shell: it starts $SERVER, sends requests, and writes a report of `measure` to
    /// standard output
    #[arg(long, value_name = "LINE", requires = "run")]
    pub(crate) measure: Option<String>,
    /// Each step is written to this file; where it is there, the search goes on. Without --run it is shown
    #[arg(long, value_name = "FILE", conflicts_with = "report")]
    pub(crate) log: Option<PathBuf>,
    /// The card that moves are planned and rehearsed for [default: the report's]
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// Rehearse a move with these requests (dualplane.shape/v1, see `dualplane profile`)
    #[arg(long, value_name = "FILE", conflicts_with = "traffic")]
    pub(crate) shape: Option<PathBuf>,
    /// Rehearse a move with requests of this kind: chat, code, rag, long, batch or agents
    #[arg(long, value_name = "PROFILE")]
    pub(crate) traffic: Option<String>,
    /// Requests a second of the rehearsal [default: the report's]
    #[arg(long, value_name = "N", value_parser = super::rehearse::positive)]
    pub(crate) rate: Option<f64>,
    /// Moves, at most
    #[arg(long, value_name = "N", default_value_t = 8, requires = "run", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) steps: u16,
    /// What chance is made of where noise is estimated
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = TuneFormat::Text)]
    pub(crate) output: TuneFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// The server's command line to begin with
    #[arg(last = true, value_name = "COMMAND", requires = "run")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TuneFormat {
    /// Lines for people
    Text,
    /// dualplane.tune/v1
    Json,
}
