//! What is held of a container the moment it is gone. Nothing here is on the disk yet.

use dualplane_core::evidence::Gap;
use dualplane_node::cgroup::Version;
use dualplane_node::clock::Moment;
use dualplane_node::cri::OpenLog;
use dualplane_node::node::Machine;

use super::container_ref::ContainerRef;
use crate::incident::Kind;
use crate::view::{ContainerView, GpuView};

/// A container, frozen.
#[derive(Debug)]
pub(super) struct Freeze {
    /// Name of the incident.
    pub(super) id: String,
    /// What happened.
    pub(super) kind: Kind,
    /// The first death of its loop.
    pub(super) first: bool,
    /// Whose.
    pub(super) who: ContainerRef,
    /// When it was noticed; the series end here.
    pub(super) noticed: Moment,
    /// When it happened, milliseconds since 1970: the kernel's record, else when it was noticed.
    pub(super) wall_ms: i64,
    /// Processes that the OOM killer killed, as the group's counter said.
    pub(super) kills: u64,
    /// The kernel named this container in a record.
    pub(super) kernel_record: Option<u64>,
    /// What was killed came into the container from outside, where that is known.
    pub(super) from_exec: Option<bool>,
    /// Lines of the kernel.
    pub(super) kernel: String,
    /// The container as it was last seen; `None` where only its log was found.
    pub(super) container: Option<ContainerView>,
    /// Generation of cgroups.
    pub(super) version: Version,
    /// All GPUs of the node.
    pub(super) gpus: Vec<GpuView>,
    /// The machine.
    pub(super) machine: Machine,
    /// Its log, open.
    pub(super) log: Option<OpenLog>,
    /// What is missing.
    pub(super) gaps: Vec<Gap>,
}

impl Freeze {
    /// The kernel killed in it.
    #[must_use]
    pub(super) fn oom(&self) -> bool {
        self.kills > 0 || self.kernel_record.is_some()
    }
}
