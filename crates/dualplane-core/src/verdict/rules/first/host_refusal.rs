//! A log line says that host memory was refused, without a kill.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "host_refusal";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "a log line reports a failed host memory allocation: /dev/shm, pinned memory, malloc, an engine's own \
    check",
    "the same message followed by a fallback; a full disk",
    "each signature's own source: dualplane explain SIGNATURE",
    |case| super::judge(case, ID, "no log line reports a failed host allocation"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn malloc_that_was_refused_decides() {
        holds(
            &RULE,
            &[log(
                "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)\n",
            )],
        );
    }

    #[test]
    fn a_full_disk_does_not() {
        near_miss(
            &RULE,
            "known_failure",
            &[log(
                "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/model.safetensors'\n",
            )],
        );
    }
}
