//! A view of a machine that is made of files: names come from links, VRAM from the table of GPUs, values outlive the group.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use dualplane_base::units::Bytes;
use dualplane_node::gpu::Fake;
use dualplane_node::sample::RecordKind;

use super::processes::{Candidate, choose};
use super::*;
use dualplane_node::clock::Moment;

const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";

fn group(base: &Path, id: &str, usage: u64) {
    let d = base.join(format!("kubepods/burstable/pod{UID}/{id}"));
    fs::create_dir_all(&d).unwrap();
    fs::write(d.join("memory.current"), format!("{usage}\n")).unwrap();
    fs::write(d.join("memory.max"), "268435456\n").unwrap();
    fs::write(d.join("memory.events"), "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n").unwrap();
    fs::write(d.join("memory.stat"), "anon 100\nfile 50\ninactive_file 24\n").unwrap();
    fs::write(d.join("cgroup.procs"), format!("{}\n", std::process::id())).unwrap();
}

#[test]
fn a_container_is_named_listed_and_seen_to_its_end() {
    let d = tempfile::tempdir().unwrap();
    let cgroups = d.path().join("cgroup");
    fs::create_dir(&cgroups).unwrap();
    fs::write(cgroups.join("cgroup.controllers"), "memory\n").unwrap();
    let id = "a".repeat(64);
    group(&cgroups, &id, 1024);
    let (links, pods) = (d.path().join("containers"), d.path().join("pods"));
    fs::create_dir(&links).unwrap();
    let folder = pods.join(format!("serving_llm-0_{UID}/vllm"));
    fs::create_dir_all(&folder).unwrap();
    let mut config = Config { links: links.clone(), pod_logs: pods.clone(), ..Config::default() };
    config.sample.cgroups = cgroups.clone();
    config.sample.rate.calm = Duration::ZERO;
    let mut o = Observer::new(config, Box::new(Fake::cards(1))).unwrap();
    assert!(o.round().is_empty());
    let c = o.view().containers.values().next().unwrap();
    assert_eq!((c.title(), c.memory.current), ("aaaaaaaaaaaa".to_owned(), Some(Bytes(1024))));
    assert!(c.processes.processes.iter().any(|p| p.pid == std::process::id()), "listed at the first round");
    assert_eq!(o.view().gpus.len(), 1);
    assert_eq!(o.view().gpus[0].processes.len(), 1);
    assert!(o.view().machine.total.is_some());

    symlink(
        format!("/var/log/pods/serving_llm-0_{UID}/vllm/3.log"),
        links.join(format!("llm-0_serving_vllm-{id}.log")),
    )
    .unwrap();
    o.round();
    let c = o.view().containers.values().next().unwrap();
    assert_eq!(c.title(), "serving/llm-0/vllm");
    assert_eq!(c.named.as_ref().unwrap().restart, Some(3));

    let dir = cgroups.join(format!("kubepods/burstable/pod{UID}/{id}"));
    fs::remove_dir_all(dir).unwrap();
    let gone: Vec<_> = (0..100).flat_map(|_| o.round()).collect();
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].title(), "serving/llm-0/vllm");
    assert_eq!(gone[0].memory.current, Some(Bytes(1024)));
    assert!(o.view().containers.is_empty());
}

/// This very process plays the engine: its group, its socket, a port that was given.
#[test]
fn an_engine_tells_its_numbers_to_the_view_and_the_records() {
    let d = tempfile::tempdir().unwrap();
    let cgroups = d.path().join("cgroup");
    fs::create_dir(&cgroups).unwrap();
    fs::write(cgroups.join("cgroup.controllers"), "memory\n").unwrap();
    group(&cgroups, &"b".repeat(64), 1024);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let body = "sglang:token_usage 0.25\nsglang:num_running_reqs 2\n";
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    let mut config = Config { engines: Some(Duration::ZERO), ..Config::default() };
    (config.links, config.pod_logs) = (d.path().join("none"), d.path().join("none"));
    config.sample.cgroups = cgroups;
    config.sample.rate.calm = Duration::ZERO;
    let mut o = Observer::new(config, Box::new(Fake::cards(1))).unwrap();
    o.round();
    let slot = *o.view().containers.keys().next().unwrap();
    assert!(o.records().iter().any(|r| r.kind == RecordKind::Shm && r.slot == slot), "as large as it is now");
    o.set_ports(slot, vec![port]);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    let record = loop {
        o.round();
        if let Some(r) = o.records().iter().find(|r| r.kind == RecordKind::Engine) {
            break *r;
        }
        assert!(std::time::Instant::now() < until, "the engine never answered");
    };
    assert_eq!(
        (record.slot, record.field(0), record.field(1), record.field(2)),
        (slot, Some(250_000), Some(2000), None)
    );
    let engine = o.view().containers[&slot].engine.clone().unwrap();
    assert_eq!((engine.engine, engine.kv_use, engine.port), ("sglang", Some(0.25), port));
}

#[test]
fn lists_go_to_the_new_the_near_and_one_in_turn() {
    let second = |n: u64| Moment(n * 1_000_000_000);
    let c = |slot, since, listed: Option<u64>, used| Candidate {
        slot,
        since: second(since),
        listed: listed.map(second),
        working_set: Some(used),
        limit: Some(100),
        then: Some(used),
    };
    let at = second(1000);
    let chosen = |all: &[Candidate]| choose(all.iter().copied(), at);
    assert_eq!(
        chosen(&[c(1, 0, Some(900), 10), c(2, 0, Some(800), 10)]),
        [2],
        "in turn, the oldest list first"
    );
    assert_eq!(chosen(&[c(1, 0, Some(900), 10), c(2, 999, None, 10)]), [2, 1], "a new one, and one in turn");
    assert_eq!(chosen(&[c(1, 0, Some(994), 80), c(2, 0, Some(996), 80)]), [1, 2]);
    let many: Vec<Candidate> = (0..50).map(|s| c(s, 999, None, 1)).collect();
    assert_eq!(chosen(&many).len(), 4, "bounded");
}
