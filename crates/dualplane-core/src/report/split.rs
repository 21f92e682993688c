//! Several pods in one pile of files: one bundle for each pod that died, with its own logs and the shared rest.

use crate::evidence::{Bundle, Pod, State};

/// One bundle a dead pod; the whole bundle where at most one died.
pub(super) fn by_pod(bundle: Bundle) -> Vec<(Option<String>, Bundle)> {
    let dead: Vec<usize> = (0..bundle.pods.len()).filter(|i| bundle.pods.get(*i).is_some_and(died)).collect();
    if dead.len() < 2 {
        return vec![(None, bundle)];
    }
    let names: Vec<String> = bundle.pods.iter().map(|p| p.name.clone()).collect();
    dead.into_iter()
        .filter_map(|i| {
            let pod = bundle.pods.get(i)?;
            Some((Some(pod.full_name()), part(&bundle, pod, &names)))
        })
        .collect()
}

/// Some container ended badly, or the pod was ended.
fn died(pod: &Pod) -> bool {
    pod.phase == "Failed"
        || pod.reason.is_some()
        || pod.containers.iter().filter_map(|c| c.status.as_ref()).any(|s| {
            s.terminations().any(|t| t.exit_code != 0 || t.reason == "OOMKilled")
                || matches!(&s.state, State::Waiting { reason, .. } if reason == "CrashLoopBackOff" || reason.ends_with("Error"))
        })
}

/// A log belongs to the pod whose name stands in its path; one that names no pod belongs to all.
fn part(all: &Bundle, pod: &Pod, names: &[String]) -> Bundle {
    let mine = |file: &str| {
        let owner =
            names.iter().filter(|n| !n.is_empty() && file.contains(n.as_str())).max_by_key(|n| n.len());
        owner.is_none_or(|n| *n == pod.name)
    };
    Bundle {
        logs: all.logs.iter().filter(|l| l.kernel || mine(&l.name)).cloned().collect(),
        pods: vec![pod.clone()],
        events: all
            .events
            .iter()
            .filter(|e| e.object.0 != "Pod" || e.object.1 == pod.name)
            .cloned()
            .collect(),
        nodes: all.nodes.clone(),
        metrics: all
            .metrics
            .iter()
            .filter(|s| s.label("pod").is_none_or(|p| p == pod.name))
            .cloned()
            .collect(),
        files: all.files.iter().filter(|f| mine(f)).cloned().collect(),
        gaps: all.gaps.clone(),
        ..Bundle::default()
    }
}
