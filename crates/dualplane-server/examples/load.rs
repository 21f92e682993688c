//! Load for `bench/server.sh`: agents that send incidents, a store that is filled, and questions that are timed.
//!
//! - `load agents URL AGENTS SECONDS PER_SECOND`: each agent keeps one connection and sends in turn, together so many a second;
//! - `load fill DATA N` and `load fill postgres://… N`: puts deaths straight into a store;
//! - `load ask URL N`: asks for pages of lists, N of each, one after another.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::panic,
    missing_docs
)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dualplane_incidents::{Gpu, Time, Where, Xid, of_report};
use dualplane_server::app::pack;
use dualplane_server::store::{Death, Store, postgres::Postgres, sqlite::Sqlite};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep_until;

/// A report of about the size of a real one, 8 KiB.
fn report(n: usize) -> Value {
    let classes =
        ["cuda_oom_runtime", "host_oom_killed", "kv_cache_capacity", "cuda_oom_load", "xid_hardware"];
    let line = "(EngineCore_DP0 pid=201) ERROR [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB";
    let cited: Vec<Value> = (0..20).map(|k| json!({"proof": "line", "text": format!("{line} {n} {k}"), "place": {"file": "previous.log", "line": k}})).collect();
    json!({
        "schema": "dualplane.verdict/v2", "incident": format!("n{n}"),
        "verdict": {"class": classes[n % classes.len()], "phase": "traffic", "confidence": "high", "title": "VRAM ran out while serving", "summary": format!("a VRAM allocation failed on GPU 0: requested {n} MiB"), "decided_by": "vram_exhausted"},
        "trigger": {"text": line, "file": "previous.log", "line": 15, "signature": "pytorch.cuda_oom"},
        "sequence": [], "cascade": [], "causes": [{"rejected": false, "for": cited, "against": []}],
        "actions": [{"stage": "fix", "title": "Lower --max-num-seqs"}], "missing": [], "figures": [], "evidence": [],
        "subject": {"engine": "vllm", "engine_version": format!("0.{}.0", n % 20), "memory_limit_bytes": 68_719_476_736_u64},
    })
}

/// 40 namespaces, 200 workloads each with pods of their own, 500 nodes, 4,000 cards.
fn place(n: usize, died_at: Option<Time>) -> Where {
    let owner = n % 200;
    Where {
        cluster: Some(format!("c{}", owner % 3)),
        namespace: Some(format!("team-{}", owner % 40)),
        owner: Some(format!("vllm-{owner}")),
        pod: Some(format!("vllm-{owner}-{n}")),
        container: Some("server".into()),
        node: Some(format!("gpu-{}", n * 7 % 500)),
        image: Some(format!("registry.example/vllm:0.{}", n % 20)),
        model: Some(format!("model-{}", owner % 30)),
        gpus: vec![Gpu {
            uuid: format!("GPU-{}", n * 13 % 4000),
            name: Some("NVIDIA H100 80GB HBM3".into()),
            driver: Some("570.86.15".into()),
            ecc_uncorrected: Some(0),
        }],
        died_at,
        ..Where::default()
    }
}

fn now() -> Time {
    dualplane_server::app::now()
}

fn share(sorted: &[f64], p: f64) -> f64 {
    let at = (sorted.len() as f64 * p).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn told(what: &str, mut ms: Vec<f64>) {
    ms.sort_by(f64::total_cmp);
    println!(
        "{what}: {} answers, p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        ms.len(),
        share(&ms, 0.5),
        share(&ms, 0.99),
        share(&ms, 1.0)
    );
}

/// One request on a connection that stays; its status.
async fn ask(stream: &mut TcpStream, head: &str, body: &[u8]) -> u16 {
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let (mut got, mut buffer) = (Vec::new(), [0_u8; 8192]);
    loop {
        let n = stream.read(&mut buffer).await.unwrap();
        assert!(n > 0, "the server closed the connection");
        got.extend_from_slice(&buffer[..n]);
        let Some(end) = got.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&got[..end]).to_ascii_lowercase();
        let length =
            text.lines().find_map(|l| l.strip_prefix("content-length: ")).map_or(0, |l| l.parse().unwrap());
        if got.len() >= end + 4 + length {
            return text[9..12].parse().unwrap();
        }
    }
}

async fn agents(url: &str, agents: usize, seconds: u64, per_second: f64) {
    let address = url.trim_start_matches("http://").to_owned();
    let run = now().ms();
    let begin = tokio::time::Instant::now() + Duration::from_secs(2);
    let end = begin + Duration::from_secs(seconds);
    let each = Duration::from_secs_f64(agents as f64 / per_second);
    let mut all = Vec::new();
    for a in 0..agents {
        let address = address.clone();
        all.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let (mut kept, mut sent_away, mut ms) = (0, 0, Vec::new());
            let mut at = begin + each.mul_f64(a as f64 / agents as f64);
            let mut n = a;
            while at < end {
                sleep_until(at).await;
                let id = format!("load-{run}-{a}-{n}");
                let body = json!({"report": report(n), "where": place(n, None)}).to_string();
                let mut head = String::new();
                let _ = write!(
                    head,
                    "PUT /v1/incidents/{id} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let began = Instant::now();
                match ask(&mut stream, &head, body.as_bytes()).await {
                    201 => {
                        kept += 1;
                        ms.push(began.elapsed().as_secs_f64() * 1e3);
                    }
                    429 | 503 => sent_away += 1,
                    other => panic!("{other}"),
                }
                (n, at) = (n + agents, at + each);
            }
            (kept, sent_away, ms, Instant::now())
        }));
    }
    let (mut kept, mut sent_away, mut ms) = (0, 0, Vec::new());
    for a in all {
        let (k, s, m, _) = a.await.unwrap();
        (kept, sent_away) = (kept + k, sent_away + s);
        ms.extend(m);
    }
    let took = begin.elapsed().as_secs_f64();
    println!(
        "{agents} agents: {kept} acknowledged in {took:.1} s = {:.0}/s, {sent_away} sent away",
        f64::from(kept) / took
    );
    told("ingest", ms);
}

async fn fill(store: Arc<dyn Store>, n: usize) {
    let began = Instant::now();
    let start = now().ms();
    for from in (0..n).step_by(1000) {
        let batch = (from..(from + 1000).min(n)).map(|k| {
            let died = Time::from_ms(start - (n - k) as i64 * 7000);
            let r = report(k);
            let mut place = place(k, Some(died));
            if k % 5 == 4 {
                place.xids = vec![Xid { code: [31, 48, 79, 94][k % 4], gpu: None }];
            }
            let incident = of_report(&format!("fill-{k}"), &r, &place, now()).unwrap();
            Death {
                incident,
                report: pack(r.to_string().as_bytes()),
                digest: k.to_string(),
                sender: "fill".to_owned(),
            }
        });
        store.put(batch.collect()).await.unwrap();
    }
    println!("{n} deaths in {:.0} s", began.elapsed().as_secs_f64());
}

async fn asked(url: &str, n: usize) {
    let address = url.trim_start_matches("http://").to_owned();
    let day = |back: i64| Time::from_ms(now().ms() - back * 86_400_000).day();
    let (month, all) = (day(30), day(3650));
    let paths = [
        "/v1/incidents".to_owned(),
        "/v1/incidents?each=true".to_owned(),
        "/v1/incidents?namespace=team-7&class=host_oom_killed".to_owned(),
        "/v1/incidents?namespace=team-7&namespace=team-8&class=host_oom_killed&class=xid_hardware&each=true"
            .to_owned(),
        "/v1/incidents?node=gpu-77&each=true".to_owned(),
        "/v1/incidents?gpu=GPU-77".to_owned(),
        "/v1/incidents?gpu_name=NVIDIA%20H100%2080GB%20HBM3".to_owned(),
        "/v1/incidents?xid=79&namespace=team-7".to_owned(),
        "/v1/incidents?xid=79&class=host_oom_killed".to_owned(),
        "/v1/incidents?class=host_oom_killed&model=model-3&each=true".to_owned(),
        "/v1/incidents?node=gpu-77&class=host_oom_killed&each=true".to_owned(),
        "/v1/incidents?gpu_name=NVIDIA%20H100%2080GB%20HBM3&class=host_oom_killed&model=model-3".to_owned(),
        "/v1/incidents?image=nothing".to_owned(),
        "/v1/incidents?phase=load".to_owned(),
        format!("/v1/incidents?since={month}T00:00:00Z"),
        "/v1/incidents?q=vram".to_owned(),
        "/v1/incidents?q=nothing%20of%20the%20kind".to_owned(),
        "/v1/incidents?q=requested%20500%20mib".to_owned(),
        "/v1/incidents?q=gpu-77&namespace=team-7".to_owned(),
        "/v1/incidents?q=requested%201".to_owned(),
        "/v1/fleet".to_owned(),
        format!("/v1/fleet?since={month}T00:00:00Z"),
        format!("/v1/fleet?since={all}T00:00:00Z&namespace=team-7"),
        "/v1/incidents/fill-500".to_owned(),
        "/".to_owned(),
        "/?q=nothing%20of%20the%20kind".to_owned(),
        "/incidents/fill-500".to_owned(),
        "/fleet".to_owned(),
        "/gpus".to_owned(),
        "/gpus/GPU-77".to_owned(),
        "/capacity".to_owned(),
    ];
    for path in paths {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut ms = Vec::new();
        for _ in 0..n {
            let began = Instant::now();
            assert_eq!(ask(&mut stream, &head, b"").await, 200, "{path}");
            ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        told(&path, ms);
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agents", url, n, seconds, rate] => {
            agents(url, n.parse().unwrap(), seconds.parse().unwrap(), rate.parse().unwrap()).await;
        }
        ["fill", to, n] => {
            let store: Arc<dyn Store> = match to.contains("host=") || to.contains("://") {
                true => Arc::new(Postgres::connect(to).await.unwrap()),
                false => Arc::new(Sqlite::open(&Path::new(to).join("incidents.db")).unwrap()),
            };
            fill(store, n.parse().unwrap()).await;
        }
        ["ask", url, n] => asked(url, n.parse().unwrap()).await,
        _ => panic!("agents URL AGENTS SECONDS PER_SECOND | fill DATA N | ask URL N"),
    }
}
