//! What it costs to ask the kubelet for the devices of its containers: `pod_resources [SOCKET [TIMES]]`.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::time::Instant;

use dualplane_node::pod_resources::list;

fn main() {
    let mut args = std::env::args().skip(1);
    let socket = args.next().unwrap_or_else(|| "/var/lib/kubelet/pod-resources/kubelet.sock".into());
    let socket = PathBuf::from(socket);
    let times: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut took = Vec::new();
    let mut last = None;
    // The kubelet answers 100 questions a second, and ten at once.
    let pause = std::time::Duration::from_millis(20);
    for _ in 0..times {
        let from = Instant::now();
        last = Some(list(&socket));
        took.push(from.elapsed());
        std::thread::park_timeout(pause);
    }
    took.sort();
    println!("{last:#?}");
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_ms = (cpu.tv_sec as f64 * 1e3 + cpu.tv_nsec as f64 / 1e6) / times.max(1) as f64;
    println!(
        "{times} times: median {:.2?}, longest {:.2?}; {cpu_ms:.2} ms of processor each",
        took.get(took.len() / 2).copied().unwrap_or_default(),
        took.last().copied().unwrap_or_default(),
    );
}
