//! Incidents for the tests of this folder: recorded ones, and one with both planes over time.
#![allow(dead_code)]

pub(crate) mod payloads;
#[path = "../../../dualplane-report/tests/common/mod.rs"]
mod testdata;

use std::fmt::Write as _;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_incidents::{Gpu, Incident, Time, Where, Xid, of_report};
use dualplane_pages::incident::{Death, page};
use dualplane_pages::{Frame, Scene, Verdict};
use dualplane_report::{Report, json, mask, triage_all};
use serde_json::Value;

/// A recorded incident.
pub(crate) fn recorded(name: &str) -> Vec<RawFile> {
    testdata::files(&testdata::root().join("testdata/incidents").join(name))
}

/// 2026-11-20T10:05:00Z.
pub(crate) const END: i64 = 1_795_169_100_000;

/// A server whose shared memory grows with its traffic until the kernel kills it: series of both planes, its log, its object.
pub(crate) fn both_planes() -> Vec<RawFile> {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-7d9c5b6f4-x2kqm","namespace":"serving","uid":"5e1f8a0c-2b7d-4c55-9d0e-6f3a1b2c4d5e"},"spec":{"nodeName":"gpu-node-3","containers":[{"name":"vllm","image":"vllm/vllm-openai:v0.9.1","args":["--model","Qwen/Qwen3-32B","--swap-space","32","--tensor-parallel-size","2"],"resources":{"limits":{"memory":"64Gi","nvidia.com/gpu":"2"}}}]},"status":{"containerStatuses":[{"name":"vllm","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","containerID":"containerd://0f3b7c1d9a5e4f6082b4c6d8e0fa1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2","startedAt":"2026-11-20T09:47:30Z","finishedAt":"2026-11-20T10:05:00Z"}}}]}}"#;
    let mut metrics = String::new();
    let gib = f64::from(1_u32 << 30);
    let mut line = |name: &str, labels: &str, value: f64, at: i64| {
        let _ = writeln!(metrics, "{name}{{{labels}}} {value:.3} {at}");
    };
    let container = r#"namespace="serving",pod="llm-7d9c5b6f4-x2kqm",container="vllm""#;
    for i in 0..105 {
        let at = END - 1_045_000 + i * 10_000;
        let s = i as f64 / 104.0;
        // Weights are read into the page cache and to the cards, then requests fill what is pinned.
        let load = (s / 0.25).min(1.0);
        let serve = ((s - 0.3) / 0.7).max(0.0);
        let wave = (i as f64 * 0.7).sin() * 0.4;
        let anon = 5.0 + 9.0 * load + serve * 3.0;
        let shared = 32.0 * load * 0.3 + serve.powf(1.4) * 39.0 + wave * serve;
        line("container_memory_rss", container, anon * gib, at);
        line("dualplane_container_memory_shmem_bytes", container, shared * gib, at);
        line("container_memory_working_set_bytes", container, (anon + shared + 1.2).min(63.9) * gib, at);
        for (n, card) in
            ["GPU-5f1c9a52-6d0e-4a7b-9c1e-2f60c1b7a101", "GPU-a90b77d4-31c2-4be8-8a55-90c3d7e2b202"]
                .iter()
                .enumerate()
        {
            let labels = format!("UUID=\"{card}\",gpu=\"{n}\",{container}");
            let used = 1200.0 + 70_000.0 * load + 4200.0 * serve;
            line("DCGM_FI_DEV_FB_USED", &labels, used, at);
            line("DCGM_FI_DEV_FB_FREE", &labels, 81_559.0 - used, at);
        }
        if s > 0.3 {
            let labels = r#"namespace="serving",pod="llm-7d9c5b6f4-x2kqm",model_name="Qwen/Qwen3-32B""#;
            line("vllm:gpu_cache_usage_perc", labels, (serve * 1.15 + wave * 0.1).clamp(0.0, 1.0), at);
            line("vllm:num_requests_running", labels, (serve * 60.0).round(), at);
            line("vllm:num_requests_waiting", labels, ((serve - 0.6).max(0.0) * 90.0).round(), at);
        }
    }
    let log = "\
INFO 11-20 09:47:41 [api_server.py:1287] vLLM API server version 0.9.1
INFO 11-20 09:47:58 [cuda.py:275] Using Flash Attention backend on V1 engine.
INFO 11-20 09:48:02 [gpu_model_runner.py:1595] Starting to load model Qwen/Qwen3-32B...
INFO 11-20 09:51:27 [gpu_model_runner.py:1624] Model loading took 30.5855 GiB and 203.231 seconds
INFO 11-20 09:51:50 [gpu_worker.py:227] Available KV cache memory: 36.81 GiB
INFO 11-20 09:51:51 [kv_cache_utils.py:716] GPU KV cache size: 301,520 tokens
INFO 11-20 09:52:20 [core.py:171] init engine (profile, create kv cache, warmup model) took 53.21 seconds
INFO 11-20 09:52:31 [api_server.py:1349] Starting vLLM API server on http://0.0.0.0:8000
INFO:     10.42.0.17:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK
INFO 11-20 10:04:51 [loggers.py:118] Engine 000: Avg prompt throughput: 8912.4 tokens/s, Avg generation throughput: 1402.9 tokens/s, Running: 58 reqs, Waiting: 31 reqs, GPU KV cache usage: 99.1%, Prefix cache hit rate: 12.3%
";
    let kernel = "\
[Fri Nov 20 10:04:59 2026] VLLM::Worker_TP invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985
[Fri Nov 20 10:04:59 2026] CPU: 17 PID: 181204 Comm: VLLM::Worker_TP Tainted: G           OE
[Fri Nov 20 10:04:59 2026] memory: usage 67108864kB, limit 67108864kB, failcnt 2391
[Fri Nov 20 10:04:59 2026] Memory cgroup stats for /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5e1f8a0c_2b7d_4c55_9d0e_6f3a1b2c4d5e.slice/cri-containerd-0f3b7c1d9a5e4f6082b4c6d8e0fa1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2.scope:
[Fri Nov 20 10:04:59 2026] anon 18253611008 file 50465865728 kernel 402653184 shmem 49392123904
[Fri Nov 20 10:04:59 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-0f3b7c1d9a5e4f6082b4c6d8e0fa1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2.scope,mems_allowed=0,oom_memcg=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5e1f8a0c_2b7d_4c55_9d0e_6f3a1b2c4d5e.slice/cri-containerd-0f3b7c1d9a5e4f6082b4c6d8e0fa1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2.scope,task_memcg=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5e1f8a0c_2b7d_4c55_9d0e_6f3a1b2c4d5e.slice/cri-containerd-0f3b7c1d9a5e4f6082b4c6d8e0fa1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2.scope,task=VLLM::Worker_TP,pid=181204,uid=0
[Fri Nov 20 10:04:59 2026] Memory cgroup out of memory: Killed process 181204 (VLLM::Worker_TP) total-vm:98213444kB, anon-rss:8912344kB, file-rss:412032kB, shmem-rss:24117248kB, UID:0 pgtables:71244kB oom_score_adj:985
";
    let event = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Event","reason":"BackOff","message":"Back-off restarting failed container vllm in pod llm-7d9c5b6f4-x2kqm_serving","type":"Warning","count":4,"firstTimestamp":"2026-11-20T09:40:00Z","lastTimestamp":"2026-11-20T10:05:04Z","involvedObject":{"kind":"Pod","name":"llm-7d9c5b6f4-x2kqm","namespace":"serving","fieldPath":"spec.containers{vllm}"}},{"apiVersion":"v1","kind":"Event","reason":"Unhealthy","message":"Readiness probe failed: HTTP probe failed with statuscode: 503","type":"Warning","count":2,"firstTimestamp":"2026-11-20T10:01:00Z","lastTimestamp":"2026-11-20T10:01:30Z","involvedObject":{"kind":"Pod","name":"llm-7d9c5b6f4-x2kqm","namespace":"serving","fieldPath":"spec.containers{vllm}"}}]}"#;
    vec![
        RawFile::new("pod.json", pod),
        RawFile::new("events.json", event),
        RawFile::new("kernel.log", kernel),
        RawFile::new("previous.log", log),
        RawFile::new("samples.prom", metrics),
    ]
}

/// All that a page needs of one incident.
pub(crate) struct Kept {
    pub(crate) incident: Incident,
    pub(crate) report: Value,
    pub(crate) verdict: Verdict,
    pub(crate) scene: Scene,
}

pub(crate) fn kept(id: &str, files: Vec<RawFile>, place: &Where, knowledge: &Knowledge) -> Kept {
    let mut report: Report = triage_all(id, files, Vec::new(), knowledge).into_iter().next().unwrap();
    mask(&mut report, knowledge);
    let scene = Scene::of(&report, knowledge);
    let report: Value = serde_json::from_str(&json::render(std::slice::from_ref(&report)).unwrap()).unwrap();
    let incident = of_report(id, &report, place, Time::from_ms(END + 90_000)).unwrap();
    let verdict = Verdict::read(&report).unwrap();
    Kept { incident, report, verdict, scene }
}

pub(crate) fn place() -> Where {
    let card = |uuid: &str| Gpu {
        uuid: uuid.to_owned(),
        name: Some("NVIDIA H100 80GB HBM3".to_owned()),
        driver: Some("570.133.20".to_owned()),
        ecc_uncorrected: Some(0),
    };
    Where {
        cluster: Some("eu-west-1".to_owned()),
        image: Some("vllm/vllm-openai:v0.9.1".to_owned()),
        model: Some("Qwen/Qwen3-32B".to_owned()),
        gpus: vec![
            card("GPU-5f1c9a52-6d0e-4a7b-9c1e-2f60c1b7a101"),
            card("GPU-a90b77d4-31c2-4be8-8a55-90c3d7e2b202"),
        ],
        ..Where::default()
    }
}

pub(crate) fn xid(code: u32, gpu: &str) -> Xid {
    Xid { code, gpu: Some(gpu.to_owned()) }
}

pub(crate) fn frame() -> Frame<'static> {
    Frame { base: "", viewer: Some("anna@example.com"), now_ms: END + 600_000, events: Some("/v1/events") }
}

pub(crate) fn page_of(k: &Kept, again: &[Incident], print: bool) -> String {
    let death = Death {
        incident: &k.incident,
        verdict: Ok(&k.verdict),
        scene: Some(&k.scene),
        again,
        bundle: Some("/v1/incidents/x/bundle"),
    };
    page(&frame(), &death, print)
}
