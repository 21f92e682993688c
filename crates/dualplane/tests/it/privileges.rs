//! The capabilities of the agent, on the real kernel: it gives up all but three, its judge has none, and what needs
//! each of the three, and nothing else, is missed when it is taken away.
//!
//! Needs root, a memory cgroup and `setpriv` (util-linux).
// A page, a file and a cgroup of other processes: nothing tells when they change.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::dir;

/// As a page of llama.cpp tells its cache.
const PAGE: &str = "llamacpp:kv_cache_usage_ratio 0.25\nllamacpp:requests_processing 1\n";
/// Set for the copy of this program that plays the server.
const SERVES: &str = "DUALPLANE_TEST_SERVES";
/// Of `nobody`, whose processes root may not look into without a capability.
const NOBODY: &str = "65534";

/// The server: not a test by itself. Another user's process, on a port that no command line tells.
#[test]
fn serves() {
    let Ok(port_file) = std::env::var(SERVES) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::write(port_file, listener.local_addr().unwrap().port().to_string()).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
        let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{PAGE}", PAGE.len());
    }
}

const UID: &str = "0b5c1d2e-1111-2222-3333-444455556666";

/// What a test made, taken away in any case.
#[derive(Default)]
struct Made {
    children: Vec<Child>,
    groups: Vec<PathBuf>,
}

impl Drop for Made {
    fn drop(&mut self) {
        for c in &mut self.children {
            let _ = c.kill();
            let _ = c.wait();
        }
        for g in self.groups.iter().rev() {
            let end = Instant::now() + Duration::from_secs(5);
            while fs::remove_dir(g).is_err() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// A container's group below a root of its own, as a kubelet would make it; `None` where none can be made.
fn group(made: &mut Made, root: &str) -> Option<PathBuf> {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    let mut path = if v1.is_dir() { v1.to_path_buf() } else { PathBuf::from("/sys/fs/cgroup") };
    let id = "c".repeat(64);
    for part in [root, "kubepods", "besteffort", &format!("pod{UID}"), id.as_str()] {
        if !v1.is_dir() {
            let _ = fs::write(path.join("cgroup.subtree_control"), "+memory");
        }
        path.push(part);
        fs::create_dir(&path).ok()?;
        made.groups.push(path.clone());
    }
    Some(path)
}

/// The kubelet's folders of logs, which give the container its name: without one it would be a sandbox.
fn logs(var_log: &Path) {
    let pod = var_log.join(format!("pods/serving_llm_{UID}/server"));
    let links = var_log.join("containers");
    for d in [&pod, &links] {
        fs::create_dir_all(d).unwrap();
    }
    fs::write(pod.join("0.log"), "2026-11-23T10:00:00.0Z stdout F begins\n").unwrap();
    let link = links.join(format!("llm_serving_server-{}.log", "c".repeat(64)));
    std::os::unix::fs::symlink(pod.join("0.log"), link).unwrap();
}

struct Seen {
    page: String,
    log: String,
    status: String,
    took: Duration,
}

/// Runs the agent without some capabilities, at least so long, until its page has what is asked for, or for some seconds.
fn agent(without: &[&str], root: &str, least: Duration, enough: impl Fn(&str) -> bool) -> Seen {
    let d = dir(&[]);
    logs(d.path());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let log = d.path().join("log");
    let mut command = Command::new("setpriv");
    if !without.is_empty() {
        let list: Vec<String> = without.iter().map(|c| format!("-{c}")).collect();
        command.args(["--inh-caps", &list.join(","), "--bounding-set", &list.join(",")]);
    }
    command.arg(env!("CARGO_BIN_EXE_dualplane"));
    command.args(["agent", "--no-cluster", "--node", "n1", "--pod-resources", "none", "--cgroup-root", root]);
    command.arg("--state").arg(d.path().join("state")).args(["--listen", &format!("127.0.0.1:{port}")]);
    command.arg("--var-log").arg(d.path());
    command.stderr(fs::File::create(&log).unwrap());
    let mut made = Made::default();
    made.children.push(command.spawn().unwrap());
    let pid = made.children[0].id();
    let began = Instant::now();
    let mut page = String::new();
    while began.elapsed() < Duration::from_secs(20) && (began.elapsed() < least || !enough(&page)) {
        std::thread::sleep(Duration::from_millis(200));
        if let Ok(mut s) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = s.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            page.clear();
            let _ = s.read_to_string(&mut page);
        }
    }
    let took = began.elapsed();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    Seen { took, page, log: fs::read_to_string(log).unwrap(), status }
}

/// A line of `/proc/PID/status`.
fn field<'s>(status: &'s str, name: &str) -> &'s str {
    status.lines().find_map(|l| l.strip_prefix(name)).map_or("", |v| v.trim_start_matches(':').trim())
}

const SHM: &str = "\ndualplane_container_shm_size_bytes{";
const ENGINE: &str = "engine=\"llama.cpp\"";

#[test]
fn the_agent_keeps_three_capabilities_and_each_is_needed() {
    let mut made = Made::default();
    let root = format!("dualplane-caps-{}", std::process::id());
    let is_root =
        Command::new("setpriv").args(["--reuid", NOBODY, "true"]).status().is_ok_and(|s| s.success());
    let Some(container) = is_root.then(|| group(&mut made, &root)).flatten() else {
        eprintln!("SKIPPED: needs root, setpriv and a memory cgroup");
        return;
    };
    // The server may read its own program, wherever the project lies.
    let place = dir(&[]);
    let server = place.path().join("llama-server");
    fs::copy(std::env::current_exe().unwrap(), &server).unwrap();
    for path in [place.path(), &server] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    // Where it tells its port, which it chooses itself.
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let port = out.join("port");
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec setpriv --reuid {NOBODY} --clear-groups {} --exact privileges::serves --nocapture",
        container.display(),
        server.display()
    );
    let child = Command::new("sh").args(["-c", &script]).env(SERVES, &port).stdout(Stdio::null()).spawn();
    made.children.push(child.unwrap());
    let end = Instant::now() + Duration::from_secs(10);
    while !port.exists() {
        assert!(Instant::now() < end, "the server did not start");
        std::thread::sleep(Duration::from_millis(50));
    }

    let both = |page: &str| page.contains(SHM) && page.contains(ENGINE);
    let whole = agent(&[], &root, Duration::ZERO, both);
    assert!(both(&whole.page), "{}\n{}", whole.page, whole.log);
    assert!(!whole.log.contains("what=kernel_log"), "{}", whole.log);
    // DAC_READ_SEARCH is 2, SYS_PTRACE 19, SYSLOG 34.
    let three = format!("{:016x}", 1_u64 << 2 | 1 << 19 | 1 << 34);
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(field(&whole.status, set), three, "{set}");
    }
    assert_eq!(field(&whole.status, "CapInh"), "0".repeat(16));
    assert_eq!(field(&whole.status, "NoNewPrivs"), "1");

    let seen = |without: &str| {
        // What is not there after twice the time that both took is missing.
        let s = agent(&[without], &root, whole.took * 2, |page| page.contains("dualplane_container_memory"));
        (s.page.contains(SHM), s.page.contains(ENGINE), !s.log.contains("what=kernel_log"), s)
    };
    let (shm, engine, kernel, s) = seen("sys_ptrace");
    // A descriptor's link is followed by who may trace the process, and listed by who may search its folder: both.
    assert!(!shm && !engine && kernel, "{shm} {engine} {kernel}\n{}\n{}", s.page, s.log);
    let (shm, engine, kernel, s) = seen("dac_read_search");
    assert!(shm && !engine && kernel, "{shm} {engine} {kernel}\n{}\n{}", s.page, s.log);
    let restricted = fs::read_to_string("/proc/sys/kernel/dmesg_restrict").is_ok_and(|t| t.trim() == "1");
    let (shm, engine, kernel, s) = seen("syslog");
    assert!(shm && engine && kernel != restricted, "{shm} {engine} {kernel}\n{}\n{}", s.page, s.log);
    if !restricted {
        eprintln!("kernel.dmesg_restrict is 0 here: SYSLOG is not needed, and was not missed");
    }
}
