//! What the launch in the evidence should take: the plan of the server that died, beside what it held.

use super::launch::{Launched, of_subject};
use dualplane_base::gpu::Gpu as Card;
use dualplane_core::evidence::Bundle;
use dualplane_core::facts::Facts;
use dualplane_core::verdict::Subject;
use dualplane_plan::host::{HostInput, HostReport, host};
use dualplane_plan::{EngineKind, Named, Plan, answer};

/// Both planes of a launch as they are computed.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The launch.
    pub launch: Launched,
    /// Host RAM.
    pub host: HostReport,
    /// VRAM, where model and card are known and have arithmetic here.
    pub gpu: Option<Plan>,
}

/// The plan of the judged container's launch; `None` where no launch is known.
#[must_use]
pub fn expect(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    cards: &[Card],
    model: Option<&Named>,
) -> Option<Expected> {
    let mut launch = of_subject(bundle, facts, subject, cards)?;
    launch.model = model.cloned().or(launch.model);
    let both = launch
        .model
        .as_ref()
        .zip(launch.placed.as_ref())
        .and_then(|(named, placed)| answer(named, &launch.line, placed, None).ok());
    let (host, gpu) = match both {
        Some(a) => (a.host, a.plan.ok()),
        None => {
            let model = launch.model.as_ref().map(|n| &n.model);
            let files = dualplane_plan::host::Checkpoint::default();
            (host(HostInput { line: &launch.line, model, plan: None, files, cpu: false }), None)
        }
    };
    // What llama.cpp keeps in RAM is in its file, which is not at hand.
    if launch.line.launch.engine == EngineKind::LlamaCpp && gpu.is_none() {
        return None;
    }
    Some(Expected { launch, host, gpu })
}
