//! The command line.

mod agent;
mod change;
mod cluster;
mod dashboards;
mod examples;
mod gate;
mod guard;
mod lint;
mod map;
mod measure;
mod place;
mod preflight;
mod profile;
mod rehearse;
mod resources;
mod rules;
mod top;
mod tune;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use dualplane_base::Class;
use dualplane_base::deprecation::DEPRECATED;

pub(crate) use self::agent::{
    AgentArgs, HostArgs, IncidentsArgs, IncidentsCommand, IncidentsFormat, Listen, SendMethod,
};
pub(crate) use self::change::{ApplyArgs, ListFormat, RollbackArgs};
pub(crate) use self::cluster::{ClusterArgs, SelectArgs, StoreArgs};
pub(crate) use self::dashboards::{DashboardsArgs, DashboardsFormat};
pub(crate) use self::gate::{GateArgs, GateFormat};
pub(crate) use self::guard::{GuardArgs, GuardCommand, GuardFormat, GuardServeArgs};
pub(crate) use self::lint::{Emit, FailOn, Least, LintArgs, LintFormat};
pub(crate) use self::map::{MapArgs, MapFormat};
pub(crate) use self::measure::{ApiKind, LoadPattern, MeasureArgs, MeasureFormat};
pub(crate) use self::place::with_place_of_flags;
pub(crate) use self::preflight::{CheckFormat, PreflightArgs};
pub(crate) use self::profile::{ProfileArgs, ProfileFormat};
pub(crate) use self::rehearse::{RehearseArgs, RehearseFormat};
pub(crate) use self::resources::{ResourcesArgs, ResourcesFormat};
pub(crate) use self::rules::{RulesArgs, RulesFormat};
pub(crate) use self::top::{SortBy, TopArgs, TopFormat};
pub(crate) use self::tune::{TuneArgs, TuneFormat};

/// Find out which memory killed a GPU model-serving pod, host RAM or VRAM, which error came first, and what to change
#[derive(Debug, Parser)]
#[command(name = "dualplane", version, after_help = examples::top_level(), max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line, with what goes said in its help.
pub(crate) fn command() -> clap::Command {
    crate::deprecated::marked(Args::command(), DEPRECATED)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find out which memory killed a pod, from files or from a live cluster
    #[command(after_help = examples::TRIAGE)]
    Triage(TriageArgs),
    /// Save a pod's evidence to one file before a restart erases it
    #[command(after_help = examples::CAPTURE)]
    Capture(CaptureArgs),
    /// Show which model, pod and container uses which GPU, node and driver, with the source of each link
    #[command(after_help = examples::MAP)]
    Map(MapArgs),
    /// Watch host RAM and VRAM of every container on this machine, or replay the minutes before a failure
    #[command(after_help = examples::TOP)]
    Top(TopArgs),
    /// Apply the fix from a report to a live workload, after a dry run and a confirmation
    #[command(after_help = examples::APPLY)]
    Apply(ApplyArgs),
    /// Undo a change made by `apply`, or list all such changes
    #[command(after_help = examples::ROLLBACK)]
    Rollback(RollbackArgs),
    /// Record host RAM and VRAM on this node and keep the evidence of every container that dies
    #[command(after_help = examples::AGENT)]
    Agent(AgentArgs),
    /// Stand before model servers and admit, queue or refuse requests so that neither memory overflows
    #[command(after_help = examples::GUARD)]
    Guard(GuardArgs),
    /// List, show and export the incidents recorded by the agent on this machine, or kept by the server of a fleet (--server)
    #[command(subcommand, after_help = examples::INCIDENTS)]
    Incidents(IncidentsCommand),
    /// Keep and show the incidents of a fleet: runs the program `dualplane-server` with these arguments
    #[command(after_help = examples::SERVER)]
    Server(ServerArgs),
    /// Predict how much VRAM and host RAM a model server needs, before it starts
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Check whether a model server fits on this machine right now; also runs as an init container
    #[command(after_help = examples::PREFLIGHT)]
    Preflight(PreflightArgs),
    /// Find the settings and GPUs that can carry a workload
    #[command(after_help = examples::FIT)]
    Fit(FitArgs),
    /// Replay requests against a plan: whether the KV cache holds them, who waits, and how much more would be safe
    #[command(after_help = examples::REHEARSE)]
    Rehearse(RehearseArgs),
    /// Check manifests of model servers for what will run out of memory, and print the exact fix
    #[command(after_help = examples::LINT)]
    Lint(LintArgs),
    /// Print alerts and recording rules for Prometheus over both memory planes, with tests for promtool
    #[command(after_help = examples::RULES)]
    Rules(RulesArgs),
    /// Print dashboards for Grafana over both memory planes, which read the records of `rules`
    #[command(after_help = examples::DASHBOARDS)]
    Dashboards(DashboardsArgs),
    /// Compute requests and limits from the measured memory of a workload, beside what is set now
    #[command(after_help = examples::RESOURCES)]
    Resources(ResourcesArgs),
    /// Count the shape of requests in logs, traces and metrics, without any of their text
    #[command(after_help = examples::PROFILE)]
    Profile(ProfileArgs),
    /// Drive a model server with a shape of requests and report what both memory planes do meanwhile
    #[command(after_help = examples::MEASURE)]
    Measure(MeasureArgs),
    /// Hold measured builds against a policy before a release: headroom of both planes, regressions, SLO
    #[command(after_help = examples::GATE)]
    Gate(GateArgs),
    /// Say which lever to move on a model server, from what was measured, and move one after another
    #[command(after_help = examples::TUNE)]
    Tune(TuneArgs),
    /// Explain a failure class, a rule of the verdict, an Xid code or a log signature, with sources
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Print the runbook of a failure class: first command, its neighbours, what to change and what not
    #[command(after_help = examples::RUNBOOK)]
    Runbook(RunbookArgs),
    /// Work with your team's own knowledge files
    #[command(subcommand, after_help = examples::KNOWLEDGE)]
    Knowledge(KnowledgeCommand),
    /// Check whether this version reads what an earlier one wrote, and list what later ones take away
    #[command(after_help = examples::UPGRADE_CHECK)]
    UpgradeCheck(UpgradeCheckArgs),
    /// Print a shell completion script
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to generate the script for
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page in roff format, or write all of them
    #[command(after_help = examples::MAN)]
    Man(ManArgs),
    /// Tools for developers of dualplane
    #[cfg(feature = "dev")]
    #[command(subcommand, hide = true)]
    Dev(dualplane_dev::Tool),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// Arguments of `dualplane-server`, such as `demo` or `serve --data DIR`
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<std::ffi::OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpgradeCheckArgs {
    /// Files and directories; /var/lib/dualplane holds what the agent kept. Without one: what later releases take away
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = UpgradeFormat::Text)]
    pub(crate) output: UpgradeFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpgradeFormat {
    /// What is not read, and how many documents are
    Text,
    /// dualplane.upgrade/v1
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The command, such as `triage` or `incidents ls` [default: the program itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TriageArgs {
    /// A directory, an archive, files, or - for standard input; or a cluster object: pod/NAME, deploy/NAME, sts/NAME,
    /// job/NAME, lws/NAME
    #[arg(required_unless_present_any = ["selector", "all_namespaces", "failed"], value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) stores: StoreArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// Show every citation, action and patch
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Model directory, config.json, GGUF file or model ID that the server loads, for the memory it should take
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Exit with the code of the failure class (see `dualplane --help`)
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Explain why this class was not chosen
    #[arg(long, value_name = "CLASS")]
    pub(crate) why_not: Option<String>,
    /// Show secrets and user prompts in quoted lines instead of masking them
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// Directory of TOML files that add or override knowledge entries
    #[arg(long, value_name = "DIR")]
    pub(crate) knowledge: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

impl TriageArgs {
    /// As the command line says it for one file.
    pub(crate) fn of_file(path: &std::path::Path, output: Format, verbose: bool, color: Colour) -> Self {
        Self {
            targets: vec![path.display().to_string()],
            select: SelectArgs::default(),
            cluster: ClusterArgs::default(),
            stores: StoreArgs::default(),
            output,
            verbose,
            model: None,
            exit_code: false,
            why_not: None,
            show_secrets: false,
            knowledge: None,
            color,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    /// pod/NAME, deploy/NAME, sts/NAME, job/NAME or lws/NAME
    #[arg(required_unless_present_any = ["selector", "all_namespaces", "failed", "url"], value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// An engine without a cluster: its metrics, version and models from http://HOST:PORT; a key is read from the file that $DUALPLANE_ENGINE_TOKEN_FILE names
    #[arg(long, value_name = "URL", conflicts_with_all = ["targets", "selector", "all_namespaces", "failed"])]
    pub(crate) url: Option<String>,
    /// Output file (.tar.zst), or - for standard output [default: ./dualplane-NAMESPACE-NAME-TIME.tar.zst]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) stores: StoreArgs,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LaunchArgs {
    /// Model ID, directory, config.json or GGUF file, for an engine's defaults or with flags alone behind `--`
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    pub(crate) named: Option<String>,
    /// GPU model or MIG profile, for example H100-80GB or A100-80GB:2g.20gb
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// Total memory that CUDA reports for the GPU, for example 79.18GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) gpu_memory: Option<String>,
    /// Engine version; the formulas depend on it
    #[arg(long, value_name = "V")]
    pub(crate) engine_version: Option<String>,
    /// Model directory, config.json or model ID, if the command's path does not exist on this machine
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Quantisation of a GGUF model whose file is not available, for example Q4_K_M (llama.cpp, Ollama)
    #[arg(long, value_name = "TYPE")]
    pub(crate) quant: Option<String>,
    /// Draft model directory, config.json or ID, if the path in --speculative-config does not exist on this machine
    #[arg(long, value_name = "MODEL")]
    pub(crate) drafter: Option<String>,
    /// Kubernetes manifest to read the command, image, environment, resources and volumes from
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Read the command and version from a `triage` target
    #[arg(long, value_name = "TARGET")]
    pub(crate) from_incident: Option<PathBuf>,
    /// vLLM start-up log to compare with the prediction, term by term, and to calibrate it
    #[arg(long, value_name = "FILE")]
    pub(crate) from_log: Option<PathBuf>,
    /// Calibration file (TOML or JSON): written when --from-log is given, read otherwise
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Fetch the model configuration from Hugging Face (honours HF_ENDPOINT, HF_TOKEN and HF_TOKEN_PATH)
    #[arg(long)]
    pub(crate) online: bool,
    /// Plan in spite of flags that the engine does not have
    #[arg(long)]
    pub(crate) allow_unknown_flags: bool,
    /// The engine's own command line, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl LaunchArgs {
    /// The model that the arguments name.
    pub(crate) fn model(&self) -> Option<&str> {
        self.named.as_deref().or(self.model.as_deref())
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// KV cache size that the engine printed, for example 41.60GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) available_kv: Option<String>,
    /// Free memory on the GPU before the start, for example 12.18GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) free_gpu_memory: Option<String>,
    /// Parameters of a dense model that is nowhere, for example 14B; with its cache as a wide range
    #[arg(long, value_name = "COUNT")]
    pub(crate) params: Option<String>,
    /// Its layers, if known
    #[arg(long, value_name = "N", requires = "params")]
    pub(crate) layers: Option<u64>,
    /// Its data type
    #[arg(long, value_name = "TYPE", default_value = "bfloat16", requires = "params")]
    pub(crate) dtype: String,
    /// Kind of requests: chat, code, rag, long, batch or agents
    #[arg(long, value_name = "PROFILE")]
    pub(crate) traffic: Option<String>,
    /// Requests as a file says them (TOML or JSON, dualplane.shape/v1)
    #[arg(long, value_name = "FILE", conflicts_with = "traffic")]
    pub(crate) shape: Option<PathBuf>,
    /// Requests at once, instead of the shape's
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u64>,
    /// Without --gpu: TOML file with the price of one GPU for an hour, for example H100-80GB = 2.49
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// List the models that are known by name
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) list_models: Option<String>,
    /// List the GPUs and cloud machines that are known by name
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) list_gpus: Option<String>,
    /// List the engines, with the versions whose formulas are known
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) list_engines: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) output: PlanFormat,
    /// Print flags, resources, Helm values or a whole object to paste, instead of the plan
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) emit: Option<EmitWhat>,
    /// Show every term with its formula and source
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Exit with the code of the verdict: 0 fits, 10 uncertain, else the class that ends the start (20, 30, 32, 34 or 35)
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// Prompt length in tokens: p50=1000,p99=8000, or one number
    #[arg(long, value_name = "TOKENS")]
    pub(crate) input_tokens: String,
    /// Answer length in tokens, in the same form
    #[arg(long, value_name = "TOKENS")]
    pub(crate) output_tokens: String,
    /// Concurrent requests
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: u64,
    /// How much headroom to plan for
    #[arg(long, value_enum, default_value_t = TemplateName::Safe)]
    pub(crate) template: TemplateName,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = FitFormat::Text)]
    pub(crate) output: FitFormat,
    /// Show every alternative
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TemplateName {
    /// Every request at its longest at the same time, with the KV cache at its lower bound
    Safe,
    /// Requests of typical length, with the KV cache at its expected size
    Performance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitFormat {
    /// One screen of text
    Text,
    /// dualplane.fit/v1
    Json,
    /// Markdown for a ticket
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// One screen of text
    Text,
    /// dualplane.plan/v1
    Json,
    /// The JSON document as YAML
    Yaml,
    /// Markdown for a ticket
    Markdown,
    /// A diagram
    Svg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitWhat {
    /// Engine flags
    Flags,
    /// Kubernetes resources, volumeMounts and volumes
    Resources,
    /// Helm values
    Values,
    /// A whole Deployment; a LeaderWorkerSet where several pods serve one model
    Manifest,
    /// A whole StatefulSet, with a volume that keeps the weights
    Statefulset,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// A class (host_oom_killed), a rule (kernel_oom_kill), an Xid (79, xid.79) or a signature
    /// (vllm.free_memory_below_desired)
    #[arg(
        value_name = "CLASS|RULE|XID|SIGNATURE",
        required_unless_present = "rules",
        conflicts_with = "rules"
    )]
    pub(crate) subject: Option<String>,
    /// List the rules of a verdict in the order in which they are asked
    #[arg(long)]
    pub(crate) rules: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub(crate) output: ExplainFormat,
    /// Directory of TOML files that add or override knowledge entries
    #[arg(long, value_name = "DIR")]
    pub(crate) knowledge: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// A key and its value a line
    Text,
    /// The same for programs
    Json,
    /// The page docs/rules.md, with --rules; else as text
    Markdown,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunbookArgs {
    /// The class that a report names; without it, all are listed
    #[arg(value_parser = class_word())]
    pub(crate) class: Option<Class>,
}

/// A class by its word. As listed values, so that completions and errors name them.
fn class_word() -> impl TypedValueParser<Value = Class> {
    PossibleValuesParser::new(Class::ALL.iter().map(|c| c.as_str()))
        .try_map(|word| Class::ALL.iter().copied().find(|c| c.as_str() == word).ok_or("no class"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum KnowledgeCommand {
    /// Validate the entries of a directory and run their examples and near misses
    #[command(after_help = examples::KNOWLEDGE_CHECK)]
    Check {
        /// Directory of TOML files, laid out like `knowledge/`
        dir: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One screen of text
    Text,
    /// dualplane.verdict/v2
    Json,
    /// Hand-over note in Markdown
    Markdown,
    /// One page for a browser, with both planes over time where the evidence has series
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
