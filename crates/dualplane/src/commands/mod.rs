//! The commands: one file each; this is their table.

#[cfg(all(feature = "live", target_os = "linux"))]
mod agent;
mod dashboards;
#[cfg(not(all(feature = "live", target_os = "linux")))]
mod elsewhere;
mod explain;
mod fit;
#[cfg(feature = "live")]
mod fleet;
mod gate;
#[cfg(all(feature = "live", target_os = "linux"))]
mod guard;
#[cfg(all(feature = "live", target_os = "linux"))]
mod incidents;
mod knowledge;
mod lint;
#[cfg(feature = "live")]
pub(crate) mod live;
mod man;
#[cfg(all(feature = "live", target_os = "linux"))]
mod measure;
mod plan;
#[cfg(all(feature = "live", target_os = "linux"))]
mod preflight;
mod profile;
mod rehearse;
mod resources;
mod rules;
mod runbook;
mod server;
#[cfg(all(feature = "live", target_os = "linux"))]
mod top;
mod triage;
mod tune;
mod upgrade_check;

use std::io;
use std::path::PathBuf;

use dualplane_core::knowledge::KnowledgeError;
use dualplane_input::InputError;
#[cfg(feature = "live")]
use dualplane_kube::api::ApiError;
use dualplane_plan::PlanError;

#[cfg(not(feature = "live"))]
use self::elsewhere::cluster as live;
#[cfg(not(all(feature = "live", target_os = "linux")))]
use self::elsewhere::node::{agent, guard, incidents, measure, preflight, top};
use crate::args::{Args, Command, KnowledgeCommand};
use crate::exit::{self, Code};

/// Flags of our own that the plan names in its errors; all others are the engine's.
const OWN_FLAGS: &[&str] = &[
    "--gpu",
    "--gpu-memory",
    "--params",
    "--layers",
    "--dtype",
    "--traffic",
    "--shape",
    "--prices",
    "--hf-overrides",
    "--engine-version",
    "--available-kv",
    "--calibration",
    "--input-tokens",
    "--output-tokens",
    "--step-time",
    "--step-time-from",
    "--trace",
    "--with",
];

/// What ends a command without its result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The target is not there or cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Path as given.
        path: PathBuf,
        /// Reason of the system.
        source: io::Error,
    },
    /// A target of `triage` is no path that is there.
    #[error("cannot read {path}: {source}")]
    NoTarget {
        /// As given.
        path: PathBuf,
        /// Reason of the system.
        source: io::Error,
        /// What may have been meant.
        hint: String,
    },
    /// A word that should name an object of a cluster does not.
    #[error("{word} is not a cluster object such as pod/NAME")]
    NoObject {
        /// As given.
        word: String,
        /// What may have been meant.
        hint: String,
    },
    /// Reading it could wait for ever.
    #[error("{path} is {what}, not a file or a directory")]
    NotAFile {
        /// Path as given.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// There is nothing to judge.
    #[error("no evidence in {0}")]
    NoEvidence(String),
    /// No series tells of a container's memory.
    #[error("no memory of a container over time in {0}")]
    NoSeries(String),
    /// No source tells of requests.
    #[error("{0}")]
    NoRequests(String),
    /// There is nothing to lint.
    #[error("no Kubernetes object, compose file or config.pbtxt in {0}")]
    NoManifests(String),
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// Embedded knowledge is broken.
    #[error("the embedded knowledge is broken: {0}")]
    Knowledge(#[from] KnowledgeError),
    /// A value could not be written as JSON.
    #[error("the report cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A file of a team's own knowledge is not what the schema asks for.
    #[error("{path}: {why}")]
    OwnKnowledge {
        /// File or folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file is not what the command reads.
    #[error("{path}: {why}")]
    NotRead {
        /// The file.
        path: PathBuf,
        /// What it is, or what is wrong with it.
        why: String,
        /// What to do.
        hint: &'static str,
    },
    /// A configuration is not what it should be.
    #[error("{path}: {why}")]
    OwnConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `explain` was asked for something that is not in the knowledge.
    #[error("{word} is neither a class nor an Xid nor a signature")]
    NotKnown {
        /// As given.
        word: String,
        /// Names that hold it.
        near: Vec<String>,
    },
    /// There is no plan.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// Nothing near to what was asked holds, so nothing is printed to paste.
    #[error("{0}")]
    NotPasted(String),
    /// More replicas would not help.
    #[cfg(feature = "live")]
    #[error("no autoscaler: {0}")]
    NotScaled(String),
    /// A flag of plan is not what it should be.
    #[error("{flag}: {why}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Nobody knows the model.
    #[error("{id} is not a directory, not a config.json and not in the catalogue")]
    NoModel {
        /// As given.
        id: String,
        /// Ids near to it.
        near: Vec<&'static str>,
    },
    /// A request to the network failed.
    #[error("{what}: {why}")]
    Online {
        /// What was asked for.
        what: String,
        /// What came back.
        why: String,
    },
    /// The cluster does not answer as it should.
    #[cfg(feature = "live")]
    #[error("{0}")]
    Cluster(#[from] ApiError),
    /// There are no pods of what was asked for: no news, rather than good news.
    #[error("{0}")]
    NoPods(String),
    /// The pods of a Job are gone; what is left of them.
    #[error("{why}")]
    PodsGone {
        /// What is left.
        why: String,
        /// Where there is more.
        hint: String,
    },
    /// Nothing of what was asked for is in trouble.
    #[error("{0}")]
    NoneFailed(String),
    /// Nothing of what was asked for is there to be mapped.
    #[error("{0}")]
    NoneMapped(String),
    /// Nothing was changed in the cluster, and why.
    #[error("{why}")]
    NotChanged {
        /// Why not.
        why: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Whether the cluster was changed is not known.
    #[error("{0}")]
    Unclear(String),
    /// The runtime for requests could not be started.
    #[error("cannot start the runtime for requests: {0}")]
    Runtime(io::Error),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Unwritable {
        /// Path.
        path: PathBuf,
        /// Reason of the system.
        source: io::Error,
    },
    /// The agent's folder cannot be used.
    #[error("{path}: {why}")]
    NoState {
        /// Folder.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// No incident has this id, or several do.
    #[error("{id} names {}", if near.is_empty() { "no incident" } else { "several incidents" })]
    NoIncident {
        /// As given.
        id: String,
        /// Those that it could be.
        near: Vec<String>,
    },
    /// Only the summary of an incident is left.
    #[error("{0}: its bundle was deleted to make room for later ones")]
    BundleGone(String),
    /// A command of a node, called on another system.
    #[cfg(not(all(feature = "live", target_os = "linux")))]
    #[error("dualplane {0} reads cgroups, the kernel's messages and the GPU driver of a Linux machine")]
    LinuxOnly(&'static str),
    /// What asks a cluster, a node or the network, called in a build that reads files only.
    #[cfg(not(all(feature = "live", target_os = "linux")))]
    #[error("this build of dualplane reads files only, and has no {0}")]
    NotBuilt(&'static str),
    /// A corpus folder without labels.
    #[cfg(feature = "dev")]
    #[error("{0} holds no incident with a truth.json")]
    NoLabels(PathBuf),
}

impl From<InputError> for Failure {
    fn from(e: InputError) -> Self {
        match e {
            InputError::Unreadable { path, source } => Self::Unreadable { path, source },
            InputError::NotAFile { path, what } => Self::NotAFile { path, what },
        }
    }
}

#[cfg(feature = "dev")]
impl From<dualplane_dev::DevError> for Failure {
    fn from(e: dualplane_dev::DevError) -> Self {
        use dualplane_dev::DevError;
        match e {
            DevError::Unreadable { path, source } => Self::Unreadable { path, source },
            DevError::Input(e) => e.into(),
            DevError::Knowledge(e) => e.into(),
            DevError::Json(e) => e.into(),
            DevError::Rejected { path, why } => Self::OwnKnowledge { path, why },
            DevError::NoLabels(path) => Self::NoLabels(path),
        }
    }
}

/// `14B`, `0.5b`: the size of a model and not its name.
fn is_size(id: &str) -> bool {
    dualplane_plan::catalogue::parameters(id).is_some()
}

impl Failure {
    /// Exit code.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Unreadable { .. }
            | Self::NoTarget { .. }
            | Self::NotAFile { .. }
            | Self::Output(_)
            | Self::NoModel { .. }
            | Self::Online { .. }
            | Self::Unwritable { .. }
            | Self::NoState { .. }
            | Self::NotRead { .. }
            | Self::Plan(PlanError::Unreadable { .. }) => exit::UNREADABLE,
            #[cfg(feature = "live")]
            Self::Cluster(_) => exit::UNREADABLE,
            #[cfg(not(all(feature = "live", target_os = "linux")))]
            Self::LinuxOnly(_) | Self::NotBuilt(_) => exit::USAGE,
            Self::OwnKnowledge { .. }
            | Self::OwnConfig { .. }
            | Self::NotKnown { .. }
            | Self::NoObject { .. }
            | Self::Flag { .. }
            | Self::Plan(PlanError::Contradiction { .. }) => exit::USAGE,
            Self::Plan(PlanError::Unsupported { .. } | PlanError::Missing { .. }) | Self::NotPasted(_) => {
                exit::UNSUPPORTED
            }
            #[cfg(feature = "live")]
            Self::NotScaled(_) => exit::UNSUPPORTED,
            Self::NotChanged { .. } => exit::NOT_CHANGED,
            Self::Unclear(_) => exit::UNCLEAR,
            #[cfg(feature = "dev")]
            Self::NoLabels(_) => exit::NO_EVIDENCE,
            Self::NoEvidence(_)
            | Self::NoSeries(_)
            | Self::NoRequests(_)
            | Self::NoManifests(_)
            | Self::NoIncident { .. }
            | Self::BundleGone(_)
            | Self::NoPods(_)
            | Self::PodsGone { .. }
            | Self::NoneFailed(_)
            | Self::NoneMapped(_) => exit::NO_EVIDENCE,
            Self::Knowledge(_) | Self::Json(_) | Self::Runtime(_) => exit::BUG,
        }
    }

    /// What to do.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the path; a TARGET is a directory, one or more files, or - for standard input".into()
            }
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run as a user who may read it, or copy it somewhere readable".into()
            }
            Self::NoTarget { hint, .. } | Self::NoObject { hint, .. } | Self::PodsGone { hint, .. } => {
                hint.clone()
            }
            Self::Unwritable { .. } => "check free space and write permission".into(),
            Self::NotAFile { path, .. } => {
                format!("pass its content on standard input: dualplane triage - < {}", path.display())
            }
            Self::NoEvidence(_) => {
                "give logs (kubectl logs --previous), kubectl get pod/events -o json, dmesg, or metrics; \
                 for example: kubectl logs POD --previous > previous.log"
                    .into()
            }
            Self::NoSeries(_) => {
                "give a bundle of the agent or of `dualplane capture --prometheus URL`; `dualplane resources` also reads \
                 answers of Prometheus' HTTP API, and with --prometheus URL a workload such as deploy/NAME -n NS"
                    .into()
            }
            Self::NoRequests(_) => {
                "give a log with input_tokens=… output_tokens=… or an engine's own (vLLM: --enable-log-requests, \
                 --enable-log-outputs and, since 0.11, VLLM_LOGGING_LEVEL=DEBUG; SGLang: --log-requests), a trace, or the URL of its metrics page; docs/profile.md lists \
                 what is read"
                    .into()
            }
            Self::NoManifests(_) => {
                "give rendered manifests: helm template CHART | dualplane lint -, or kustomize build DIR | dualplane lint -"
                    .into()
            }
            #[cfg(feature = "live")]
            Self::Cluster(fault) => cluster_hint(fault)?,
            Self::NotChanged { hint, .. } => hint.clone()?,
            Self::Unclear(_) => {
                "the change is recorded; `dualplane rollback` checks whether it was made and undoes it".into()
            }
            Self::NoPods(_) => {
                "check the namespace (-n), the selector (-l) and the context (--context)".into()
            }
            Self::NoneFailed(_) => "name a pod (pod/NAME) to judge it anyway".into(),
            Self::NoneMapped(_) => {
                "check the name and the namespace (-n); `dualplane map --node NODE` lists the GPUs of a node"
                    .into()
            }
            Self::Knowledge(_) | Self::Json(_) => {
                "this is a bug in dualplane; please report it with the command you ran".into()
            }
            Self::OwnConfig { .. } => {
                "docs/guard.md names every key; `dualplane guard check --config FILE` tries a file without listening".into()
            }
            Self::OwnKnowledge { .. } => {
                "see knowledge/README.md for the schema; `dualplane knowledge check DIR` lists every problem"
                    .into()
            }
            Self::NotRead { hint, .. } => (*hint).into(),
            Self::NotKnown { near, .. } if near.is_empty() => {
                "signatures are named <engine>.<what>; the `signature` fields of -o json show them".into()
            }
            Self::NotKnown { near, .. } => format!("did you mean: {}", near.join(", ")),
            Self::NoState { .. } => {
                "check the path and its permissions; the agent uses /var/lib/dualplane unless --state is \
                set, and only one agent can use a directory at a time"
                    .into()
            }
            #[cfg(not(all(feature = "live", target_os = "linux")))]
            Self::NotBuilt(_) => {
                "build it with all features: cargo build --release -p dualplane (without --no-default-features)".into()
            }
            #[cfg(not(all(feature = "live", target_os = "linux")))]
            Self::LinuxOnly(_) => {
                "run it on the node (deploy/agent.yaml); judge its bundles here with `dualplane \
                triage`"
                    .into()
            }
            Self::NoIncident { near, .. } if near.is_empty() => {
                "`dualplane incidents ls --all` lists all incidents; `last` is the latest".into()
            }
            Self::BundleGone(_) => {
                "`dualplane incidents ls --all -o json` shows its summary; to keep more, raise the \
                agent's --disk or use --copy-to or --send-to"
                    .into()
            }
            Self::NoIncident { near, .. } => format!("give more characters of the ID: {}", near.join(", ")),
            Self::NoModel { id, near } if is_size(id) => {
                let near = match near.as_slice() {
                    [] => String::new(),
                    near => format!("of about that size: {}; ", near.join(", ")),
                };
                format!("{near}for a model of which only the size is known: dualplane plan --params {id}")
            }
            Self::NoModel { near, .. } => {
                let near =
                    if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
                format!(
                    "give the model's directory or config.json with --model, or fetch its configuration with --online{near}"
                )
            }
            Self::Plan(PlanError::Contradiction { names, .. }) if OWN_FLAGS.contains(&names.as_str()) => {
                format!("correct the value of {names}; see `dualplane plan --help`")
            }
            Self::Plan(PlanError::Contradiction { .. }) => {
                "the engine rejects this at start; change the named setting".into()
            }
            Self::NotPasted(_) => {
                "use more or larger GPUs: without --gpu and --emit, `plan` lists those that hold it".into()
            }
            Self::Plan(PlanError::Unsupported { .. }) => {
                "dualplane does not know its arithmetic and does not guess".into()
            }
            _ => return None,
        })
    }
}

#[cfg(feature = "live")]
/// What to do where a cluster does not answer as it should.
fn cluster_hint(fault: &ApiError) -> Option<String> {
    Some(match fault {
        ApiError::Access(_) => {
            "check --kubeconfig, --context and KUBECONFIG; `kubectl config get-contexts` lists the contexts"
                .into()
        }
        ApiError::Unauthorized(_) => {
            "log in again, or refresh the token; `kubectl auth whoami` shows who you are".into()
        }
        ApiError::Forbidden { permission, .. } if !permission.is_empty() => format!(
            "ask for permission to {permission}; deploy/rbac.yaml lists every permission that dualplane \
            uses, with its purpose"
        ),
        ApiError::NotFound(_) => {
            "check the name and the namespace (-n); `kubectl get pods -A` lists them".into()
        }
        ApiError::Unreachable { .. } | ApiError::TimedOut(_) => {
            "check the network to the API server; `kubectl version` should answer".into()
        }
        ApiError::Busy { .. } => {
            "the API server is overloaded; try again later or with a larger --request-timeout".into()
        }
        _ => return None,
    })
}

/// A table: columns as wide as their widest cell.
#[cfg(feature = "live")]
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    use std::fmt::Write as _;
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for r in rows {
        let mut line = String::new();
        for (cell, width) in r.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Runs a command.
pub(crate) fn run(args: Args) -> Result<Code, Failure> {
    match args.command {
        Command::Triage(args) => triage::run(&args),
        Command::Capture(args) => live::capture::run(&args),
        Command::Map(args) => live::map::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Apply(args) => live::apply::run(&args),
        Command::Rollback(args) => live::rollback::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Guard(args) => guard::run(&args),
        Command::Server(args) => server::run(&args),
        #[cfg(feature = "live")]
        Command::Incidents(command) if command.server().is_some() => {
            fleet::run(&command, command.server().unwrap_or_default())
        }
        Command::Incidents(command) => incidents::run(&command),
        Command::Plan(args) => plan::run(&args),
        Command::Preflight(args) => preflight::run(&args),
        Command::Fit(args) => fit::run(&args),
        Command::Rehearse(args) => rehearse::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Dashboards(args) => dashboards::run(&args),
        Command::Resources(args) => resources::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Runbook(args) => runbook::run(&args),
        Command::Knowledge(KnowledgeCommand::Check { dir }) => knowledge::check(&dir),
        Command::UpgradeCheck(args) => upgrade_check::run(&args),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut crate::args::command(), "dualplane", &mut out);
            crate::output::write(&String::from_utf8_lossy(&out))?;
            Ok(exit::OK)
        }
        Command::Man(args) => man::run(&args),
        #[cfg(feature = "dev")]
        Command::Dev(tool) => {
            let found = dualplane_dev::run(&tool)?;
            crate::output::write(&found.text)?;
            Ok(if found.good { exit::OK } else { exit::BELOW_BOUND })
        }
    }
}
