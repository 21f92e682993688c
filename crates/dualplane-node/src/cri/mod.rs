//! Pods of this node without the API server: the kubelet's log folders name them, and hold what a dead instance said.
//!
//! `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/RESTART.log` gives all names; the links in `/var/log/containers` give the
//! container id with them. Which GPUs a pod was given stands in none of them: [`crate::pod_resources`] asks for that.

mod copy;
mod folders;
mod instances;
mod links;

pub use copy::{Copied, CopyLimits, OpenLog, copy, open};
pub use folders::{PodFolder, Segment, instance_of, pod_folder, segments};
pub use instances::{Change, Instances};
pub use links::{Named, Names};

#[cfg(test)]
mod tests;
