//! Counters of uncorrectable memory errors of a GPU, where no Xid line is at hand: a fault without its time.

use super::{Candidate, Source, Weight, end_phase};
use crate::evidence::Bundle;
use crate::evidence::gpu_model::{Gpu, GpuSnapshot};
use crate::facts::Facts;
use crate::text::counted;
use crate::verdict::proof;
use crate::verdict::rules::unexplained::ecc_counter;
use crate::verdict::{Cited, Class, Confidence, gpus};

/// A card of this pod whose counters show a fault.
pub(super) fn counters(bundle: &Bundle, facts: &Facts, all: &mut Vec<Candidate>) {
    // An Xid has a time and says more.
    if !facts.xids.is_empty() {
        return;
    }
    let Some((s, g)) = own_cards(bundle).into_iter().find(|(_, g)| g.is_faulty()) else { return };
    let what = g.uncorrected().map_or_else(
        || "rows that wait for a reset to be remapped".to_owned(),
        |n| format!("{} since the driver was loaded", counted(n, "uncorrectable ECC error")),
    );
    let name = g.label();
    let mut c = Candidate::new(
        ecc_counter::ID,
        Class::XidHardware,
        Source::Metrics,
        format!("GPU {name} has {what}"),
        "gpu.ecc_uncorrected",
    );
    c.stamp = s.stamp;
    c.weight = Weight::Degraded;
    c.confidence = Confidence::Low;
    c.phase = end_phase(facts);
    let proof = proof::Gpu::Faulty { tool: s.tool, fault: gpus::fault(g) };
    c.supports = vec![Cited::at(proof, &gpus::place(&s.file, g.line))];
    c.against = vec![Cited::plain(proof::Gpu::FaultWithoutTime)];
    all.push(c);
}

/// The cards that are certainly this pod's: the one that can be its own, or all where the pod has as many as are listed,
/// or where nothing tells of a pod at all.
fn own_cards(bundle: &Bundle) -> Vec<(&GpuSnapshot, &Gpu)> {
    let all = gpus::cards(bundle);
    if let Some(own) = gpus::own_card(bundle) {
        return vec![own];
    }
    let asked = |p: &crate::evidence::Pod| -> u64 {
        p.containers.iter().flat_map(|c| &c.devices).map(|(_, n)| *n).sum()
    };
    let whole = bundle.pods.iter().all(|p| asked(p) >= all.len() as u64);
    if whole { all } else { Vec::new() }
}
