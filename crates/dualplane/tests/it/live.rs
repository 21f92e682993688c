//! The live commands against an API server that is slow, odd, hostile, or wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_api::{FakeApi, Reply};
use crate::harness::{code, dualplane, stderr, stdout};

/// A pod whose container died and waits for its next start.
fn pod(name: &str, containers: &[&str]) -> Value {
    let statuses: Vec<Value> = containers
        .iter()
        .map(|c| {
            json!({"name": c, "restartCount": 3, "image": "vllm/vllm-openai:v0.11.2", "imageID": "", "ready": false,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "containerID": "containerd://a",
                    "startedAt": "2026-11-21T10:00:00Z", "finishedAt": "2026-11-21T10:05:00Z"}}})
        })
        .collect();
    let spec: Vec<Value> = containers.iter().map(|c| json!({"name": c, "image": "x"})).collect();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "serving", "uid": format!("uid-{name}")},
        "spec": {"nodeName": "n1", "containers": spec},
        "status": {"phase": "Running", "containerStatuses": statuses}})
}

const CUDA: &str = "2026-11-21T10:04:59.1Z torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.00 GiB is free.\n";

fn manifest(api: &FakeApi, args: &[&str]) -> Value {
    let out = api.path().join("b.tar.zst");
    let o = api.run(&[&["capture", "--out", out.to_str().unwrap()], args].concat());
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let mut tar = Vec::new();
    let packed = std::fs::read(&out).unwrap();
    let mut reader = ruzstd::decoding::StreamingDecoder::new(packed.as_slice()).unwrap();
    std::io::Read::read_to_end(&mut reader, &mut tar).unwrap();
    let mut archive = tar::Archive::new(tar.as_slice());
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        if entry.path().unwrap().ends_with("manifest.json") {
            return serde_json::from_reader(entry).unwrap();
        }
    }
    panic!("no manifest")
}

#[test]
fn the_log_of_a_later_instance_is_not_the_dead_ones() {
    // Between the list and the log the container was started again: its log is 40 minutes younger than the death.
    let answer = |line: &'static str, instance: fn(usize) -> usize| {
        let looked = AtomicUsize::new(0);
        move |asked: &str| match asked {
            a if a.contains("/pods/llm/log") => Some(Reply::text(line)),
            a if a.ends_with("/pods/llm") => {
                let mut pod = pod("llm", &["vllm"]);
                let instance = instance(looked.fetch_add(1, Ordering::Relaxed));
                if instance > 0 {
                    pod["status"]["containerStatuses"][0]["lastState"]["terminated"] = json!({"exitCode": 1,
                        "reason": "Error", "containerID": format!("containerd://{instance}"),
                        "startedAt": "2026-11-21T10:40:00Z",
                        "finishedAt": if instance == 1 { "2026-11-21T10:45:00Z" } else { "2026-11-21T10:20:00Z" }});
                }
                Some(Reply::json(&pod))
            }
            _ => None,
        }
    };
    let class = |api: &FakeApi| {
        let o = api.run(&["triage", "pod/llm", "-o", "json"]);
        let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
        (v["verdict"]["class"].as_str().unwrap().to_owned(), v.to_string())
    };
    let later: &'static str = CUDA.replace("T10:04", "T10:44").leak();
    for (case, line, instance, cuda) in [
        ("still the same", CUDA, (|_| 0) as fn(usize) -> usize, true),
        ("looked at again", later, |look| look.min(1), true),
        ("restarts at each look", later, |look| if look == 0 { 0 } else { look + 1 }, false),
        ("a kubelet that stamps lines when it is asked", later, |_| 0, true),
    ] {
        let (class, said) = class(&FakeApi::new(answer(line, instance)));
        assert_eq!(class.starts_with("cuda_oom"), cuda, "{case}: {class}");
        assert_eq!(said.contains("another instance"), !cuda, "{case}: {said}");
    }
}

#[test]
fn a_log_that_went_with_a_restart_is_read_of_the_next_instance() {
    // The kubelet keeps one dead instance: the one that the pod's object named was removed when the next one died.
    let looked = AtomicUsize::new(0);
    let api = FakeApi::new(move |asked: &str| match asked {
        a if a.contains("/pods/llm/log") && looked.load(Ordering::Relaxed) < 2 => {
            Some(Reply::status(400, "previous terminated container \"vllm\" in pod \"llm\" not found"))
        }
        a if a.contains("/pods/llm/log") => Some(Reply::text(CUDA)),
        a if a.ends_with("/pods/llm") => {
            let mut pod = pod("llm", &["vllm"]);
            if looked.fetch_add(1, Ordering::Relaxed) > 0 {
                pod["status"]["containerStatuses"][0]["restartCount"] = json!(4);
                pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["containerID"] =
                    json!("containerd://b");
            }
            Some(Reply::json(&pod))
        }
        _ => None,
    });
    let o = api.run(&["triage", "pod/llm", "-o", "json"]);
    assert!(stdout(&o).contains("cuda_oom"), "{}", stdout(&o));
    assert_eq!(api.asked("/pods/llm/log"), 2);
}

#[test]
fn slow_logs_do_not_make_other_sources_time_out() {
    // Sixteen logs of 1 s each take both turns of all slots; what waits behind them is late, not unanswered.
    let names: Vec<String> = (0..16).map(|i| format!("c{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let it = pod("llm", &names);
    let api = FakeApi::new(move |asked| match asked {
        a if a.contains("/pods/llm/log") => {
            Some(Reply { after: Duration::from_secs(1), ..Reply::text("2026-11-21T10:04:00Z a\n") })
        }
        a if a.ends_with("/pods/llm") => Some(Reply::json(&it)),
        a if a.contains("/events?") => {
            Some(Reply::list(&[json!({"kind": "Event", "metadata": {"name": "e"}})]))
        }
        _ => None,
    });
    let manifest = manifest(&api, &["pod/llm", "--request-timeout", "1500ms"]);
    let late: Vec<&Value> =
        manifest["sources"].as_array().unwrap().iter().filter(|s| s["why"] == "timed out").collect();
    assert!(late.is_empty(), "{late:?}");
}

#[test]
fn a_server_that_asks_to_wait_no_time_is_not_stormed() {
    let api = FakeApi::new(|asked| match asked {
        a if a.ends_with("/pods/llm") => Some(Reply::json(&pod("llm", &["vllm"]))),
        a if a.contains("/events?") => {
            Some(Reply { headers: "Retry-After: 0\r\n".into(), ..Reply::status(429, "slow down") })
        }
        _ => None,
    });
    let manifest = manifest(&api, &["pod/llm", "--request-timeout", "2s"]);
    let asked = api.asked("/events?");
    assert!((2..=20).contains(&asked), "{asked} requests in 2 s");
    assert!(manifest["gaps"].to_string().contains("asked to wait"), "{manifest}");
}

#[test]
fn request_timeout_is_also_that_of_a_log() {
    let api = FakeApi::new(|asked| match asked {
        a if a.contains("/pods/llm/log") => {
            Some(Reply { after: Duration::from_secs(20), ..Reply::text("a\n") })
        }
        a if a.ends_with("/pods/llm") => Some(Reply::json(&pod("llm", &["vllm"]))),
        _ => None,
    });
    let from = std::time::Instant::now();
    let manifest = manifest(&api, &["pod/llm", "--request-timeout", "1s"]);
    assert!(from.elapsed() < Duration::from_secs(10), "{:?}", from.elapsed());
    assert!(manifest["gaps"].to_string().contains("the previous log of container vllm"), "{manifest}");
}

#[test]
fn a_container_name_cannot_name_a_file_elsewhere() {
    let api = FakeApi::new(|asked| match asked {
        a if a.contains("/pods/llm/log") => Some(Reply::text("2026-11-21T10:04:00Z a\n")),
        a if a.ends_with("/pods/llm") => Some(Reply::json(&pod("llm", &["../../../x", "vllm"]))),
        _ => None,
    });
    let manifest = manifest(&api, &["pod/llm"]);
    assert!(!manifest["sources"].to_string().contains(".."), "{manifest}");
    assert!(manifest["sources"].to_string().contains("logs/vllm (previous)"), "{manifest}");
}

#[test]
fn the_longest_names_are_captured() {
    let name: &'static str = "p".repeat(253).leak();
    let api = FakeApi::new(move |asked| asked.ends_with(name).then(|| Reply::json(&pod(name, &["vllm"]))));
    let o = api.run(&["capture", &format!("pod/{name}")]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let bundles = std::fs::read_dir(api.path()).unwrap();
    let bundles = bundles.filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tar.zst"));
    assert_eq!(bundles.count(), 1);
}

#[test]
fn a_pod_that_is_named_twice_is_judged_once() {
    let api = FakeApi::new(|asked| asked.ends_with("/pods/llm").then(|| Reply::json(&pod("llm", &["vllm"]))));
    let o = api.run(&["triage", "pod", "llm", "llm", "-o", "json"]);
    let v: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(v["schema"], "dualplane.verdict/v2", "{v}");
}

#[test]
fn a_namespace_that_is_not_there_is_not_good_news() {
    let api = FakeApi::new(|asked| match asked {
        a if a.contains("/namespaces/servin/pods?") => Some(Reply::list(&[])),
        a if a.contains("/namespaces/serving/pods?") => Some(Reply::list(&[])),
        a if a.ends_with("/namespaces/serving") => Some(Reply::json(&json!({"kind": "Namespace"}))),
        _ => None,
    });
    let o = api.run(&["triage", "--failed", "-n", "servin"]);
    assert_eq!(code(&o), 3, "{}", stderr(&o));
    assert!(stderr(&o).contains("not found: namespace servin"), "{}", stderr(&o));
    let o = api.run(&["triage", "--failed"]);
    assert!(stderr(&o).contains("there are no pods in namespace serving"), "{}", stderr(&o));
    let o = api.run(&["triage", "pod/llm"]);
    assert!(stderr(&o).contains("pod/llm in namespace serving of context c"), "{}", stderr(&o));
}

#[test]
fn a_list_that_is_cut_is_said_to_be() {
    let api = FakeApi::new(|asked| match asked {
        a if a.contains("continue=") => Some(Reply::status(410, "too old")),
        a if a.contains("/api/v1/pods?") => Some(Reply::json(
            &json!({"kind": "PodList", "metadata": {"continue": "x"}, "items": [{"metadata": {"name": "healthy"}}]}),
        )),
        _ => None,
    });
    // Healthy pods are not held: that none of them failed does not make the list whole.
    let o = api.run(&["triage", "-A", "--failed"]);
    assert!(stderr(&o).contains("the list of pods is incomplete"), "{}", stderr(&o));
    assert!(stderr(&o).contains("neither restarted nor failed"), "{}", stderr(&o));
}

/// How they stand against their limits is the answer then.
#[test]
fn of_a_workload_that_lives_some_pods_are_judged() {
    let living = |i: usize| {
        let mut pod = pod(&format!("llm-{i}"), &["vllm"]);
        pod["status"]["containerStatuses"][0] = json!({"name": "vllm", "restartCount": 0, "image": "x", "imageID": "",
            "ready": true, "state": {"running": {"startedAt": "2026-11-21T10:00:00Z"}}});
        pod
    };
    let api = FakeApi::new(move |asked| match asked {
        a if a.contains("/pods?") => Some(Reply::list(&(0..6).map(living).collect::<Vec<_>>())),
        a => (0..6).find(|i| a.ends_with(&format!("/pods/llm-{i}"))).map(|i| Reply::json(&living(i))),
    });
    let o = api.run(&["triage", "-l", "app=llm", "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert!(stderr(&o).contains("none of the 6 pods"), "{}", stderr(&o));
    let reports: Value = serde_json::from_str(&stdout(&o)).unwrap();
    assert_eq!(reports["items"].as_array().map(Vec::len), Some(3), "{reports:#}");
    // `--failed` asks for those in trouble alone.
    let o = api.run(&["triage", "-l", "app=llm", "--failed"]);
    assert!(stderr(&o).contains("restarted or failed") && stdout(&o).is_empty(), "{}", stderr(&o));
}

#[test]
fn later_pods_of_many_are_looked_at_again() {
    let api = FakeApi::new(|asked| match asked {
        a if a.contains("/api/v1/pods?limit") => {
            Some(Reply::list(&(0..6).map(|i| pod(&format!("llm-{i}"), &["vllm"])).collect::<Vec<_>>()))
        }
        a if a.contains("/log") => Some(Reply::text(CUDA)),
        _ => None,
    });
    let o = api.run(&["triage", "-A", "--failed"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let again =
        |i: usize| api.asked(&format!("/namespaces/serving/pods/llm-{i}")) - api.asked(&format!("llm-{i}/"));
    assert_eq!((again(0), again(5)), (0, 1));
}

#[test]
fn files_of_kubeconfig_that_are_not_there_are_passed_over() {
    let api = FakeApi::new(|asked| asked.ends_with("/pods/llm").then(|| Reply::json(&pod("llm", &["vllm"]))));
    let config = api.path().join("config");
    let o = api.run_with(&["triage", "pod/llm"], &format!("/nowhere/a:{}:", config.display()));
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let o = api.run(&["triage", "pod/llm", "--context", "d"]);
    assert!(stderr(&o).contains("there is no context d; available contexts: c"), "{}", stderr(&o));
}

#[cfg(unix)]
#[test]
fn no_error_shows_a_credential() {
    use std::os::unix::fs::PermissionsExt;
    let api = FakeApi::new(|_| None);
    let plugin = api.path().join("plugin");
    let config = |user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster: {{server: \"http://127.0.0.1:1\"}}\n\
             contexts:\n- name: c\n  context: {{cluster: k, user: u}}\nusers:\n- name: u\n  user:\n{user}"
        )
    };
    let exec = config(&format!(
        "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Never\n      command: {}\n      env:\n      - {{name: AWS_SECRET, value: geheim1}}\n",
        plugin.display()
    ));
    let broken = config("    token: geheim2\n    exec: [a\n");
    for (text, exit, says) in [
        (&exec, 1, "please log in"),
        (&exec, 0, "printed no ExecCredential"),
        (&broken, 0, "the kubeconfig is not valid YAML"),
    ] {
        let script =
            format!("#!/bin/sh\necho '{{\"token\": \"geheim3\"'\necho 'please log in' >&2\nexit {exit}\n");
        std::fs::write(&plugin, script).unwrap();
        std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(api.path().join("k"), text).unwrap();
        let o = api.run_with(&["triage", "pod/llm"], &api.path().join("k").to_string_lossy());
        assert!(stderr(&o).contains(says), "{}", stderr(&o));
        assert!(!stderr(&o).contains("geheim"), "{}", stderr(&o));
    }
    // A password in it is refused at once (secret.rs); a user alone is no secret, but no scheme is an error.
    let o = api.run(&["triage", "pod/llm", "--prometheus", "u@prom:9090"]);
    assert!(stderr(&o).contains("prom:9090 is not a valid store URL"), "{}", stderr(&o));
}

#[test]
fn where_a_bundle_cannot_go_is_said_before_anything_is_asked() {
    let api = FakeApi::new(|_| None);
    for (out, says) in [
        ("/nowhere/b.tar.zst", "the directory /nowhere does not exist"),
        ("/dev/null", "is not a regular file"),
        ("json", "-o names the output file"),
    ] {
        let o = api.run(&["capture", "pod/llm", "-o", out]);
        assert_eq!(code(&o), 2, "{out}: {}", stderr(&o));
        assert!(stderr(&o).contains(says), "{}", stderr(&o));
    }
    assert_eq!(api.asked(""), 0);
}

#[cfg(unix)]
#[test]
fn a_bundle_goes_into_a_folder_and_through_a_link() {
    let api = FakeApi::new(|asked| asked.ends_with("/pods/llm").then(|| Reply::json(&pod("llm", &["vllm"]))));
    std::fs::create_dir(api.path().join("into")).unwrap();
    assert_eq!(code(&api.run(&["capture", "pod/llm", "-o", "into"])), 0);
    assert_eq!(std::fs::read_dir(api.path().join("into")).unwrap().count(), 1);
    std::fs::write(api.path().join("real"), b"").unwrap();
    std::os::unix::fs::symlink("real", api.path().join("link")).unwrap();
    assert_eq!(code(&api.run(&["capture", "pod/llm", "-o", "link"])), 0);
    assert!(api.path().join("link").symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::metadata(api.path().join("real")).unwrap().len() > 0);
}

#[test]
fn what_was_meant_is_guessed() {
    let empty = tempfile::tempdir().unwrap();
    for (word, says) in [
        ("llm-0", "pod/llm-0"),
        ("deploymnet/llm", "\"deploymnet\" is neither a directory nor a known kind"),
        ("pod/Llm", "\"Llm\" is not a valid object name"),
        ("previous.log", "check the path"),
    ] {
        let o = dualplane().args(["triage", word]).current_dir(empty.path()).output().unwrap();
        assert_eq!(code(&o), 3, "{}", stderr(&o));
        assert!(stderr(&o).contains(says), "{word}: {}", stderr(&o));
    }
}
