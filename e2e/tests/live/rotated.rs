//! Parts of a log that the kubelet rotated away are read from the node.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{kubectl, run, unpack};

#[test]
fn rotated_parts_of_the_dead_instance_are_in_the_bundle() {
    let pod: Value =
        serde_json::from_str(&kubectl(&["get", "pod", "statefulset-0", "-n", "serving", "-o", "json"]))
            .unwrap();
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap();
    let folder = format!("/var/log/pods/serving_statefulset-0_{uid}/vllm");
    let line = |text: &str| format!("2026-11-21T00:00:00.000000000Z stdout F INFO rotated away {text}\n");
    let plain = format!("{folder}/{restarts}.log.20261121-000001");
    let packed = format!("{folder}/{restarts}.log.20261121-000000.gz");
    let older = format!("{folder}/{}.log.20261120-000000", restarts.saturating_sub(3));
    std::fs::write(&plain, line("plain")).unwrap();
    std::fs::write(&older, line("of an instance long gone")).unwrap();
    let mut gzip = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(&packed).unwrap())
        .spawn()
        .unwrap();
    gzip.stdin.take().unwrap().write_all(line("packed").as_bytes()).unwrap();
    gzip.wait().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    run(&["capture", "pod/statefulset-0", "-n", "serving", "--out", &bundle.to_string_lossy()]).ok();
    let files = unpack(&bundle);
    let holds = |what: &str| {
        files
            .iter()
            .filter(|(_, b)| String::from_utf8_lossy(b).contains(what))
            .map(|(n, _)| n.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(holds("rotated away plain").len(), 1, "{:?}", files.iter().map(|f| &f.0).collect::<Vec<_>>());
    assert_eq!(holds("rotated away packed").len(), 1);
    if restarts >= 3 {
        assert_eq!(holds("long gone"), Vec::<String>::new());
    }
    for file in [plain, packed, older] {
        let _ = std::fs::remove_file(file);
    }
}
