//! Refines a VRAM error by the numbers it prints: exhaustion, fragmentation, a neighbour, a MIG slice.

use super::candidates::{Candidate, Weight};
use super::proof::{Enough, Gpu, Status, Vram};
use super::rules::first;
use super::{Cited, Class, Confidence, Phase};
use crate::evidence::Bundle;
use crate::facts::{Facts, Hit, Mig, MigSeen, vram};
use crate::units::{Bytes, thousands};

/// Tensors that fill this share of the device leave no room whatever the allocator's slack is.
pub const FULL_OF_TENSORS: f64 = 0.95;
/// Slack below this share of the device is the allocator's normal rounding: blocks of 2 and 20 MiB, cached for the next
/// step. One request of 50 MiB beside 1 % in such blocks fails of a full card.
const SLACK_FLOOR: f64 = 0.03;
/// Idle reserved memory of this share of the device is holes, not slack.
const HOLES: f64 = 0.10;
/// Memory of others below this share of the device is contexts and display, not a tenant.
pub(super) const TENANT_FLOOR: f64 = 0.15;
/// This process holds this share of its MIG instance: the instance is full of it.
const OWN_SLICE: f64 = 0.75;

/// Decides among the classes of the GPU plane.
pub(super) fn refine(c: &mut Candidate, hit: &Hit, bundle: &Bundle, facts: &Facts) {
    let by_size = || instance_of_this_size(hit, bundle);
    if let Some(mig) = facts.mig.clone().or_else(by_size).filter(|_| slice_is_full(c, hit)) {
        c.rule = first::mig_slice_full::ID;
        c.class = Class::MigSliceTooSmall;
        c.confidence = Confidence::Medium;
        c.supports.push(Cited::at(seen(&mig.seen), &mig.place));
        let name = mig.profile.clone().or(mig.size.map(|s| s.to_string())).unwrap_or_else(|| "in use".into());
        c.what = format!("the MIG instance ({name}) is full: {}", lower_first(&c.what));
        return;
    }
    say_numbers(c, hit);
    if super::start_memory::neighbour(c, hit, facts) {
        return;
    }
    if !matches!(c.class, Class::CudaOomLoad | Class::CudaOomRuntime) || c.weight == Weight::Suspect {
        return;
    }
    if let Some(mut oom) = hit.vram.clone() {
        let by_ledger = from_ledger(&mut oom, c, hit, bundle);
        let unsaid = !by_ledger && oom.others().is_none();
        if !by_ledger && neighbour(c, &oom, bundle)
            || unsaid && super::gpus::neighbour(c, Some(&oom), bundle, facts)
            || fragmented(c, &oom)
        {
            if by_ledger {
                c.confidence = c.confidence.min(Confidence::Medium);
            }
            return;
        }
        exhausted(c, &oom);
    } else if super::gpus::neighbour(c, None, bundle, facts) {
        return;
    } else {
        c.confidence = Confidence::Medium;
        c.against.push(Cited::at(Vram::NoSizes, &hit.place));
    }
    by_phase(c);
}

/// Fills in what the message does not say from `torch.cuda.memory_summary()` of the same process's log.
fn from_ledger(oom: &mut vram::VramOom, c: &mut Candidate, hit: &Hit, bundle: &Bundle) -> bool {
    if oom.allocated.is_some() || oom.reserved.is_some() {
        return false;
    }
    // The allocator counts its own failures: a ledger without one was printed before.
    let same = |s: &&crate::evidence::TorchSummary| s.file == hit.place.file && s.ooms > 0;
    let mut ledgers = bundle.summaries.iter().filter(same).filter(|s| oom.gpu.is_none_or(|g| g == s.device));
    // One ledger; a file that is given twice has it on the same line.
    let Some(s) = ledgers.next().filter(|s| ledgers.all(|o| o.line == s.line)) else { return false };
    let (Some(allocated), Some(reserved)) = (s.allocated, s.reserved) else { return false };
    (oom.allocated, oom.reserved) = (Some(allocated), Some(reserved));
    let place = crate::facts::Place { file: s.file.clone(), line: Some(s.line) };
    let (device, fragments) = (s.device, s.unreleasable);
    c.supports.push(Cited::at(Vram::Ledger { device, reserved, allocated, fragments }, &place));
    c.against.push(Cited::at(Vram::LedgerLater, &place));
    true
}

/// Puts the figures of an engine's own refusal into its sentence.
fn say_numbers(c: &mut Candidate, hit: &Hit) {
    let tokens = |group: &str| hit.number(group).map(|n| thousands(n as u64));
    if let (Some(free), Some(total), Some(desired)) =
        (hit.memory("free"), hit.memory("total"), hit.memory("desired"))
    {
        let held = total.saturating_sub(free);
        c.what = format!(
            "the server needs {desired} of a GPU with {total}, but other processes already use {held} and \
            only {free} is free"
        );
    } else if let (Some(wanted), Some(quota)) = (hit.memory("wanted"), hit.memory("quota")) {
        c.what = format!(
            "the vGPU layer refused an allocation: with it this container would hold {wanted}, and its quota of the \
            shared card is {quota}"
        );
    } else if let (Some(needed), Some(available)) = (hit.memory("needed"), hit.memory("available")) {
        let len =
            tokens("max_model_len").map_or(String::new(), |l| format!(" for one request of {l} tokens"));
        let fits = tokens("estimated_max_len").filter(|_| needed.to_string() == available.to_string());
        c.what = match tokens("max_model_len").zip(fits) {
            // Printed with two decimals of a GiB, both may be the same.
            Some((len, fits)) => {
                format!("one request may use {len} tokens, but the KV cache holds only {fits}")
            }
            None => format!("the KV cache needs {needed}{len} but has only {available}"),
        };
    } else if let (Some(len), Some(have)) = (tokens("max_model_len"), tokens("kv_tokens")) {
        c.what = format!("one request may use {len} tokens, but the KV cache holds only {have}");
    } else if let (Some(initial), Some(current)) = (hit.memory("initial"), hit.memory("current")) {
        c.what = format!(
            "free VRAM changed from {initial} to {current} while the server was profiling: another \
            process released or allocated memory"
        );
    }
}

/// A sentence behind a colon. A name stays as its makers write it: `CUDA`, `PyTorch`, `NVML`.
fn lower_first(text: &str) -> String {
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if first.chars().skip(1).any(char::is_uppercase) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |f| f.to_lowercase().collect::<String>() + chars.as_str())
}

/// What shows the instance.
fn seen(seen: &MigSeen) -> Gpu {
    match seen {
        MigSeen::Requested(resource) => Gpu::MigRequested(resource.clone()),
        MigSeen::Metric { metric, profile } => {
            Gpu::MigLabel { metric: metric.clone(), profile: profile.clone() }
        }
        MigSeen::Line(line) => Gpu::MigLine(line.clone()),
        MigSeen::Product(label) => Gpu::MigProduct(label.clone()),
        MigSeen::OfThisSize { tool, size } => Gpu::MigOfThisSize { tool, size: *size },
    }
}

/// The capacity that the error names is that of a listed MIG instance, and of no listed card.
fn instance_of_this_size(hit: &Hit, bundle: &Bundle) -> Option<Mig> {
    /// The driver keeps some MiB of an instance for itself; profiles differ by far more.
    const SAME: f64 = 0.01;
    let total = hit.vram.as_ref()?.total?;
    let same = |size: Bytes| (total.share_of(size) - 1.0).abs() <= SAME;
    if bundle.printed_gpus().filter_map(|(_, g)| g.total).any(same) {
        return None;
    }
    bundle.gpus.iter().find_map(|s| {
        let instance = s.mig.iter().find(|m| m.total.is_some_and(same))?;
        Some(Mig {
            profile: instance.profile.clone(),
            size: instance.total,
            card: instance.card.clone(),
            place: crate::facts::Place { file: s.file.clone(), line: Some(instance.line) },
            seen: MigSeen::OfThisSize { tool: s.tool, size: instance.total.unwrap_or_default() },
        })
    })
}

/// On a MIG instance: the error is of VRAM and this process is what fills it.
fn slice_is_full(c: &Candidate, hit: &Hit) -> bool {
    match c.class {
        Class::CudaOomLoad | Class::CudaOomRuntime => hit.vram.as_ref().is_none_or(|o| {
            let share = o.own().zip(o.total).map(|(own, total)| own.share_of(total));
            let by_request = o.requested.zip(o.total).is_some_and(|(r, t)| r > t);
            by_request || share.is_none_or(|s| s >= OWN_SLICE)
        }),
        // Weights and activations alone fill the instance: no KV block fits.
        Class::KvCacheCapacity => {
            hit.id.contains("no_available_memory")
                || hit.text.contains("No available memory for the cache blocks")
        }
        _ => false,
    }
}

/// Others hold so much that the request would have fitted without them.
fn neighbour(c: &mut Candidate, oom: &vram::VramOom, bundle: &Bundle) -> bool {
    let (Some(others), Some(total), Some(requested)) = (oom.others(), oom.total, oom.requested) else {
        return false;
    };
    let own = oom.own().unwrap_or_default();
    let free = oom.free.unwrap_or_default();
    if others.share_of(total) < TENANT_FLOOR || others.saturating_add(free) < requested {
        return false;
    }
    c.rule = first::vram_neighbour::ID;
    c.class = Class::GpuCapacityConflict;
    c.phase = if c.phase == Phase::Unknown { Phase::Load } else { c.phase };
    let place = c.place.clone().unwrap_or(crate::facts::Place { file: String::new(), line: None });
    let printed = oom.this_process.is_some() || !oom.processes.is_empty();
    c.confidence =
        if printed || others.share_of(total) >= 0.4 { Confidence::High } else { Confidence::Medium };
    c.what = format!(
        "other processes use {others} of this GPU's {total}; this process uses {own} and requested \
        {requested}"
    );
    c.supports.push(Cited::at(Vram::Others { total, free, own, others, requested }, &place));
    for pod in &bundle.pods {
        for (name, _) in pod.containers.iter().flat_map(|c| &c.devices) {
            if name.ends_with(".shared") {
                let at = crate::facts::Place { file: pod.file.clone(), line: None };
                c.supports.push(Cited::at(Status::SharedGpu(name.clone()), &at));
            }
        }
    }
    true
}

/// Enough is reserved and idle for the request, and tensors do not fill the card.
fn fragmented(c: &mut Candidate, oom: &vram::VramOom) -> bool {
    let (Some(idle), Some(requested), Some(allocated), Some(total)) =
        (oom.reserved_unallocated(), oom.requested, oom.allocated, oom.total)
    else {
        return false;
    };
    // What CUDA graphs reserved for themselves is idle between replays, and no other allocation may have it.
    let graphs = oom.private_pools.unwrap_or_default();
    let printed = idle;
    let idle = idle.saturating_sub(graphs);
    let full = allocated.share_of(total) >= FULL_OF_TENSORS;
    // Idle blocks and free memory together would have done, and the idle part is a good piece of the card.
    let together =
        idle.share_of(total) >= HOLES && idle.saturating_add(oom.free.unwrap_or_default()) >= requested;
    if (idle < requested && !together) || full || idle.share_of(total) < SLACK_FLOOR {
        if idle >= requested && full {
            let proof = Vram::FullOfTensors { idle, requested, allocated, total }.into();
            c.against.push(Cited { proof, place: c.place.clone() });
        }
        return false;
    }
    c.rule = first::vram_fragmented::ID;
    c.class = Class::Fragmentation;
    c.confidence = if idle.share_of(total) >= HOLES { Confidence::High } else { Confidence::Medium };
    c.what = format!(
        "this process requested {requested} while its own allocator had {printed} reserved but unallocated"
    );
    let enough =
        if idle >= requested { Enough::Alone } else { Enough::WithFree(oom.free.unwrap_or_default()) };
    let proof = Vram::Holes { reserved: printed, graphs, idle, enough, requested, allocated, total }.into();
    c.supports.push(Cited { proof, place: c.place.clone() });
    true
}

fn exhausted(c: &mut Candidate, oom: &vram::VramOom) {
    let parts: Vec<String> = [
        ("requested", oom.requested),
        ("free", oom.free),
        ("this process", oom.own().filter(|_| oom.reserved.is_some() || oom.this_process.is_some())),
        ("total", oom.total),
    ]
    .into_iter()
    .filter_map(|(name, b): (&str, Option<Bytes>)| Some(format!("{name} {}", b?)))
    .collect();
    let gpu = oom.gpu.map_or(String::new(), |g| format!(" on GPU {g}"));
    c.rule = first::vram_exhausted::ID;
    c.what = format!("a VRAM allocation failed{gpu}: {}", parts.join(", "));
    // One above the card is no limit: it is how the allocator prints that there is none.
    if let Some(allowed) = oom.allowed.filter(|a| oom.total.is_none_or(|t| *a < t)) {
        c.supports.push(Cited { proof: Vram::Fraction(allowed).into(), place: c.place.clone() });
    }
}

/// Load, profiling and graph capture are one class; serving is the other.
fn by_phase(c: &mut Candidate) {
    c.class = match c.phase {
        Phase::Load | Phase::Profile => Class::CudaOomLoad,
        Phase::Traffic | Phase::Idle => {
            // A server that is up allocates because a request (or a wake-up) asks it to.
            c.phase = Phase::Traffic;
            Class::CudaOomRuntime
        }
        // The message itself is one of loading (ggml's buffer allocation, an engine's refusal to load).
        Phase::Unknown if c.class == Class::CudaOomLoad => {
            c.phase = Phase::Load;
            Class::CudaOomLoad
        }
        Phase::Unknown => {
            c.confidence = Confidence::Medium;
            c.against.push(Cited::plain(Vram::UnknownPhase));
            c.class
        }
    };
}
