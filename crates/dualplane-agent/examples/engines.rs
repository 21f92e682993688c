//! What asking engines costs: processor time of so many questions to a server with a page of vLLM. For `bench/engines.sh`;
//! no part of the product.
//!
//! `engines COUNT TIMES`: so many engines, each asked so often.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::indexing_slicing)]

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dualplane_agent::engine::{Candidate, Engines};
use dualplane_core::knowledge::metrics::engines;
use dualplane_node::clock::Moment;

/// A page as vLLM prints it: mostly buckets of histograms.
fn page(bytes: usize) -> String {
    let mut text = String::new();
    for name in ["kv_cache_usage_perc", "num_requests_running", "num_requests_waiting"] {
        let _ = writeln!(text, "vllm:{name}{{engine=\"0\",model_name=\"Qwen/Qwen3-32B\"}} 0.5");
    }
    let mut i = 0;
    while text.len() < bytes {
        i += 1;
        let labels = format!("engine=\"0\",le=\"{i}.0\",model_name=\"Qwen/Qwen3-32B\"");
        let _ = writeln!(text, "vllm:time_to_first_token_seconds_bucket{{{labels}}} 128.0");
    }
    text
}

/// Nanoseconds of processor time of all threads of this process that live.
fn spent() -> u64 {
    let all = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = |t: String| t.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    all.map(|t| of(std::fs::read_to_string(t.path().join("schedstat")).unwrap_or_default())).sum()
}

fn serve(body: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for mut stream in listener.incoming().flatten() {
        let _ = stream.read(&mut [0; 4096]);
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let body = page(200 << 10);
    if args.get(1).is_some_and(|a| a == "serve") {
        return serve(&body);
    }
    let (count, times): (u16, u32) = (args[1].parse().unwrap(), args[2].parse().unwrap());
    // The server's work is not ours: it is another process.
    let mut server =
        Command::new(std::env::current_exe().unwrap()).arg("serve").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 16];
    let n = server.stdout.take().unwrap().read(&mut said).unwrap();
    let port: u16 = String::from_utf8_lossy(&said[..n]).trim().parse().unwrap();
    let vllm = engines().iter().find(|e| e.engine == "vllm");
    let pids = vec![server.id()];
    let candidate =
        |slot| Candidate { slot, pids: pids.clone(), engine: vllm, likely: vec![port], given: Vec::new() };

    let began = Instant::now();
    for _ in 0..times {
        assert!(vllm.unwrap().read(&body).is_some());
    }
    println!("reading a page of {} KiB: {:?}", body.len() >> 10, began.elapsed() / times);

    let mut thread = Engines::start("/proc".into(), Duration::ZERO).unwrap();
    let all: Vec<Candidate> = (0..count).map(candidate).collect();
    let (before, mut answers) = (spent(), 0);
    for _ in 0..times {
        thread.ask(Moment::now(), all.clone());
        answers += thread.wait(Duration::from_secs(20)).len();
    }
    let us = (spent() - before) as f64 / 1e3 / f64::from(times);
    server.kill().unwrap();
    server.wait().unwrap();
    println!("{answers} answers; a round over {count} engines: {us:.0} us of processor time");
    println!("each 5 s: {:.4} % of a core", us / 5e6 * 100.0);
}
