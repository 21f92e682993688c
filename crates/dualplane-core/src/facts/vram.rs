//! The numbers inside a VRAM allocation error, whatever version of PyTorch or ggml printed them.
//!
//! Each part is read on its own, because order and presence changed over the years (PyTorch
//! `c10/cuda/CUDACachingAllocator.cpp`): old `(GPU 0; T total capacity; A already allocated; F free; R reserved …)`,
//! new `GPU 0 has a total capacity of T of which F is free. Process N has P memory in use. …`.

use serde::Serialize;

use crate::units::{Bytes, MIB, parse_memory};

/// Parts of one error; what was not printed is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VramOom {
    /// GPU index as the process sees it.
    pub gpu: Option<u32>,
    /// What was asked for.
    pub requested: Option<Bytes>,
    /// Capacity of the device as CUDA reports it.
    pub total: Option<Bytes>,
    /// Free on the device.
    pub free: Option<Bytes>,
    /// Held by tensors of this process.
    pub allocated: Option<Bytes>,
    /// Reserved by the allocator of this process (allocated and not).
    pub reserved: Option<Bytes>,
    /// In CUDA graph pools.
    pub private_pools: Option<Bytes>,
    /// This process as a whole, context included.
    pub this_process: Option<Bytes>,
    /// Processes listed by NVML: host pid and bytes.
    pub processes: Vec<(u64, Bytes)>,
    /// Cap set by a memory fraction.
    pub allowed: Option<Bytes>,
}

/// A CUDA context with its modules takes some hundred MiB; measured 300 to 600 MiB on data-centre cards.
const CONTEXT: Bytes = Bytes(600 * MIB);

/// Reads the parts from a line; `None` when no size at all stands in it.
#[must_use]
pub fn parse(line: &str) -> Option<VramOom> {
    let mut oom = VramOom {
        gpu: after(line, "GPU ").or_else(|| after(line, "(NPU ")).and_then(|r| digits(r).parse().ok()),
        requested: after(line, "Tried to allocate ")
            .or_else(|| after(line, "Requested size: "))
            .and_then(size),
        total: after(line, "total capacity of ")
            .or_else(|| after(line, "total capacty of "))
            .and_then(size)
            .or_else(|| before(line, " total capacity;")),
        free: before(line, " is free").or_else(|| before(line, " free;")),
        allocated: before(line, " is allocated by PyTorch").or_else(|| before(line, " already allocated")),
        reserved: before(line, " reserved in total by PyTorch"),
        private_pools: before(line, " allocated in private pools"),
        this_process: after(line, "this process has ").and_then(size),
        processes: Vec::new(),
        allowed: before(line, " allowed;").or_else(|| before(line, " allowed.")),
    };
    if oom.reserved.is_none()
        && let (Some(a), Some(u)) = (oom.allocated, before(line, " is reserved by PyTorch but unallocated"))
    {
        oom.reserved = Some(a.saturating_add(u));
    }
    // ggml: "allocating 3257.82 MiB on device 0: cudaMalloc failed: out of memory"
    if oom.requested.is_none() {
        oom.requested = after(line, "allocating ").and_then(size).filter(|_| line.contains(" on device "));
        oom.gpu = oom.gpu.or_else(|| after(line, " on device ").and_then(|r| digits(r).parse().ok()));
    }
    let mut rest = line;
    while let Some(tail) = after(rest, "Process ") {
        let pid = digits(tail);
        if let (Ok(pid), Some(used)) =
            (pid.parse(), tail.get(pid.len()..).and_then(|t| t.strip_prefix(" has ")).and_then(size))
        {
            oom.processes.push((pid, used));
        }
        rest = tail;
    }
    (oom.requested.is_some() || oom.total.is_some()).then_some(oom)
}

/// Lines behind a message that may carry its sizes.
pub(crate) const SIZE_LINES: usize = 6;

/// Reads one of the lines that some allocators print below their message, a size each (PyTorch
/// `c10/cuda/CUDAMallocAsyncAllocator.cpp`: `Currently allocated     : 10.91 GiB`). Whether the line is one of
/// them.
pub(crate) fn read_below(oom: &mut Option<VramOom>, line: &str) -> bool {
    let line = line.trim();
    // The same message with its sizes on the next line.
    if let Some(next) = parse(line).filter(|_| line.starts_with("Tried to allocate")) {
        oom.get_or_insert(next);
        return true;
    }
    let Some((label, value)) = line.split_once(':') else { return line.starts_with("PyTorch limit (") };
    let label = label.trim();
    if !["Currently allocated", "Requested", "Device limit", "Free (according to CUDA)", ""].contains(&label)
    {
        return false;
    }
    let Some(bytes) = size(value.trim()) else { return false };
    let oom = oom.get_or_insert_default();
    let field = match label {
        "Currently allocated" => &mut oom.allocated,
        "Requested" => &mut oom.requested,
        "Device limit" => &mut oom.total,
        "Free (according to CUDA)" => &mut oom.free,
        _ => &mut oom.allowed,
    };
    field.get_or_insert(bytes);
    true
}

impl VramOom {
    /// Reserved by the allocator but not used by a tensor: what fragmentation wastes.
    #[must_use]
    pub fn reserved_unallocated(&self) -> Option<Bytes> {
        Some(self.reserved?.saturating_sub(self.allocated?))
    }

    /// In use on the device: total less free.
    #[must_use]
    pub fn used(&self) -> Option<Bytes> {
        Some(self.total?.saturating_sub(self.free?))
    }

    /// What this process holds: printed, or the listed process that can be it, or the allocator plus a context.
    ///
    /// NVML lists host pids, so inside a container the process's own line looks like a stranger's: the listed process
    /// whose memory covers the allocator's is taken for this one, the closest where several do.
    #[must_use]
    pub fn own(&self) -> Option<Bytes> {
        // NVML sometimes cannot tell and the message then says "0 bytes": never less than the allocator itself holds.
        if let Some(own) = self.this_process {
            return Some(own.max(self.reserved.unwrap_or_default()));
        }
        let reserved = self.reserved?;
        let covering = self.processes.iter().filter(|(_, p)| p.0 >= reserved.0).map(|(_, p)| *p).min();
        // Without a listed process the context is unknown: assume its usual size, but no more than what is in use.
        let assumed = reserved.saturating_add(CONTEXT);
        Some(covering.unwrap_or_else(|| self.used().map_or(assumed, |u| assumed.min(u))))
    }

    /// What others hold on the device, as far as the numbers carry it.
    #[must_use]
    pub fn others(&self) -> Option<Bytes> {
        Some(self.used()?.saturating_sub(self.own()?))
    }
}

fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split_once(word).map(|(_, rest)| rest)
}

fn digits(text: &str) -> &str {
    text.get(..text.bytes().take_while(u8::is_ascii_digit).count()).unwrap_or_default()
}

/// `138.00 MiB. GPU…` → 138 MiB
fn size(text: &str) -> Option<Bytes> {
    let mut words = text.split([' ', ';', ')', '(', ',']);
    let number = words.next()?;
    let unit = words.next().unwrap_or_default().trim_end_matches(['.', '\'', '"']);
    whole_unit(unit).then(|| parse_memory(&format!("{number} {unit}"), None))?
}

/// Allocators print a unit to each size. One that is missing, or that is no whole word of theirs, was cut off: `95.00` and
/// `95.00 G` of `95.00 GiB` are no sizes.
fn whole_unit(unit: &str) -> bool {
    unit == "bytes" || unit.ends_with('B')
}

/// The size that ends directly before a phrase: `… of which 2.19 MiB is free`.
fn before(text: &str, phrase: &str) -> Option<Bytes> {
    let head = text.get(..text.find(phrase)?)?;
    let mut words = head.rsplit(' ');
    let unit = words.next().filter(|u| whole_unit(u))?;
    let number = words.next()?.trim_start_matches(['(', '[']);
    parse_memory(&format!("{number} {unit}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gib(x: f64) -> Bytes {
        Bytes((x * (1u64 << 30) as f64) as u64)
    }

    #[test]
    fn the_new_text() {
        let o = parse("CUDA out of memory. Tried to allocate 138.00 MiB. GPU 3 has a total capacity of 79.15 GiB of which 2.19 MiB is free. Process 88101 has 79.12 GiB memory in use. Of the allocated memory 71.57 GiB is allocated by PyTorch, with 39.77 MiB allocated in private pools (e.g., CUDA Graphs), and 611.60 MiB is reserved by PyTorch but unallocated.").unwrap();
        assert_eq!(o.gpu, Some(3));
        assert_eq!(o.requested, Some(Bytes(138 * MIB)));
        assert_eq!(o.total, Some(gib(79.15)));
        assert_eq!(o.processes, [(88101, gib(79.12))]);
        assert_eq!(o.reserved_unallocated().unwrap().0 / MIB, 611);
        // Its own line, though it looks like a stranger's.
        assert_eq!(o.own(), Some(gib(79.12)));
        assert!(o.others().unwrap().0 < 64 * MIB);
    }

    #[test]
    fn the_old_text_with_a_neighbour() {
        let o = parse("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 14.76 GiB total capacity; 4.37 GiB already allocated; 14.75 MiB free; 4.43 GiB reserved in total by PyTorch)").unwrap();
        assert_eq!(o.free.unwrap().0 / MIB, 14);
        assert!(o.others().unwrap() > gib(9.5), "{o:?}");
    }

    /// Wherever the message is cut, each size that is read is one that the whole message has.
    #[test]
    fn a_cut_message_has_no_size_that_the_whole_one_has_not() {
        let whole = "CUDA out of memory. Tried to allocate 448.00 MiB. GPU 7 has a total capacity of 95.00 GiB of which 12.50 MiB is free. Process 88101 has 79.12 GiB memory in use. Of the allocated memory 71.57 GiB is allocated by PyTorch, with 39.77 MiB allocated in private pools (e.g., CUDA Graphs), and 611.60 MiB is reserved by PyTorch but unallocated.";
        let of = parse(whole).unwrap();
        for end in 0..whole.len() {
            let Some(cut) = parse(&whole[..end]) else { continue };
            for (part, all) in [
                (cut.requested, of.requested),
                (cut.total, of.total),
                (cut.free, of.free),
                (cut.allocated, of.allocated),
                (cut.private_pools, of.private_pools),
            ] {
                assert!(part.is_none() || part == all, "{}", &whole[..end]);
            }
            assert!(cut.processes.iter().all(|p| of.processes.contains(p)), "{}", &whole[..end]);
        }
    }

    #[test]
    fn a_neighbour_is_listed_beside_this_process() {
        let o = parse("HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 79.00 GiB of which 1.00 GiB is free. Process 11 has 40.00 GiB memory in use. Including non-PyTorch memory, this process has 38.00 GiB memory in use. Of the allocated memory 37.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.").unwrap();
        assert_eq!(o.own(), Some(gib(38.0)));
        assert_eq!(o.others(), Some(gib(40.0)));
    }

    #[test]
    fn nvml_that_cannot_tell_is_no_neighbour() {
        let o = parse("CUDA out of memory. Tried to allocate 1.88 GiB. GPU 3 has a total capacity of 21.96 GiB of which 1.29 GiB is free. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 19.02 GiB is allocated by PyTorch, and 1.32 GiB is reserved by PyTorch but unallocated.").unwrap();
        assert!(o.others().unwrap() < gib(0.5), "{o:?}");
    }

    #[test]
    fn sizes_on_the_lines_below() {
        let mut oom = parse(
            "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
        );
        for line in [
            "Currently allocated     : 10.91 GiB",
            "Requested               : 5.00 MiB",
            "Device limit            : 12.00 GiB",
            "Free (according to CUDA): 0 bytes",
            "PyTorch limit (set by user-supplied memory fraction)",
            "                        : 17179869184.00 GiB",
        ] {
            assert!(read_below(&mut oom, line), "{line}");
        }
        let oom = oom.unwrap();
        assert_eq!(
            (oom.requested, oom.total, oom.free),
            (Some(Bytes(5 * MIB)), Some(gib(12.0)), Some(Bytes(0)))
        );
        assert_eq!(oom.allocated, Some(gib(10.91)));
        let mut none = None;
        assert!(!read_below(&mut none, "INFO: Requested model: llama") && none.is_none());
        assert!(read_below(
            &mut none,
            "Tried to allocate 2.00 GiB (GPU 0; 14.76 GiB total capacity; 4.37 GiB already allocated; 14.75 MiB free; 4.43 GiB reserved in total by PyTorch)"
        ));
        assert_eq!(none.unwrap().requested, Some(gib(2.0)));
    }

    #[test]
    fn ggml_and_nothing() {
        let o = parse("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 3257.82 MiB on device 0: cudaMalloc failed: out of memory").unwrap();
        assert_eq!((o.gpu, o.requested.unwrap().0 / MIB), (Some(0), 3257));
        assert!(parse("RuntimeError: CUDA error: out of memory").is_none());
    }
}
