//! What torch and the kernel print when an allocation fails; `…` stands for what cannot be known before.

use crate::gpu::Gpu;
use crate::launch::CommandLine;
use crate::version::EngineKind;
use dualplane_base::Version;
use dualplane_base::units::GIB;

/// torch 2.5 gave the error its own name; vLLM 0.6.4 was the first with it.
fn error_name(line: &CommandLine) -> &'static str {
    let l = &line.launch;
    let older = l.engine == EngineKind::Vllm && l.version_known && l.version < Version(0, 6, 4);
    if older { "torch.cuda.OutOfMemoryError" } else { "torch.OutOfMemoryError" }
}

/// The allocator's error on a card.
pub(super) fn out_of_memory(line: &CommandLine, gpu: &Gpu) -> String {
    let total = gpu.total_bytes as f64 / GIB as f64;
    match line.launch.engine {
        EngineKind::LlamaCpp => {
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating … MiB on device 0: cudaMalloc failed: out of memory"
                .into()
        }
        _ => format!(
            "{}: CUDA out of memory. Tried to allocate … GPU 0 has a total capacity of {total:.2} GiB of which … is \
             free.",
            error_name(line)
        ),
    }
}

/// The kernel's record of a kill for a container's limit.
pub(super) fn kernel_kill(line: &CommandLine) -> String {
    // Names of processes as the kernel cuts them, at 15 characters.
    let name = match line.launch.engine {
        EngineKind::Vllm if line.launch.version >= Version(0, 11, 0) => {
            if line.launch.tp.saturating_mul(line.launch.pp) > 1 {
                "VLLM::Worker_TP"
            } else {
                "VLLM::EngineCor"
            }
        }
        EngineKind::Sglang => "sglang::schedul",
        EngineKind::LlamaCpp => "llama-server",
        _ => "python3",
    };
    format!(
        "Memory cgroup out of memory: Killed process … ({name}) total-vm:…kB, anon-rss:…kB, file-rss:…kB, shmem-rss:…kB"
    )
}
