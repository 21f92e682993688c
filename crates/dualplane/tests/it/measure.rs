//! `measure` as a user runs it: errors that say what to do before anything is measured, and a small real server that the real
//! kernel kills in traffic.

use crate::harness::{code, dir, run, stderr};
#[cfg(target_os = "linux")]
use crate::real_oom::Group;

#[test]
fn what_cannot_be_measured_is_told_at_once() {
    let of = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let o = run(&[&["measure"][..], &words].concat());
        (code(&o), stderr(&o))
    };
    let (c, e) = of("--target http://127.0.0.1:1 --traffic chat");
    assert!(c == 3 && e.contains("/v1/models") && e.contains("refused"), "{c} {e}");
    let (c, e) = of("--target https://127.0.0.1:1 --traffic chat");
    assert!(c == 3 && e.contains("https://") && e.contains("refused"), "{c} {e}");
    let (c, e) = of("--target http://127.0.0.1:1 --model m");
    assert!(c == 2 && e.contains("--traffic"), "{c} {e}");
    let (c, e) = of("--target http://127.0.0.1:1 --traffic chat --slo ttft=fast");
    assert!(c == 2 && e.contains("50ms"), "{c} {e}");
    let (c, e) = of("--target http://127.0.0.1:1 --traffic chat --out report.pdf");
    assert!(c == 2 && e.contains(".html"), "{c} {e}");
    assert_eq!(of("--traffic chat").0, 2);
}

#[test]
#[cfg(target_os = "linux")]
fn the_results_of_a_load_tool_become_a_report() {
    let results = br#"{"date":"x","model_id":"m","num_prompts":50,"duration":10.0,"completed":48,"request_throughput":4.8,"mean_ttft_ms":50.0,"median_ttft_ms":40.0,"p99_ttft_ms":90.0}"#;
    let folder = dir(&[("made.json", results)]);
    let (from, to) = (folder.path().join("made.json"), folder.path().join("result.json"));
    let report = folder.path().join("report.json");
    let words = [
        "measure",
        "--out",
        report.to_str().unwrap(),
        "-o",
        "html",
        "--",
        "cp",
        from.to_str().unwrap(),
        to.to_str().unwrap(),
    ];
    let o = run(&words);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let page = String::from_utf8(o.stdout).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("vllm bench serve"), "{page}");
    let text = std::fs::read_to_string(&report).unwrap();
    let m = dualplane_gate::document::read(&text).unwrap();
    assert_eq!((m.tool.load_tool.as_deref(), m.runs[0].measured_seconds), (Some("vllm bench serve"), 10.0));
}

/// The server of the tests below, where this program is started as one: it streams answers, and keeps what
/// `DUALPLANE_TEST_KEEPS` says of each. It ends when its parent does, or after half a minute.
#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
fn a_server() {
    use std::io::{Read, Write};
    let Some(port) = std::env::var("DUALPLANE_TEST_PORT").ok().and_then(|p| p.parse::<u16>().ok()) else {
        return;
    };
    let keeps: usize = std::env::var("DUALPLANE_TEST_KEEPS").unwrap().parse().unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (parent, began) = (std::os::unix::process::parent_id(), std::time::Instant::now());
    std::thread::spawn(move || {
        for _ in 0..300 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            if std::os::unix::process::parent_id() != parent {
                break;
            }
        }
        std::process::exit(3);
    });
    eprintln!("INFO serving on port {port}");
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || -> std::io::Result<()> {
            let mut stream = stream;
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") {
                    if stream.read(&mut byte)? == 0 {
                        std::mem::forget(kept);
                        return Ok(());
                    }
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).to_lowercase();
                if head.starts_with("get") {
                    let body = match head.contains("/v1/models") {
                        true => "{\"data\":[{\"id\":\"small\",\"max_model_len\":4096}]}",
                        false => &page(began.elapsed().as_secs_f64()),
                    };
                    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
                    continue;
                }
                let length =
                    head.split("content-length: ").nth(1).and_then(|l| l.split('\r').next()?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body)?;
                kept.push((0..keeps).map(|i| i as u8).collect());
                let output = serde_json::from_slice::<serde_json::Value>(&body).unwrap()["max_tokens"]
                    .as_u64()
                    .unwrap();
                write!(stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
                let last = format!(
                    "{{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}],\"usage\":{{\"prompt_tokens\":20,\"completion_tokens\":{output}}}}}"
                );
                for i in 0..=output {
                    let data =
                        if i == output { &last } else { "{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}" };
                    let data = format!("data: {data}\n\n");
                    write!(stream, "{:x}\r\n{data}\r\n", data.len())?;
                    std::thread::sleep(std::time::Duration::from_millis(30));
                }
                write!(stream, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")?;
            }
        });
    }
}

/// The page of metrics: the engine's, and what the exporters of a cluster would tell of its pod, which grows by 64 MiB a second.
#[cfg(target_os = "linux")]
fn page(seconds: f64) -> String {
    let own = "namespace=\"serving\",pod=\"llm-0\"";
    let held = (1_u64 << 30) + (seconds * f64::from(64 << 20)) as u64;
    format!(
        "vllm:num_requests_running{{engine=\"0\"}} 2\nvllm:kv_cache_usage_perc{{engine=\"0\"}} 0.25\n\
         vllm:num_preemptions_total{{engine=\"0\"}} 0\n\
         container_memory_working_set_bytes{{{own},container=\"server\"}} {}\n\
         container_memory_rss{{{own},container=\"server\"}} {held}\n\
         container_memory_cache{{{own},container=\"server\"}} 800\n\
         container_memory_total_active_file_bytes{{{own},container=\"server\"}} 300\n\
         container_memory_total_inactive_file_bytes{{{own},container=\"server\"}} 500\n\
         container_spec_memory_limit_bytes{{{own},container=\"server\"}} {}\n\
         container_memory_working_set_bytes{{{own},container=\"sidecar\"}} 5\n\
         kube_pod_container_status_restarts_total{{{own},container=\"server\"}} 3\n\
         DCGM_FI_DEV_FB_USED{{{own},container=\"server\",UUID=\"GPU-1\",gpu=\"0\"}} 40000\n\
         DCGM_FI_DEV_FB_FREE{{{own},container=\"server\",UUID=\"GPU-1\",gpu=\"0\"}} 41920\n",
        held + (1 << 20),
        8_u64 << 30,
    )
}

/// A port that nobody listens at.
#[cfg(target_os = "linux")]
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The line that starts the server above.
#[cfg(target_os = "linux")]
fn serve(port: u16, keeps: usize, before: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "{before} exec env DUALPLANE_TEST_PORT={port} DUALPLANE_TEST_KEEPS={keeps} '{}' --exact measure::a_server --nocapture",
        program.display()
    )
}

/// What `measure` says of that server beside the folder's cards; names in the folder stand for their files.
#[cfg(target_os = "linux")]
fn measured(folder: &tempfile::TempDir, line: &str, port: u16, more: &str) -> std::process::Output {
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let target = format!("http://127.0.0.1:{port}");
    let (shape, cards, log) = (at("shape.toml"), at("cards.json"), at("server.log"));
    let mut words = vec!["measure", "--serve", line, "--target", &target, "--shape", &shape];
    words.extend(["--gpu-table", &cards, "--log", &log]);
    let more: Vec<String> =
        more.split(' ').map(|w| if w.starts_with("report.") { at(w) } else { w.to_owned() }).collect();
    words.extend(more.iter().map(String::as_str));
    let o = run(&words);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    o
}

#[cfg(target_os = "linux")]
const SMALL: &[u8] = br#"schema = "dualplane.shape/v1"
name = "small"
concurrency = 3
requests = [{ input = 20, output = 4 }]
"#;

/// A card whose memory grows by 40 MiB a second.
#[cfg(target_os = "linux")]
fn growing_card() -> String {
    let gib = 1_u64 << 30;
    let steps: Vec<String> = (0..60)
        .map(|i| {
            let used = 10 * gib + i * (40 << 20);
            format!(
                r#"{{"at_ms":{},"readings":[{{"device":0,"total":{},"used":{used},"free":{}}}]}}"#,
                i * 1000,
                80 * gib,
                80 * gib - used
            )
        })
        .collect();
    format!(
        r#"{{"devices":[{{"name":"NVIDIA H100 80GB HBM3","uuid":"GPU-1","index":0}}],"steps":[{}]}}"#,
        steps.join(",")
    )
}

/// The kernel kills a server in traffic: what was measured until then stands, on both planes, and triage says what it was.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_the_kernel_kills_in_traffic_keeps_its_figures_and_gets_a_verdict() {
    let required = std::env::var("DUALPLANE_REAL_OOM").is_ok_and(|v| v == "1");
    let Some(group) = Group::named("measure") else {
        assert!(!required, "no memory cgroup can be made here, and DUALPLANE_REAL_OOM=1 asks for one");
        eprintln!("no memory cgroup can be made here; skipped");
        return;
    };
    let port = port();
    // Twenty answers a second at most, however fast the machine is: it lives for four seconds at least, and the card has its
    // samples each second.
    let line = serve(port, 512 << 10, &format!("echo $$ > {}/cgroup.procs;", group.path.display()));
    let folder = dir(&[("shape.toml", SMALL), ("cards.json", growing_card().as_bytes())]);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let o = measured(&folder, &line, port, "--duration 25s --warmup 0s --out report.json --out report.html");
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(text.contains("DIED") && text.contains("host_oom_killed"), "{text}");
    let m = dualplane_gate::document::read(&std::fs::read_to_string(at("report.json")).unwrap()).unwrap();
    let run = &m.runs[0];
    let death = &run.restarts.as_ref().unwrap()[0];
    assert_eq!((death.class.as_deref(), death.plane.as_deref()), (Some("host_oom_killed"), Some("host")));
    assert_eq!((death.exit_code, run.cut_short), (Some(137), true));
    assert!(death.trigger.as_ref().unwrap().to_lowercase().contains("oom"), "{death:?}");
    let r = run.requests.as_ref().unwrap();
    assert!(r.succeeded > 5 && run.ttft.as_ref().unwrap().p50 > 0.0, "{r:?}");
    let host = run.host.as_ref().unwrap();
    assert_eq!(host.limit_bytes, Some(crate::real_oom::LIMIT));
    assert!(host.peak_bytes.unwrap() > crate::real_oom::LIMIT / 4, "{host:?}");
    let vram = run.vram.as_ref().unwrap();
    assert!(vram.peak_bytes.unwrap() > 10 << 30 && vram.limit_bytes == Some(80 << 30), "{vram:?}");
    // Both planes have their samples until the kill.
    for name in ["host", "vram"] {
        let line = run.series.as_ref().unwrap().lines.iter().find(|l| l.name == name).unwrap();
        assert!(line.values.iter().flatten().count() >= 2, "{name}");
    }
}

/// Neighbours of the kernel's record, each in a cgroup of its own: what killed them is no verdict on a server that ends beside
/// them, be it in a group of its own or in that of the measurement.
#[test]
#[cfg(target_os = "linux")]
fn a_neighbour_that_the_kernel_kills_is_not_the_server() {
    let Some(group) = Group::named("beside") else { return };
    let Some(own) = Group::named("own") else { return };
    for enters in [format!("echo $$ > {}/cgroup.procs;", own.path.display()), String::new()] {
        let port = port();
        // The neighbour dies while the server is measured, which ends by itself a second later.
        let line = format!(
            "{enters} ({}) & server=$!; sleep 1.5; sh -c 'echo $$ > {}/cgroup.procs && exec tail /dev/zero' >/dev/null; \
             sleep 1; kill -9 $server; wait $server; exit 1",
            serve(port, 0, ""),
            group.path.display()
        );
        let folder = dir(&[("shape.toml", SMALL), ("cards.json", growing_card().as_bytes())]);
        let o = measured(&folder, &line, port, "--duration 20s --warmup 0s -o json");
        let m = dualplane_gate::document::read(&String::from_utf8(o.stdout).unwrap()).unwrap();
        let death = &m.runs[0].restarts.as_ref().unwrap()[0];
        assert_eq!(
            (death.exit_code, death.class.as_deref()),
            (Some(1), Some("unknown")),
            "{enters}: {death:?}"
        );
    }
}

/// A server whose last process ends seconds after the last request was answered died all the same.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_ends_after_the_last_request_failed_has_died() {
    let port = port();
    let line = format!(
        "({}) & server=$!; sleep 2; kill -9 $server; wait $server; sleep 2; exit 7",
        serve(port, 0, "")
    );
    let folder = dir(&[("shape.toml", SMALL), ("cards.json", growing_card().as_bytes())]);
    let o = measured(&folder, &line, port, "--duration 2s --warmup 0s -o json");
    let m = dualplane_gate::document::read(&String::from_utf8(o.stdout).unwrap()).unwrap();
    let run = &m.runs[0];
    assert!(run.requests.as_ref().unwrap().failures() > 0, "{:?}", run.requests);
    assert_eq!((run.restarts.as_ref().unwrap()[0].exit_code, run.cut_short), (Some(7), true));
}

/// A real Prometheus that scrapes each second tells both planes of a server of which nothing can be read from here.
#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
fn both_planes_come_from_a_real_prometheus() {
    use crate::dashboards::prometheus::{Prometheus, is_there};
    if !is_there() {
        return;
    }
    let port = port();
    let mut server = std::process::Command::new("/bin/sh").args(["-c", &serve(port, 0, "")]).spawn().unwrap();
    assert!(wait(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()));
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- job_name: all\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
    );
    let folder = dir(&[("shape.toml", SMALL), ("prometheus.yml", config.as_bytes())]);
    let prometheus = Prometheus::start(folder.path());
    let url = format!("http://127.0.0.1:{}", prometheus.port);
    let shape = folder.path().join("shape.toml");
    let measure = |pod: &str| {
        let target = format!("http://127.0.0.1:{port}");
        let words = ["measure", "--target", &target, "--shape", shape.to_str().unwrap(), "--duration", "4s"];
        run(&[&words[..], &["--warmup", "0s", "--prometheus", &url, "--pod", pod, "-o", "json"]].concat())
    };
    // Two samples are what it takes to know of a pod.
    assert!(
        wait(|| stderr(&measure("serving/llm-0")).contains("server, sidecar")),
        "{}",
        stderr(&measure("serving/llm-0"))
    );
    let none = measure("serving/llm-1");
    assert!(code(&none) == 3 && stderr(&none).contains("is it scraped"), "{}", stderr(&none));
    let o = measure("serving/llm-0/server");
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let m = dualplane_gate::document::read(&String::from_utf8(o.stdout).unwrap()).unwrap();
    let run = &m.runs[0];
    let (host, vram) = (run.host.as_ref().unwrap(), run.vram.as_ref().unwrap());
    // It grows by 256 MiB while it is measured, and is as old as this test.
    let peak = host.peak_bytes.unwrap();
    assert!((1 << 30..4 << 30).contains(&peak) && host.without_page_cache == Some(true), "{host:?}");
    assert!(peak - host.steady_bytes.unwrap() > 32 << 20, "{host:?}");
    assert_eq!((host.limit_bytes, vram.peak_bytes), (Some(8 << 30), Some(40_000 << 20)));
    assert_eq!((vram.limit_bytes, run.restarts.as_ref().map(Vec::len)), (Some(81_920 << 20), Some(0)));
    // Each second, on one clock with the engine's page.
    let line = |name: &str| run.series.as_ref().unwrap().lines.iter().find(|l| l.name == name).unwrap();
    assert!(
        line("host").values.iter().flatten().count() >= 3 && line("kv").values.iter().flatten().count() >= 3
    );
    let _ = server.kill();
    let _ = server.wait();
}

/// A leak on the VRAM plane is called so, and the host plane beside it is not.
#[test]
#[cfg(target_os = "linux")]
fn a_leak_of_vram_is_seen_beside_a_host_plane_that_holds() {
    let port = port();
    let folder = dir(&[("shape.toml", SMALL), ("cards.json", growing_card().as_bytes())]);
    let o = measured(&folder, &serve(port, 0, ""), port, "--duration 11s --warmup 1s -o json");
    let m = dualplane_gate::document::read(&String::from_utf8(o.stdout).unwrap()).unwrap();
    let run = &m.runs[0];
    assert!(run.restarts.as_ref().unwrap().is_empty() && !run.cut_short);
    let vram = run.vram.as_ref().unwrap().drift.as_ref().unwrap();
    let gib_an_hour = vram.bytes_per_hour / f64::from(1 << 30);
    assert!(vram.grows && (100.0..180.0).contains(&gib_an_hour), "{vram:?}");
    assert!(!run.host.as_ref().unwrap().drift.as_ref().is_some_and(|d| d.grows));
}

/// Several runs are measured one after another: each has requests and series of its own.
#[test]
#[cfg(target_os = "linux")]
fn each_of_several_runs_has_its_own_figures() {
    let port = port();
    let folder = dir(&[("shape.toml", SMALL), ("cards.json", growing_card().as_bytes())]);
    let o = measured(&folder, &serve(port, 0, ""), port, "--runs 3 --duration 3s --warmup 0s -o json");
    let m = dualplane_gate::document::read(&String::from_utf8(o.stdout).unwrap()).unwrap();
    assert_eq!(m.runs.len(), 3);
    for run in &m.runs {
        let r = run.requests.as_ref().unwrap();
        // Three at once, each 0.15 s long: some 60 fit, and none of another run.
        assert!((10..=75).contains(&r.succeeded), "{r:?}");
        assert!(!run.cut_short && (2.0..4.5).contains(&run.measured_seconds), "{}", run.measured_seconds);
    }
    // Series are on the clock of the whole measurement: no sample is of two runs.
    let series: Vec<f64> =
        m.runs.iter().flat_map(|r| r.series.as_ref().unwrap().seconds.iter().copied()).collect();
    assert!(series.windows(2).all(|w| w[0] < w[1]), "{series:?}");
    let began: Vec<_> = m.runs.iter().map(|r| r.started_at.clone()).collect();
    assert!(began.windows(2).all(|w| w[0] < w[1]), "{began:?}");
}

/// `measure` for ten minutes, its server with these words before it, and what it wrote to `report.json`.
#[cfg(target_os = "linux")]
struct Long {
    child: std::process::Child,
    folder: tempfile::TempDir,
    port: u16,
}

#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
impl Long {
    fn begin(before: &str) -> Self {
        let port = port();
        let folder = dir(&[("shape.toml", SMALL)]);
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        // The shell stays between: what it started must end as well.
        let line = format!("{before}{}; true", serve(port, 0, "").replacen(" exec ", " ", 1));
        let target = format!("http://127.0.0.1:{port}");
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_dualplane"))
            .args(["measure", "--serve", &line, "--target", &target, "--shape", &at("shape.toml")])
            .args(["--duration", "10m", "--warmup", "0s", "--log", &at("server.log")])
            .args(["--out", &at("report.json"), "-o", "markdown"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let long = Self { child, folder, port };
        assert!(wait(|| long.answers()), "the server never answered");
        std::thread::sleep(std::time::Duration::from_secs(2));
        long
    }

    fn answers(&self) -> bool {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    fn interrupt(&self) {
        std::process::Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
    }

    fn ended(&mut self) -> Option<i32> {
        let mut ended = None;
        wait(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.and_then(|s| s.code())
    }

    fn report(&self) -> dualplane_gate::document::Measure {
        let text = std::fs::read_to_string(self.folder.path().join("report.json")).unwrap();
        dualplane_gate::document::read(&text).unwrap()
    }
}

/// Whether it comes true within a quarter of a minute.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
fn wait(mut until: impl FnMut() -> bool) -> bool {
    (0..300).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        until()
    })
}

/// Ctrl-C keeps what was measured, ends the server and all that it started, and says so by its exit code.
#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_server_behind() {
    let mut long = Long::begin("");
    long.interrupt();
    assert_eq!(long.ended(), Some(130));
    assert!(!long.answers(), "the server was left behind");
    let m = long.report();
    let run = &m.runs[0];
    assert!(run.cut_short && run.restarts.as_ref().unwrap().is_empty(), "{:?}", run.restarts);
    assert!(run.requests.as_ref().unwrap().succeeded > 0 && run.measured_seconds < 60.0);
}

/// A server that does not listen to SIGTERM is waited for; a second Ctrl-C does not wait, and keeps the report as well.
#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
fn a_second_ctrl_c_does_not_wait_for_the_server() {
    let mut long = Long::begin("trap '' TERM; ");
    let began = std::time::Instant::now();
    long.interrupt();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(long.child.try_wait().unwrap().is_none(), "it waited for no server");
    long.interrupt();
    assert_eq!(long.ended(), Some(130));
    assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    assert!(!long.answers(), "the server was left behind");
    assert!(long.report().runs[0].requests.as_ref().unwrap().succeeded > 0);
}
