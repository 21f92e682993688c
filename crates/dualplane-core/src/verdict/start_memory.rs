//! What a server's own start-up lines say of its card before it took anything: memory that somebody else held.
//!
//! An engine that finds its share used up prints the same last line whether its own weights or a stranger filled it. The
//! lines above tell the two apart: memory in use before the first allocation, free memory below the share, or memory
//! outside PyTorch's allocator far above what one process can have.

use super::candidates::Candidate;
use super::proof::Vram;
use super::rules::first;
use super::vram::TENANT_FLOOR;
use super::{Cited, Class, Confidence};
use crate::facts::{Facts, Hit};
use crate::units::{Bytes, GIB};

/// What somebody else held, by one line.
struct Held {
    bytes: Bytes,
    total: Bytes,
    why: Vram,
    line: Cited,
    sure: bool,
}

/// The pool that did not fit would have fitted without what others held.
pub(super) fn neighbour(c: &mut Candidate, hit: &Hit, facts: &Facts) -> bool {
    if c.class != Class::KvCacheCapacity {
        return false;
    }
    // Lines of the same start: above the refusal, in its log, of its process where both say.
    let above = |h: &&Hit| {
        h.place.file == hit.place.file
            && h.place.line <= hit.place.line
            && (h.process.is_empty() || hit.process.is_empty() || h.process == hit.process)
    };
    let lines: Vec<&Hit> = facts.hits.iter().filter(above).collect();
    let Some(held) = before_start(&lines).or_else(|| outside_torch(&lines)) else { return false };
    if held.bytes.share_of(held.total) < TENANT_FLOOR {
        return false;
    }
    // What was left and what was needed, where it is printed: a deficit is below zero.
    let left = last(&lines, "kv_size").or_else(|| hit.number("available")).unwrap_or(0.0);
    let needed = hit.number("needed").unwrap_or(0.0);
    if left + held.bytes.0 as f64 <= needed {
        return false;
    }
    c.rule = first::vram_neighbour::ID;
    c.class = Class::GpuCapacityConflict;
    c.confidence = if held.sure { Confidence::High } else { Confidence::Medium };
    c.what = format!(
        "other processes already used {} of this GPU's {} when the server started; without them its KV cache would have fitted",
        held.bytes, held.total
    );
    c.supports.push(held.line);
    c.supports.push(Cited::plain(held.why));
    true
}

fn last(lines: &[&Hit], group: &str) -> Option<f64> {
    lines.iter().rev().find_map(|h| h.number(group))
}

/// Memory that was in use, or missing from the free, before the server allocated.
fn before_start(lines: &[&Hit]) -> Option<Held> {
    lines.iter().rev().find_map(|h| {
        let quoted = |h: &Hit| Cited::of(crate::text::shorten(h.text.trim(), 240), h);
        if let (Some(initial), Some(total), Some(peak)) =
            (h.memory("initial"), h.memory("total"), h.memory("peak_torch"))
        {
            // It is measured before the profile run, with the weights loaded: what PyTorch still holds after the run.
            let after = h.memory("post_profile").zip(h.memory("non_torch")).map(|(p, n)| p.saturating_sub(n));
            let own = after.unwrap_or(peak);
            let bytes = initial.saturating_sub(own);
            return Some(Held {
                bytes,
                total,
                why: Vram::BeforeProfile { initial, own },
                line: quoted(h),
                sure: true,
            });
        }
        let (free, budget, share) =
            (h.memory("free_at_start")?, h.memory("budget")?, h.number("utilization")?);
        if share <= 0.0 {
            return None;
        }
        let total = Bytes((budget.0 as f64 / share) as u64);
        let bytes = total.saturating_sub(free);
        Some(Held {
            bytes,
            total,
            why: Vram::NotFreeAtStart { budget, share, total, free },
            line: quoted(h),
            sure: true,
        })
    })
}

/// Memory outside PyTorch's allocator that one process cannot have.
fn outside_torch(lines: &[&Hit]) -> Option<Held> {
    let line = lines.iter().rev().find(|h| h.memory("non_torch").is_some())?;
    let non_torch = line.memory("non_torch")?;
    let total = line.memory("total").or_else(|| {
        lines.iter().rev().filter(|h| h.memory("budget").is_some()).find_map(|h| h.memory("total"))
    })?;
    // A context, NCCL's buffers, workspaces and custom all-reduce of one process: budget.md measures 0.2 to 3 GiB.
    let own = Bytes(GIB);
    let bytes = non_torch.saturating_sub(own);
    Some(Held {
        bytes,
        total,
        why: Vram::OutsideTorch { outside: non_torch, total, own },
        line: Cited::of(crate::text::shorten(line.text.trim(), 240), line),
        sure: false,
    })
}
