//! The command line.

mod agent;
mod change;
mod cluster;
mod map;
mod preflight;
mod top;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use self::agent::{
    AgentArgs, HostArgs, IncidentsArgs, IncidentsCommand, IncidentsFormat, Listen, SendMethod,
};
pub(crate) use self::change::{ApplyArgs, ListFormat, RollbackArgs};
pub(crate) use self::cluster::{ClusterArgs, SelectArgs, StoreArgs};
pub(crate) use self::map::{MapArgs, MapFormat};
pub(crate) use self::preflight::{CheckFormat, PreflightArgs};
pub(crate) use self::top::{SortBy, TopArgs, TopFormat};

/// Names the memory plane (host RAM or VRAM) that killed a GPU model-serving pod, the line that came first, why, and
/// what to change.
#[derive(Debug, Parser)]
#[command(name = "dualplane", version, after_help = crate::exit::help(), max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge a dead pod: from a cluster, or from files at hand
    Triage(TriageArgs),
    /// Keep a pod's evidence in one file before a restart erases it
    Capture(CaptureArgs),
    /// Who runs where: model, pod, container, GPU or MIG instance, node, driver, each link with its source
    Map(MapArgs),
    /// Both memories of each container of this machine, live; or the minutes before a death, replayed
    Top(TopArgs),
    /// Carry out a patch of a report on a cluster: shows it, asks, records it
    Apply(ApplyArgs),
    /// Undo a change that `apply` made, or list them
    Rollback(RollbackArgs),
    /// Record both planes of this machine, and keep what a death leaves
    Agent(AgentArgs),
    /// List, show and export what the agent of this machine kept
    #[command(subcommand)]
    Incidents(IncidentsCommand),
    /// Divide a model server's memory on both planes before it runs
    Plan(PlanArgs),
    /// Whether a launch fits this machine now: go, wait, or cannot fit; also as an init container
    Preflight(PreflightArgs),
    /// Settings and cards that hold a workload
    Fit(FitArgs),
    /// What is known of a class, an Xid or a signature, with sources
    Explain(ExplainArgs),
    /// Check a team's own entries for `--knowledge`
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// Print a completion script for a shell
    Completions {
        /// Shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
    /// For developers of dualplane
    #[command(subcommand, hide = true)]
    Dev(DevCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TriageArgs {
    /// Directory, one or more files, or `-`; or pod/NAME, deploy/NAME, sts/NAME, job/NAME, lws/NAME of a cluster
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
    /// Show all citations, actions and patches
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Let the class decide the exit code (table below `dualplane --help`)
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Say which evidence spoke against a class
    #[arg(long, value_name = "CLASS")]
    pub(crate) why_not: Option<String>,
    /// Do not mask secrets and user prompts in quoted lines
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// Add or override knowledge with the TOML files of a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) knowledge: Option<PathBuf>,
    /// When to colour
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
    #[arg(required_unless_present_any = ["selector", "all_namespaces", "failed"], value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// File to write: a .tar.zst, or - for standard output; else dualplane-NAMESPACE-NAME-TIME.tar.zst here
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
    /// Card or MIG slice of the catalogue: H100-80GB, A100-80GB:2g.20gb
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// What CUDA reports as the card's total: 79.18GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) gpu_memory: Option<String>,
    /// Version of the engine; it decides the formulas
    #[arg(long, value_name = "V")]
    pub(crate) engine_version: Option<String>,
    /// Model directory, config.json or id, where the command's path is not on this machine
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Quantisation of a GGUF that is not at hand: Q4_K_M (llama.cpp, Ollama)
    #[arg(long, value_name = "TYPE")]
    pub(crate) quant: Option<String>,
    /// Drafter's directory, config.json or id, where the one of --speculative-config is not on this machine
    #[arg(long, value_name = "MODEL")]
    pub(crate) drafter: Option<String>,
    /// Kubernetes manifest: command, image, environment, resources and volumes are read from it
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Take command and version out of a triage TARGET
    #[arg(long, value_name = "TARGET")]
    pub(crate) from_incident: Option<PathBuf>,
    /// Start-up log of vLLM: compare it term by term, and calibrate with it
    #[arg(long, value_name = "FILE")]
    pub(crate) from_log: Option<PathBuf>,
    /// Residual of a start-up (TOML or JSON): written with --from-log, read without
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Fetch the model's configuration from Hugging Face (HF_ENDPOINT, HF_TOKEN)
    #[arg(long)]
    pub(crate) online: bool,
    /// The engine's own command line, behind `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// The pool that the engine printed: 41.60GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) available_kv: Option<String>,
    /// What is free on the card before the start: 12.18GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) free_gpu_memory: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) output: PlanFormat,
    /// Print what to paste instead of the plan
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) emit: Option<EmitWhat>,
    /// Show every term with its formula and source
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Let the verdict decide the exit code: 0 fits, 10 uncertain, 32 refused
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// Tokens of a prompt: p50=1000,p99=8000, or one number
    #[arg(long, value_name = "TOKENS")]
    pub(crate) input_tokens: String,
    /// Tokens of an answer, in the same way
    #[arg(long, value_name = "TOKENS")]
    pub(crate) output_tokens: String,
    /// Requests at once
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: u64,
    /// How much is left to chance
    #[arg(long, value_enum, default_value_t = TemplateName::Safe)]
    pub(crate) template: TemplateName,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = FitFormat::Text)]
    pub(crate) output: FitFormat,
    /// Show all alternatives
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// When to colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TemplateName {
    /// All requests at their longest at once, at the lower bound of the pool
    Safe,
    /// Requests of the usual length, at the expected pool
    Performance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitFormat {
    /// One screen for people
    Text,
    /// dualplane.fit/v1
    Json,
    /// For a ticket
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// One screen for people
    Text,
    /// dualplane.plan/v1
    Json,
    /// The same as YAML
    Yaml,
    /// For a ticket
    Markdown,
    /// A picture
    Svg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitWhat {
    /// The engine's flags
    Flags,
    /// resources, volumeMounts and volumes
    Resources,
    /// Helm values
    Values,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// A class (host_oom_killed), an Xid (79, xid.79) or a signature id (vllm.free_memory_below_desired)
    #[arg(value_name = "CLASS|XID|SIGNATURE")]
    pub(crate) subject: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// Add or override knowledge with the TOML files of a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) knowledge: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KnowledgeCommand {
    /// Validate the entries of a folder and run their examples
    Check {
        /// Folder of TOML files, laid out as `knowledge/`
        dir: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One screen for people
    Text,
    /// dualplane.verdict/v1
    Json,
    /// Hand-over note
    Markdown,
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

#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Measure verdicts against a labelled corpus: confusion matrix, every miss, figures with bounds
    Corpus(CorpusArgs),
    /// Measure the arithmetic of plans against what the engine's own code answered
    Oracle(OracleArgs),
    /// Plan one model many times, for measuring how long that takes
    Sweep {
        /// config.json
        config: PathBuf,
        /// How many plans
        #[arg(long, default_value_t = 100_000)]
        points: u64,
    },
    /// Measure plans against what real start-ups printed
    Startups(StartupsArgs),
    /// Draw what `triage` prints as SVG, for documents
    Picture {
        /// Target of `triage`
        target: PathBuf,
    },
    /// Print the literals of all signatures, one a line, for `grep -F -f`
    Literals,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OracleArgs {
    /// Answers, one JSON object a line
    pub(crate) answers: PathBuf,
    /// Folders of the configurations that the answers name; can be repeated
    #[arg(long, required = true)]
    pub(crate) configs: Vec<PathBuf>,
    /// Least share of rows with equal blocks, tokens and concurrency, percent
    #[arg(long, default_value_t = 99.0)]
    pub(crate) min_kv: f64,
    /// Least share of rows with weights within 0.1 %, percent
    #[arg(long, default_value_t = 98.0)]
    pub(crate) min_weights: f64,
    /// Print this many misses of each table
    #[arg(long, default_value_t = 20)]
    pub(crate) misses: usize,
    /// Only rows whose id holds this text
    #[arg(long)]
    pub(crate) only: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StartupsArgs {
    /// Start-ups, one row each (CSV)
    pub(crate) rows: PathBuf,
    /// Facts of their models (JSON)
    #[arg(long)]
    pub(crate) models: PathBuf,
    /// Folders of configurations that the facts name; can be repeated
    #[arg(long)]
    pub(crate) configs: Vec<PathBuf>,
    /// Least share of rows within 1 % in tokens and concurrency, percent
    #[arg(long, default_value_t = 95.0)]
    pub(crate) min_kv: f64,
    /// Least share of rows with weights within 0.4 %, and of pools within their band, percent
    #[arg(long, default_value_t = 90.0)]
    pub(crate) min_weights: f64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CorpusArgs {
    /// Folder of incidents, each with a truth.json
    pub(crate) dir: PathBuf,
    /// Least share of right classes, percent
    #[arg(long, default_value_t = 97.0)]
    pub(crate) min_class: f64,
    /// Least share of right trigger lines among the cases that have one, percent
    #[arg(long, default_value_t = 97.0)]
    pub(crate) min_trigger: f64,
    /// Print misses of the phase as well
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
