//! The map: pods, containers, devices and nodes, each link with its source.

use super::link::{Attributes, Link};
use dualplane_base::process::Process;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::Gap;

/// From requests to drivers, of all that was asked about.
#[derive(Debug, Default)]
pub struct Map {
    /// What was asked: `pod/NAME`, `node NODE`, `GPU-…`, `process 4711`.
    pub asked: String,
    /// From which end it was asked.
    pub from: End,
    /// The process that was asked about.
    pub process: Option<Process>,
    /// Pods, by namespace and name.
    pub pods: Vec<PodMap>,
    /// Devices that these pods hold, or that were asked about, by node and id.
    pub devices: Vec<Device>,
    /// Their nodes.
    pub nodes: Vec<NodeMap>,
    /// Where sources tell different things.
    pub contradictions: Vec<Contradiction>,
    /// Links that are not known, with what would settle them.
    pub gaps: Vec<Gap>,
}

/// From which end a map was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// What do these pods hold?
    #[default]
    Pods,
    /// What is on this node?
    Node,
    /// Who holds this device?
    Device,
}

/// A pod.
#[derive(Debug, Default)]
pub struct PodMap {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// `Running`, `Pending`, `Failed`.
    pub phase: String,
    /// Its node; none where it is not scheduled.
    pub node: Option<Link>,
    /// What owns it: `ReplicaSet/llm-7d`.
    pub owner: Option<Link>,
    /// Services through which requests reach it.
    pub services: Vec<Link>,
    /// Containers that serve, hold or ask for a GPU; all where none does.
    pub containers: Vec<ContainerMap>,
}

/// A container.
#[derive(Debug, Default)]
pub struct ContainerMap {
    /// Name.
    pub name: String,
    /// Id with its runtime; empty before the first start.
    pub id: String,
    /// `running`, `terminated (OOMKilled)`, `waiting (CrashLoopBackOff)`.
    pub state: String,
    /// Image.
    pub image: String,
    /// `engine`, `version` and what the engine says of itself.
    pub engine: Attributes,
    /// Models that a request can name.
    pub models: Vec<Model>,
    /// What it asks for: `nvidia.com/gpu: 1`, `claim gpu`.
    pub asks: Vec<Link>,
    /// Ids of the devices that it holds, in [`Map::devices`].
    pub devices: Vec<String>,
}

/// A model as requests name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The name in a request, with who told it.
    pub id: Link,
    /// Where its weights are from, where that is another name.
    pub root: Option<String>,
    /// Tokens of a request at most.
    pub max_len: Option<u64>,
}

/// A card, a slice of one, or another device.
#[derive(Debug, Clone, Default)]
pub struct Device {
    /// `GPU-…`, `MIG-…`; `GPU-…/gi/7` where the instance's own id is not known; a device plugin's own id otherwise.
    pub id: String,
    /// A MIG instance.
    pub mig: bool,
    /// Node.
    pub node: Option<String>,
    /// Properties.
    pub attributes: Attributes,
    /// Memory in use on it, by whomever.
    pub used: Option<Bytes>,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// Why its memory is not a holder's own.
    pub shared: Option<String>,
}

/// A container that holds a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container; empty where the source tells the pod alone.
    pub container: String,
    /// Health by the device plugin or DRA driver.
    pub health: Option<String>,
    /// Who told it, with the id as told.
    pub links: Vec<Link>,
}

/// A node.
#[derive(Debug, Default)]
pub struct NodeMap {
    /// Name.
    pub name: String,
    /// Driver, CUDA, kernel, container runtime and so on.
    pub attributes: Attributes,
}

/// Sources that tell different things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// What about.
    pub what: String,
    /// What each tells.
    pub told: Vec<Link>,
    /// The command that settles it.
    pub settle: Option<String>,
}

impl PodMap {
    /// `namespace/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Holder {
    /// `namespace/pod` and the container, where it is known.
    #[must_use]
    pub fn full_name(&self) -> String {
        let pod = format!("{}/{}", self.namespace, self.pod);
        if self.container.is_empty() { pod } else { format!("{pod} container {}", self.container) }
    }
}
