//! What a user sees of `triage`: formats, exit codes, several incidents, evidence forms.

use crate::harness::{
    class, code, dir, dualplane, incidents_dir, run, run_stdin, stderr, stdout, triage_files, triage_json,
};

const CUDA: &str = "INFO 04-11 17:01:13 [model_runner.py:1110] Starting to load model m...\n\
[rank0]: Traceback (most recent call last):\n\
[rank0]:   File \"/x/vllm/worker/model_runner.py\", line 1113, in load_model\n\
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total capacity of 15.60 GiB of which 700.88 MiB is free. Including non-PyTorch memory, this process has 14.91 GiB memory in use. Of the allocated memory 14.60 GiB is allocated by PyTorch, and 15.10 MiB is reserved by PyTorch but unallocated.\n";

const POD: &str = r#"apiVersion: v1
kind: Pod
metadata: {name: llm-0, namespace: serving, uid: 11111111-2222-3333-4444-555555555555}
spec:
  nodeName: gpu-1
  containers:
  - name: server
    image: vllm/vllm-openai:v0.11.2
    resources: {limits: {memory: 64Gi, nvidia.com/gpu: 1}}
status:
  phase: Running
  containerStatuses:
  - name: server
    restartCount: 3
    state: {waiting: {reason: CrashLoopBackOff}}
    lastState: {terminated: {exitCode: EXIT, reason: REASON, finishedAt: "2026-09-03T02:10:49Z"}}
"#;

fn pod(exit: i32, reason: &str) -> String {
    POD.replace("EXIT", &exit.to_string()).replace("REASON", reason)
}

#[test]
fn a_cuda_oom_at_load_from_a_directory_a_file_and_standard_input() {
    let d = dir(&[("previous.log", CUDA.as_bytes())]);
    let from_dir = triage_json(d.path());
    assert_eq!(class(&from_dir), "cuda_oom_load");
    assert_eq!(from_dir["verdict"]["plane"], "gpu");
    assert_eq!(from_dir["verdict"]["phase"], "load");
    assert_eq!(from_dir["trigger"]["line"], 4);
    assert_eq!(from_dir["trigger"]["text"].as_str(), CUDA.lines().nth(3));
    let from_file = triage_json(&d.path().join("previous.log"));
    assert_eq!(from_file["trigger"], from_dir["trigger"]);
    let o = run_stdin(&["triage", "-", "-o", "json"], CUDA.as_bytes());
    let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!((class(&v), v["trigger"]["file"].as_str()), ("cuda_oom_load", Some("stdin")));
}

#[test]
fn oomkilled_is_host_and_137_alone_is_unknown() {
    let log = "INFO 02-25 10:01:10 [loggers.py:257] Engine 000: Avg prompt throughput: 311.9 tokens/s, Avg generation throughput: 640.2 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 9.8%, Prefix cache hit rate: 3.1%\n";
    let v = triage_files(&[("pod.yaml", &pod(137, "OOMKilled")), ("previous.log", log)]);
    assert_eq!((class(&v), v["verdict"]["plane"].as_str()), ("host_oom_killed", Some("host")));
    assert!(v["trigger"].is_null());
    let v = triage_files(&[("pod.yaml", &pod(137, "Error")), ("previous.log", log)]);
    assert_eq!(class(&v), "unknown");
    let commands = v["missing"].to_string();
    assert!(commands.contains("get events") && commands.contains("dmesg"), "{commands}");
}

#[test]
fn a_vram_error_then_an_oom_kill_of_the_same_instance_are_two_steps() {
    let v = triage_files(&[("pod.yaml", &pod(137, "OOMKilled")), ("previous.log", CUDA)]);
    assert_eq!(class(&v), "cuda_oom_load");
    let steps: Vec<&str> =
        v["sequence"].as_array().unwrap().iter().map(|s| s["class"].as_str().unwrap()).collect();
    assert_eq!(steps, ["cuda_oom_load", "host_oom_killed"]);
}

#[test]
fn a_request_that_ran_out_hours_before_the_kill_did_not_cause_it() {
    let served = "INFO:     10.0.0.1:1 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n".repeat(40);
    let v =
        triage_files(&[("pod.yaml", &pod(137, "OOMKilled")), ("previous.log", &format!("{CUDA}{served}"))]);
    assert_eq!(class(&v), "host_oom_killed");
}

#[test]
fn what_users_write_is_no_evidence() {
    let log = "INFO 06-12 05:39:45 [logger.py:39] Received request cmpl-1: prompt: 'RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. why?', params: SamplingParams(n=1)\n\
               INFO:     10.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
    let v = triage_files(&[("current.log", log)]);
    assert_eq!(class(&v), "not_memory", "{v:#}");
}

#[test]
fn the_same_line_in_every_wrapping() {
    let line = CUDA.lines().nth(3).unwrap();
    let cri = format!("2026-09-03T02:10:41.123456789Z stderr F {line}\n");
    let (a, b) = line.split_at(40);
    let partial = format!("2026-09-03T02:10:41.1Z stderr P {a}\n2026-09-03T02:10:41.2Z stderr F {b}\n");
    let docker = format!(
        "{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2026-09-03T02:10:41Z\"}}\n",
        serde_json::json!(format!("{line}\n"))
    );
    let jsonl = format!(
        "{}\n{}\n",
        serde_json::json!({"level": "INFO", "message": "up"}),
        serde_json::json!({"level": "ERROR", "message": line})
    );
    let coloured =
        format!("\u{1b}[1;36m(Worker pid=1)\u{1b}[0m {}\r\n", line.replace("CUDA out", "CUDA \u{1b}[31mout"));
    let journal = format!("Jul 03 22:40:06 node1 vllm[12]: {line}\n");
    for (name, text) in [
        ("cri", cri),
        ("partial", partial),
        ("docker", docker),
        ("jsonl", jsonl),
        ("coloured", coloured),
        ("journal", journal),
    ] {
        let v = triage_files(&[("server.log", &text)]);
        assert!(class(&v).starts_with("cuda_oom"), "{name}: {v:#}");
        let first = text.lines().find(|l| l.contains("Tried") || l.contains("stderr P")).unwrap();
        assert_eq!(
            v["trigger"]["text"].as_str(),
            Some(first.trim_end_matches('\r')),
            "{name}: the raw line is quoted"
        );
    }
}

#[test]
fn rotated_files_are_read_oldest_first() {
    let v = triage_files(&[
        ("server.log", "INFO last\n"),
        ("server.log.1", "RuntimeError: CUDA error: out of memory\n"),
        ("server.log.2", CUDA),
    ]);
    assert_eq!(v["trigger"]["file"], "server.log.2");
}

#[test]
fn each_format_says_the_class_and_repeats_byte_for_byte() {
    let target = incidents_dir().join("real-k8s-pid1-oom");
    let target = target.to_str().unwrap();
    for format in ["text", "json", "markdown", "html"] {
        let one = run(&["triage", target, "-o", format]);
        let two = run(&["triage", target, "-o", format]);
        assert_eq!(code(&one), 0);
        assert_eq!(one.stdout, two.stdout, "{format} differs between runs");
        assert!(stdout(&one).contains("host_oom_killed"), "{format}");
    }
}

#[test]
fn the_order_of_arguments_changes_nothing_but_the_name() {
    let d = dir(&[("a.log", CUDA.as_bytes()), ("pod.yaml", pod(1, "Error").as_bytes())]);
    let (a, b) = (d.path().join("a.log"), d.path().join("pod.yaml"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_slice(&run(args).stdout).unwrap() };
    let mut one = json(&["triage", a, b, "-o", "json"]);
    let mut two = json(&["triage", b, a, "-o", "json"]);
    one["incident"] = "".into();
    two["incident"] = "".into();
    assert_eq!(one, two);
}

#[test]
fn colour_only_where_asked_or_on_a_terminal() {
    let target = incidents_dir().join("real-k8s-pid1-oom");
    let target = target.to_str().unwrap();
    assert!(!stdout(&run(&["triage", target])).contains('\u{1b}'));
    assert!(stdout(&run(&["triage", target, "--color", "always"])).contains('\u{1b}'));
}

#[test]
fn exit_codes_can_tell_the_class() {
    let target = incidents_dir().join("real-k8s-pid1-oom");
    assert_eq!(code(&run(&["triage", target.to_str().unwrap(), "--exit-code"])), 20);
    assert_eq!(code(&run(&["triage", target.to_str().unwrap()])), 0);
    assert_eq!(code(&run(&["triage"])), 2);
    assert_eq!(code(&run(&["no-such-command"])), 2);
    assert_eq!(code(&run(&["--help"])), 0);
    assert_eq!(code(&run(&["--version"])), 0);
}

#[test]
fn several_incidents_give_a_list() {
    let d = dir(&[("one/previous.log", CUDA.as_bytes()), ("two/pod.yaml", pod(137, "OOMKilled").as_bytes())]);
    let v = triage_json(d.path());
    assert_eq!(v["schema"], "dualplane.verdicts/v2");
    let classes: Vec<&str> = v["items"].as_array().unwrap().iter().map(class).collect();
    assert_eq!(classes, ["cuda_oom_load", "host_oom_killed"]);
}

#[test]
fn parts_of_one_incident_in_folders_stay_one() {
    let d = dir(&[("logs/server.log", CUDA.as_bytes()), ("objects/pod.yaml", pod(1, "Error").as_bytes())]);
    let v = triage_json(d.path());
    assert_eq!(v["schema"], "dualplane.verdict/v2");
    assert_eq!(v["subject"]["pod"], "llm-0");
}

#[test]
fn two_dead_pods_in_one_list_give_two_reports() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n{}\n{}",
        indent(&pod(137, "OOMKilled")),
        indent(&pod(1, "Error").replace("llm-0", "other-1").replace("11111111", "99999999"))
    );
    let v = triage_files(&[("pods.yaml", &list), ("other-1.log", CUDA)]);
    let items = v["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{v:#}");
    assert_eq!((class(&items[0]), class(&items[1])), ("host_oom_killed", "cuda_oom_load"));
}

fn indent(yaml: &str) -> String {
    let mut out = String::new();
    for (i, line) in yaml.lines().enumerate() {
        out.push_str(if i == 0 { "- " } else { "  " });
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[test]
fn levers_of_the_wrong_plane_are_never_fixes() {
    let host = triage_files(&[("pod.yaml", &pod(137, "OOMKilled"))]);
    for a in host["actions"].as_array().unwrap().iter().filter(|a| a["stage"] != "avoid") {
        let text = a.to_string();
        assert!(!text.contains("gpu-memory-utilization") && !text.contains("mem-fraction-static"), "{text}");
    }
    let gpu = triage_files(&[("previous.log", CUDA), ("pod.yaml", &pod(1, "Error"))]);
    for a in gpu["actions"].as_array().unwrap().iter().filter(|a| a["stage"] != "avoid") {
        let text = a.to_string();
        assert!(
            !text.contains("limits.memory")
                && !text.contains("limits=memory")
                && !text.contains("memory limit"),
            "{text}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    use std::process::Stdio;
    let target = incidents_dir();
    let mut child = dualplane()
        .args(["triage", target.to_str().unwrap(), "-v"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let o = child.wait_with_output().unwrap();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
}

#[test]
fn a_kernel_record_without_its_end_is_not_taken_for_this_pods() {
    // Seen on a node whose log was sifted: of another pod's record the lines with its cgroup were left out.
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm","namespace":"s","uid":"11111111-2222-3333-4444-555555555555"},
        "spec":{"nodeName":"n1","containers":[{"name":"vllm","image":"vllm/vllm-openai:v0.11.2","resources":{"limits":{"memory":"96Mi"}}}]},
        "status":{"phase":"Running","containerStatuses":[{"name":"vllm","restartCount":3,"image":"x","imageID":"","ready":false,
        "state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error",
        "containerID":"containerd://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "startedAt":"2026-11-21T20:04:00Z","finishedAt":"2026-11-21T20:05:00Z"}}}]}}"#;
    let log = "2026-11-21T20:04:59.401Z torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free.\n";
    let head = "Nov 21 20:04:28 n1 kernel: [28473.375514] runc:[2:INIT] invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
        Nov 21 20:04:28 n1 kernel: [28473.375577]  mem_cgroup_out_of_memory+0xc0/0x110\n\
        Nov 21 20:04:28 n1 kernel: [28473.375584]  try_charge_memcg+0x422/0x6f0\n\
        [dualplane: lines 24631 to 27751 left out]\n\
        Nov 21 20:09:54 n1 kernel: [28799.745300] memory: usage 65536kB, limit 65536kB, failcnt 50\n\
        Nov 21 20:09:54 n1 kernel: [28799.745369] memory+swap: usage 65536kB, limit 9007199254740988kB, failcnt 0\n";
    let whole = "Nov 21 19:00:00 n1 kernel: [20000.000001] other invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
        Nov 21 19:00:00 n1 kernel: [20000.000002] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=b,mems_allowed=0,oom_memcg=/kubepods/burstable/pode8293854-3926-4b44-8995-220625cec50c,task_memcg=/kubepods/burstable/pode8293854-3926-4b44-8995-220625cec50c/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb,task=other,pid=5,uid=0\n\
        Nov 21 19:00:00 n1 kernel: [20000.000003] Memory cgroup out of memory: Killed process 5 (other) total-vm:9000kB, anon-rss:8000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0\n";
    let kernel = format!("{whole}{head}");
    let v = triage_files(&[
        ("pod.json", pod),
        ("logs/vllm.previous.log", log),
        ("node/kernel/kern.log", &kernel),
    ]);
    assert!(class(&v).starts_with("cuda_oom"), "{v}");
}

/// Nothing can be read of it, and why is said: that is unknown, as every other text without evidence.
#[test]
fn an_object_that_broke_off_is_unknown() {
    let dir = dir(&[
        ("pod.json", b"{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\":"),
        ("pod.yaml", b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n spec: [\n"),
    ]);
    for (file, why) in [("pod.json", "its JSON is broken"), ("pod.yaml", "its YAML is invalid")] {
        let o = dualplane().arg("triage").arg(dir.path().join(file)).output().unwrap();
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        let said = stdout(&o).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.starts_with("UNKNOWN") && said.contains(why), "{said}");
    }
}
