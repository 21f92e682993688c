//! A machine at one moment, both planes side by side: what `/metrics` tells, what `top` draws, what a death freezes.

use std::collections::BTreeMap;
use std::sync::Arc;

use dualplane_base::units::Bytes;
use dualplane_node::cgroup::{Group, Memory};
use dualplane_node::clock::Moment;
use dualplane_node::cri::Named;
use dualplane_node::gpu::{Device, GpuGap, GpuProcess, Health, Reading};
use dualplane_node::node::{Listing, Machine, Shm};
use dualplane_node::pod_resources::KubeletGap;
use dualplane_node::sample::Round;

use crate::given;

/// A machine.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// When the round began, on the one clock.
    pub at: Moment,
    /// The same on the wall, milliseconds since 1970.
    pub wall_ms: i64,
    /// How the round went; `None` before the first.
    pub round: Option<Round>,
    /// The machine as a whole.
    pub machine: Machine,
    /// Containers by slot.
    pub containers: BTreeMap<u16, ContainerView>,
    /// Cards and MIG devices, in the driver's order: [`dualplane_node::gpu::DeviceId`] is the place here.
    pub gpus: Vec<GpuView>,
    /// Why no GPU can be read.
    pub gpu_gap: Option<GpuGap>,
    /// Whether the kubelet told last time which GPUs it gave; `None` where it has not answered or is not asked.
    pub kubelet: Option<Result<(), KubeletGap>>,
}

/// A container.
#[derive(Debug, Clone)]
pub struct ContainerView {
    /// Number in records.
    pub slot: u16,
    /// Cgroup, with what its path says: pod UID, container id.
    pub group: Group,
    /// Names, once the kubelet's links tell them. `None` for a sandbox, a container outside of Kubernetes, or a very new one.
    pub named: Option<Named>,
    /// When it was first seen.
    pub since: Moment,
    /// The last values that were read, each field as new as it was ever read.
    pub memory: Memory,
    /// When usage was read.
    pub at: Moment,
    /// `/dev/shm` of its pod.
    pub shm: Option<Shm>,
    /// Its processes when they were last listed (seconds to minutes ago), the largest first. Words are not masked.
    pub processes: Arc<Listing>,
    /// What its engine says of itself.
    pub engine: Option<Arc<EngineSample>>,
    /// VRAM that its processes hold.
    pub vram: Vec<Holder>,
    /// GPUs that the kubelet gave it, used or not. Empty also where the kubelet has not told yet.
    pub given: Arc<[AllocatedDevice]>,
}

/// A GPU, or a part of one, that the kubelet gave to a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllocatedDevice {
    /// `nvidia.com/gpu`; of a claimed device its driver.
    pub resource: String,
    /// As its plugin calls it: a UUID, one of several replicas of it (`GPU-…::3`), `nvidia0`.
    pub id: String,
    /// The driver's name of the card or MIG device, where the id tells it.
    pub uuid: Option<String>,
}

/// A process of a container on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Place in [`View::gpus`].
    pub device: u16,
    /// Pid of the host.
    pub pid: u32,
    /// Its memory there, where the driver tells.
    pub used: Option<Bytes>,
}

/// A card or a MIG device.
#[derive(Debug, Clone, Default)]
pub struct GpuView {
    /// Which.
    pub device: Device,
    /// The last reading.
    pub reading: Reading,
    /// When it was read.
    pub at: Moment,
    /// Error counters, half a minute old at most.
    pub health: Option<Health>,
    /// How often each Xid was told of it within this boot.
    pub xids: XidTally,
    /// Processes that hold its memory, with the slot of their container where one is known.
    pub processes: Vec<(GpuProcess, Option<u16>)>,
}

/// How often each Xid came, and which was the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct XidTally {
    /// By code.
    pub by_code: BTreeMap<u32, u64>,
    /// The last.
    pub last: Option<u32>,
}

impl XidTally {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_code.values().sum()
    }
}

/// An engine's own metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSample {
    /// When they were read.
    pub at: Moment,
    /// Port on which they were found.
    pub port: u16,
    /// `vllm`, `sglang`, `tgi`, `triton`, `llama.cpp`.
    pub engine: &'static str,
    /// Name under which the model is served.
    pub model: Option<String>,
    /// Used share of the KV cache, 0 to 1.
    pub kv_use: Option<f64>,
    /// Running requests.
    pub running: Option<f64>,
    /// Waiting requests.
    pub waiting: Option<f64>,
    /// Preemptions since it started.
    pub preemptions: Option<f64>,
    /// Requests that got their first token since then.
    pub first_tokens: Option<f64>,
    /// Seconds that they waited for it, all together.
    pub first_token_seconds: Option<f64>,
    /// Tokens in prompts since then.
    pub prompt_tokens: Option<f64>,
    /// Tokens that were generated since then.
    pub generated_tokens: Option<f64>,
    /// Histograms of its requests, as the page gives them: lengths, and the time to the first token. For the bundle of a
    /// death: by then nobody answers.
    pub histograms: Arc<str>,
}

impl View {
    /// The device behind what was given, with its place in [`Self::gpus`]; `None` where nothing certain leads there.
    #[must_use]
    pub fn device_of(&self, given: &AllocatedDevice) -> Option<(u16, &GpuView)> {
        given::device_of(&self.gpus, given)
    }
}

impl ContainerView {
    /// A container of which nothing is known yet but where it is and since when.
    #[must_use]
    pub fn new(slot: u16, group: Group, since: Moment) -> Self {
        Self {
            slot,
            group,
            named: None,
            since,
            memory: Memory::default(),
            at: since,
            shm: None,
            processes: Arc::new(Listing::default()),
            engine: None,
            vram: Vec::new(),
            given: Arc::default(),
        }
    }

    /// `namespace/pod/container`, else the container id's first digits, else the path.
    #[must_use]
    pub fn title(&self) -> String {
        if let Some(n) = &self.named {
            return format!("{}/{}/{}", n.namespace, n.pod, n.container);
        }
        let id = self.group.identity.container_id.as_deref().and_then(|i| i.get(..12));
        id.map_or_else(|| self.group.path().trim_start_matches('/').to_owned(), ToOwned::to_owned)
    }

    /// VRAM of all its processes; `None` where it holds none or the driver does not tell.
    #[must_use]
    pub fn vram_used(&self) -> Option<Bytes> {
        let known = self.vram.iter().filter_map(|h| h.used);
        known.fold(None, |sum: Option<Bytes>, b| Some(Bytes(sum.map_or(0, |s| s.0).saturating_add(b.0))))
    }
}
