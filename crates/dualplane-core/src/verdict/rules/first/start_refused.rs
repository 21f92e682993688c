//! The runtime could not start the container under its memory limit.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "start_refused";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "an event or status text says that the memory limit is too low to start, or that the new limit lies below what is in use",
    "a container that did not start for another reason",
    "runc libcontainer/init_linux.go, cgroups \"unable to set memory limit\"; dockerd \"Minimum memory limit allowed\"",
    |case| super::judge(case, ID, "no status text says that the limit was too low to start"),
);
