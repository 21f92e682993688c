//! Nothing leaves the machine but to what was configured: in a network without a route, commands that judge files and make
//! plans print what they print elsewhere, and the kernel counts no packet that had nowhere to go. What the agent of a cluster
//! sends is held by `e2e/tests/live/daemonset.rs` in the same way.

use std::process::{Command, Output};

use crate::harness::{code, dualplane, root, stderr, stdout};

/// In a network of its own with no device but a loopback that is down; then how many packets found no way out.
fn without_a_network(script: &str, arguments: &[&str]) -> Option<(Output, u64)> {
    let counted = format!(
        "{script}; code=$?; echo; grep -h -e ^Ip: -e ^Ip6OutNoRoutes /proc/net/snmp /proc/net/snmp6; exit $code"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "bash", "-c", &counted, "bash"]);
    let mut o =
        command.arg(env!("CARGO_BIN_EXE_dualplane")).args(arguments).current_dir(root()).output().ok()?;
    let text = stdout(&o);
    // The names of the counters, and below them their values.
    let at = text.rfind("\nIp: Forwarding").or_else(|| text.strip_prefix("Ip: Forwarding").map(|_| 0))?;
    let (said, counters) = text.split_at(at);
    let mut lines = counters.lines().filter(|l| l.starts_with("Ip: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let four = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "OutNoRoutes")?.1;
    let six = counters.lines().find_map(|l| l.strip_prefix("Ip6OutNoRoutes"))?;
    let lost = four.parse::<u64>().ok()? + six.trim().parse::<u64>().ok()?;
    o.stdout = said.as_bytes().to_vec();
    Some((o, lost))
}

#[test]
fn commands_for_files_ask_nobody() {
    let Some((_, tried)) = without_a_network("exec 3<>/dev/tcp/192.0.2.1/9", &[]) else {
        eprintln!("SKIPPED: no network namespaces on this machine");
        return;
    };
    assert!(tried > 0, "a connection that is tried must be counted");
    let incident = "testdata/incidents/sglang-hicache-over-limit";
    for arguments in [
        &["triage", incident] as &[&str],
        &["triage", incident, "-o", "json", "--why-not", "cuda_oom_load"],
        &["plan", "--gpu", "H100-80GB", "Qwen/Qwen3-8B"],
        &["plan", "Qwen/Qwen3-8B"],
        &["plan", "--list-gpus"],
        &["fit", "--input-tokens", "2000", "--output-tokens", "300", "--concurrency", "16", "Qwen/Qwen3-8B"],
        &["explain", "79"],
        &["runbook", "fragmentation"],
        &["map", incident],
        &["upgrade-check", "testdata/releases"],
        &["--version"],
    ] {
        let here = dualplane().args(arguments).current_dir(root()).output().unwrap();
        let (there, tried) = without_a_network("\"$@\"", arguments).unwrap();
        assert_eq!(tried, 0, "{arguments:?} tried to send {tried} packets");
        assert_eq!(code(&there), code(&here), "{arguments:?}: {}", stderr(&there));
        assert_eq!(stdout(&there).trim_end(), stdout(&here).trim_end(), "{arguments:?}");
    }
    // What does ask somebody is seen here, and says so.
    let online = ["plan", "--gpu", "H100-80GB", "--online", "nobody/knows-this-model"];
    let (o, tried) = without_a_network("\"$@\"", &online).unwrap();
    assert!(tried > 0 && code(&o) != 0, "{}", stderr(&o));
}
