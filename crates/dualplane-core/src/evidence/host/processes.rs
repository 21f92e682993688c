//! A container's processes as a recorder of the node lists them: `{"processes": [{"pid": 7738, "name": "vllm", …}]}`.
//!
//! Their pids are the machine's, by which the kernel's lines name them.

use serde_json::Value;

use crate::evidence::Processes;

/// Processes of one list.
const MAX_PROCESSES: usize = 4096;

/// Reads a list, where the value is one.
pub(in crate::evidence) fn read(value: &Value) -> Option<Processes> {
    let list = value.get("processes")?.as_array().filter(|l| !l.is_empty())?;
    let pids: Option<Vec<u64>> = list
        .iter()
        .take(MAX_PROCESSES)
        .map(|p| p.get("name").and_then(Value::as_str).and(p.get("pid")?.as_u64()))
        .collect();
    let pids = pids?;
    // Seen while the runtime still set the container up, the program had not begun: its workers are not listed.
    let runtime = |p: &Value| p.get("name").and_then(Value::as_str).is_some_and(|n| n.starts_with("runc"));
    let whole = value.get("left_out").and_then(Value::as_u64) == Some(0)
        && list.len() <= MAX_PROCESSES
        && !list.iter().all(runtime);
    Some(Processes { pids, whole })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pids_and_whether_they_are_all() {
        let of = |v: Value| read(&v);
        let server = json!({"processes": [{"pid": 7, "name": "vllm"}, {"pid": 9, "name": "VLLM::Worker"}], "left_out": 0});
        assert_eq!(of(server), Some(Processes { pids: vec![7, 9], whole: true }));
        let cut = json!({"processes": [{"pid": 7, "name": "vllm"}], "left_out": 3});
        assert_eq!(of(cut), Some(Processes { pids: vec![7], whole: false }));
        let starting = json!({"processes": [{"pid": 7, "name": "runc"}], "left_out": 0});
        assert_eq!(of(starting), Some(Processes { pids: vec![7], whole: false }));
        assert_eq!(of(json!({"processes": []})), None);
        assert_eq!(of(json!({"processes": [{"pid": -1, "name": "x"}]})), None);
    }
}
