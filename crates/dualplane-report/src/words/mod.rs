//! The sentences of citations: the verdict holds proofs as values, and every form of a report takes its words from here.

mod busy;
mod cgroup;
mod gpu;
mod host_pool;
mod kernel;
mod launch;
mod log;
mod series;
mod signal;
mod snapshot;
mod status;
mod vram;
mod weighed;
mod xid;

use dualplane_base::{Class, Confidence, Place};
use dualplane_core::verdict::proof::Proof;
use dualplane_core::verdict::{Cited, Verdict};
use serde::Serialize;

/// A cause as it is told.
#[derive(Debug, Clone)]
pub struct Cause {
    /// Class that it would be.
    pub class: Class,
    /// One sentence.
    pub title: String,
    /// How likely, from the evidence.
    pub confidence: Confidence,
    /// The judge ruled it out or found too little for it.
    pub rejected: bool,
    /// Evidence for.
    pub supports: Vec<Citation>,
    /// Evidence against.
    pub against: Vec<Citation>,
}

/// A citation as it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// Stable id of what it proves.
    pub proof: &'static str,
    /// What the evidence says.
    pub text: String,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// The causes of a verdict in words.
#[must_use]
pub fn causes(verdict: &Verdict) -> Vec<Cause> {
    let cite = |all: &[Cited]| all.iter().map(citation).collect();
    let told = |c: &dualplane_core::verdict::Cause| Cause {
        class: c.class,
        title: c.title.clone(),
        confidence: c.confidence,
        rejected: c.rejected,
        supports: cite(&c.supports),
        against: cite(&c.against),
    };
    verdict.causes.iter().map(told).collect()
}

/// A citation in words.
#[must_use]
pub fn citation(cited: &Cited) -> Citation {
    Citation { proof: cited.proof.id(), text: sentence(&cited.proof), place: cited.place.clone() }
}

/// What a proof says.
#[must_use]
pub fn sentence(proof: &Proof) -> String {
    match proof {
        Proof::Line { text, .. } | Proof::Quote(text) => text.clone(),
        Proof::Kernel(p) => kernel::sentence(p),
        Proof::Xid(p) => xid::sentence(p),
        Proof::Status(p) => status::sentence(p),
        Proof::Signal(p) => signal::sentence(*p),
        Proof::Cgroup(p) => cgroup::sentence(p),
        Proof::Series(p) => series::sentence(p),
        Proof::Gpu(p) => gpu::sentence(p),
        Proof::Vram(p) => vram::sentence(p),
        Proof::Log(p) => log::sentence(p),
        Proof::Snapshot(p) => snapshot::sentence(p),
        Proof::HostPool(p) => host_pool::sentence(p),
        Proof::Launch(p) => launch::sentence(p),
        Proof::Busy(p) => busy::sentence(p),
        Proof::Pressure(reading) => reading.told(),
        Proof::Weighed(p) => weighed::sentence(p),
    }
}
