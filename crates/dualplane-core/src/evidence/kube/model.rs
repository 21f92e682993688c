//! Kubernetes objects in our own words: only what a verdict needs, nothing of the API's shape.

use dualplane_engines::command_line::edit::Invocation;

use super::mounts::Mount;
use crate::time::Stamp;
use crate::units::Bytes;

/// A pod.
#[derive(Debug, Clone, Default)]
pub struct Pod {
    /// File it came from.
    pub file: String,
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// UID.
    pub uid: String,
    /// Hash of a static pod's manifest, which stands in cgroup paths instead of the UID.
    pub config_hash: Option<String>,
    /// Node it runs on.
    pub node: Option<String>,
    /// `Running`, `Failed` …
    pub phase: String,
    /// `Evicted`, `Terminated`, `UnexpectedAdmissionError` …
    pub reason: Option<String>,
    /// Message of the status.
    pub message: Option<String>,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Its spec is not the one that it was created with (`metadata.generation`, Kubernetes 1.33+): an in-place resize gives
    /// a container another limit.
    pub edited: bool,
    /// `deletionTimestamp` is set.
    pub deleting: bool,
    /// `deletionTimestamp`, and the seconds of grace by which it lies behind the request, where told.
    pub deletion: Option<(Stamp, Option<u64>)>,
    /// Memory limit of the pod as a whole (pod-level resources, Kubernetes 1.34+).
    pub memory_limit: Option<Bytes>,
    /// Grace period in seconds.
    pub grace_seconds: Option<u64>,
    /// Name and kind of the controlling owner.
    pub owner: Option<(String, String)>,
    /// Init containers, sidecars and containers.
    pub containers: Vec<Container>,
    /// Devices of the machine are open to it beside those that it asks a plugin for: it is privileged, claims some, or
    /// mounts the machine's.
    pub opens_devices: bool,
    /// Volumes.
    pub volumes: Vec<Volume>,
    /// Node selector.
    pub selector: Vec<(String, String)>,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Labels and annotations of its workload that say who deploys it.
    pub managed: Vec<(String, String)>,
    /// How much of the object the evidence shows.
    pub extent: Extent,
}

/// A variable of a container that stands in a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMapVariable {
    /// Its name.
    pub variable: String,
    /// The ConfigMap.
    pub map: String,
    /// The key.
    pub key: String,
}

/// How much of an object the evidence shows. Absence in a piece proves nothing: a limit that does not stand in it may
/// stand in the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Extent {
    /// A row of a table: a state, and no container's name.
    Row,
    /// A cut-out, or a status without its spec.
    #[default]
    Piece,
    /// The whole object: what does not stand in it is not set.
    Whole,
}

/// A condition of a pod or node.
#[derive(Debug, Clone)]
pub struct Condition {
    /// `DisruptionTarget`, `MemoryPressure` …
    pub kind: String,
    /// `True`.
    pub holds: bool,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// Which list of the pod a container stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContainerKind {
    /// Runs to completion before the others start.
    Init,
    /// An init container with `restartPolicy: Always`.
    Sidecar,
    /// A regular container.
    #[default]
    Main,
    /// Added for debugging.
    Ephemeral,
}

/// A container: what was asked for and what became of it.
#[derive(Debug, Clone, Default)]
pub struct Container {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: ContainerKind,
    /// Variables that stand in ConfigMaps.
    pub config_maps: Vec<ConfigMapVariable>,
    /// Its mounts, with the ConfigMaps that are mounted there.
    pub files: Vec<Mount>,
    /// Where it starts; empty where the image says it.
    pub directory: String,
    /// Image.
    pub image: String,
    /// Command and arguments as one list.
    pub args: Vec<String>,
    /// Plain environment values.
    pub env: Vec<(String, String)>,
    /// Command, arguments and environment exactly as the object has them; `None` where a description or a cut-out tells of
    /// them, which may have lost something.
    pub invocation: Option<Invocation>,
    /// Memory limit.
    pub memory_limit: Option<Bytes>,
    /// Memory request.
    pub memory_request: Option<Bytes>,
    /// Extended resources (GPU, MIG, shared GPU) and how many.
    pub devices: Vec<(String, u64)>,
    /// Volume name and mount path.
    pub mounts: Vec<(String, String)>,
    /// Liveness probe.
    pub liveness: Option<Probe>,
    /// Startup probe.
    pub startup: Option<Probe>,
    /// Status, where the pod has one for it.
    pub status: Option<ContainerStatus>,
}

/// A probe's timing, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Probe {
    /// Delay before the first probe.
    pub initial_delay: u64,
    /// Between probes (Kubernetes' default 10).
    pub period: u64,
    /// Failures before the container is killed (default 3).
    pub failure_threshold: u64,
}

/// What became of a container.
#[derive(Debug, Clone, Default)]
pub struct ContainerStatus {
    /// Restarts, where told.
    pub restarts: Option<u64>,
    /// Ready, where told.
    pub ready: Option<bool>,
    /// Now.
    pub state: State,
    /// The run before; only one is kept by the API.
    pub last: State,
    /// Id of the instance that runs or ran last, without the runtime's prefix.
    pub container_id: Option<String>,
}

/// State of a container.
#[derive(Debug, Clone, Default)]
pub enum State {
    /// Nothing said.
    #[default]
    None,
    /// Waiting to start.
    Waiting {
        /// `CrashLoopBackOff` …
        reason: String,
        /// Message.
        message: String,
    },
    /// Runs.
    Running {
        /// Since when.
        started: Option<Stamp>,
    },
    /// Ended.
    Terminated(Termination),
}

/// The end of a container's run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Termination {
    /// Exit code, where told: a cut-out may lack it, and that is no 0.
    pub exit_code: Option<i64>,
    /// `OOMKilled`, `Error`, `Completed`, `StartError` …; empty where not told.
    pub reason: String,
    /// Message.
    pub message: String,
    /// Start.
    pub started: Option<Stamp>,
    /// End.
    pub finished: Option<Stamp>,
    /// Id of this instance, without the runtime's prefix.
    pub container_id: Option<String>,
    /// Letters or digits of it had to be guessed, as in a text that was read from a picture.
    pub blurred: bool,
}

impl Termination {
    /// The runtime saw an OOM kill of some process of this container.
    #[must_use]
    pub fn oom_killed(&self) -> bool {
        self.reason == "OOMKilled"
    }

    /// Ended by itself and well. The kubelet says `Completed` of exit code 0 only.
    #[must_use]
    pub fn clean(&self) -> bool {
        match self.exit_code {
            Some(code) => code == 0 && !self.oom_killed(),
            None => self.reason == "Completed",
        }
    }

    /// Whether it is told that it ended with this code.
    #[must_use]
    pub fn ended_with(&self, code: i64) -> bool {
        self.exit_code == Some(code)
    }

    /// As short as a line of facts wants it: `exit 137 OOMKilled`.
    #[must_use]
    pub fn short(&self) -> String {
        let code = self.exit_code.map(|c| format!("exit {c} ")).unwrap_or_default();
        format!("{code}{}", self.reason).trim_end().to_owned()
    }

    /// Exit code and reason in words, as far as they are told: `exit code 137, reason OOMKilled` where the joint is `, `.
    #[must_use]
    pub fn told(&self, joint: &str) -> String {
        match (self.exit_code, self.reason.as_str()) {
            (Some(code), "") => format!("exit code {code}"),
            (Some(code), reason) => format!("exit code {code}{joint}reason {reason}"),
            (None, "") => "neither exit code nor reason known".to_owned(),
            (None, reason) => format!("reason {reason}"),
        }
    }
}

/// A volume that matters for memory.
#[derive(Debug, Clone, Default)]
pub struct Volume {
    /// Name.
    pub name: String,
    /// `emptyDir` with medium Memory.
    pub memory_medium: bool,
    /// Size limit.
    pub size_limit: Option<Bytes>,
}

/// An event.
#[derive(Debug, Clone, Default)]
pub struct Event {
    /// File it came from.
    pub file: String,
    /// Line of its message in that file, from 1.
    pub line: Option<u64>,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
    /// `Warning`.
    pub warning: bool,
    /// Kind, name and UID of the object it is about.
    pub object: (String, String, String),
    /// Namespace of that object; empty where it is not told.
    pub namespace: String,
    /// Container, from the field path.
    pub container: Option<String>,
    /// First and last time.
    pub first: Option<Stamp>,
    /// Last time.
    pub last: Option<Stamp>,
    /// How often.
    pub count: u64,
}

/// A node.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Memory capacity.
    pub memory_capacity: Option<Bytes>,
    /// Memory allocatable.
    pub memory_allocatable: Option<Bytes>,
}

impl Pod {
    /// What does not stand here is not set; of a piece that cannot be said.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.extent == Extent::Whole
    }

    /// The deletion was asked for behind this moment. What is not known is taken to have been before it.
    #[must_use]
    pub fn deleted_after(&self, end: Stamp) -> bool {
        // The node's clock gave one time, the API server's the other.
        const SKEW_MS: i64 = 2_000;
        // Kubernetes' default grace, and as much again for one that somebody chose.
        const UNTOLD_MS: i64 = 2 * 30 * 1000;
        self.deletion.is_some_and(|(at, grace)| {
            let told = grace.map(|s| i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1000));
            let before = told.map_or(UNTOLD_MS, |ms| ms.saturating_add(SKEW_MS));
            end.ms_until(at).is_some_and(|ms| ms > before)
        })
    }

    /// It found a node: a container that ran, or the name of the node, shows it.
    #[must_use]
    pub fn was_scheduled(&self) -> bool {
        let ran = |c: &Container| {
            c.status.as_ref().is_some_and(|s| {
                matches!(s.state, State::Running { .. }) || s.terminations().next().is_some()
            })
        };
        let bound = |c: &Condition| c.kind == "PodScheduled" && c.holds;
        self.node.is_some() || self.containers.iter().any(ran) || self.conditions.iter().any(bound)
    }

    /// `namespace/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// A volume by its name.
    #[must_use]
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.name == name)
    }

    /// Volumes of medium Memory mounted by a container: path and size limit.
    #[must_use]
    pub fn memory_mounts<'a>(&'a self, container: &'a Container) -> Vec<(&'a str, Option<Bytes>)> {
        container
            .mounts
            .iter()
            .filter_map(|(volume, path)| {
                let v = self.volumes.iter().find(|v| v.name == *volume && v.memory_medium)?;
                Some((path.as_str(), v.size_limit))
            })
            .collect()
    }
}

impl Container {
    /// An init container that failed and then completed: what comes after it is of another cause. Exit code 0 with the
    /// reason OOMKilled is a failure to the kubelet (1.36), and the container is run again.
    #[must_use]
    pub fn overcame(&self) -> Option<&Termination> {
        let status = self.status.as_ref().filter(|_| self.kind == ContainerKind::Init)?;
        match (&status.state, &status.last) {
            (State::Terminated(now), State::Terminated(before)) if now.clean() => {
                Some(before).filter(|t| !t.clean())
            }
            _ => None,
        }
    }
}

impl ContainerStatus {
    /// The last end that the API knows: of this run if it ended, else of the one before.
    #[must_use]
    pub fn termination(&self) -> Option<&Termination> {
        match (&self.state, &self.last) {
            (State::Terminated(t), _) | (_, State::Terminated(t)) => Some(t),
            _ => None,
        }
    }

    /// Ids of all instances that the API knows: of the ends, then of the one that runs or ran last.
    pub fn instance_ids(&self) -> impl Iterator<Item = &str> {
        self.terminations().filter_map(|t| t.container_id.as_deref()).chain(self.container_id.as_deref())
    }

    /// All ends that the API knows, the latest first.
    pub fn terminations(&self) -> impl Iterator<Item = &Termination> {
        [&self.state, &self.last]
            .into_iter()
            .filter_map(|s| if let State::Terminated(t) = s { Some(t) } else { None })
    }
}
