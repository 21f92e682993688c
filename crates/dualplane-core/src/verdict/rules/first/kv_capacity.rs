//! The engine says that its KV cache cannot hold what was asked.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "kv_capacity";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::KvCacheCapacity],
    "the engine refuses to start, or ends, because its KV cache is too small",
    "preemption, with which an engine goes on",
    "each signature's own source: dualplane explain SIGNATURE",
    |case| super::judge(case, ID, "no line tells that the KV cache is too small"),
);
