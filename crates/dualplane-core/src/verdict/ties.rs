//! Whether anything at hand says that a record is of the pod whose log is at hand.
//!
//! A node's kernel log tells of all its pods and cards, a counter of every container, an event of every run. What says whose
//! they are stands in the pod's object: its UID, its containers' IDs, its GPUs, the start of the run. Where a cut took that
//! away, the record is still what it is, but the log's own account of its end goes before it.

use super::candidates::{Candidate, Source};
use super::{Class, Subject, identity};
use crate::evidence::{Bundle, ContainerStatus};
use crate::facts::Facts;

/// Marks candidates that nothing ties to the subject.
pub(super) fn mark(all: &mut [Candidate], bundle: &Bundle, facts: &Facts, subject: &Subject) {
    let named = identified(bundle, subject);
    let cards = !identity::own_gpus(bundle, facts, subject).is_empty();
    let run = subject.death.as_ref().is_some_and(|d| d.started.is_some());
    for c in all {
        let tied = match (c.from, c.class) {
            (Source::Kernel, Class::HostOomKilled) => named,
            (Source::Kernel, Class::XidHardware) => cards,
            (Source::Metrics, Class::HostOomKilled) => subject.container.is_some(),
            (Source::Event, _) => named || run,
            _ => true,
        };
        c.untied = !tied;
    }
}

/// The pod's object is at hand with a UID or an instance's ID, by which a cgroup is known.
fn identified(bundle: &Bundle, subject: &Subject) -> bool {
    subject.pod_of(bundle).is_some_and(|p| {
        let mut ids = p.containers.iter().filter_map(|c| c.status.as_ref());
        !p.uid.is_empty() || ids.any(|s: &ContainerStatus| s.instance_ids().next().is_some())
    })
}
