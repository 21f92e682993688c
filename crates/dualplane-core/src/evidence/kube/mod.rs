//! What Kubernetes and its runtimes say of pods, events and nodes, in every form that they print it.

mod container;
pub(in crate::evidence) mod describe;
pub(in crate::evidence) mod describe_pod;
mod event;
mod fields;
pub(in crate::evidence) mod inspect;
pub(in crate::evidence) mod kubelet;
pub(in crate::evidence) mod list;
pub(in crate::evidence) mod manifest;
pub(in crate::evidence) mod merge;
pub(in crate::evidence) mod model;
mod mounts;
mod object;
mod pod;
pub(in crate::evidence) mod revisions;
pub(in crate::evidence) mod scaling;
pub(in crate::evidence) mod split;
pub(in crate::evidence) mod status;
pub(in crate::evidence) mod tables;
mod told;
mod unit;

pub use container::invocation;
pub(in crate::evidence) use fields::opt_at;
pub use mounts::{Mount, map_of, mounts};
pub(in crate::evidence) use object::{add_all, add_item};
pub use pod::of_spec;
pub use told::VERDICT_REASON;
pub use unit::{UNIT_LABEL, in_group};
