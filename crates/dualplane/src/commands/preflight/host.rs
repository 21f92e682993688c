//! RAM: the limit of the server's container, as it was told or as it is here, and what the machine has.

use std::path::Path;

use dualplane_base::process::of_path;
use dualplane_base::units::{Bytes, MIB, parse_k8s_memory, parse_memory};
use dualplane_node::cgroup::{Depth, Group, Hierarchy, Kind, Limit, Memory, Reader};
use dualplane_node::node::{Machine, NodeReader, cgroup_of};
use dualplane_plan::PodAsk;
use dualplane_plan::preflight::{MemoryLimit, Shm};

use super::Failure;

/// Set it from the downward API: `resourceFieldRef` with the server's container and `limits.memory`.
const VARIABLE: &str = "DUALPLANE_MEMORY_LIMIT";
/// Bytes of a file of `/proc` or of a cgroup.
const BUFFER: usize = 64 << 10;

/// What limits the server's memory, as far as it was told.
pub(super) struct Limits {
    told: Option<MemoryLimit>,
    /// This runs in a pod: the limit here is another container's.
    pub(super) kubernetes: bool,
}

impl Limits {
    pub(super) fn read(flag: Option<&str>, pod: Option<&PodAsk>) -> Result<Self, Failure> {
        let at =
            |bytes: Bytes, source: &str| MemoryLimit::At { bytes, source: source.into(), held: Bytes(0) };
        let variable = std::env::var(VARIABLE).ok().filter(|v| !v.trim().is_empty());
        let told = match (flag, variable, pod) {
            (Some(text), _, _) => Some(at(size("--memory-limit", text)?, "--memory-limit")),
            (None, Some(text), _) => Some(at(size(VARIABLE, &text)?, VARIABLE)),
            (None, None, Some(pod)) => Some(match pod.limit {
                Some(limit) => at(limit, "the manifest"),
                None => MemoryLimit::Unlimited { source: "the manifest sets none".into() },
            }),
            (None, None, None) => None,
        };
        let own = cgroup_of(Path::new("/proc"), std::process::id());
        let kubernetes =
            std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() || own.is_some_and(|p| p.pod_uid.is_some());
        Ok(Self { told, kubernetes })
    }

    /// The limit, where it was told.
    pub(super) fn told(&self) -> Option<Bytes> {
        match &self.told {
            Some(MemoryLimit::At { bytes, .. }) => Some(*bytes),
            _ => None,
        }
    }

    /// The limit now: what others of the own container hold changes.
    pub(super) fn now(&self) -> MemoryLimit {
        if let Some(told) = &self.told {
            return told.clone();
        }
        let own = own_group();
        let limit = own.and_then(|m| m.limit);
        match (self.kubernetes, limit) {
            (true, limit) => MemoryLimit::Untold { own: limit.and_then(Limit::bytes) },
            (false, Some(Limit::At(bytes))) => {
                let held = own.map(|m| [m.anon, m.shmem].into_iter().flatten().map(|b| b.0).sum::<u64>());
                MemoryLimit::At { bytes, source: "the own cgroup".into(), held: Bytes(held.unwrap_or(0)) }
            }
            (false, Some(Limit::Unlimited)) => MemoryLimit::Unlimited { source: "the own cgroup".into() },
            (false, None) => MemoryLimit::Unlimited { source: "no memory cgroup".into() },
        }
    }
}

fn size(flag: &'static str, text: &str) -> Result<Bytes, Failure> {
    let bytes = parse_k8s_memory(text).or_else(|| parse_memory(text, None));
    // Less than a MiB is a number whose unit was forgotten.
    bytes.filter(|b| b.0 >= MIB).ok_or_else(|| Failure::Flag {
        flag,
        why: format!("`{text}` is not a size; use a form such as 64Gi, or bytes"),
    })
}

/// The memory of the group in which this runs. In a container with a cgroup namespace that is the root that it sees.
fn own_group() -> Option<Memory> {
    let own = cgroup_of(Path::new("/proc"), std::process::id())?;
    let hierarchy = Hierarchy::below(Path::new("/sys/fs/cgroup"))?;
    let open = |path: &str| {
        let group = Group { kind: Kind::Container, identity: of_path(path, own.version) };
        Reader::open(&hierarchy, &group).ok()
    };
    let reader = open(&own.path).or_else(|| open("/"))?;
    let mut memory = Memory::default();
    reader.read(Depth::Full, &mut vec![0; BUFFER], &mut memory).ok()?;
    Some(memory)
}

/// The machine's memory, from the host's `/proc` where it is mounted.
pub(super) fn machine(host_proc: Option<&Path>) -> Machine {
    let mut machine = Machine::default();
    let own = Path::new("/proc");
    let root = host_proc.filter(|p| p.join("meminfo").is_file()).unwrap_or(own);
    NodeReader::open(root).read(false, &mut vec![0; BUFFER], &mut machine);
    machine
}

/// `/dev/shm` here.
pub(super) fn shm() -> Option<Shm> {
    dualplane_node::node::shm(Path::new("/dev/shm")).map(|s| Shm { size: s.size, used: s.used })
}
