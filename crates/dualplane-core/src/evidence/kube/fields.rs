//! Fields that objects of several kinds have.

use dualplane_base::json::{list, str_at, text_of};
use serde_json::Value;

use crate::evidence::kube_model::Condition;
use crate::time::{Stamp, parse_rfc3339};
use crate::units::{Bytes, parse_k8s_memory};

pub(in crate::evidence) fn opt_at(v: &Value, pointer: &str) -> Option<String> {
    v.pointer(pointer).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
}

pub(super) fn time_at(v: &Value, pointer: &str) -> Option<Stamp> {
    v.pointer(pointer).and_then(Value::as_str).and_then(parse_rfc3339)
}

pub(super) fn memory_at(v: &Value, pointer: &str) -> Option<Bytes> {
    v.pointer(pointer).map(text_of).and_then(|t| parse_k8s_memory(&t))
}

pub(super) fn conditions(v: &Value) -> Vec<Condition> {
    list(v, "/status/conditions")
        .iter()
        .map(|c| Condition {
            kind: str_at(c, "/type").to_owned(),
            holds: str_at(c, "/status") == "True",
            reason: str_at(c, "/reason").to_owned(),
            message: str_at(c, "/message").to_owned(),
        })
        .collect()
}
