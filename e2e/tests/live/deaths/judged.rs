//! What the three ways say of a death.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pods::Death;
use super::triage;
use crate::harness::run;

/// Planes of the classes: a verdict of the wrong plane is the worst that can be said.
fn plane(class: &str) -> &'static str {
    match class {
        "host_oom_killed" | "host_node_oom" | "host_alloc_failure" => "host",
        "not_memory" | "unknown" => "none",
        "xid_hardware" => "hardware",
        _ => "gpu",
    }
}

pub struct Judged {
    pub name: String,
    pub wanted: String,
    pub live: Option<String>,
    pub bundle: Option<String>,
    pub agent: Option<String>,
    pub asks_agent: bool,
    /// What was wrong, in words.
    pub faults: Vec<String>,
    /// How often it was died before, without whole evidence.
    pub again: u32,
    namespace: String,
    pod: String,
    uid: String,
    container: String,
    blind: Vec<String>,
    others: Vec<(String, String)>,
    lives: Vec<String>,
}

fn class(report: &Value) -> Option<String> {
    report.pointer("/verdict/class").and_then(Value::as_str).map(str::to_owned)
}

/// Without the numbers of lines: a live look and a bundle begin the node's log at different lines.
fn unnumbered(value: &Value) -> Value {
    match value {
        Value::Array(all) => all.iter().map(unnumbered).collect(),
        Value::Object(all) => {
            all.iter().filter(|(k, _)| *k != "line").map(|(k, v)| (k.clone(), unnumbered(v))).collect()
        }
        other => other.clone(),
    }
}

impl Judged {
    /// Judges the pod and a bundle of it, until they are of one moment.
    pub fn look(death: &Death, pod: &Value, namespace: &str, dir: &Path) -> Self {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut this = Self {
            name: death.name.clone(),
            wanted: death.class.clone(),
            live: None,
            bundle: None,
            agent: None,
            asks_agent: death.asks_agent,
            faults: Vec::new(),
            again: 0,
            namespace: namespace.to_owned(),
            pod: name,
            uid: pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            container: death.container.clone(),
            blind: death.blind.clone(),
            others: death.others.clone(),
            lives: death.lives.clone(),
        };
        let bundle = dir.join(format!("{}.tar.zst", death.name));
        // A pod that restarts between two looks is of two moments; three in a row are no chance.
        for _ in 0..3 {
            this.faults = this.ways(death, &bundle);
            if this.faults.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        this
    }

    fn ways(&mut self, death: &Death, bundle: &PathBuf) -> Vec<String> {
        let target = format!("pod/{}", self.pod);
        let file = bundle.to_string_lossy().into_owned();
        let name = &self.name;
        let live = triage(&["triage", &target, "-n", &self.namespace]);
        let captured = run(&["capture", &target, "-n", &self.namespace, "--out", &file]);
        let offline =
            if captured.code == Some(0) { triage(&["triage", &file]) } else { Err(captured.err.clone()) };
        let (live, offline) = match (live, offline) {
            (Ok(live), Ok(offline)) => (live, offline),
            (live, offline) => {
                return [live.err(), offline.err()]
                    .into_iter()
                    .flatten()
                    .map(|e| format!("{name}: {e}"))
                    .collect();
            }
        };
        (self.live, self.bundle) = (class(&live), class(&offline));
        let mut faults = Vec::new();
        for (way, report) in [("live", &live), ("bundle", &offline)] {
            let said = class(report).unwrap_or_default();
            if said != self.wanted && !self.blind.contains(&said) {
                faults.push(format!("{name}: {way} says {said}, not {}: {}", self.wanted, report["verdict"]));
            }
            if report["subject"]["container"] != self.container.as_str() {
                faults.push(format!("{name}: {way} speaks of {}", report["subject"]));
            }
            if let Some(code) = death.exit_code.filter(|c| report["subject"]["exit_code"] != *c) {
                faults.push(format!(
                    "{name}: {way} says exit code {}, not {code}",
                    report["subject"]["exit_code"]
                ));
            }
            for (container, class) in &self.others {
                let others = report["others"].as_array().cloned().unwrap_or_default();
                if !others
                    .iter()
                    .any(|o| o["container"] == container.as_str() && o["class"] == class.as_str())
                {
                    faults.push(format!("{name}: {way} says of {container} {}", report["others"]));
                }
            }
        }
        for key in ["verdict", "trigger", "sequence"] {
            let (live, offline) = (unnumbered(&live[key]), unnumbered(&offline[key]));
            if live != offline {
                faults.push(format!("{name}: the bundle differs in {key}: {live} and {offline}"));
            }
        }
        faults
    }

    /// The agent's judged incidents of a container.
    fn of<'a>(&self, all: &'a [Value], container: &str) -> Vec<&'a Value> {
        let mine = |i: &&Value| {
            // One that died again has the same name.
            i["uid"] == self.uid.as_str() && i["container"] == container && i["state"] == "judged"
        };
        let mut mine: Vec<&Value> = all.iter().filter(mine).collect();
        mine.sort_by_key(|i| i["restart"].as_u64());
        mine
    }

    /// Waits until the agent has judged it, and takes what it says.
    pub fn wait_for_the_agent(&mut self, kept: impl Fn() -> Vec<Value>, patience: Duration) {
        let asked = Instant::now();
        let mut all = kept();
        while !self.kept(&all) && asked.elapsed() < patience {
            std::thread::sleep(Duration::from_secs(2));
            all = kept();
        }
        self.settle(&all);
    }

    /// Whether the agent has judged it.
    fn kept(&self, all: &[Value]) -> bool {
        if !self.asks_agent {
            return true;
        }
        let mine = self.of(all, &self.container);
        // An end of which the API server says nothing any more is judged later than the next one.
        let each_life = (0..self.lives.len() as u64).all(|n| mine.iter().any(|i| i["restart"] == n));
        !mine.is_empty() && each_life && self.others.iter().all(|(c, _)| !self.of(all, c).is_empty())
    }

    /// What the agent has kept of it in the end.
    fn settle(&mut self, all: &[Value]) {
        if !self.asks_agent {
            return;
        }
        let class = |i: &Value| i["class"].as_str().unwrap_or_default().to_owned();
        let name = self.name.clone();
        let mine = self.of(all, &self.container);
        // A later death in the loop is like the last of the table.
        let classes: Vec<String> = mine.iter().map(|i| class(i)).collect();
        self.agent = classes
            .iter()
            .rev()
            .find(|c| **c != self.wanted && self.lives.is_empty())
            .or(classes.last())
            .cloned();
        let mut faults = Vec::new();
        if self.agent.as_ref().is_none_or(|c| *c != self.wanted && !self.blind.contains(c)) {
            faults.push(format!("{name}: the agent says {classes:?}, not {}: {mine:?}", self.wanted));
        }
        if !self.lives.is_empty() && !classes.starts_with(&self.lives) {
            faults.push(format!("{name}: the agent says of its lives {classes:?}, not {:?}", self.lives));
        }
        for (container, wanted) in &self.others {
            let said: Vec<String> = self.of(all, container).iter().map(|i| class(i)).collect();
            if said.is_empty() || said.iter().any(|c| c != wanted) {
                faults.push(format!("{name}: the agent says of {container} {said:?}, not {wanted}"));
            }
        }
        self.faults.extend(faults);
    }

    fn said(&self) -> Vec<Option<&String>> {
        let mut all = vec![self.live.as_ref(), self.bundle.as_ref()];
        if self.asks_agent {
            all.push(self.agent.as_ref());
        }
        all
    }

    pub fn is_right(&self, said: Option<&String>) -> bool {
        said.is_some_and(|c| *c == self.wanted || self.blind.contains(c))
    }

    pub fn right(&self) -> Vec<bool> {
        self.said().into_iter().map(|c| self.is_right(c)).collect()
    }

    pub fn equal(&self) -> bool {
        let said = self.said();
        said.iter().all(|c| c.is_some() && *c == said[0])
    }

    /// A plane that was named though another one it was; none named is no wrong one.
    pub fn wrong_planes(&self) -> usize {
        let wrong = |c: &Option<&String>| {
            c.is_some_and(|c| {
                plane(c) != "none" && plane(c) != plane(&self.wanted) && !self.is_right(Some(c))
            })
        };
        self.said().iter().filter(|c| wrong(c)).count()
    }

    /// Live and by bundle it is right in all, and the agent has nothing of it or knows nothing.
    pub fn only_the_agent_lacks_it(&self) -> bool {
        let agent = self.agent.as_deref().is_none_or(|c| c == "unknown");
        let of_agent = |f: &String| f.starts_with(&format!("{}: the agent says", self.name));
        self.asks_agent && agent && self.faults.iter().all(of_agent)
    }

    /// Each way is right or knows nothing.
    pub fn open(&self) -> bool {
        self.said().into_iter().all(|c| self.is_right(c) || c.is_none_or(|c| c == "unknown"))
    }
}
