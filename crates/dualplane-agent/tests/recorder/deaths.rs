//! Real deaths, from the group that vanishes to the judged bundle.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dualplane_agent::health::Health;
use dualplane_agent::incident::{Kind, State, Summary};
use dualplane_agent::recorder::{Dependencies, Judge, Judged, Recorder};
use dualplane_core::knowledge::Knowledge;
use dualplane_kube::bundle::unpack;
use dualplane_node::clock::Moment;
use dualplane_node::gpu::Fake;

use crate::kubelet::Node;

const LIMIT: u64 = 48 << 20;

/// Judges in this process.
struct OwnJudge(Knowledge);

impl Judge for OwnJudge {
    fn judge(&mut self, bundle: &Path) -> Result<Judged, String> {
        let files = unpack(&fs::read(bundle).map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        let files = files
            .into_iter()
            .map(|mut f| {
                f.name = f.name.split_once('/').map(|(_, n)| n.to_owned()).unwrap_or(f.name);
                f
            })
            .collect();
        let reports = dualplane_report::triage_all("b", files, Vec::new(), &self.0);
        let v = &reports[0].verdict;
        let word = |value: serde_json::Value| value.as_str().unwrap().to_owned();
        Ok(Judged {
            class: word(serde_json::to_value(v.class).unwrap()),
            plane: word(serde_json::to_value(v.class.plane()).unwrap()),
            trigger: None,
        })
    }
}

fn recorder(node: &Node, state: &Path) -> Recorder {
    let judge = Box::new(OwnJudge(Knowledge::embedded().unwrap()));
    let parts = Dependencies { gpus: Box::new(Fake::cards(2)), judge, cluster: None, health: Arc::default() };
    Recorder::new(node.config(state), parts).unwrap()
}

/// A judge that fails so often, then judges.
struct Failing(u32, OwnJudge);

impl Judge for Failing {
    fn judge(&mut self, bundle: &Path) -> Result<Judged, String> {
        if self.0 > 0 {
            self.0 -= 1;
            return Err("out of memory".into());
        }
        self.1.judge(bundle)
    }
}

/// Steps until something holds of the incidents.
fn until(r: &mut Recorder, what: impl Fn(&[Summary]) -> bool) -> Vec<Summary> {
    let began = Moment::now();
    let shared = r.shared();
    loop {
        r.step().unwrap();
        let all: Vec<Summary> = shared.store().all().cloned().collect();
        if what(&all) {
            return all;
        }
        assert!(Moment::now().since(began) < Duration::from_secs(30), "{all:#?}\n{:?}", r.counts());
    }
}

fn judged(all: &[Summary]) -> bool {
    !all.is_empty() && all.iter().all(|s| s.state == State::Judged)
}

fn file(state: &Path, s: &Summary, name: &str) -> String {
    let bytes = fs::read(state.join(format!("incidents/{}.tar.zst", s.id))).unwrap();
    let files = unpack(&bytes).unwrap();
    let names: Vec<String> = files.iter().map(|f| f.name.clone()).collect();
    let f = files.into_iter().find(|f| f.name == format!("{}/{name}", s.id));
    String::from_utf8(f.unwrap_or_else(|| panic!("no {name} in {names:?}")).bytes).unwrap()
}

#[test]
fn a_container_over_its_limit_leaves_a_judged_bundle() {
    let Some(node) = Node::create("limit") else { return };
    let d = tempfile::tempdir().unwrap();
    let mut r = recorder(&node, d.path());
    let pod = node.pod(1);
    let secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345678";
    let script = format!(
        "echo '2026-11-21T10:00:01.000000000Z stdout F token {secret} loaded' >> $LOG; sleep 1.2; exec tail /dev/zero"
    );
    let instance = node.start(&pod, LIMIT, &script);
    let id = instance.id.clone();
    // The runtime's part goes on beside the recorder.
    std::thread::scope(|s| {
        s.spawn(|| node.clean(&pod, instance));
        let all = until(&mut r, judged);
        assert_eq!(all.len(), 1, "{all:#?}");
        let s = &all[0];
        assert_eq!((s.kind, s.first, s.restart), (Kind::Death, true, Some(0)));
        assert_eq!(
            (s.namespace.as_str(), s.pod.as_str(), s.container.as_str()),
            ("serving", "llm-1", "vllm")
        );
        assert_eq!(s.container_id, id);
        assert_eq!(s.class.as_deref(), Some("host_oom_killed"), "{s:#?}");
        eprintln!("durable after {:?} ms", s.durable_ms);
        let log = file(d.path(), s, "logs/vllm.previous.log");
        assert!(log.contains("instance 0 of llm-1 begins") && !log.contains(secret), "{log}");
        let kernel = file(d.path(), s, "node/kernel/kmsg.log");
        // Where others were killed just now, the kernel holds the record back but for its last line.
        assert!(kernel.contains(&id) || kernel.contains("Killed process"), "{kernel}");
        // Noticed before the record could be called whole, and known all the same.
        assert!(!kernel.contains(&id) || s.kernel_record.is_some(), "{s:#?}");
        let pod = file(d.path(), s, "pod.json");
        assert!(pod.contains(&LIMIT.to_string()) && pod.contains("llm-1"), "{pod}");
        assert!(file(d.path(), s, "gpu/gpus.csv").contains("H100"));
        assert!(file(d.path(), s, "manifest.json").contains("dualplane.bundle/v1"));
    });
    let counts = r.counts();
    assert_eq!((counts.ends, counts.skipped), (1, 0));
    r.finish();
}

#[test]
fn a_child_that_is_killed_is_told_though_the_container_lives() {
    let Some(node) = Node::create("child") else { return };
    let d = tempfile::tempdir().unwrap();
    let mut r = recorder(&node, d.path());
    let pod = node.pod(2);
    let mut instance = node.start(&pod, LIMIT, "sleep 1.1; tail /dev/zero; sleep 60");
    let all = until(&mut r, judged);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].kind, all[0].class.as_deref()), (Kind::Kill, Some("host_oom_killed")));
    assert!(file(d.path(), &all[0], "logs/vllm.current.log").contains("begins"));
    instance.child.kill().unwrap();
    node.clean(&pod, instance);
    r.finish();
}

#[test]
fn ends_are_deaths_where_the_kubelet_restarts_and_none_where_the_pod_is_deleted() {
    let Some(node) = Node::create("ends") else { return };
    let d = tempfile::tempdir().unwrap();
    let mut r = recorder(&node, d.path());
    let (mut crashing, deleted) = (node.pod(3), node.pod(4));
    let a = node.start(&crashing, LIMIT, "sleep 0.4; exit 3");
    let b = node.start(&deleted, LIMIT, "sleep 0.4; exit 0");
    std::thread::scope(|s| {
        s.spawn(|| {
            node.clean(&crashing, a);
            node.clean(&deleted, b);
        });
        until(&mut r, |all| all.iter().filter(|s| s.state == State::Judged).count() == 2);
    });
    node.delete(&deleted);
    crashing.restart = 1;
    let mut again = node.start(&crashing, LIMIT, "exec sleep 60");
    let all = until(&mut r, |all| all.len() == 1 && all[0].kind == Kind::Death);
    assert_eq!((all[0].pod.as_str(), all[0].first), ("llm-3", true));
    again.child.kill().unwrap();
    node.clean(&crashing, again);
    r.finish();
}

#[test]
fn who_died_while_no_agent_ran_is_found_at_the_next_start() {
    let Some(node) = Node::create("unseen") else { return };
    let d = tempfile::tempdir().unwrap();
    let mut r = recorder(&node, d.path());
    let pod = node.pod(5);
    let instance = node.start(&pod, LIMIT, "sleep 2.5; exec tail /dev/zero");
    let began = Moment::now();
    while Moment::now().since(began) < Duration::from_millis(1500) {
        r.step().unwrap();
    }
    assert_eq!(r.view().containers.len(), 1);
    // As `kill -9` leaves it: nothing is finished.
    drop(r);
    let id = instance.id.clone();
    node.clean(&pod, instance);
    let mut r = recorder(&node, d.path());
    let all = until(&mut r, judged);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!((all[0].kind, all[0].class.as_deref()), (Kind::Death, Some("host_oom_killed")), "{all:#?}");
    assert_eq!((all[0].container_id.as_str(), all[0].pod.as_str()), (id.as_str(), "llm-5"));
    assert!(file(d.path(), &all[0], "logs/vllm.previous.log").contains("begins"));
    assert_eq!(r.counts().ends_unseen, 1);
    // And only once.
    drop(r);
    let mut r = recorder(&node, d.path());
    let began = Moment::now();
    while Moment::now().since(began) < Duration::from_millis(1500) {
        r.step().unwrap();
    }
    assert_eq!(r.shared().store().all().count(), 1);
    r.finish();
}

#[test]
fn who_lived_between_two_looks_is_found_by_the_log_that_it_left() {
    let Some(node) = Node::create("between") else { return };
    let d = tempfile::tempdir().unwrap();
    let mut r = recorder(&node, d.path());
    let began = Moment::now();
    while r.counts().rounds < 2 {
        r.step().unwrap();
    }
    // One that lives on has a log, too.
    let mut living = node.start(&node.pod(9), LIMIT, "exec sleep 60");
    let log = node.log(&node.pod(8));
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, "2026-11-21T10:00:00.000000000Z stdout F INFO begins\n").unwrap();
    let all = until(&mut r, judged);
    while Moment::now().since(began) < Duration::from_secs(14) {
        r.step().unwrap();
    }
    assert_eq!(r.shared().store().all().count(), 1);
    assert_eq!((all[0].pod.as_str(), all[0].restart, all[0].first), ("llm-8", Some(0), true), "{all:#?}");
    assert_eq!(r.counts().ends_unseen, 1);
    living.child.kill().unwrap();
    node.clean(&node.pod(9), living);
    r.finish();
}

#[test]
fn a_state_folder_that_vanishes_is_said_and_made_again_and_the_next_death_is_kept() {
    let Some(node) = Node::create("vanished") else { return };
    let d = tempfile::tempdir().unwrap();
    let state = d.path().join("state");
    let health = Arc::new(Health::default());
    let judge = Box::new(OwnJudge(Knowledge::embedded().unwrap()));
    let parts =
        Dependencies { gpus: Box::new(Fake::cards(2)), judge, cluster: None, health: Arc::clone(&health) };
    let mut r = Recorder::new(node.config(&state), parts).unwrap();
    let _ = health.take_lines();
    fs::remove_dir_all(&state).unwrap();
    let began = Moment::now();
    let mut lines = Vec::new();
    while lines.len() < 2 && Moment::now().since(began) < Duration::from_secs(30) {
        r.step().unwrap();
        lines.extend(health.take_lines().iter().map(ToString::to_string));
    }
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines[0].contains("level=error event=fault what=state") && lines[0].contains("state/ring"),
        "{lines:#?}"
    );
    assert!(lines[1].contains("event=recovery what=state") && lines[1].contains("failures=1"), "{lines:#?}");
    let pod = node.pod(6);
    let instance = node.start(&pod, LIMIT, "sleep 1.2; exec tail /dev/zero");
    std::thread::scope(|s| {
        s.spawn(|| node.clean(&pod, instance));
        let all = until(&mut r, judged);
        assert_eq!((all.len(), all[0].class.as_deref()), (1, Some("host_oom_killed")));
        assert!(file(&state, &all[0], "logs/vllm.previous.log").contains("begins"));
    });
    r.finish();
}

#[test]
fn a_verdict_that_failed_is_not_lost() {
    // Once, and so often that its end is settled before.
    for failures in [1, 2] {
        fails(failures);
    }
}

fn fails(times: u32) {
    let Some(node) = Node::create("judge") else { return };
    let d = tempfile::tempdir().unwrap();
    let health = Arc::new(Health::default());
    let judge = Box::new(Failing(times, OwnJudge(Knowledge::embedded().unwrap())));
    let parts =
        Dependencies { gpus: Box::new(Fake::cards(2)), judge, cluster: None, health: Arc::clone(&health) };
    let mut r = Recorder::new(node.config(d.path()), parts).unwrap();
    let pod = node.pod(7);
    let instance = node.start(&pod, LIMIT, "sleep 1.2; exec tail /dev/zero");
    std::thread::scope(|s| {
        s.spawn(|| node.clean(&pod, instance));
        until(&mut r, judged);
    });
    assert_eq!(r.shared().counts().unjudged, 0);
    r.finish();
    let lines: Vec<String> = health.take_lines().iter().map(ToString::to_string).collect();
    let has = |what: &str| lines.iter().any(|l| l.contains(what));
    assert!(has("level=warn event=fault what=judge") && has("event=recovery what=judge"), "{lines:#?}");
    assert!(has("event=incident") && has("class=host_oom_killed"), "{lines:#?}");
}

#[test]
fn a_process_of_an_exec_that_is_killed_is_told_as_such() {
    let Some(node) = Node::create("exec") else { return };
    let d = tempfile::tempdir().unwrap();
    let mut r = recorder(&node, d.path());
    let pod = node.pod(8);
    let mut instance = node.start(&pod, LIMIT, "sleep 60; true");
    // Listed once a new container's processes are listed anew, which is every two seconds.
    let mut exec = node.exec(&instance, "sleep 4; exec tail /dev/zero");
    let all = until(&mut r, judged);
    assert_eq!((all.len(), all[0].kind, all[0].from_exec), (1, Kind::Kill, true), "{all:#?}");
    assert!(file(d.path(), &all[0], "manifest.json").contains("\"from_exec\": true"));
    let _ = exec.wait();
    instance.child.kill().unwrap();
    node.clean(&pod, instance);
    r.finish();
}
