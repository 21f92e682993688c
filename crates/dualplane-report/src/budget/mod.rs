//! What the launch should take beside what it held: the plan asked about the evidence.

mod held;
pub(crate) mod json;
mod lines;
pub(crate) mod suspects;

pub use held::Held;
pub(crate) use lines::lines;
pub use suspects::Suspect;

use crate::planned::{Expected, expect};
use dualplane_base::Class;
use dualplane_core::evidence::Bundle;
use dualplane_core::facts::{Facts, host_pools};
use dualplane_core::verdict::Verdict;
use dualplane_plan::{Named, Quantity, card};

/// Expected and held memory of the judged container.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    /// The plan of the launch in the evidence.
    pub expected: Option<Expected>,
    /// What the container held of host RAM when it was killed over it.
    pub held: Option<Held>,
    /// What took it, the likeliest first.
    pub suspects: Vec<Suspect>,
}

/// The budget of an incident of memory; nothing is asked of a plan where memory is not the matter. `model` is what the user
/// gave; without it the catalogue is asked for the model that the evidence names.
#[must_use]
pub fn budget(bundle: &Bundle, facts: &Facts, verdict: &Verdict, model: Option<&Named>) -> Budget {
    let subject = &verdict.subject;
    let host = matches!(verdict.class, Class::HostOomKilled | Class::HostNodeOom | Class::HostAllocFailure);
    let gpu = matches!(
        verdict.class,
        Class::CudaOomLoad
            | Class::CudaOomRuntime
            | Class::Fragmentation
            | Class::GpuCapacityConflict
            | Class::KvCacheCapacity
            | Class::MigSliceTooSmall
    );
    if !host && !gpu {
        return Budget::default();
    }
    let cards = card::embedded().unwrap_or_default();
    let expected = expect(bundle, facts, subject, &cards, model);
    let held = (verdict.class == Class::HostOomKilled).then(|| held::held(bundle, facts, subject)).flatten();
    let suspects = held.as_ref().map_or_else(Vec::new, |held| {
        suspects::rank(&suspects::Scene {
            bundle,
            facts,
            subject,
            phase: verdict.phase,
            held,
            pools: &host_pools(bundle, facts),
            expected: expected.as_ref(),
        })
    });
    Budget { expected, held, suspects }
}

impl Budget {
    /// Host RAM that the launch needs in the phase in which it died.
    #[must_use]
    pub fn need(&self, verdict: &Verdict) -> Option<Quantity> {
        self.expected.as_ref().map(|e| suspects::need(e, verdict.phase))
    }
}
