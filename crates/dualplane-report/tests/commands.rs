//! Every command that a report prints is of a known template, so that the end-to-end test, which runs each template on a real
//! cluster, leaves none out.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;
#[path = "common/templates.rs"]
mod templates;

use std::collections::BTreeSet;

use common::{incidents, root};
use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_report::Report;

/// Commands of actions and of what is missing.
fn of_report(r: &Report) -> impl Iterator<Item = String> {
    let actions = r.actions.iter().flat_map(|a| a.commands.iter().cloned());
    let missing = r.verdict.missing.iter().filter_map(|g| g.command.clone());
    actions.chain(missing).collect::<Vec<_>>().into_iter()
}

/// One log of the kernel for each Xid that the table knows: with the card's address, and by DCGM's gauge without it.
fn xids(knowledge: &Knowledge) -> Vec<Vec<RawFile>> {
    let of = |code: u32| {
        let line =
            format!("[54120.881204] NVRM: Xid (PCI:0000:4a:00): {code}, pid=4711, name=python3, a fault\n");
        let gauge = format!("DCGM_FI_DEV_XID_ERRORS{{gpu=\"5\",Hostname=\"gpu-1\"}} {code}\n");
        [vec![RawFile::new("kernel.log", line)], vec![RawFile::new("dcgm.prom", gauge)]]
    };
    knowledge.xids().iter().flat_map(|x| of(x.code)).collect()
}

/// Excerpts and forms of evidence, each alone.
fn scraps() -> Vec<Vec<RawFile>> {
    let mut out = Vec::new();
    for file in std::fs::read_dir(root().join("testdata/excerpts")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let form: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
            let cases = form["case"].as_array().unwrap().iter().filter_map(|c| c.get("text")?.as_str());
            out.extend(cases.map(|text| vec![RawFile::new("paste.txt", text)]));
        }
    }
    let alone = common::files(&root().join("testdata/forms")).into_iter().map(|f| vec![f]);
    out.extend(alone);
    out
}

/// A pod that requested all that it used, on a node that ran out.
const COVERED: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-0","namespace":"serving","uid":"5f1f7a52-5f4e-4f0e-9d5e-0d8a9f2f6a11"},"spec":{"nodeName":"gpu-1","containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2","resources":{"requests":{"memory":"64Gi"}}}]},"status":{"containerStatuses":[{"name":"server","restartCount":1,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}"#;
const NODE_OOM: &str = "[512.100000] python3 invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=979\n[512.100100] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f1f7a52_5f4e_4f0e_9d5e_0d8a9f2f6a11.slice/cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope,task=python3,pid=4711,uid=0\n[512.100200] Out of memory: Killed process 4711 (python3) total-vm:98304000kB, anon-rss:41943040kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:120000kB oom_score_adj:979\n";

/// A Deployment's pod, killed over its limit.
const OWNED: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-6d9f7c5b84-x2lqm","namespace":"serving","ownerReferences":[{"kind":"ReplicaSet","name":"llm-6d9f7c5b84","controller":true}]},"spec":{"nodeName":"gpu-1","containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2","resources":{"limits":{"memory":"64Gi"}}}]},"status":{"containerStatuses":[{"name":"server","restartCount":1,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}"#;
const FELL_OFF: &str = "[54120.881204] NVRM: Xid (PCI:0000:4a:00): 79, pid='<unknown>', name=python3, GPU has fallen off the bus.\n";
const PDB: &str = "NAME      MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE\nllm-pdb   1               N/A               0                     12d\n";

/// The allocator's variable stands in a ConfigMap.
const FROM_CONFIG_MAP: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-6d9f7c5b84-x2lqm","namespace":"serving","ownerReferences":[{"kind":"ReplicaSet","name":"llm-6d9f7c5b84","controller":true}]},"spec":{"nodeName":"gpu-1","containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2","args":["--model","m"],"env":[{"name":"PYTORCH_CUDA_ALLOC_CONF","valueFrom":{"configMapKeyRef":{"name":"conf","key":"alloc"}}}]}]},"status":{"containerStatuses":[{"name":"server","restartCount":1,"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}"#;
const FRAGMENTED: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch, and 16.40 GiB is reserved by PyTorch but unallocated.\n";

/// The allocator's message without its sizes.
const WITHOUT_SIZES: &str = "INFO 11-22 09:00:00 [api_server.py:100] vLLM API server version 0.11.2\nINFO:     Application startup complete.\nINFO:     10.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n(EngineCore_DP0 pid=201) ERROR 11-22 09:10:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory.\n";

/// Its Deployment is Helm's.
const OF_HELM: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"llm","namespace":"serving","annotations":{"meta.helm.sh/release-name":"stack"}},"spec":{"template":{"spec":{"containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2","args":["--model","m"]}]}}}}"#;

/// A rank that tells of another one, in a pod that no label joins to a group.
const ALONE: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"rank-0","namespace":"serving"},"spec":{"nodeName":"gpu-1","containers":[{"name":"server","image":"vllm/vllm-openai:v0.11.2"}]},"status":{"containerStatuses":[{"name":"server","restartCount":1,"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}"#;
const OTHER_RANK: &str = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n";

fn hpa(name: &str) -> String {
    format!(
        "NAME           REFERENCE        TARGETS        MINPODS   MAXPODS   REPLICAS   AGE\n{name:<14} Deployment/llm   cpu: 12%/80%   1         8         6          12d\n"
    )
}

/// A roll-out that changed nothing that could have made the death.
fn other_rollout() -> Vec<RawFile> {
    let mut files = common::files(&root().join("testdata/incidents/real-live-lowered-limit"));
    let revisions = files.iter_mut().find(|f| f.name == "revisions.json").unwrap();
    let mut text = String::from_utf8(revisions.bytes.clone()).unwrap();
    for (old, new) in [
        ("192Mi", "64Mi"),
        ("8192", "32768"),
        ("v0.10.2", "v0.11.0"),
        ("\"value\": \"0\"", "\"value\": \"1\""),
    ] {
        text = text.replace(old, new);
    }
    revisions.bytes =
        text.replacen("\"memory\": \"64Mi\"", "\"cpu\": \"1\", \"memory\": \"64Mi\"", 1).into_bytes();
    files
}

/// What no recorded incident shows yet.
fn composed() -> Vec<Vec<RawFile>> {
    let log = |text: &str| vec![RawFile::new("previous.log", text.to_owned())];
    let full = "index, memory.used [MiB], memory.total [MiB]\n0, 80900 MiB, 81559 MiB\n";
    vec![
        log("RuntimeError: CUDA error: an illegal memory access was encountered\n"),
        log(WITHOUT_SIZES),
        vec![RawFile::new("nvidia-smi.csv", full)],
        vec![RawFile::new("pod.json", COVERED), RawFile::new("kernel.log", NODE_OOM)],
        vec![RawFile::new("pod.json", OWNED), RawFile::new("hpa.txt", hpa("llm-hpa"))],
        vec![RawFile::new("pod.json", OWNED), RawFile::new("hpa.txt", hpa("keda-hpa-llm"))],
        vec![RawFile::new("kernel.log", FELL_OFF), RawFile::new("pdb.txt", PDB)],
        other_rollout(),
        vec![RawFile::new("pod.json", ALONE), RawFile::new("previous.log", OTHER_RANK)],
        vec![RawFile::new("pod.json", FROM_CONFIG_MAP), RawFile::new("previous.log", FRAGMENTED)],
        vec![
            RawFile::new("pod.json", FROM_CONFIG_MAP),
            RawFile::new("workload.json", OF_HELM),
            RawFile::new("previous.log", FRAGMENTED),
        ],
    ]
}

fn all() -> BTreeSet<String> {
    let knowledge = Knowledge::embedded().unwrap();
    let mut out = BTreeSet::new();
    let files = incidents()
        .into_iter()
        .map(|(_, files)| files)
        .chain(xids(&knowledge))
        .chain(scraps())
        .chain(composed());
    for files in files {
        for r in dualplane_report::triage_all("x", files, Vec::new(), &knowledge) {
            out.extend(of_report(&r));
        }
    }
    for file in std::fs::read_dir(root().join("testdata/golden/map")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let json: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        walk(&json.unwrap_or_default(), &mut out);
    }
    out
}

fn walk(value: &serde_json::Value, out: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().filter(|_| matches!(key.as_str(), "command" | "settle")) {
                    Some(command) => {
                        out.insert(command.to_owned());
                    }
                    None => walk(value, out),
                }
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|v| walk(v, out)),
        _ => {}
    }
}

#[test]
fn every_command_is_of_a_known_template() {
    let templates = templates::read(&std::fs::read_to_string(root().join("testdata/commands.txt")).unwrap());
    let commands = all();
    let unknown: Vec<&String> = commands.iter().filter(|c| !templates.iter().any(|t| t.is_of(c))).collect();
    assert!(unknown.is_empty(), "add to testdata/commands.txt how these are run:\n{unknown:#?}");
    let stale: Vec<&str> = templates
        .iter()
        .filter(|t| !t.run.ends_with('*') && !commands.iter().any(|c| t.is_of(c)))
        .map(|t| t.text.as_str())
        .collect();
    assert!(stale.is_empty(), "nothing prints these:\n{stale:#?}");
}

/// A command that is no template's is found, as are two values of one name.
#[test]
fn a_template_takes_what_it_says() {
    let t = &templates::read("read kubectl get pod @pod@ -n @ns@ | grep '@pod@'\n")[0];
    assert!(t.is_of("kubectl get pod llm-0 -n serving | grep 'llm-0'"));
    for other in [
        "kubectl get pod llm-0 -n serving | grep 'llm-1'",
        "kubectl get pod llm-0; reboot -n serving | grep 'llm-0'",
        "kubectl get pod llm-0 -n serving | grep 'llm-0' -v",
    ] {
        assert!(!t.is_of(other), "{other}");
    }
    assert_eq!(t.fill(&[("pod", "a"), ("ns", "b")]), "kubectl get pod a -n b | grep 'a'");
}
