//! An init container runs before anything serves.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::{Decided, Phase, deaths};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "init_container_loads",
    adds: "the phase load, if the dead container is an init container and the phase is unknown",
    because: "an init container runs before anything serves",
    source: "Kubernetes init containers",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.phase == Phase::Unknown && deaths::in_init_container(case.bundle, &case.subject) {
        decided.phase = Phase::Load;
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, pod, pod_with, weighs};

    /// The server's container is an init container instead.
    fn init() -> File {
        pod_with(137, "OOMKilled", |p| {
            let spec = p["spec"].as_object_mut().unwrap();
            let c = spec.remove("containers").unwrap();
            spec.insert("initContainers".into(), c);
            spec.insert("containers".into(), serde_json::json!([{"name": "app", "image": "app:1"}]));
            let status = p["status"].as_object_mut().unwrap();
            let c = status.remove("containerStatuses").unwrap();
            status.insert("initContainerStatuses".into(), c);
        })
    }

    #[test]
    fn what_dies_before_anything_serves_was_loading() {
        weighs(&RULE, &[init()]);
    }

    #[test]
    fn a_server_s_phase_stays_unknown() {
        adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled")]);
    }
}
