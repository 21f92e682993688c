//! Which death of a pod is judged: the verdict stays the same while a loop goes on, and an incident that names its
//! container is not judged by the death of another.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::{copies, small_incidents, triage};
use dualplane_core::evidence::RawFile;
use serde_json::{Value, json};

/// A process of the neighbour.
const PID: u64 = 3_999_991;

/// The pod's object, where one file holds it and one container of it ended badly.
fn looping(files: &[RawFile]) -> Option<(usize, Value, usize)> {
    let pod = |f: &RawFile| serde_json::from_slice::<Value>(&f.bytes).ok().filter(|v| v["kind"] == "Pod");
    let at = files.iter().position(|f| pod(f).is_some())?;
    let object = pod(&files[at])?;
    if files.iter().filter(|f| pod(f).is_some()).count() > 1 || object["spec"]["restartPolicy"] == "Never" {
        return None;
    }
    // A pod that was ended as a whole does not loop.
    let status = &object["status"];
    if matches!(status["phase"].as_str(), Some("Failed" | "Succeeded"))
        || !object["metadata"]["deletionTimestamp"].is_null()
    {
        return None;
    }
    let end = |c: &Value| ends(c).is_some_and(|t| t["exitCode"] != 0 && t["finishedAt"].is_string());
    let all = status["containerStatuses"].as_array()?;
    let mut dead = (0..all.len()).filter(|i| end(&all[*i]));
    let one = dead.next()?;
    (dead.next().is_none()).then_some((at, object, one))
}

fn ends(c: &Value) -> Option<&Value> {
    ["state", "lastState"].iter().map(|s| &c[*s]["terminated"]).find(|t| t.is_object())
}

/// The same last end while the loop goes on: waiting, running again, just ended again.
#[test]
fn a_crash_loop_is_judged_alike_while_it_goes_on() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, files) in small_incidents() {
        let Some((at, object, one)) = looping(&files) else { continue };
        let end = ends(&object["status"]["containerStatuses"][one]).unwrap().clone();
        let with = |state: Value, last: Value| {
            let mut pod = object.clone();
            let c = &mut pod["status"]["containerStatuses"][one];
            (c["state"], c["lastState"], c["ready"], c["restartCount"]) =
                (state, last, false.into(), 4.into());
            let mut more = copies(&files);
            more[at] = RawFile::new(files[at].name.clone(), pod.to_string());
            let v = &triage(more)[0].verdict;
            (v.class, v.confidence, v.decided_by)
        };
        let id = json!(format!("containerd://{}", "0f".repeat(32)));
        let before = json!({"terminated": {"exitCode": end["exitCode"], "reason": end["reason"], "containerID": id,
            "startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-01T00:01:00Z"}});
        let last = json!({"terminated": end});
        let waiting = with(
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}),
            last.clone(),
        );
        let running = with(json!({"running": {"startedAt": end["finishedAt"]}}), last.clone());
        let ended = with(last, before);
        seen += 1;
        if waiting != running || waiting != ended {
            wrong.push(format!("{name}: waiting {waiting:?}, running {running:?}, ended again {ended:?}"));
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(wrong.is_empty(), "{} of {seen}: {wrong:#?}", wrong.len());
}

/// What the agent leaves of an incident: whose end it is, and which instance's.
fn judged_one(files: &[RawFile], one: usize, object: &Value) -> Option<Vec<RawFile>> {
    let c = &object["status"]["containerStatuses"][one];
    let end = ends(c)?;
    let id = end["containerID"].as_str()?.rsplit('/').next()?.to_owned();
    let mut more = copies(files);
    more.retain(|f| f.name != "manifest.json");
    more.push(RawFile::new(
        "manifest.json",
        json!({"schema": "dualplane.bundle/v1", "died_at": end["finishedAt"], "incident": {"kind": "end",
            "container": c["name"], "container_id": id, "restart": c["restartCount"]}})
        .to_string(),
    ));
    Some(more)
}

/// Of an incident that names its container, another container's death changes nothing but that it is told beside.
#[test]
fn a_death_of_another_container_is_not_the_incident_s() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, files) in small_incidents() {
        let Some((at, object, one)) = looping(&files) else { continue };
        let pod = files[at].name.clone();
        let Some(files) = judged_one(&files, one, &object) else { continue };
        let at = files.iter().position(|f| f.name == pod).unwrap();
        let end = ends(&object["status"]["containerStatuses"][one]).unwrap();
        let said = |files: Vec<RawFile>| {
            let v = triage(files).remove(0).verdict;
            let trigger = v.trigger.as_ref().map(|t| t.text.clone());
            let own: Vec<_> = v.sequence.iter().filter(|s| s.follows).map(|s| s.class).collect();
            (
                v.class,
                v.phase,
                v.confidence,
                v.decided_by,
                v.summary,
                trigger,
                v.subject.container,
                v.subject.death,
                own,
            )
        };
        let beside = |code: i64, reason: &str, kind: &str| {
            let mut pod = object.clone();
            let id = "0f".repeat(32);
            let dead = json!({"terminated": {"exitCode": code, "reason": reason, "containerID": format!("containerd://{id}"),
                "startedAt": end["startedAt"], "finishedAt": end["finishedAt"]}});
            let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}});
            let spec = json!({"name": "zz-neighbour", "image": "vllm/vllm-openai:v0.11.0", "resources": {"limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}}});
            let status = json!({"name": "zz-neighbour", "restartCount": 9, "ready": false, "containerID": format!("containerd://{id}"), "state": waiting, "lastState": dead});
            for (list, value) in [("spec", spec), ("status", status)] {
                let key = match (list, kind) {
                    ("spec", "init") => "initContainers",
                    ("spec", _) => "containers",
                    (_, "init") => "initContainerStatuses",
                    _ => "containerStatuses",
                };
                if !pod[list][key].is_array() {
                    pod[list][key] = json!([]);
                }
                pod[list][key].as_array_mut().unwrap().push(value);
            }
            let mut more = copies(&files);
            more[at] = RawFile::new(files[at].name.clone(), pod.to_string());
            more
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let lines = |id: &str| {
            let path = format!("/kubepods/burstable/pod{uid}/{id}");
            format!(
                "[    2.000000] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=903\n\
                 [    2.100000] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={path},task_memcg={path},task=python3,pid={PID},uid=0\n\
                 [    2.200000] Memory cgroup out of memory: Killed process {PID} (python3) total-vm:99999999kB, anon-rss:67000000kB, file-rss:0kB, shmem-rss:0kB\n\
                 [    2.300000] cgroup: fork rejected by pids controller in {path}\n\
                 [    2.400000] containerd[812]: msg=\"TaskOOM event &TaskOOM{{container_id:\"{id}\"}}\"\n"
            )
        };
        let quiet = "[    1.000000] Linux version 6.8.0-60-generic\n".to_owned();
        let with_kernel = |mut files: Vec<RawFile>, text: String| {
            files.push(RawFile::new("zz-kernel.log", text));
            files
        };
        let before = said(with_kernel(copies(&files), quiet.clone()));
        seen += 1;
        for (code, reason) in [(137, "OOMKilled"), (1, "Error"), (139, "Error")] {
            let record = if reason == "OOMKilled" { lines(&"0f".repeat(32)) } else { String::new() };
            let after = said(with_kernel(beside(code, reason, "main"), format!("{quiet}{record}")));
            if after != before {
                wrong.push(format!("{name} beside {code} {reason}: {before:?} → {after:?}"));
            }
        }
    }
    assert!(seen > 40, "{seen}");
    assert!(wrong.is_empty(), "{} of {seen}: {wrong:#?}", wrong.len());
}

/// The API's lists tell the type once: what is cut out of them is the same pod, alone or in a list.
#[test]
fn a_pod_without_its_type_is_the_same_pod() {
    let mut seen = 0;
    for (name, files) in small_incidents() {
        let Some((at, object)) = files.iter().enumerate().find_map(|(i, f)| {
            let v: Value = serde_json::from_slice(&f.bytes).ok()?;
            (v["kind"] == "Pod" && v["metadata"]["name"].is_string()).then_some((i, v))
        }) else {
            continue;
        };
        let told = |object: Value| {
            let mut files = copies(&files);
            files[at] = RawFile::new(files[at].name.clone(), serde_json::to_vec(&object).unwrap());
            let all = triage(files);
            let of = |r: &dualplane_report::Report| {
                (
                    r.name.clone(),
                    r.verdict.class,
                    r.verdict.subject.pod.clone(),
                    r.verdict.subject.memory_limit,
                )
            };
            all.iter().map(of).collect::<Vec<_>>()
        };
        let mut without = object.clone();
        let map = without.as_object_mut().unwrap();
        map.remove("apiVersion");
        let want = told(object.clone());
        assert_eq!(told(without.clone()), want, "{name}: without apiVersion");
        without.as_object_mut().unwrap().remove("kind");
        assert_eq!(told(without.clone()), want, "{name}: without kind");
        assert_eq!(told(json!({"metadata": {}, "items": [without]})), want, "{name}: in a list");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}
