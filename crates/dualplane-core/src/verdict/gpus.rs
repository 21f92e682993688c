//! What a printout of `nvidia-smi` and its like adds: who holds a card. It shows a moment that is rarely that of the failure,
//! so free VRAM in it is no evidence, and a process in it only where it cannot be the dead server itself.

use super::candidates::Candidate;
use super::proof::{self, Fault};
use super::rules::first;
use super::vram::TENANT_FLOOR;
use super::{Cause, Cited, Class, Confidence, Decided, Phase};
use crate::evidence::Bundle;
use crate::evidence::gpu_model::{Gpu, GpuProcess, GpuSnapshot};
use crate::facts::{Facts, Place, vram};
use crate::units::Bytes;
use dualplane_base::order::Order as _;

/// Without the size that was asked for, a stranger must hold half of the card to be the cause.
const HALF: f64 = 0.5;
/// Processes told of one card.
pub(super) const TOLD: usize = 4;

pub(super) fn place(file: &str, line: u64) -> Place {
    Place { file: file.to_owned(), line: Some(line) }
}

/// The name tells that the process is none of this engine's own; `python3` may be either. What the driver hides tells
/// nothing.
fn foreign(p: &GpuProcess, facts: &Facts) -> bool {
    let lower = p.name.to_ascii_lowercase();
    let name = lower.split_whitespace().next().unwrap_or_default();
    let base = name.rsplit('/').next().unwrap_or(name);
    let hidden =
        base.is_empty() || base.starts_with(['[', '-', '.']) || base == "n/a" || base.contains("mps-server");
    !hidden && !facts.engine.all.may_own(facts.engine.head(), base)
}

/// Distinct cards of all printouts, those in MIG mode left out: their own figures are those of no workload.
pub(super) fn cards(bundle: &Bundle) -> Vec<(&GpuSnapshot, &Gpu)> {
    let mut out: Vec<(&GpuSnapshot, &Gpu)> = Vec::new();
    for (s, g) in bundle.printed_gpus() {
        match out.iter_mut().find(|(_, o)| same_card(o, g)) {
            // The telling with figures stands for the card.
            Some(old) if old.1.total.is_none() => *old = (s, g),
            Some(_) => {}
            None => out.push((s, g)),
        }
    }
    out.retain(|(_, g)| !g.mig_enabled);
    out
}

fn same_card(a: &Gpu, b: &Gpu) -> bool {
    match (&a.uuid, &b.uuid, &a.pci, &b.pci) {
        (Some(a), Some(b), ..) | (.., Some(a), Some(b)) => a == b,
        _ => a.index == b.index,
    }
}

/// A card whose counters show a fault of its memory.
#[must_use]
pub fn faulty_card(bundle: &Bundle) -> Option<(&GpuSnapshot, &Gpu)> {
    bundle.printed_gpus().find(|(_, g)| g.is_faulty())
}

/// The one card that can be the container's: the only one, or the one that its environment or the kubelet names.
pub(super) fn own_card(bundle: &Bundle) -> Option<(&GpuSnapshot, &Gpu)> {
    let all = cards(bundle);
    if let [one] = all.as_slice() {
        // A card in MIG mode beside it may be ours as well.
        let every = bundle.printed_gpus().any(|(_, g)| g.mig_enabled);
        return (!every).then_some(*one);
    }
    let visible: Vec<&str> = bundle
        .pods
        .iter()
        .flat_map(|p| &p.containers)
        .flat_map(|c| &c.env)
        .filter(|(k, _)| k == "NVIDIA_VISIBLE_DEVICES")
        .map(|(_, v)| v.as_str())
        .collect();
    // What a container sees counts, where that is told: a literal value shows it other cards than it was given.
    let given: Vec<&str> = bundle.given.iter().map(String::as_str).collect();
    let [uuid] = (if visible.is_empty() { given } else { visible })[..] else { return None };
    all.into_iter().find(|(_, g)| g.uuid.as_deref() == Some(uuid))
}

/// Processes on a card, each pid once, the largest first.
pub(super) fn on_card<'a>(bundle: &'a Bundle, card: &Gpu) -> Vec<(&'a GpuSnapshot, &'a GpuProcess)> {
    let here = |p: &GpuProcess| match &p.card {
        Some(name) => card.is_called(name),
        None => p.gpu.is_none() || p.gpu == card.index,
    };
    let mut out: Vec<(&GpuSnapshot, &GpuProcess)> = Vec::new();
    for (s, p) in bundle.gpus.iter().flat_map(|s| s.processes.iter().map(move |p| (s, p))) {
        if !here(p) || p.instance.is_some() {
            continue;
        }
        match out.iter_mut().find(|(_, o)| o.pid == p.pid) {
            Some(old) if old.1.used.is_none() => *old = (s, p),
            Some(_) => {}
            None => out.push((s, p)),
        }
    }
    out.order_by_key(|(_, p)| std::cmp::Reverse(p.used));
    out
}

/// The message has no sizes of the device, but a printout shows strangers on the only card.
pub(super) fn neighbour(
    c: &mut Candidate,
    oom: Option<&vram::VramOom>,
    bundle: &Bundle,
    facts: &Facts,
) -> bool {
    let Some((_, card)) = own_card(bundle) else { return false };
    let Some(total) = card.total.or(oom.and_then(|o| o.total)).filter(|t| t.0 > 0) else { return false };
    let strangers: Vec<_> =
        on_card(bundle, card).into_iter().filter(|(_, p)| foreign(p, facts) && p.used.is_some()).collect();
    let listed =
        strangers.iter().fold(Bytes(0), |sum, (_, p)| sum.saturating_add(p.used.unwrap_or_default()));
    let hidden = hidden(bundle, card);
    let held = listed.saturating_add(hidden.as_ref().map_or(Bytes(0), |(bytes, _)| *bytes));
    let requested = oom.and_then(|o| o.requested);
    // What was held already is not told, so the strangers' part alone must cover what was asked for.
    let enough = match requested {
        Some(r) => held >= r && held.share_of(total) >= TENANT_FLOOR,
        None => held.share_of(total) >= HALF,
    };
    if !enough {
        return false;
    }
    c.rule = first::vram_neighbour_listed::ID;
    c.class = Class::GpuCapacityConflict;
    c.confidence = if requested.is_some() { Confidence::Medium } else { Confidence::Low };
    c.phase = if c.phase == Phase::Unknown { Phase::Load } else { c.phase };
    let asked = requested.map(|r| format!("; this process requested {r}")).unwrap_or_default();
    c.what = format!("other processes use {held} of this GPU's {total}{asked}");
    for (s, p) in strangers.iter().take(TOLD) {
        c.supports.push(holder(s, p, false));
    }
    c.supports.extend(hidden.map(|(_, told)| told));
    c.against.push(Cited::plain(proof::Gpu::HoldersLater));
    true
}

/// What is in use on a card beyond all listed processes: somebody whom the tool cannot see (another container's process,
/// a vGPU guest, memory that a dead process left). An empty list is what the tool shows inside a container, where the
/// server itself is hidden: it tells nothing.
fn hidden(bundle: &Bundle, card: &Gpu) -> Option<(Bytes, Cited)> {
    let (s, used) = bundle
        .gpus
        .iter()
        .find_map(|s| s.gpus.iter().find(|g| same_card(g, card)).and_then(|g| Some((s, g.used?))))?;
    let listed: Vec<_> = on_card(bundle, card);
    let sum = listed.iter().try_fold(Bytes(0), |sum, (_, p)| Some(sum.saturating_add(p.used?)))?;
    let bytes = used.saturating_sub(sum);
    if listed.is_empty() || bytes.share_of(card.total?) < TENANT_FLOOR {
        return None;
    }
    let proof = proof::Gpu::Unlisted { tool: s.tool, used, listed: sum };
    Some((bytes, Cited::at(proof, &place(&s.file, card.line))))
}

/// A process that holds VRAM; the message may have named its pid.
pub(super) fn holder(s: &GpuSnapshot, p: &GpuProcess, named: bool) -> Cited {
    let proof = proof::Gpu::Holder {
        tool: s.tool,
        process: p.name.clone(),
        pid: p.pid,
        used: p.used,
        at: s.stamp,
        named,
    };
    Cited::at(proof, &place(&s.file, p.line))
}

/// What is wrong with a card whose counters show a fault.
pub(super) fn fault(g: &Gpu) -> Fault {
    g.uncorrected().map_or(Fault::RemapPending, Fault::Uncorrected)
}

/// Causes that a printout suggests and that cannot be settled from it.
pub(super) fn hints(bundle: &Bundle, facts: &Facts, decided: &Decided, node: Option<&str>) -> Vec<Cause> {
    let mut out = Vec::new();
    let cause = |class, title: String, supports, against: proof::Gpu| Cause {
        class,
        title,
        confidence: Confidence::Low,
        rejected: true,
        supports,
        against: vec![Cited::plain(against)],
    };
    if decided.class != Class::XidHardware
        && let Some((s, g)) = faulty_card(bundle)
    {
        let name = g.label();
        let proof = proof::Gpu::MaybeFaulty { tool: s.tool, fault: fault(g) };
        let at = Cited::at(proof, &place(&s.file, g.line));
        let against = proof::Gpu::MaybeFaultWithoutTime;
        out.push(cause(Class::XidHardware, format!("GPU {name} reports a memory fault"), vec![at], against));
    }
    if let Some(heat) = super::heat::hottest(bundle, node) {
        let proof = proof::Gpu::MaybeFaulty { tool: heat.tool, fault: Fault::Hot(heat.celsius) };
        let title = format!("GPU {} is at {} °C", crate::text::name(&heat.gpu), heat.celsius);
        out.push(cause(
            Class::XidHardware,
            title,
            vec![Cited::at(proof, &heat.place)],
            proof::Gpu::HeatOfAMoment,
        ));
    }
    let oom = matches!(decided.class, Class::CudaOomLoad | Class::CudaOomRuntime);
    let several = cards(bundle).len() > 1 && own_card(bundle).is_none();
    let told = decided.trigger.as_ref().and_then(|t| t.vram()?.others()).is_some();
    if oom && several && !told {
        let strangers: Vec<Cited> = cards(bundle)
            .iter()
            .flat_map(|(_, g)| on_card(bundle, g).into_iter().map(move |x| (*g, x)))
            .filter(|(g, (_, p))| {
                let share = p.used.zip(g.total).map_or(0.0, |(u, t)| u.share_of(t));
                foreign(p, facts) && share >= TENANT_FLOOR
            })
            .take(TOLD)
            .map(|(_, (s, p))| holder(s, p, false))
            .collect();
        if !strangers.is_empty() {
            let title = "another process uses a GPU of this node".to_owned();
            let against = proof::Gpu::WhichUnknown;
            out.push(cause(Class::GpuCapacityConflict, title, strangers, against));
        }
    }
    out
}
