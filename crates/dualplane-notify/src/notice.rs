//! What every message says of a death.

use dualplane_base::Plane;
use dualplane_base::text::shorten;
use dualplane_incidents::{Incident, encode};

/// Characters of a line that is quoted.
const LINE: usize = 400;

/// See the module. Texts are as the incident holds them: one line each, bounded, nothing invisible; each channel escapes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The incident.
    pub incident: Incident,
    /// Where its page is.
    pub link: String,
    /// How often the same was held back since it was last told.
    pub folded: u64,
}

impl Notice {
    /// Of an incident that `base` shows: the address of the server, without a slash at its end.
    #[must_use]
    pub fn of(incident: &Incident, base: &str) -> Self {
        let link = format!("{}/incidents/{}", base.trim_end_matches('/'), encode(&incident.id));
        Self { incident: incident.clone(), link, folded: 0 }
    }

    /// `serving/llm`, or what else names what died.
    #[must_use]
    pub fn workload(&self) -> String {
        let i = &self.incident;
        let name = [&i.owner, &i.pod, &i.id].into_iter().find(|n| !n.is_empty()).map_or("", String::as_str);
        if i.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", i.namespace) }
    }

    /// The plane as people say it.
    #[must_use]
    pub fn plane(&self) -> &'static str {
        if let Some(p) = self.incident.pressure {
            return p.title();
        }
        match (self.incident.plane, self.incident.class.as_str()) {
            (Plane::Host, _) => "Host RAM",
            (Plane::Gpu, _) => "VRAM",
            (Plane::Hardware, _) => "GPU hardware",
            (Plane::None, "not_memory") => "Not memory",
            (Plane::None, _) => "Unknown",
        }
    }

    /// The first line of a message: which memory, of whom.
    #[must_use]
    pub fn headline(&self) -> String {
        format!("{}: {}", self.plane(), self.workload())
    }

    /// The value of a placeholder; empty where nothing is known.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let i = &self.incident;
        let summary = i.summary.trim().trim_end_matches('.');
        Some(match name {
            "headline" => self.headline(),
            "plane" => self.plane().to_owned(),
            "class" => i.class.to_string(),
            "phase" => i.phase.to_string(),
            "confidence" => i.confidence.to_string(),
            "summary" => if summary.is_empty() { &i.title } else { summary }.to_owned(),
            "trigger" => i.trigger.as_ref().map(|t| shorten(&t.text, LINE).into_owned()).unwrap_or_default(),
            "trigger_at" => i
                .trigger
                .as_ref()
                .map(|t| t.line.map_or_else(|| t.file.clone(), |l| format!("{}:{l}", t.file)))
                .unwrap_or_default(),
            "action" => i.top_action.clone().unwrap_or_default(),
            "link" => self.link.clone(),
            "workload" => self.workload(),
            "cluster" => i.cluster.clone(),
            "namespace" => i.namespace.clone(),
            "owner" => i.owner.clone(),
            "pod" => i.pod.clone(),
            "container" => i.container.clone(),
            "node" => i.node.clone(),
            "model" => i.model.clone(),
            "engine" => format!("{} {}", i.engine, i.engine_version).trim().to_owned(),
            "died_at" => i.died_at.to_string(),
            "loop_key" => i.loop_key.clone(),
            "cause_key" => i.cause_key.clone(),
            // A loop is told how often it went round, and what was not told one by one.
            "again" => match (i.occurrences, self.folded) {
                (..=1, 0) => String::new(),
                (n, 0) => format!("time {n} of this cause"),
                (n, f) => format!("time {n} of this cause, {f} not told one by one"),
            },
            "severity" => self.severity().to_owned(),
            "priority" => if self.severity() == "critical" { "P2" } else { "P3" }.to_owned(),
            _ => return None,
        })
    }

    /// A fault of hardware and a kill are critical, an end that no memory explains is a warning.
    #[must_use]
    pub fn severity(&self) -> &'static str {
        match self.incident.plane {
            Plane::Host | Plane::Gpu | Plane::Hardware => "critical",
            Plane::None => "warning",
        }
    }
}
