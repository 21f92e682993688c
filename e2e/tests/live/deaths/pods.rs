//! A death of the table: its pod, and how to see that it has happened.

use std::process::Command;

use serde_json::Value;

use super::Namespace;
use crate::harness::{Ran, root};

/// Where they die, if not where the scheduler likes: `$DEATHS_NODE`, for example the second node of `e2e/run second`, whose agent
/// runs there already.
pub(super) fn node() -> Option<String> {
    std::env::var("DEATHS_NODE").ok()
}

/// How the table's words are written out in a manifest.
const WORDS: &[(&str, &str)] = &[
    ("VICTIM", "image: 'registry.local/victim:1', imagePullPolicy: Never"),
    ("BUSYBOX", "image: 'registry.local/busybox:1', imagePullPolicy: Never"),
];

pub struct Death {
    pub name: String,
    pub class: String,
    pub container: String,
    pub exit_code: Option<i64>,
    /// Classes that one of the three ways may give as well.
    pub blind: Vec<String>,
    /// Other containers that die, and of what.
    pub others: Vec<(String, String)>,
    /// The classes of the container's instances.
    pub lives: Vec<String>,
    pub asks_agent: bool,
    /// It writes into the kernel's log what others could be taken for.
    pub alone: bool,
    /// What the shell does once the pod runs.
    pub then: Option<String>,
    keys: toml::Table,
}

/// The table, as far as this Kubernetes can do it.
pub fn table() -> Vec<Death> {
    let mut all = Vec::new();
    let version: Value = serde_json::from_str(&crate::harness::kubectl(&["version", "-o", "json"])).unwrap();
    // "v1.30.14"; an older one that was built here does not say its minor version apart.
    let whole = version["serverVersion"]["gitVersion"].as_str().unwrap();
    let minor = whole.split('.').nth(1).unwrap().parse::<i64>().unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("e2e/deaths")).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
        let text = std::fs::read_to_string(file).unwrap();
        let table: toml::Table = text.parse().unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for (name, keys) in table {
            let death = Death::of(&name, keys.as_table().unwrap().clone());
            let needs = death.keys.get("needs").and_then(toml::Value::as_integer).unwrap_or(0);
            if needs <= minor {
                all.push(death);
            }
        }
    }
    all
}

fn texts(value: Option<&toml::Value>) -> Vec<String> {
    let items = value.and_then(toml::Value::as_array).cloned().unwrap_or_default();
    items.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

/// Each line of a text further to the right.
fn indented(text: &str, by: usize) -> String {
    text.lines().filter(|l| !l.is_empty()).map(|l| format!("{:by$}{l}\n", "")).collect()
}

impl Death {
    pub fn of(name: &str, keys: toml::Table) -> Self {
        let text = |key: &str| keys.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        let others = keys.get("others").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        Self {
            name: name.to_owned(),
            class: text("class").unwrap_or_else(|| panic!("{name}: no class")),
            container: text("container").unwrap_or_else(|| "server".to_owned()),
            exit_code: keys.get("exit_code").and_then(toml::Value::as_integer),
            blind: texts(keys.get("blind")),
            others: others.iter().map(|(c, v)| (c.clone(), v.as_str().unwrap().to_owned())).collect(),
            lives: texts(keys.get("lives")),
            asks_agent: keys.get("agent").and_then(toml::Value::as_bool).unwrap_or(true),
            alone: keys.get("alone").and_then(toml::Value::as_bool).unwrap_or(false),
            then: text("then"),
            keys,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.keys.get(key).and_then(toml::Value::as_str)
    }

    /// Whether a pod of this name is this death's: a Job's pod carries a suffix.
    pub fn is_of(&self, pod: &str) -> bool {
        pod == self.name
            || self.text("kind") == Some("Job")
                && pod.strip_prefix(&self.name).is_some_and(|s| s.len() == 6 && s.starts_with('-'))
    }

    /// Whether a container of the pod died of this class.
    pub fn may_be(&self, class: &str) -> bool {
        self.class == class
            || self.lives.iter().any(|l| l == class)
            || self.others.iter().any(|(_, c)| c == class)
    }

    /// The server, with what the table says of it.
    fn server(&self) -> String {
        let image = self.text("image").unwrap_or("registry.local/victim:1");
        let mut out = format!("- name: server\n  image: {image}\n  imagePullPolicy: Never\n");
        if let Some(run) = self.text("run") {
            let words: Vec<&str> = run.split_whitespace().collect();
            // Its name is the entry point; a command of the table's own stands in `fields`.
            out += &format!("  args: {}\n", serde_json::to_string(&words).unwrap());
        }
        if let Some(script) = self.text("sh") {
            let command = ["sh", "-c", script];
            out += &format!("  command: {}\n", serde_json::to_string(&command).unwrap());
        }
        let limit = self.text("limit").unwrap_or("48Mi");
        if !limit.is_empty() {
            out += &format!("  resources: {{limits: {{memory: {limit}}}}}\n");
        }
        let fields = self.text("fields").unwrap_or_default();
        out += &indented(fields, 2);
        if self.text("log").is_some() && !fields.contains("volumeMounts") {
            out += "  volumeMounts: [{name: logs, mountPath: /logs}]\n";
        }
        out
    }

    fn spec(&self) -> String {
        let name = &self.name;
        let restart = self.text("restart").unwrap_or("Never");
        let mut pod = self.text("pod").unwrap_or_default().to_owned();
        let logs = format!("{{name: logs, configMap: {{name: {name}}}}}");
        if self.text("log").is_some() && !pod.contains("LOGS") {
            pod += "\nvolumes: [LOGS]\n";
        }
        pod = pod.replace("LOGS", &logs);
        for (word, fields) in WORDS {
            pod = pod.replace(word, fields);
        }
        let (beside, fields): (Vec<&str>, Vec<&str>) =
            pod.lines().partition(|l| l.starts_with("containers+: "));
        let mut out = format!("restartPolicy: {restart}\nterminationGracePeriodSeconds: 1\n");
        if let Some(node) = node() {
            out += &format!(
                "nodeSelector: {{kubernetes.io/hostname: {node}}}\ntolerations: [{{key: dualplane.dev/second}}]\n"
            );
        }
        out += "containers:\n";
        out += &self.server();
        for line in beside {
            let one = line.trim_start_matches("containers+: ").trim_start_matches('[').trim_end_matches(']');
            out += &format!("- {one}\n");
        }
        out + &fields.join("\n")
    }

    /// As kubectl names what was made.
    pub fn object(&self) -> String {
        format!("{}/{}", if self.text("kind") == Some("Job") { "job" } else { "pod" }, self.name)
    }

    /// Kills by the kernel that it takes.
    pub fn kills(&self) -> usize {
        let classes = match self.lives.len() {
            0 => std::slice::from_ref(&self.class),
            _ => &self.lives,
        };
        let others = self.others.iter().map(|(_, c)| c);
        classes.iter().chain(others).filter(|c| *c == "host_oom_killed").count()
    }

    pub fn manifest(&self, namespace: &str) -> String {
        let name = &self.name;
        let mut out = String::new();
        if let Some(log) = self.text("log") {
            let text = std::fs::read_to_string(root().join("testdata/incidents").join(log))
                .unwrap_or_else(|e| panic!("{log}: {e}"));
            out += &format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata:\n  log: {}\n---\n",
                serde_json::to_string(&text).unwrap()
            );
        }
        let labels = format!("labels: {{app: {name}}}");
        if self.text("kind") == Some("Job") {
            out += &format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  \
                 backoffLimit: 0\n  template:\n    metadata: {{{labels}}}\n    spec:\n{}",
                indented(&self.spec(), 6)
            );
        } else {
            out += &format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {namespace}, {labels}}}\nspec:\n{}",
                indented(&self.spec(), 2)
            );
        }
        out
    }

    /// Does what the table says once the pod runs; `false` until it could be done.
    pub fn tell(&self, pod: &Value, namespace: &str) -> bool {
        if pod["status"]["phase"] != "Running" {
            return false;
        }
        let then = self.then.as_deref().unwrap_or("true");
        // The shell's end is not waited for: an `exec` ends with the process that it began.
        Command::new("sh")
            .args(["-c", then])
            .env("POD", pod["metadata"]["name"].as_str().unwrap_or_default())
            .env("NAMESPACE", namespace)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }

    /// Whether it is dead in the way that the table says.
    pub fn happened(&self, pod: &Value, namespace: &Namespace) -> bool {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(said) = self.text("log_says") {
            let log =
                Ran::of(Command::new("kubectl").args(["logs", name, "-n", namespace.0, "-c", "server"]));
            return log.text().contains(said);
        }
        if let Some(any) = self.text("event") {
            return namespace
                .list("events")
                .iter()
                .filter(|e| e["involvedObject"]["name"] == name)
                .filter_map(|e| e["message"].as_str())
                .any(|m| any.split('|').any(|one| m.contains(one)));
        }
        if let Some(said) = self.text("status") {
            return pod["status"].to_string().contains(said);
        }
        let others = self.others.iter().all(|(c, _)| self.instance(pod, c).is_some());
        let ended = self.instance(pod, &self.container);
        let restarts = restarts(pod, &self.container);
        let lives = self.lives.len() as u64;
        others
            && ended.is_some_and(|e| self.exit_code.is_none_or(|code| e == code))
            && (lives == 0 || restarts >= lives - 1)
    }

    /// The exit code of the last instance that ended.
    fn instance(&self, pod: &Value, container: &str) -> Option<i64> {
        let status = status(pod, container)?;
        let ended = ["/state/terminated/exitCode", "/lastState/terminated/exitCode"];
        ended.iter().find_map(|p| status.pointer(p)).and_then(Value::as_i64)
    }
}

fn status<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"]
        .iter()
        .filter_map(|k| pod["status"][k].as_array())
        .flatten()
        .find(|s| s["name"] == container)
}

pub fn restarts(pod: &Value, container: &str) -> u64 {
    status(pod, container).and_then(|s| s["restartCount"].as_u64()).unwrap_or(0)
}
