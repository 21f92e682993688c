//! What cgroups and a machine's tools say of host RAM.

pub(in crate::evidence) mod cgroup;
pub(in crate::evidence) mod machine;
pub mod model;
pub(in crate::evidence) mod processes;
