//! A model server as a systemd unit, without Kubernetes: killed over the unit's limit, in the machine's own group of services.
//! The agent's bundle of it is judged, and its advice is for `systemctl`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::agent::{incidents, start_at};
use crate::harness::{Ran, dualplane, run, until};

const LISTEN: &str = "127.0.0.1:10985";
/// What the unit may use: `MemoryMax=48M`.
const LIMIT: u64 = 48 << 20;

/// A group as systemd makes it, of either generation; it goes when the test ends.
struct Unit {
    group: PathBuf,
    slice: Option<PathBuf>,
    server: Option<Child>,
}

impl Unit {
    fn of(name: &str) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/memory").is_dir();
        let root = Path::new(if v1 { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" });
        let slice = root.join("system.slice");
        let made = !slice.is_dir();
        let group = slice.join(name);
        std::fs::create_dir_all(&slice).unwrap();
        if !v1 {
            for above in [root, &slice] {
                std::fs::write(above.join("cgroup.subtree_control"), "+memory").unwrap();
            }
        }
        std::fs::create_dir_all(&group).unwrap();
        for file in if v1 {
            ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        } else {
            ["memory.max", "memory.swap.max"]
        } {
            let value = if file == "memory.swap.max" { 0 } else { LIMIT };
            let written = std::fs::write(group.join(file), value.to_string());
            // Swap is not counted by every kernel.
            assert!(written.is_ok() || file.contains("sw"), "{file}: {written:?}");
        }
        Self { group, slice: made.then_some(slice), server: None }
    }

    /// Starts what the unit runs, inside of its group.
    fn start(&mut self, script: &str) {
        let script = format!("echo $$ > {}/cgroup.procs && {script}", self.group.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.arg0("vllm").spawn().unwrap());
    }

    /// As systemd does when the last process is gone.
    fn ended(&mut self) {
        self.server.take().unwrap().wait().unwrap();
        until("the unit's group does not go", || {
            (std::fs::remove_dir(&self.group).is_ok() || !self.group.exists()).then_some(())
        });
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir(&self.group);
        if let Some(slice) = &self.slice {
            let _ = std::fs::remove_dir(slice);
        }
    }
}

/// The agent's page, where it answers.
fn metrics() -> Option<String> {
    let mut stream = TcpStream::connect(LISTEN).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

#[test]
fn a_unit_over_its_limit_is_judged_and_the_advice_is_for_systemd() {
    let name = format!("dualplane-e2e-{}.service", std::process::id());
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let mut unit = Unit::of(&name);
    let go = dir.path().join("go");
    unit.start(&format!("while [ ! -e {} ]; do sleep 0.2; done; exec tail /dev/zero", go.display()));
    let _agent = start_at(&state, LISTEN, &["--no-cluster", "--service", &name]);
    until("the agent does not see the unit", || metrics().filter(|page| page.contains(&name)));
    std::fs::write(&go, "").unwrap();
    unit.ended();
    let of_unit = || {
        incidents(&state).into_iter().find(|i| i["container"].as_str().is_some_and(|c| c.ends_with(&name)))
    };
    let incident = until("the unit's death is not judged", || of_unit().filter(|i| i["state"] == "judged"));
    assert_eq!(
        (incident["class"].as_str(), incident["kind"].as_str(), incident["pod"].as_str()),
        (Some("host_oom_killed"), Some("death"), None),
        "{incident}"
    );
    let bundle = state.join("incidents").join(format!("{}.tar.zst", incident["id"].as_str().unwrap()));
    let report = run(&["triage", &bundle.to_string_lossy(), "-o", "json"]).json();
    assert_eq!(report["verdict"]["class"], "host_oom_killed", "{report}");
    let mut told = dualplane();
    told.args(["triage", "-v"]).arg(&bundle);
    let text = Ran::of(&mut told).text();
    assert!(text.contains("systemctl") && text.contains(&name), "{text}");
    assert!(!text.contains("kubectl"), "{text}");
}
