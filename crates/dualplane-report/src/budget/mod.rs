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
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::evidence::Bundle;
use dualplane_core::facts::{Facts, HostPool};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::Verdict;
use dualplane_plan::{Named, Quantity};

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
pub fn budget(
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    verdict: &Verdict,
    model: Option<&Named>,
) -> Budget {
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
    let mut expected = expect(bundle, facts, subject, knowledge.gpus(), model);
    if let Some(e) = &mut expected {
        count_pools(e, &facts.host_pools);
    }
    let held = (verdict.class == Class::HostOomKilled).then(|| held::held(bundle, facts, subject)).flatten();
    let suspects = held.as_ref().map_or_else(Vec::new, |held| {
        suspects::rank(&suspects::Scene {
            bundle,
            facts,
            subject,
            phase: verdict.phase,
            held,
            pools: &facts.host_pools,
            expected: expected.as_ref(),
        })
    });
    Budget { expected, held, suspects }
}

/// Pools whose size the log prints or a flag gives count where the plan could not compute them: a pool that follows the
/// device's needs a card that is known.
fn count_pools(e: &mut Expected, pools: &[HostPool]) {
    let planned: u64 = e
        .host
        .terms
        .iter()
        .filter(|t| PLANNED_POOLS.iter().any(|p| t.name.starts_with(p)))
        .map(|t| t.quantity.expected)
        .sum();
    let of = |bound: bool| {
        pools.iter().filter(|p| p.bound == bound).map(|p| p.bytes.0).fold(0, u64::saturating_add)
    };
    let (sure, most) = (of(false).saturating_sub(planned), of(true));
    let more = Quantity::band(sure, sure, sure.saturating_add(most.saturating_sub(planned)));
    let host = &mut e.host;
    host.plan.load_peak_bytes = host.plan.load_peak_bytes + more;
    host.plan.steady_bytes = host.plan.steady_bytes + more;
    host.request_bytes = host.request_bytes.saturating_add(Bytes(more.expected).round_up_to(GIB).0);
    host.limit_bytes = host.limit_bytes.saturating_add(Bytes(more.high).round_up_to(GIB).0);
}

/// Terms of a plan that are pools of their own.
const PLANNED_POOLS: [&str; 4] = ["pinned.", "shm.", "cache.", "volume."];

impl Budget {
    /// Host RAM that the launch needs in the phase in which it died.
    #[must_use]
    pub fn need(&self, verdict: &Verdict) -> Option<Quantity> {
        self.expected.as_ref().map(|e| suspects::need(e, verdict.phase))
    }
}
