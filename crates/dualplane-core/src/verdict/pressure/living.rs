//! Which containers live, and since when: samples from before are of an instance that died.

use crate::evidence::{Bundle, Container, ContainerKind, State};
use crate::time::Stamp;
use crate::units::Bytes;
use crate::verdict::Subject;

/// A container that runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Living {
    /// Name; none where no object tells it.
    pub(super) name: Option<String>,
    /// Memory limit, its own or the pod's.
    pub(super) limit: Option<Bytes>,
    /// Start of this instance.
    pub(super) since: Option<Stamp>,
    /// An instance before it ended.
    pub(super) restarted: bool,
}

impl Living {
    /// What was measured at this time is of this instance.
    pub(super) fn covers(&self, at: Option<Stamp>) -> bool {
        // A kubelet writes starts in whole seconds.
        const ROUNDED_MS: i64 = 1000;
        match (self.since, at) {
            (Some(since), Some(at)) => since.ms_until(at).is_none_or(|ms| ms >= -ROUNDED_MS),
            (None, Some(_)) => !self.restarted,
            // A tool shows what runs while it is called.
            (_, None) => true,
        }
    }
}

/// The containers of the subject's pod that run; one without a name where there is no pod object.
pub(super) fn containers(bundle: &Bundle, subject: &Subject) -> Vec<Living> {
    let Some(pod) = subject.pod_of(bundle) else {
        return vec![Living { limit: subject.memory_limit, ..Living::default() }];
    };
    if matches!(pod.phase.as_str(), "Failed" | "Succeeded") {
        return Vec::new();
    }
    let runs = |c: &&Container| c.kind != ContainerKind::Init && !ended(c);
    pod.containers
        .iter()
        .filter(runs)
        .map(|c| Living {
            name: Some(c.name.clone()),
            limit: c.memory_limit.or(pod.memory_limit),
            since: c.status.as_ref().and_then(|s| match &s.state {
                State::Running { started } => *started,
                _ => None,
            }),
            restarted: c.status.as_ref().is_some_and(|s| matches!(s.last, State::Terminated(_))),
        })
        .collect()
}

/// The status says that it does not run now. A manifest or a row of a table may not say.
fn ended(c: &Container) -> bool {
    c.status.as_ref().is_some_and(|s| matches!(s.state, State::Waiting { .. } | State::Terminated(_)))
}
