//! Reads a message that no entry knows by its grammar: which memory ran out, by the words for a lack (out of, not enough,
//! failed to allocate, exceeds) and the words for a plane that belong to them. Where the words name no plane, it says so.

mod hedge;
mod lack;
mod lex;
mod lexicon;
mod limit;
mod look;
mod plane;
mod refusal;
mod role;
mod shortage;

use lack::{Kind, Lack};
use lex::{Token, lex};
pub(super) use lexicon::STEMS;
use lexicon::{DEVICE, ECC, GONE, GPU, HEDGE, LACK, MEMORY, NOT, OUT, REMOVED, UNCORRECTED};

/// What the words of a message say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// A card's memory.
    DeviceMemory,
    /// The cache of keys and values.
    KvCache,
    /// The host's memory.
    HostMemory,
    /// A card is gone or hangs.
    Fault,
    /// Memory, without saying which.
    Memory,
    /// A lack that may come, was avoided or is only explained: no words of the line count.
    Nothing,
    /// Memory, and words for more than one of them, or for a fault beside it.
    Several,
}

impl Said {
    /// The entry of `knowledge/runtime/generic.toml` that means the same.
    pub(super) fn entry(self) -> &'static str {
        match self {
            Self::DeviceMemory => "generic.device_memory",
            Self::KvCache => "generic.kv_memory",
            Self::HostMemory => "generic.host_memory",
            Self::Fault => "generic.gpu_fault",
            Self::Memory | Self::Several | Self::Nothing => "generic.some_memory",
        }
    }
}

/// What a message says, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) said: Said,
    pub(super) at: usize,
    pub(super) end: usize,
    /// Something was killed for it: an act, whatever the level of the line.
    pub(super) act: bool,
}

/// Reads a message. The first lack of which the plane is said counts, else the first one.
pub(super) fn read(text: &str) -> Option<Reading> {
    let tokens = lex(text);
    let reading = |said, lack: &Lack| {
        let at = tokens.get(lack.from)?.at;
        Some(Reading { said, at, end: tokens.get(lack.to)?.end, act: lack.kind == Kind::Kill })
    };
    let mut unsaid = None;
    let (lacks, hedged) = lack::lacks(text, &tokens);
    for lack in lacks {
        match plane::of(&tokens, &lack) {
            Some(said) => return reading(said, &lack),
            None => unsaid = unsaid.or(Some(lack)),
        }
    }
    if let Some(lack) = unsaid {
        let said = if plane::names_several(&tokens, &lack) { Said::Several } else { Said::Memory };
        return reading(said, &lack);
    }
    let spoken = || hedged.then_some(Reading { said: Said::Nothing, at: 0, end: 0, act: false });
    fault(text, &tokens).or_else(spoken)
}

/// `the GPU hangs`, `DEVICE_LOST`, `ECC_UNCORRECTABLE`.
fn fault(text: &str, tokens: &[Token]) -> Option<Reading> {
    const REACH: usize = 4;
    let pair = |(i, t): (usize, &Token)| {
        let with = match t.roles {
            r if r & GONE != 0 => GPU | DEVICE,
            r if r & REMOVED != 0 && t.joined => DEVICE,
            // A card's error without the word for its memory's check; "double" says it only beside that.
            r if r & UNCORRECTED != 0 && text.get(t.at..t.end).is_some_and(is_uncorrected) => ECC | GPU,
            r if r & UNCORRECTED != 0 => ECC,
            r if r & ECC != 0 => UNCORRECTED,
            _ => return None,
        };
        // "hang check", "hang detection": the name of a watch.
        let watch = ["check", "detection", "detector", "monitor", "watchdog", "timeout", "recovery"];
        let next = tokens.get(i + 1).and_then(|n| text.get(n.at..n.end)).unwrap_or_default();
        if watch.iter().any(|w| w.eq_ignore_ascii_case(next)) {
            return None;
        }
        let near = tokens.get(i.saturating_sub(REACH)..i)?.iter();
        let first = near.rev().find(|n| n.roles & with != 0 && n.sentence == t.sentence)?;
        let before = tokens.get(i.saturating_sub(2 * REACH)..i)?.iter();
        let hedged = before.rev().take_while(|h| !h.parted).any(|h| h.roles & (HEDGE | NOT) != 0);
        // "… was lost, which can happen for lack of memory".
        let memory = tokens.iter().any(|t| t.roles & MEMORY != 0)
            && tokens.iter().any(|t| t.roles & (LACK | OUT) != 0);
        let said = if memory { Said::Several } else { Said::Fault };
        // "ECC errors: 0 uncorrectable" counts none.
        let from = tokens.iter().position(|n| n.at == first.at).unwrap_or(i);
        let none = |n: &Token| text.get(n.at..n.end) == Some("0");
        // "device 0: uncorrectable …" is the card's number.
        let from = if first.parted { from + 1 } else { from };
        let counted = tokens.get(from.saturating_sub(1)..(i + 3).min(tokens.len())).unwrap_or_default();
        let hedged = hedged || with & (ECC | UNCORRECTED) != 0 && counted.iter().any(none);
        (!hedged).then_some(Reading { said, at: first.at, end: t.end, act: false })
    };
    tokens.iter().enumerate().find_map(pair)
}

fn is_uncorrected(word: &str) -> bool {
    word.get(..3).is_some_and(|w| w.eq_ignore_ascii_case("unc"))
}

#[cfg(test)]
mod tests {
    use super::{Said, read};

    fn said(line: &str) -> Option<Said> {
        read(line).map(|r| r.said).filter(|s| *s != Said::Nothing)
    }

    #[test]
    fn the_words_beside_a_lack_name_its_plane() {
        for (line, want) in [
            ("no enough CUDA memory! Need 4096, freed 1024", Said::DeviceMemory),
            ("VK_ERROR_OUT_OF_DEVICE_MEMORY", Said::DeviceMemory),
            ("failed to reserve 4096 bytes of device memory", Said::DeviceMemory),
            ("the model (20 GiB) does not fit into the GPU", Said::DeviceMemory),
            ("aclrtMalloc failed with error 207001", Said::DeviceMemory),
            ("ROCm error: out of memory", Said::DeviceMemory),
            ("Out of memory in cuStreamCreate(&stream, 0)", Said::DeviceMemory),
            ("data was larger than the available GPU memory", Said::DeviceMemory),
            ("no free KV cache blocks", Said::KvCache),
            ("failed to allocate buffer for the kv cache", Said::KvCache),
            ("failed to find free space in the KV cache", Said::KvCache),
            ("VK_ERROR_OUT_OF_HOST_MEMORY", Said::HostMemory),
            ("cudaMallocHost failed: out of memory", Said::HostMemory),
            ("failed to alloc 4096 bytes on host: CUDA_ERROR_OUT_OF_MEMORY", Said::HostMemory),
            ("register failed: Cannot allocate memory", Said::HostMemory),
            ("mmap(4096 bytes) failed; errno 12", Said::HostMemory),
            ("uncaught exception of type std::bad_alloc", Said::HostMemory),
            ("Memory limit of 512 MiB exceeded with 530 MiB used", Said::HostMemory),
            ("Job has gone over memory limit of 2048 megabytes", Said::HostMemory),
            ("job killed after reaching the memory usage limit", Said::HostMemory),
            ("requires more system memory (20 GiB) than is available", Said::HostMemory),
            ("not enough space in /dev/shm", Said::HostMemory),
            ("waiting for the fence: device lost", Said::Fault),
            ("uncorrectable ECC error encountered", Said::Fault),
        ] {
            assert_eq!(said(line), Some(want), "{line}");
        }
    }

    #[test]
    fn words_without_a_plane_name_none() {
        for (line, want) in [
            ("decompress failed: out of memory", Said::Memory),
            ("failed to allocate 4096 bytes", Said::Memory),
            // The name of a machine, and of the file that printed it.
            ("gpu-node-1: worker ran out of memory", Said::Memory),
            ("[gpu_worker.py:12] not enough memory", Said::Memory),
            // A caller's name is not what it asked for.
            ("backend_cuda_init: error: failed to allocate the context", Said::Memory),
            ("System is out of GPU and shared host memory", Said::Several),
            ("the device was lost, which can be for lack of memory", Said::Several),
        ] {
            assert_eq!(said(line), Some(want), "{line}");
        }
    }

    #[test]
    fn what_tells_of_no_lack() {
        for line in [
            "the device has 80 GiB of memory",
            "no memory limit is set",
            "no memory leaks were found",
            "set it to avoid an out of memory error",
            "the request may run out of memory",
            "this usually indicates that it was killed for running out of memory",
            "0 OOM kills",
            "oom_kill_disable=false",
            "oom_score_adj: -999",
            "the vram budget 120% exceeds 100%",
            "No free hugepages reported in hugepages-1048576kB",
            "failed to get the allocation of the pod",
            "failed to allocate a port",
            "Allocate failed due to no healthy devices present",
            "GPU memory allocation failed, falling back to the host",
            "recovered from an out of memory error",
            "this GPU does not have enough shared memory for the kernel",
            "the prompt exceeds the maximum length of the model",
            "Killing it due to hardware memory corruption",
            "Refer to the documentation on how to address the out of memory issue of the host",
            "see https://host/out-of-memory-killed",
            "TPU compile error. Ran out of memory in memory space vmem. Used 17M of 16M vmem",
            "fork rejected by pids controller",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn a_kill_is_an_act() {
        let of = |line| read(line).map(|r| (r.said, r.act));
        assert_eq!(of("Container killed due to memory usage"), Some((Said::HostMemory, true)));
        assert_eq!(of("process out of memory"), Some((Said::HostMemory, false)));
    }
}
