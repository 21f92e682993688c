//! `dualplane agent` as a real program: what it says of itself when something that it needs is wrong.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Output;

use crate::fake_api::{FakeApi, Reply};
use crate::harness::{code, dir, dualplane, stderr};

/// Runs it for some seconds on a host made of files.
fn agent(host: &Path, args: &[&str]) -> Output {
    let at = |below: &str| host.join(below).to_string_lossy().into_owned();
    std::fs::create_dir_all(host.join("cgroup")).unwrap();
    std::fs::write(host.join("cgroup/cgroup.controllers"), "memory\n").unwrap();
    let mut c = dualplane();
    c.args(["agent", "--run-for", "3", "--listen", "none", "--node", "n1", "--pod-resources", "none"]);
    c.args(["--state", &at("state"), "--cgroups", &at("cgroup"), "--kmsg", &at("no-kmsg")]);
    c.args(args).output().unwrap()
}

fn line<'t>(text: &'t str, what: &str) -> &'t str {
    let found: Vec<&str> = text.lines().filter(|l| l.contains(what)).collect();
    assert_eq!(found.len(), 1, "{what} once in\n{text}");
    found[0]
}

#[test]
fn what_is_wrong_at_the_start_is_said_at_once_and_once() {
    let host = dir(&[]);
    let missing = host.path().join("none/config");
    let mount = host.path().join("mount/incidents");
    let o = agent(
        host.path(),
        &["--kubeconfig", missing.to_str().unwrap(), "--copy-to", mount.to_str().unwrap()],
    );
    let text = stderr(&o);
    assert_eq!(code(&o), 0, "{text}");
    assert!(line(&text, "event=start").contains("node=n1 containers=0 gpus=0 no_gpus="), "{text}");
    let api = line(&text, "what=api_server");
    assert!(api.contains("level=error event=fault") && api.contains("none/config"), "{api}");
    assert!(line(&text, "what=sink:dir-").contains("level=error event=fault"), "{text}");
    assert!(line(&text, "what=kernel_log").contains("level=warn event=fault"), "{text}");
    line(&text, "event=stop");
    assert!(text.lines().all(|l| l.starts_with("time=20")), "every line has the same form\n{text}");
}

#[test]
fn a_token_that_is_refused_is_said_and_one_that_is_taken_is_not() {
    let refuses = FakeApi::new(|_| Some(Reply::status(401, "Unauthorized")));
    let host = dir(&[]);
    let config = refuses.home.path().join("config");
    let text = stderr(&agent(host.path(), &["--kubeconfig", config.to_str().unwrap()]));
    let api = line(&text, "what=api_server");
    assert!(api.contains("event=fault") && api.contains("rejected the credentials"), "{api}");
    let forbids = FakeApi::new(|_| Some(Reply::status(403, "pods is forbidden")));
    let host = dir(&[]);
    let config = forbids.home.path().join("config");
    let text = stderr(&agent(host.path(), &["--kubeconfig", config.to_str().unwrap()]));
    assert!(line(&text, "what=api_rights").contains("level=warn event=fault"), "{text}");
    let well = FakeApi::new(|_| None);
    let host = dir(&[]);
    let config = well.home.path().join("config");
    let text = stderr(&agent(host.path(), &["--kubeconfig", config.to_str().unwrap()]));
    assert!(!text.contains("what=api"), "{text}");
}
