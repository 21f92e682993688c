//! What is left of a Job whose pods are gone: its condition, and what agents told of its pods in Events.

use dualplane_base::drawn::{POD, is_drawn};
use dualplane_base::order::Order as _;
use dualplane_base::time::parse_rfc3339;
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
    let own = |event: Value| (is_of(job, &event) && is_later(job, &event)).then_some(event);
    let events = agents_events::list(api, Some(&text(job, "/metadata/namespace")), own).await;
    let mut told: Vec<Told> = events.iter().map(told).collect();
    // Ids sort by time.
    told.order_by(|a, b| b.incident.cmp(&a.incident));
    told.truncate(MAX_TOLD);
    Gone { condition: condition(job), told }
}

/// What stands before the letters that the API server draws is cut to what they leave of 63.
const MAX_PREFIX: usize = 63 - POD;

/// Whether the pod that the Event is on has a name as this Job gives it: `NAME-xxxxx`, or `NAME-INDEX-xxxxx` where it counts its
/// pods. The pod is gone, so no owner can be asked, and `train-large-0` begins as `train` does.
fn is_of(job: &Value, event: &Value) -> bool {
    let (name, pod) = (text(job, "/metadata/name"), text(event, "/involvedObject/name"));
    let at = pod.len().saturating_sub(POD);
    let (Some(before), Some(drawn)) = (pod.get(..at), pod.get(at..)) else { return false };
    if name.is_empty() || !is_drawn(drawn) {
        return false;
    }
    let cut = |to: usize| name.get(..name.len().min(to)).unwrap_or_default().to_owned();
    if text(job, "/spec/completionMode") != "Indexed" {
        return before == format!("{name}-").chars().take(MAX_PREFIX).collect::<String>();
    }
    let index = before.strip_suffix('-').and_then(|b| b.rsplit_once('-')).map(|(_, index)| index);
    index.filter(|i| !i.is_empty() && i.bytes().all(|b| b.is_ascii_digit())).is_some_and(|index| {
        let end = format!("-{index}-");
        before == cut(MAX_PREFIX.saturating_sub(end.len())) + &end
    })
}

/// Not of an earlier Job that had this name.
fn is_later(job: &Value, event: &Value) -> bool {
    let began = parse_rfc3339(&text(job, "/metadata/creationTimestamp"));
    let told = ["/lastTimestamp", "/eventTime", "/firstTimestamp"]
        .iter()
        .find_map(|p| parse_rfc3339(&text(event, p)));
    began.zip(told).and_then(|(began, told)| began.ms_until(told)).is_none_or(|ms| ms >= 0)
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
    fn pods_are_told_by_the_names_that_a_job_gives() {
        let of = |job: &str, mode: &str, pod: &str| {
            let job = json!({"metadata": {"name": job}, "spec": {"completionMode": mode}});
            is_of(&job, &json!({"involvedObject": {"name": pod}}))
        };
        assert!(of("train", "", "train-x7k2p") && of("train", "NonIndexed", "train-x7k2p"));
        assert!(of("train", "Indexed", "train-0-x7k2p") && of("train", "Indexed", "train-12-x7k2p"));
        for other in
            ["train-large-x7k2p", "train-0-x7k2p", "train-large", "train", "trainx7k2p", "x-train-x7k2p", ""]
        {
            assert!(!of("train", "", other), "{other}");
        }
        for other in ["train-x7k2p", "train-large-0-x7k2p", "train--x7k2p", "train-0x-x7k2p"] {
            assert!(!of("train", "Indexed", other), "{other}");
        }
        // Of a long name the end is cut off, and then the hyphen is.
        let long = "j".repeat(63);
        assert!(of(&long, "", &format!("{}x7k2p", "j".repeat(58))));
        assert!(of(&long, "Indexed", &format!("{}-3-x7k2p", "j".repeat(55))));
    }

    #[test]
    fn an_earlier_job_of_the_name_is_another() {
        let job = json!({"metadata": {"name": "train", "creationTimestamp": "2026-11-22T18:00:00Z"}});
        assert!(is_later(&job, &json!({"eventTime": "2026-11-22T18:00:00.400000Z"})));
        assert!(!is_later(&job, &json!({"lastTimestamp": "2026-11-22T17:59:00Z"})));
        assert!(is_later(&job, &json!({})));
    }

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
