//! A pod of a file: the node knows it by the hash of that file, the API server by the UID of its mirror.

use std::path::PathBuf;

use serde_json::Value;

use crate::agent::{incidents, of, start_at};
use crate::harness::{kubectl, server, until};

/// Removed when a test fails: the kubelet would run it for ever.
struct Manifest(PathBuf);

impl Drop for Manifest {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_static_pods_death_has_its_exit_code_and_its_event() {
    let d = tempfile::tempdir().unwrap();
    let state = d.path().join("state");
    let _agent = start_at(&state, "127.0.0.1:10983", &[]);
    until("the agent does not answer", || std::net::TcpStream::connect("127.0.0.1:10983").ok());
    let folder = PathBuf::from(std::env::var("E2E_DIR").unwrap()).join("static-pods");
    let manifest = Manifest(folder.join("static.yaml"));
    // The kubelet reads what has no dot in front, the moment it is there.
    let pod = server("static", "static", "echo static begins; sleep 4; exec tail /dev/zero");
    std::fs::write(folder.join(".static.new"), pod).unwrap();
    std::fs::rename(folder.join(".static.new"), &manifest.0).unwrap();
    let name = "static-gpu-node-1";
    let first = until("no judged death of the static pod", || {
        let all = incidents(&state);
        of(&all, name)
            .into_iter()
            .find(|i| i["first"] == true && i["state"] == "judged" && i["kind"] == "death")
            .cloned()
    });
    let uid = kubectl(&["get", "pod", name, "-n", "serving", "-o", "jsonpath={.metadata.uid}"]);
    assert_eq!(
        (first["class"].as_str(), first["exit_code"].as_i64()),
        (Some("host_oom_killed"), Some(137)),
        "{first:#}"
    );
    assert_eq!(first["api_uid"].as_str(), Some(uid.trim()), "{first:#}");
    assert_ne!(first["uid"], first["api_uid"]);
    let event = until("no Event on the mirror pod", || {
        let by = format!("involvedObject.uid={},reason=DualplaneVerdict", uid.trim());
        let list = kubectl(&["get", "events", "-n", "serving", "--field-selector", &by, "-o", "json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        list["items"].as_array().unwrap().first().cloned()
    });
    assert!(event["message"].as_str().unwrap().contains("host_oom_killed"), "{event:#}");
}
