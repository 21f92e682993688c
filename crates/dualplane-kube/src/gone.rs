//! What is left of a Job whose pods are gone: its condition, and what agents told of its pods in Events.

use serde_json::Value;

use crate::agents_events;
use crate::api::Api;
use crate::find::text;

/// Deaths that are listed; a Job with a backoff limit of six has seven.
const MAX_TOLD: usize = 8;

/// What is left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gone {
    /// `Failed since 2026-11-22T18:00:00Z: BackoffLimitExceeded: Job has reached the specified backoff limit`.
    pub condition: Option<String>,
    /// What agents told, the newest first.
    pub told: Vec<Told>,
}

/// An Event of an agent on a pod that is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Pod.
    pub pod: String,
    /// Id of the incident.
    pub incident: String,
    /// Node whose agent keeps it.
    pub node: String,
    /// Its words.
    pub message: String,
}

/// Looks for what is left of a Job. Events may be out of reach; then the condition is all.
pub async fn of_job(api: &Api, job: &Value) -> Gone {
    let prefix = format!("{}-", text(job, "/metadata/name"));
    let own = |event: Value| text(&event, "/involvedObject/name").starts_with(&prefix).then_some(event);
    let events = agents_events::list(api, Some(&text(job, "/metadata/namespace")), own).await;
    let mut told: Vec<Told> = events.iter().map(told).collect();
    // Ids sort by time.
    told.sort_by(|a, b| b.incident.cmp(&a.incident));
    told.truncate(MAX_TOLD);
    Gone { condition: condition(job), told }
}

fn told(event: &Value) -> Told {
    Told {
        pod: text(event, "/involvedObject/name"),
        incident: text(event, "/metadata/annotations/dualplane.dev~1incident"),
        node: text(event, "/source/host"),
        message: text(event, "/message"),
    }
}

/// The condition that ended it, else the one that is about to.
fn condition(job: &Value) -> Option<String> {
    let all = job.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let holds: Vec<&Value> = all.filter(|c| text(c, "/status") == "True").collect();
    let of = |kind: &str| holds.iter().find(|c| text(c, "/type") == kind);
    let c = ["Failed", "FailureTarget", "Complete", "Suspended"].iter().find_map(|k| of(k))?;
    let mut out = text(c, "/type");
    for (before, key) in [(" since ", "/lastTransitionTime"), (": ", "/reason"), (": ", "/message")] {
        let word = text(c, key);
        if !word.is_empty() {
            out.push_str(before);
            out.push_str(&word);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_condition_that_ended_it_is_told() {
        let job = json!({"status": {"conditions": [
            {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"},
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
             "message": "Job has reached the specified backoff limit", "lastTransitionTime": "2026-11-22T18:00:00Z"}]}});
        let told = "Failed since 2026-11-22T18:00:00Z: BackoffLimitExceeded: Job has reached the specified backoff limit";
        assert_eq!(condition(&job).as_deref(), Some(told));
        assert_eq!(
            condition(&json!({"status": {"conditions": [{"type": "Failed", "status": "False"}]}})),
            None
        );
    }
}
