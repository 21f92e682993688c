//! What the node's log holds of a kill. The kernel prints the head of a record, which names the cgroup, under a rate limit for
//! the whole machine; where kills come thick only the victim's line is left, and it names nobody.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::pods::node;
use crate::harness::Ran;

const LOG: &str = "/var/log/kern.log";

fn log() -> Vec<u8> {
    let Some(node) = node() else { return std::fs::read(LOG).unwrap_or_default() };
    let path = format!("/api/v1/nodes/{node}/proxy/logs/kern.log");
    Ran::of(Command::new("kubectl").args(["get", "--raw", &path])).out
}

/// Whether so many kills of the pod stand there with a whole record.
pub(super) fn tells_of(pod: &Value, kills: usize) -> bool {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let log = log();
    let log = String::from_utf8_lossy(&log);
    let heads = log.lines().filter(|l| l.contains("oom-kill:constraint=") && l.contains(uid));
    // A process of a record is named once.
    let victims: BTreeSet<&str> = heads.filter_map(|l| l.rsplit("pid=").next()).collect();
    victims.len() >= kills
}
