//! The engine says that its KV cache cannot hold what was asked.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "kv_capacity";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::KvCacheCapacity],
    "the engine refuses to start, or exits, because its KV cache is too small",
    "preemption, after which the engine continues",
    "each signature's own source: dualplane explain SIGNATURE",
    |case| super::judge(case, ID, "no line reports that the KV cache is too small"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn a_refusal_to_start_decides() {
        holds(
            &RULE,
            &[log(
                "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GB KV cache is needed, which is larger than the available KV cache memory (5.81 GB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n",
            )],
        );
    }

    #[test]
    fn preemption_does_not() {
        near_miss(
            &RULE,
            "survived_error",
            &[log(
                "WARNING 11-20 10:29:11 [scheduler.py:1057] Sequence group cmpl-7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end performance.\n",
            )],
        );
    }
}
