//! The edge between a server that died of a VRAM error and one that recovered and was killed of something else: however
//! long it answered in between, the plane never changes between two reports that are both sure.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use dualplane_base::{Confidence, Plane};
use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_report as report;
use serde_json::json;

const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 0.40 GiB is reserved by PyTorch but unallocated.";
const ANSWER: &str = "INFO:     10.0.3.4:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK";

/// How a server goes on behind its error.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Milliseconds between two answers; 0 where the lines have no stamps.
    every_ms: u64,
    /// Its engine is said to be dead.
    dead: bool,
    /// Its engine prints on.
    engine: bool,
    /// The end's reason.
    reason: &'static str,
}

fn stamp(ms: u64) -> String {
    let s = 3600 + ms / 1000;
    format!("2026-11-20T{:02}:{:02}:{:02}.{:03}Z", 9 + s / 3600, s / 60 % 60, s % 60, ms % 1000)
}

fn judged(shape: Shape, answers: u64, knowledge: &Knowledge) -> (Plane, Confidence, String) {
    let mut lines: Vec<(u64, String)> = vec![
        (0, "(APIServer pid=1) INFO:     Application startup complete.".into()),
        (1000, format!("(APIServer pid=1) {ANSWER}")),
        (60_000, format!("(EngineCore_DP0 pid=201) ERROR 11-20 10:01:00 [core.py:700] {OOM}")),
    ];
    if shape.dead {
        lines.push((60_010, "(APIServer pid=1) ERROR 11-20 10:01:00 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.".into()));
    }
    for i in 1..=answers {
        let at = 60_000 + i * shape.every_ms;
        lines.push((at, format!("(APIServer pid=1) {ANSWER}")));
        if shape.engine {
            lines.push((
                at,
                "(EngineCore_DP0 pid=201) INFO 11-20 10:01:01 [kv_cache_utils.py:1086] Prefix cache reset"
                    .into(),
            ));
        }
    }
    let end = lines.last().unwrap().0 + 500;
    let text: String = lines
        .iter()
        .map(|(at, l)| if shape.every_ms > 0 { format!("{} {l}\n", stamp(*at)) } else { format!("{l}\n") })
        .collect();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "llm-0", "namespace": "serve", "uid": "651fc813-479c-4184-8be1-cf5e4ec41ec3"},
        "spec": {"nodeName": "gpu-1", "containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.11.0",
            "resources": {"limits": {"memory": "64Gi", "nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "vllm", "restartCount": 1, "ready": false,
            "containerID": format!("containerd://{}", "a".repeat(64)),
            "state": {"running": {"startedAt": stamp(end + 5000)}},
            "lastState": {"terminated": {"exitCode": 137, "reason": shape.reason,
                "containerID": format!("containerd://{}", "b".repeat(64)),
                "startedAt": "2026-11-20T09:30:00Z", "finishedAt": stamp(end)}}}]}
    });
    let files = vec![RawFile::new("pod.json", pod.to_string()), RawFile::new("previous.log", text)];
    let v = report::triage_all("incident", files, Vec::new(), knowledge).remove(0).verdict;
    (v.class.plane(), v.confidence, format!("{} by {}", v.class, v.decided_by))
}

#[test]
fn no_cliff_between_planes_where_both_sides_are_sure() {
    let knowledge = Knowledge::embedded().unwrap();
    let mut wrong = Vec::new();
    let mut flips = 0;
    for reason in ["OOMKilled", "Error"] {
        for every_ms in [0, 250, 7000] {
            for (dead, engine) in [(false, false), (true, false), (false, true)] {
                let shape = Shape { every_ms, dead, engine, reason };
                let mut before: Option<(u64, (Plane, Confidence, String))> = None;
                for answers in (0..6).chain((6..60).step_by(3)).chain((60..400).step_by(50)) {
                    let now = judged(shape, answers, &knowledge);
                    if let Some((n, last)) = &before {
                        let flipped = last.0 != now.0;
                        flips += usize::from(flipped);
                        if flipped && last.1 == Confidence::High && now.1 == Confidence::High {
                            wrong.push(format!("{shape:?}: {n} answers {last:?}, {answers} answers {now:?}"));
                        }
                    }
                    before = Some((answers, now));
                }
            }
        }
    }
    assert!(flips > 10, "the edge is never met: {flips}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Far from the edge it is sure, at the edge it is not, and it says why.
#[test]
fn confidence_falls_towards_the_edge() {
    let knowledge = Knowledge::embedded().unwrap();
    let shape = Shape { every_ms: 1000, dead: false, engine: false, reason: "OOMKilled" };
    let of = |answers| judged(shape, answers, &knowledge);
    assert_eq!((of(0).0, of(0).1), (Plane::Gpu, Confidence::High));
    assert_eq!((of(300).0, of(300).1), (Plane::Host, Confidence::High));
    for answers in 5..40 {
        assert!(of(answers).1 < Confidence::High, "{answers}: {:?}", of(answers));
    }
}
