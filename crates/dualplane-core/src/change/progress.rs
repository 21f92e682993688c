//! How far a workload is with replacing its pods, from what it says of itself.

use dualplane_base::json::{list, str_at};
use serde_json::Value;

/// How far a workload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// All its pods are of the newest template, and available.
    Done,
    /// It goes on; how far it is.
    Going(String),
    /// It ends in no way that brings the newest template about, and why.
    Stuck(String),
}

/// Of a Deployment, a StatefulSet or a DaemonSet as the API server returns it; others say nothing that all of them share.
#[must_use]
pub fn progress(object: &Value) -> Progress {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64);
    let status = |name: &str| number(&format!("/status/{name}")).unwrap_or_default();
    let of = |n: u64, all: u64, what: &str| Progress::Going(format!("{n} of {all} {what}"));
    // A status from before the change says nothing of it.
    if number("/metadata/generation").is_some_and(|g| status("observedGeneration") < g) {
        return Progress::Going("its controller has not seen the change yet".into());
    }
    let wanted = number("/spec/replicas").unwrap_or(1);
    match str_at(object, "/kind") {
        "Deployment" => {
            let late = list(object, "/status/conditions").iter().find(|c| {
                str_at(c, "/type") == "Progressing" && str_at(c, "/reason") == "ProgressDeadlineExceeded"
            });
            if let Some(late) = late {
                return Progress::Stuck(str_at(late, "/message").to_owned());
            }
            let updated = status("updatedReplicas");
            match (updated, status("replicas"), status("availableReplicas")) {
                (n, ..) if n < wanted => of(n, wanted, "pods are new"),
                (n, all, _) if all > n => Progress::Going(format!("{} old pods still end", all - n)),
                (n, _, up) if up < n => of(up, n, "new pods are available"),
                _ => Progress::Done,
            }
        }
        "StatefulSet" => {
            if str_at(object, "/spec/updateStrategy/type") == "OnDelete" {
                return Progress::Stuck("it replaces no pod by itself (OnDelete)".into());
            }
            let partition = number("/spec/updateStrategy/rollingUpdate/partition").unwrap_or_default();
            match (status("readyReplicas"), status("updatedReplicas")) {
                (ready, _) if ready < wanted => of(ready, wanted, "pods are ready"),
                (_, n) if n < wanted.saturating_sub(partition) => of(n, wanted - partition, "pods are new"),
                _ => Progress::Done,
            }
        }
        "DaemonSet" => {
            if str_at(object, "/spec/updateStrategy/type") == "OnDelete" {
                return Progress::Stuck("it replaces no pod by itself (OnDelete)".into());
            }
            let wanted = status("desiredNumberScheduled");
            match (status("updatedNumberScheduled"), status("numberAvailable")) {
                (n, _) if n < wanted => of(n, wanted, "pods are new"),
                (_, up) if up < wanted => of(up, wanted, "pods are available"),
                _ => Progress::Done,
            }
        }
        kind => Progress::Stuck(format!("a {kind} does not say when its pods are replaced")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(status: &Value) -> Progress {
        progress(
            &json!({"kind": "Deployment", "metadata": {"generation": 4}, "spec": {"replicas": 2}, "status": status}),
        )
    }

    #[test]
    fn a_deployment_is_done_when_all_its_pods_are_new_and_serve() {
        let status = |observed: u64, all: u64, new: u64, up: u64| json!({"observedGeneration": observed, "replicas": all, "updatedReplicas": new, "availableReplicas": up});
        assert_eq!(deployment(&status(4, 2, 2, 2)), Progress::Done);
        // What stood there before the change is no answer to it.
        for (status, says) in [
            (status(3, 2, 2, 2), "not seen the change"),
            (status(4, 3, 1, 2), "1 of 2 pods are new"),
            (status(4, 3, 2, 2), "1 old pods"),
            (status(4, 2, 2, 1), "1 of 2 new pods are available"),
            (json!({"observedGeneration": 4}), "0 of 2 pods are new"),
        ] {
            assert!(matches!(deployment(&status), Progress::Going(why) if why.contains(says)), "{status}");
        }
        let mut late = status(4, 3, 1, 2);
        late["conditions"] =
            json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "timed out"}]);
        assert_eq!(deployment(&late), Progress::Stuck("timed out".into()));
    }

    #[test]
    fn other_kinds_say_it_in_their_own_words() {
        let set = |more: &Value, ready: u64, new: u64| {
            progress(&json!({"kind": "StatefulSet", "spec": {"replicas": 3, "updateStrategy": more},
                "status": {"readyReplicas": ready, "updatedReplicas": new}}))
        };
        assert_eq!(set(&json!({}), 3, 3), Progress::Done);
        assert!(
            matches!(set(&json!({}), 3, 2), Progress::Going(_))
                && matches!(set(&json!({}), 2, 3), Progress::Going(_))
        );
        assert_eq!(set(&json!({"rollingUpdate": {"partition": 2}}), 3, 1), Progress::Done);
        assert!(matches!(set(&json!({"type": "OnDelete"}), 3, 3), Progress::Stuck(_)));
        let daemons = |new: u64, up: u64| {
            progress(
                &json!({"kind": "DaemonSet", "status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": new, "numberAvailable": up}}),
            )
        };
        assert_eq!(daemons(2, 2), Progress::Done);
        assert!(matches!(daemons(1, 2), Progress::Going(_)) && matches!(daemons(2, 1), Progress::Going(_)));
        assert!(matches!(progress(&json!({"kind": "Pod"})), Progress::Stuck(_)));
    }
}
