//! A start as a sequence of stages, with both planes' use at each: the first stage that does not hold is the verdict.
//!
//! A real start decides in this order. Weights larger than the card end in an allocation error of torch while they load,
//! long before the engine could say that nothing is left for its cache; a pod's limit below what loading stages in RAM ends
//! in a kill by the kernel, before the card is full.

mod card;
mod lines;
mod pod;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::gpu::Gpu;
use crate::host::HostReport;
use crate::launch::CommandLine;
use crate::outcome::{Plan, Verdict};
use crate::quantity::{Plane, Quantity};
use dualplane_base::Class;
use dualplane_base::order::Order as _;

/// What a server does, in the order in which it does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Processes start and import their libraries.
    ProcessStart,
    /// CUDA contexts, collectives, and the engine's look at the free memory.
    Context,
    /// Weights are read and copied to the card.
    Load,
    /// Kernels put quantised weights into their own layout.
    Repack,
    /// One step at the limits of the flags.
    Profile,
    /// The pool is sized and allocated.
    KvCache,
    /// CUDA graphs are captured.
    Graphs,
    /// Kernels and the sampler run once.
    WarmUp,
    /// Requests.
    Traffic,
}

impl Step {
    /// As people read it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessStart => "process start",
            Self::Context => "context",
            Self::Load => "load",
            Self::Repack => "repack",
            Self::Profile => "profile",
            Self::KvCache => "KV cache",
            Self::Graphs => "graphs",
            Self::WarmUp => "warm-up",
            Self::Traffic => "traffic",
        }
    }
}

/// One step with what is used while it lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Which.
    pub step: Step,
    /// VRAM of the tightest GPU in use at its peak, with the context, in bytes; `None` where it is not computed.
    pub gpu_bytes: Option<Quantity>,
    /// RAM of the pod that cannot be reclaimed, at its peak, in bytes.
    pub host_bytes: Quantity,
    /// Whether it is passed, by what is known of both planes.
    pub verdict: Verdict,
    /// Why it is not, or may not be.
    pub why: Option<String>,
}

/// How a start ends that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// Where.
    pub step: Step,
    /// The plane that fails.
    pub plane: Plane,
    /// The class that `triage` would find.
    pub class: Class,
    /// Refused: at every plausible value. Uncertain: at some.
    pub verdict: Verdict,
    /// What torch, the engine or the kernel prints; `…` stands for what cannot be known before.
    pub line: String,
    /// The figures.
    pub why: String,
}

/// A start from its first process to its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stages {
    /// In order.
    pub list: Vec<Stage>,
    /// The first that fails, or may fail where none must.
    pub ending: Option<Ending>,
    /// Over both planes.
    pub verdict: Verdict,
}

/// What may end a stage.
pub(crate) struct Fault {
    step: Step,
    ending: Ending,
}

/// The most that the steps so far need of a plane. A later step that needs no more than an earlier one fails no more than
/// that one.
#[derive(Default)]
struct Peak(Quantity);

impl Peak {
    /// Whether this step is the first to need more than there is.
    fn reaches(&mut self, need: Quantity, there: u64) -> Option<Verdict> {
        let before = self.0;
        self.0 = before.max(need);
        if need.low > there && before.low <= there {
            Some(Verdict::Refused)
        } else if need.high > there && before.high <= there {
            Some(Verdict::Uncertain)
        } else {
            None
        }
    }
}

impl Fault {
    fn new(step: Step, class: Class, verdict: Verdict, line: String, why: String) -> Self {
        let plane = if class.plane() == dualplane_base::Plane::Host { Plane::Host } else { Plane::Gpu };
        Self { step, ending: Ending { step, plane, class, verdict, line, why } }
    }
}

/// The stages of a launch: its GPU plane where that is known, and its pod.
#[must_use]
pub fn stages(line: &CommandLine, gpu: &Gpu, plan: Option<&Plan>, host: &HostReport) -> Stages {
    // On the CPU back end both planes are one: the pod's.
    let used = plan.filter(|_| !gpu.is_cpu()).map(|p| card::Used::of(line, p));
    let mut faults = pod::faults(line, host);
    if let (Some(plan), Some(used)) = (plan, &used) {
        faults.extend(card::faults(line, gpu, plan, used, host));
    } else if let Some(plan) = plan {
        faults.extend(card::engine(line, plan, Class::KvCacheCapacity));
    }
    // In one step the pod fails first: weights pass through it on their way.
    faults.order_by_key(|f| (f.step, f.ending.plane == Plane::Gpu));
    let steps = [
        Step::ProcessStart,
        Step::Context,
        Step::Load,
        Step::Repack,
        Step::Profile,
        Step::KvCache,
        Step::Graphs,
        Step::WarmUp,
        Step::Traffic,
    ];
    let list = steps
        .into_iter()
        .filter(|s| used.as_ref().is_none_or(|u| u.has(*s)))
        .map(|step| {
            let worst =
                faults.iter().filter(|f| f.step == step).max_by_key(|f| f.ending.verdict == Verdict::Refused);
            Stage {
                step,
                gpu_bytes: used.as_ref().map(|u| u.at(step)),
                host_bytes: pod::at(host, step),
                verdict: worst.map_or(Verdict::Fits, |f| f.ending.verdict),
                why: worst.map(|f| f.ending.why.clone()),
            }
        })
        .collect();
    let first = |v: Verdict| faults.iter().find(|f| f.ending.verdict == v).map(|f| f.ending.clone());
    let ending = first(Verdict::Refused).or_else(|| first(Verdict::Uncertain));
    let verdict = match (&ending, plan) {
        (Some(e), _) if e.verdict == Verdict::Refused => Verdict::Refused,
        (Some(_), _) | (None, None) => Verdict::Uncertain,
        (None, Some(p)) => p.verdict,
    };
    Stages { list, ending, verdict }
}
