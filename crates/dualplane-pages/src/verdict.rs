//! `dualplane.verdict/v2` as a page reads it: what is missing is empty, and what a newer release adds is left alone.

use serde::Deserialize;
use serde_json::Value;

/// A report as it was sent. [`Verdict::read`] makes it; the pages know its parts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Verdict {
    pub(crate) incident: String,
    #[serde(rename = "verdict")]
    pub(crate) head: Head,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) sequence: Vec<Step>,
    pub(crate) cascade: Vec<Folded>,
    pub(crate) causes: Vec<Cause>,
    pub(crate) actions: Vec<Action>,
    pub(crate) missing: Vec<Gap>,
    pub(crate) pressure: Option<Pressure>,
    pub(crate) budget: Option<Budget>,
    pub(crate) subject: Subject,
    pub(crate) others: Vec<Other>,
    pub(crate) changes: Vec<Change>,
    pub(crate) evidence: Vec<String>,
}

/// The schema that is read.
const SCHEMA: &str = "dualplane.verdict/v2";

impl Verdict {
    /// Reads a report.
    ///
    /// # Errors
    /// When it is no `dualplane.verdict/v2`, with what is wrong.
    pub fn read(report: &Value) -> Result<Self, String> {
        match report.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => Self::deserialize(report).map_err(|e| format!("the report is no {SCHEMA}: {e}")),
            Some(other) => Err(format!("the report is a {other}, and this server shows {SCHEMA}")),
            None => Err(format!("the report names no schema, and this server shows {SCHEMA}")),
        }
    }
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        #[serde(default)]
        pub(crate) struct $name { $($(#[$attr])* pub(crate) $field: $type),* })*
    };
}

parts! {
    Head { class: String, plane: String, phase: String, confidence: String, title: String, summary: String }
    Trigger { text: String, file: String, line: Option<u64>, time: Option<String>, signature: String }
    Step { class: String, what: String, trigger: Option<Trigger> }
    Place { file: String, line: Option<u64> }
    /// Lines that only notice the failure.
    Folded { signature: String, meaning: String, count: u64, first: Place, text: String }
    Cause {
        class: String,
        title: String,
        confidence: String,
        rejected: bool,
        #[serde(rename = "for")] supports: Vec<Cited>,
        against: Vec<Cited>,
    }
    Cited { text: String, place: Option<Place> }
    Action { stage: String, title: String, arithmetic: Vec<String>, commands: Vec<String>, patch: Option<String> }
    Gap { what: String, why: String, command: Option<String> }
    Pressure { bound_by: String, readings: Vec<Reading>, focus: Vec<String> }
    Reading {
        plane: String,
        level: String,
        what: String,
        used_bytes: Option<u64>,
        limit_bytes: Option<u64>,
        share: f64,
        note: Option<String>,
        growth: Option<Growth>,
    }
    Growth { bytes_per_hour: u64, seconds_to_limit: i64 }
    Budget { expected: Option<Expected>, held: Option<Held>, suspects: Vec<Suspect> }
    Expected { engine: String, engine_version: Option<String>, model: Option<String>, source: String, host: HostNeed, gpu: Option<GpuNeed> }
    HostNeed { load_peak_bytes: Quantity, steady_bytes: Quantity, request_bytes: u64, limit_bytes: u64 }
    GpuNeed { weights_bytes: Quantity, kv_cache_bytes: Quantity, kv_cache_tokens: Quantity, max_model_len: u64 }
    Quantity { low: u64, expected: u64, high: u64 }
    Held { limit_bytes: u64, anon_bytes: Option<u64>, shmem_bytes: Option<u64>, ran_seconds: Option<i64> }
    Suspect { what: String, bytes: Option<u64>, because: Vec<String> }
    Subject {
        namespace: Option<String>,
        pod: Option<String>,
        container: Option<String>,
        node: Option<String>,
        engine: Option<String>,
        engine_version: Option<String>,
        restarts: Option<u64>,
        exit_code: Option<i64>,
        reason: Option<String>,
        died_at: Option<String>,
        memory_limit_bytes: Option<u64>,
    }
    Other { container: String, class: String, confidence: String, summary: String }
    /// A field that the last roll-out changed.
    Change {
        workload: String,
        from_revision: i64,
        to_revision: i64,
        at: Option<String>,
        container: Option<String>,
        field: String,
        before: Option<String>,
        after: Option<String>,
    }
}

impl Trigger {
    pub(crate) fn at(&self) -> String {
        at(&self.file, self.line)
    }
}

impl Place {
    pub(crate) fn at(&self) -> String {
        at(&self.file, self.line)
    }
}

fn at(file: &str, line: Option<u64>) -> String {
    line.map_or_else(|| file.to_owned(), |l| format!("{file}:{l}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_report_is_refused_with_what_it_is() {
        for (given, want) in [
            (json!({}), "names no schema"),
            (json!({"schema": "dualplane.plan/v1"}), "is a dualplane.plan/v1"),
            (json!({"schema": "dualplane.verdict/v2", "causes": 3}), "is no dualplane.verdict/v2"),
            (json!([]), "names no schema"),
        ] {
            let told = Verdict::read(&given).unwrap_err();
            assert!(told.contains(want), "{told}");
        }
        assert!(Verdict::read(&json!({"schema": "dualplane.verdict/v2", "later": 1})).is_ok());
    }
}
