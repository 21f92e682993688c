//! What was seen of the machine: the input of the comparison. A value that nobody tells is `None`, never 0.

use dualplane_base::units::Bytes;

/// The machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Cards, each followed by its MIG devices; or why none can be read.
    pub gpus: Result<Vec<Card>, String>,
    /// The driver.
    pub driver: Driver,
    /// Which pids can be looked at here.
    pub pids: Pids,
    /// Which GPUs were asked for.
    pub visible: Visible,
    /// The processes run in a pod of Kubernetes.
    pub kubernetes: bool,
    /// Memory limit of the server.
    pub limit: MemoryLimit,
    /// All memory of the machine.
    pub machine_total: Option<Bytes>,
    /// Of it what a new process could get.
    pub machine_available: Option<Bytes>,
    /// `/dev/shm` here.
    pub shm: Option<Shm>,
}

/// The driver of all cards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    /// `570.133.20`.
    pub version: Option<String>,
    /// The newest CUDA that it serves.
    pub cuda: Option<(u32, u32)>,
}

/// Which pids can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pids {
    /// Those of the host: what the driver lists can be found.
    Host,
    /// Those of a container: what the driver lists are other numbers.
    Own,
    /// That cannot be told.
    Unknown,
}

/// A card or a MIG device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Index of the card as the driver counts.
    pub index: u32,
    /// `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Name as the driver reports it.
    pub name: String,
    /// Of a MIG device: the place of its card in the list.
    pub parent: Option<usize>,
    /// Of a card: MIG is switched on.
    pub mig: bool,
    /// CUDA compute capability.
    pub capability: Option<(u32, u32)>,
    /// All memory.
    pub total: Option<Bytes>,
    /// In use, without what the driver reserves.
    pub used: Option<Bytes>,
    /// Unused.
    pub free: Option<Bytes>,
    /// The driver's own.
    pub reserved: Option<Bytes>,
    /// Processes with memory on it.
    pub processes: Vec<Holder>,
}

/// A process with memory on a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Pid as the driver tells it: the host's.
    pub pid: u32,
    /// Its memory there.
    pub used: Option<Bytes>,
    /// What has become of it.
    pub life: Life,
    /// Name, at most 15 characters.
    pub comm: Option<String>,
    /// Seconds since its start.
    pub age_seconds: Option<u64>,
    /// Namespace, pod and container, where the kubelet's log folders tell them.
    pub names: Option<Names>,
    /// UID of its pod.
    pub pod_uid: Option<String>,
    /// Its container.
    pub container_id: Option<String>,
}

/// Names of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
}

/// What has become of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Runs,
    /// It ended, and is not gone: a zombie, or a thread that is stuck in the driver.
    Ended,
    /// There is no such process any more.
    Gone,
    /// It cannot be looked at from here.
    NotVisible,
}

/// Which GPUs the server will see, as it was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    /// `--gpus`: decides alone.
    pub asked: Option<String>,
    /// `CUDA_VISIBLE_DEVICES`.
    pub cuda: Option<String>,
    /// `NVIDIA_VISIBLE_DEVICES`.
    pub nvidia: Option<String>,
}

/// Memory limit of the server's container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryLimit {
    /// It is this one.
    At {
        /// The limit.
        bytes: Bytes,
        /// Who told it.
        source: String,
        /// What other processes of the same container hold and the kernel cannot take back.
        held: Bytes,
    },
    /// There is none.
    Unlimited {
        /// Who told it.
        source: String,
    },
    /// Nobody told it. Here is the limit of this container, which is another one.
    Untold {
        /// Limit of this container.
        own: Option<Bytes>,
    },
}

/// Size and use of `/dev/shm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shm {
    /// Size.
    pub size: Bytes,
    /// In use.
    pub used: Bytes,
}
