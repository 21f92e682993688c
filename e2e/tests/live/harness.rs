//! Runs `dualplane` and `kubectl` against the cluster.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The binary that `e2e/run` built.
pub fn binary() -> PathBuf {
    let binary =
        std::env::var_os("DUALPLANE").map_or_else(|| root().join("target/release/dualplane"), PathBuf::from);
    assert!(binary.exists(), "{} is not built: cargo build --release", binary.display());
    binary.canonicalize().unwrap()
}

/// It as a command.
pub fn dualplane() -> Command {
    let mut c = Command::new(binary());
    c.env("COLUMNS", "100").env_remove("HTTPS_PROXY").env_remove("HTTP_PROXY");
    c
}

/// What a command gave.
pub struct Ran {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    pub took: Duration,
}

impl Ran {
    pub fn of(command: &mut Command) -> Self {
        let from = Instant::now();
        let Output { status, stdout, stderr } = command.output().unwrap();
        Self {
            code: status.code(),
            out: stdout,
            err: String::from_utf8_lossy(&stderr).into_owned(),
            took: from.elapsed(),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|e| {
            panic!("{e}\n{}\n{}", self.err, self.text().chars().take(500).collect::<String>())
        })
    }

    pub fn ok(self) -> Self {
        assert_eq!(
            self.code,
            Some(0),
            "{}\n{}",
            self.err,
            self.text().chars().take(2000).collect::<String>()
        );
        self
    }
}

pub fn run(args: &[&str]) -> Ran {
    Ran::of(dualplane().args(args))
}

pub fn kubectl(args: &[&str]) -> String {
    let ran = Ran::of(Command::new("kubectl").args(args));
    assert_eq!(ran.code, Some(0), "kubectl {args:?}: {}", ran.err);
    ran.text()
}

/// Whether a command of kubectl succeeds; what it says does not matter.
pub fn succeeds(args: &[&str]) -> bool {
    Ran::of(Command::new("kubectl").args(args)).code == Some(0)
}

/// A namespace that goes with everything in it, also when the test fails.
pub struct Namespace(&'static str);

impl Namespace {
    /// Makes it anew, with the service account that pods need.
    pub fn fresh(name: &'static str) -> Self {
        let _ = succeeds(&["delete", "namespace", name, "--ignore-not-found", "--wait"]);
        let made = Self(name);
        kubectl(&["create", "namespace", name]);
        until("no service account", || {
            succeeds(&["get", "serviceaccount", "default", "-n", name]).then_some(())
        });
        made
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = succeeds(&["delete", "namespace", self.0, "--wait=false", "--ignore-not-found"]);
    }
}

/// A server of one container with 48 MiB that runs a script, in the namespace of the tests.
pub fn server(name: &str, app: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: serving, labels: {{app: {app}}}}}\nspec:\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  - name: server\n    image: registry.local/busybox:1\n    \
         imagePullPolicy: Never\n    command: [sh, -c, {script:?}]\n    resources: {{limits: {{memory: 48Mi}}}}\n"
    )
}

/// Objects from a text.
pub fn create(yaml: &str) {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new("kubectl")
        .args(["apply", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "kubectl apply of\n{yaml}");
}

/// A bundle as its files, by their names below its folder.
pub fn unpack(bundle: &Path) -> Vec<(String, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    let sh = format!("zstd -dc '{}' | tar xf - -C '{}'", bundle.display(), dir.path().display());
    assert!(Command::new("sh").args(["-c", &sh]).status().unwrap().success());
    let mut files = Vec::new();
    walk(dir.path(), dir.path(), &mut files);
    files
}

fn walk(top: &Path, dir: &Path, out: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(top, &path, out);
        } else {
            let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
            let name = name.split_once('/').map_or(name.clone(), |(_, n)| n.to_owned());
            out.push((name, std::fs::read(&path).unwrap()));
        }
    }
}

/// `manifest.json` of a bundle.
pub fn manifest(bundle: &Path) -> Value {
    let files = unpack(bundle);
    let (_, bytes) = files.iter().find(|(n, _)| n.ends_with("manifest.json")).unwrap();
    serde_json::from_slice(bytes).unwrap()
}

/// The pods of a scenario, as `expect.toml` names them.
pub fn pods_of(scenario: &toml::Value) -> Vec<String> {
    if let Some(pod) = scenario.get("pod").and_then(toml::Value::as_str) {
        return vec![pod.to_owned()];
    }
    let selector = scenario["selector"].as_str().unwrap();
    let pick = scenario["pick"].as_str().unwrap();
    let list: Value =
        serde_json::from_str(&kubectl(&["get", "pods", "-n", "serving", "-l", selector, "-o", "json"]))
            .unwrap();
    let pods = list["items"].as_array().unwrap().iter();
    pods.filter(|p| p["status"].to_string().contains(pick))
        .map(|p| p["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The scenarios that this Kubernetes serves, with what is true of each.
pub fn expected() -> toml::Table {
    let folder = root().join("e2e/scenarios");
    let mut all: toml::Table = std::fs::read_to_string(folder.join("expect.toml")).unwrap().parse().unwrap();
    let here = Ran::of(Command::new(folder.join("wait")).arg("--names")).ok().text();
    let needs = |name: &str| {
        let file = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap_or_default();
        file.lines().any(|l| l.starts_with("# needs:"))
    };
    all.retain(|name, _| !needs(name) || here.lines().any(|l| l == name));
    all
}

/// Nothing failed; or kills come so thick on this node that the kernel names no cgroup, and one could be of this pod.
pub fn nothing_failed(report: &serde_json::Value) -> bool {
    let verdict = &report["verdict"];
    verdict["class"] == "not_memory" || verdict["decided_by"] == "nameless_kill"
}

/// Looks again and again until there is something, for two minutes.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(Duration::from_secs(120), what, look)
}

pub fn until_within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(t) = look() {
            return t;
        }
        assert!(began.elapsed() < patience, "{what}: not otherwise within {patience:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}
