//! Which containers live, and since when: samples from before are of an instance that died.

use crate::evidence::{Bundle, Container, ContainerKind, QuotedLimit, State};
use crate::time::Stamp;
use crate::units::Bytes;
use crate::verdict::Subject;

/// A container that runs.
#[derive(Debug, Clone, Default)]
pub(in crate::verdict) struct Living {
    /// Name; none where no object tells it.
    pub(in crate::verdict) name: Option<String>,
    /// Memory limit, its own or the pod's.
    pub(super) limit: Option<Bytes>,
    /// Start of this instance.
    pub(super) since: Option<Stamp>,
    /// An instance before it ended.
    pub(super) restarted: bool,
}

impl Living {
    /// What was measured at this time is of this instance.
    pub(in crate::verdict) fn covers(&self, at: Option<Stamp>) -> bool {
        match (self.since, at) {
            // A tool's clock without a zone may be hours off the API's.
            (_, Some(Stamp::Wall { zoned: false, .. })) => true,
            (Some(since), Some(at)) => since.reaches(at) != Some(false),
            (None, Some(_)) => !self.restarted,
            // A tool shows what runs while it is called.
            (_, None) => true,
        }
    }
}

/// The containers of the subject's pod that run; one without a name where there is no pod object.
pub(in crate::verdict) fn containers(bundle: &Bundle, subject: &Subject) -> Vec<Living> {
    let Some(pod) = subject.pod_of(bundle) else {
        let limit = subject.memory_limit.or_else(|| quoted(bundle, None));
        return vec![Living { limit, ..Living::default() }];
    };
    if matches!(pod.phase.as_str(), "Failed" | "Succeeded") {
        return Vec::new();
    }
    let runs = |c: &&Container| c.kind != ContainerKind::Init && !ended(c);
    let only = pod.containers.iter().filter(runs).count() == 1;
    let quoted = quoted(bundle, Some(&pod.name)).filter(|_| only);
    pod.containers
        .iter()
        .filter(runs)
        .map(|c| Living {
            // A row of `get pods` does not name its containers.
            name: Some(c.name.clone()).filter(|n| !n.is_empty()),
            limit: c.memory_limit.or(pod.memory_limit).or(quoted),
            since: c.status.as_ref().and_then(|s| match &s.state {
                State::Running { started } => *started,
                _ => None,
            }),
            restarted: c.status.as_ref().is_some_and(|s| matches!(s.last, State::Terminated(_))),
        })
        .collect()
}

/// The one limit that was pasted apart from any container, of this pod or of none in particular.
fn quoted(bundle: &Bundle, pod: Option<&str>) -> Option<Bytes> {
    let of = |l: &&QuotedLimit| l.pod.is_empty() || pod.is_none_or(|p| p == l.pod);
    let mut limits = bundle.limits.iter().filter(of).map(|l| l.bytes);
    let first = limits.next()?;
    limits.all(|l| l == first).then_some(first)
}

/// The status says that it does not run now. A manifest or a row of a table may not say.
fn ended(c: &Container) -> bool {
    c.status.as_ref().is_some_and(|s| matches!(s.state, State::Waiting { .. } | State::Terminated(_)))
}
