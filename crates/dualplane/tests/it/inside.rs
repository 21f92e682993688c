//! What a pod's status does not tell: kills inside of a container that lives on, Jobs whose pods are gone, and a log that
//! is read from the node's file.

use serde_json::{Value, json};

use crate::fake_api::{FakeApi, Reply};
use crate::harness::{code, stderr, stdout};

const UID: &str = "3eeee5db-6611-4802-9456-dfd27caa2b83";

fn living(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "serving", "uid": uid, "creationTimestamp": "2026-11-21T09:59:00Z"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "vllm", "image": "x", "resources": {"limits": {"memory": "96Mi"}}}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "vllm", "restartCount": 0, "image": "x", "imageID": "",
            "ready": true, "containerID": "containerd://abc", "state": {"running": {"startedAt": "2026-11-21T10:00:00Z"}}}]}})
}

fn kernel() -> String {
    format!(
        "Nov 21 10:05:00 node-1 kernel: python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=900\n\
         Nov 21 10:05:00 node-1 kernel: memory: usage 98304kB, limit 98304kB, failcnt 12\n\
         Nov 21 10:05:00 node-1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0,oom_memcg=/kubepods/burstable/pod{UID}/abc,task_memcg=/kubepods/burstable/pod{UID}/abc,task=python3,pid=77,uid=0\n\
         Nov 21 10:05:00 node-1 kernel: Memory cgroup out of memory: Killed process 77 (python3) total-vm:300000kB, anon-rss:96000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:300kB oom_score_adj:900\n"
    )
}

/// Two pods that seem well; in the first a worker was killed.
fn cluster(kernel_log: bool, event: bool) -> FakeApi {
    FakeApi::new(move |asked| {
        let other = "11111111-2222-3333-4444-555555555555";
        match asked {
            a if a.contains("/serving/pods?") => {
                Some(Reply::list(&[living("llm-0", UID), living("llm-1", other)]))
            }
            a if a.ends_with("/pods/llm-0") => Some(Reply::json(&living("llm-0", UID))),
            a if a.contains("/proxy/logs") && !kernel_log => Some(Reply::status(403, "nodes is forbidden")),
            a if a.ends_with("/proxy/logs/") => {
                Some(Reply::text("<pre>\n<a href=\"kern.log\">kern.log</a>\n</pre>"))
            }
            a if a.ends_with("/proxy/logs/kern.log") => Some(Reply::text(kernel())),
            a if a.contains("/events?") && event && !a.contains("involvedObject.kind%3DNode") => {
                Some(Reply::list(&[
                    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "llm-0.1", "namespace": "serving"}, "reason": "DualplaneVerdict", "type": "Warning",
                    "involvedObject": {"kind": "Pod", "name": "llm-0", "namespace": "serving", "uid": UID},
                    "source": {"component": "dualplane-agent", "host": "node-1"}, "count": 1,
                    "firstTimestamp": "2026-11-21T10:05:00Z", "lastTimestamp": "2026-11-21T10:05:00Z",
                    "message": "processes were killed, the container is still running: the container was OOM-killed over its host RAM limit (host_oom_killed, host plane); first line: Memory cgroup out of memory: Killed process 77 (python3) total-vm:300000kB, anon-rss:96000kB, file-rss:0kB, shmem-rss:0kB; incident 1-x on node node-1"}),
                ]))
            }
            _ => None,
        }
    })
}

fn failed(api: &FakeApi) -> (Vec<(String, String)>, String) {
    let o = api.run(&["triage", "-n", "serving", "--failed", "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let all: Value = serde_json::from_str(&stdout(&o)).unwrap();
    let one = std::slice::from_ref(&all);
    let items = all["items"].as_array().map_or(one, Vec::as_slice);
    let of = |i: &Value| {
        let text = |v: &Value| v.as_str().unwrap_or("?").to_owned();
        (text(&i["incident"]), text(&i["verdict"]["class"]))
    };
    (items.iter().map(of).collect(), stderr(&o))
}

#[test]
fn a_kill_inside_of_a_living_container_is_found_by_the_nodes_kernel_log() {
    let (found, err) = failed(&cluster(true, false));
    assert_eq!(found, [("serving/llm-0".to_owned(), "host_oom_killed".to_owned())], "{err}");
}

#[test]
fn and_by_the_agents_event_where_that_may_not_be_read() {
    let (found, err) = failed(&cluster(false, true));
    assert_eq!(found, [("serving/llm-0".to_owned(), "host_oom_killed".to_owned())], "{err}");
    let api = cluster(false, false);
    let o = api.run(&["triage", "-n", "serving", "--failed"]);
    assert!(stderr(&o).contains("none of the 2 pods"), "{}", stderr(&o));
}

#[test]
fn a_job_whose_pods_are_gone_leads_to_its_condition_and_to_what_agents_told() {
    let api = |told: bool| {
        FakeApi::new(move |asked| match asked {
            a if a.ends_with("/jobs/train") => {
                Some(Reply::json(&json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "train", "namespace": "serving"},
                "spec": {"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "j"}}},
                "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                    "message": "Job has reached the specified backoff limit"}]}})))
            }
            a if a.contains("/pods?") => Some(Reply::list(&[])),
            a if a.ends_with("/namespaces/serving") => Some(Reply::json(&json!({"kind": "Namespace"}))),
            a if a.contains("/events?") && told => Some(Reply::list(&[
                json!({"involvedObject": {"kind": "Pod", "name": "train-x7k2p"}, "source": {"host": "node-1"},
                    "metadata": {"annotations": {"dualplane.dev/incident": "20261121T1-x"}}, "message": "the container was OOM-killed"}),
                json!({"involvedObject": {"kind": "Pod", "name": "training-1"}, "message": "of another"}),
            ])),
            _ => None,
        })
    };
    let o = api(true).run(&["triage", "job/train", "-n", "serving"]);
    let text = stderr(&o);
    assert_eq!(code(&o), 4, "{text}");
    for part in [
        "the pods of job/train are gone",
        "Failed: BackoffLimitExceeded: Job has reached",
        "the agent on node node-1 recorded of train-x7k2p: the container was OOM-killed",
        "dualplane incidents show 20261121T1-x",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("of another"), "{text}");
    let text = stderr(&api(false).run(&["triage", "job/train", "-n", "serving"]));
    assert!(text.contains("no agent told of them") && text.contains("BackoffLimitExceeded"), "{text}");
}

/// A log of some MiB in both forms, with the error at its end.
fn large(raw: bool) -> String {
    let mut out = String::new();
    for i in 0..90_000 {
        let framing = if raw { "stdout F " } else { "" };
        let line = if i == 89_999 {
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free."
        } else {
            "INFO:     127.0.0.1:40000 - \"POST /v1/completions HTTP/1.1\" 200 OK"
        };
        out.push_str(&format!("2026-11-21T10:00:00.{i:09}Z {framing}{line}\n"));
    }
    out
}

fn died(name: &str) -> Value {
    let mut pod = living(name, UID);
    pod["status"]["phase"] = json!("Failed");
    pod["status"]["containerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 1, "reason": "Error",
        "startedAt": "2026-11-21T10:00:00Z", "finishedAt": "2026-11-21T10:05:00Z", "containerID": "containerd://abc"}});
    pod
}

#[test]
fn a_large_log_is_read_from_the_nodes_file_where_it_is_the_same_one() {
    let file = format!("/proxy/logs/pods/serving_llm-0_{UID}/vllm/0.log");
    let run = |on_node: &'static str| {
        let below = file.clone();
        let api = FakeApi::new(move |asked| match asked {
            a if a.ends_with("/pods/llm-0") => Some(Reply::json(&died("llm-0"))),
            a if a.ends_with(&below) => match on_node {
                "same" => Some(Reply::text(large(true))),
                "other" => Some(Reply::text(large(true).replace("T10:00:00", "T09:00:00"))),
                _ => Some(Reply::status(403, "nodes is forbidden")),
            },
            a if a.contains("/pods/llm-0/log?") => Some(Reply::text(large(false))),
            _ => None,
        });
        let o = api.run(&["triage", "pod/llm-0", "-n", "serving", "-o", "json"]);
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
        assert!(v["verdict"]["class"].as_str().unwrap().starts_with("cuda_oom"), "{on_node}: {v:#}");
        assert_eq!(v["trigger"]["line"], 90_000, "{on_node}: the line of the whole log");
        (api.asked(&file), api.asked("/pods/llm-0/log?"))
    };
    assert_eq!(run("same"), (1, 1));
    assert_eq!(run("other"), (1, 2), "another instance's file is not taken");
    assert_eq!(run("forbidden"), (1, 2));
}
