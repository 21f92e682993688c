//! A tmpfs that the pod was given is full: host RAM, not a disk.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "memory_volume_full";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "\"No space left on device\" names a path below a volume with medium Memory",
    "the same words about a path on a disk",
    "Kubernetes emptyDir with medium Memory; tmpfs ENOSPC",
    |case| super::judge(case, ID, "no line says \"No space left on device\" below a Memory-medium volume"),
);
