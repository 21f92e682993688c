//! A tmpfs that the pod was given is full: host RAM, not a disk.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "memory_volume_full";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "\"No space left on device\" names a path below a volume with medium Memory, or the kubelet evicted the pod for such a \
    volume",
    "the same message about a path or a volume on a disk",
    "Kubernetes emptyDir with medium Memory; tmpfs ENOSPC",
    |case| super::judge(case, ID, "no line reports \"No space left on device\" below a Memory volume"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, event, holds, log, near_miss, pod_with};

    fn volume(medium: &str) -> File {
        ended(1, medium)
    }

    fn ended(code: i64, medium: &str) -> File {
        pod_with(code, "Error", |p| {
            p["spec"]["volumes"] = serde_json::json!([{"name": "cache", "emptyDir": {"medium": medium}}]);
            p["spec"]["containers"][0]["volumeMounts"] =
                serde_json::json!([{"name": "cache", "mountPath": "/cache"}]);
        })
    }

    #[test]
    fn a_full_tmpfs_is_host_ram() {
        holds(
            &RULE,
            &[volume("Memory"), log("OSError: [Errno 28] No space left on device: '/cache/shard-1'\n")],
        );
    }

    const GREW: &str = "Usage of EmptyDir volume \"cache\" exceeds the limit \"8Gi\".";

    #[test]
    fn an_eviction_for_it_is_host_ram() {
        holds(&RULE, &[ended(137, "Memory"), event("Evicted", GREW)]);
        near_miss(&RULE, "kubernetes_failure", &[ended(137, ""), event("Evicted", GREW)]);
        let other = GREW.replace("cache", "other");
        near_miss(&RULE, "killed", &[ended(137, "Memory"), event("Evicted", &other)]);
    }

    #[test]
    fn a_full_disk_is_not() {
        near_miss(
            &RULE,
            "known_failure",
            &[volume(""), log("OSError: [Errno 28] No space left on device: '/cache/shard-1'\n")],
        );
    }
}
