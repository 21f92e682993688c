//! Folders as a kubelet leaves them, and a log that is rotated while it is copied.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

const UID: &str = "7967a2a0-9620-4e09-b6a3-b1bda37c11b9";

#[test]
fn names_of_folders_and_files() {
    let f = pod_folder(&format!("serving_child-oom-exit_{UID}")).unwrap();
    assert_eq!((f.namespace.as_str(), f.pod.as_str(), f.uid.as_str()), ("serving", "child-oom-exit", UID));
    assert!(pod_folder("kube-system_etcd-n1_d93d7e1dc5d0e2d9a9d0c3e8a2f5b1c4").is_some(), "a static pod");
    for odd in ["", "a_b", "a_b_c", &format!("a_b_{UID}_d"), &format!("_b_{UID}")] {
        assert_eq!(pod_folder(odd), None, "{odd}");
    }
    assert_eq!(instance_of("9.log"), Some((9, None, false)));
    assert_eq!(instance_of("0.log.20261121-195801"), Some((0, Some("20261121-195801"), false)));
    assert_eq!(instance_of("0.log.20261121-195801.gz"), Some((0, Some("20261121-195801"), true)));
    for odd in ["0.log.20261121-195801.tmp", "x.log", "0.txt", "-1.log"] {
        assert_eq!(instance_of(odd), None, "{odd}");
    }
}

#[test]
fn a_container_id_leads_to_its_names() {
    let d = tempfile::tempdir().unwrap();
    let id = "0d0ed09db0a5c90f8ee18f0556a55e855a54ab853d8ec1e094eac75598a2fa74";
    let link = d.path().join(format!("child-oom-exit_serving_vllm-main-{id}.log"));
    symlink(format!("/var/log/pods/serving_child-oom-exit_{UID}/vllm-main/9.log"), link).unwrap();
    fs::write(d.path().join("odd.log"), "").unwrap();
    let names = Names::read(d.path(), Path::new("/host/pods"));
    let n = names.of(id).unwrap();
    assert_eq!(
        (n.namespace.as_str(), n.pod.as_str(), n.container.as_str()),
        ("serving", "child-oom-exit", "vllm-main")
    );
    assert_eq!((n.uid.as_deref(), n.restart), (Some(UID), Some(9)));
    assert_eq!(
        n.folder.as_deref(),
        Some(Path::new(&format!("/host/pods/serving_child-oom-exit_{UID}/vllm-main")))
    );
    assert_eq!((names.len(), names.is_empty()), (1, false));
}

#[test]
fn restarts_and_removals_are_noticed() {
    let d = tempfile::tempdir().unwrap();
    let folder = d.path().join(format!("serving_a_{UID}/vllm"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("0.log"), "x").unwrap();
    let mut instances = Instances::new(d.path());
    let look = |i: &mut Instances| {
        let mut out = Vec::new();
        i.look(&mut out);
        out
    };
    assert!(matches!(look(&mut instances).as_slice(), [Change::Started { restart: 0, ended: None, .. }]));
    assert!(look(&mut instances).is_empty());
    fs::write(folder.join("0.log"), "xy").unwrap();
    assert!(look(&mut instances).is_empty(), "writing is no change");
    fs::write(folder.join("1.log"), "x").unwrap();
    let out = look(&mut instances);
    assert!(
        matches!(out.as_slice(), [Change::Started { restart: 1, ended: Some(0), container, .. }] if container == "vllm")
    );
    fs::remove_file(folder.join("0.log")).unwrap();
    assert!(look(&mut instances).is_empty());
    let other = d.path().join("serving_b_11111111-2222-3333-4444-555555555555/m");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("3.log"), "x").unwrap();
    assert!(matches!(look(&mut instances).as_slice(), [Change::Started { restart: 3, .. }]));
    fs::remove_dir_all(d.path().join(format!("serving_a_{UID}"))).unwrap();
    assert!(matches!(look(&mut instances).as_slice(), [Change::Removed { last: Some(1), .. }]));
}

fn copied(folder: &Path, restart: u32, head: u64, tail: u64) -> (String, Copied) {
    let mut out = Vec::new();
    let done = copy(folder, restart, CopyLimits { head, tail }, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), done)
}

#[test]
fn head_and_tail_over_rotated_and_packed_files() {
    let d = tempfile::tempdir().unwrap();
    let lines = |a: usize, b: usize| (a..b).map(|i| format!("line {i:04}\n")).collect::<String>();
    let mut gz = flate2::write::GzEncoder::new(
        fs::File::create(d.path().join("2.log.20261121-100000.gz")).unwrap(),
        flate2::Compression::fast(),
    );
    gz.write_all(lines(0, 100).as_bytes()).unwrap();
    gz.finish().unwrap();
    fs::write(d.path().join("2.log.20261121-110000"), lines(100, 200)).unwrap();
    fs::write(d.path().join("2.log"), lines(200, 300)).unwrap();
    fs::write(d.path().join("3.log"), "another instance\n").unwrap();
    let (text, done) = copied(d.path(), 2, 1 << 20, 1 << 20);
    assert_eq!(text, lines(0, 300));
    assert_eq!(done, Copied { bytes: 3000, left_out: 0, files: 3, unreadable: 0 });
    let (text, done) = copied(d.path(), 2, 25, 1234);
    assert_eq!(text, lines(0, 2) + &lines(177, 300));
    assert_eq!((done.bytes, done.left_out), (1250, 1750));
    // Head beyond the first file, tail within the last.
    let (text, _) = copied(d.path(), 2, 1500, 15);
    assert_eq!(text, lines(0, 150) + &lines(299, 300));
    assert_eq!(copied(d.path(), 9, 10, 10).1, Copied::default());
}

#[test]
fn a_rotation_in_between_loses_nothing() {
    let d = tempfile::tempdir().unwrap();
    let path = d.path().join("0.log");
    fs::write(&path, "a 1\na 2\n").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            // As the kubelet rotates: rename, new file.
            for i in 0..200 {
                fs::rename(&path, d.path().join(format!("0.log.20261121-{i:06}"))).unwrap();
                fs::write(&path, format!("b {i}\n")).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let (text, _) = copied(d.path(), 0, 1 << 20, 1 << 20);
            let mut all: Vec<&str> = text.lines().collect();
            let had = all.len();
            all.dedup();
            assert_eq!(all.len(), had, "no line twice");
        }
    });
    let (text, done) = copied(d.path(), 0, 1 << 20, 1 << 20);
    assert_eq!((text.lines().count(), done.files), (202, 201));
}
