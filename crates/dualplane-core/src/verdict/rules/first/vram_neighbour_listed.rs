//! A printout shows strangers on the only card, where the message has no sizes of it.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_neighbour_listed";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::GpuCapacityConflict],
    "processes that do not belong to the engine are listed on the only GPU and use the requested amount \
    (half of the GPU if no size is known)",
    "the engine's own ranks; several GPUs without information which one is the pod's",
    "nvidia-smi: processes per GPU",
    |case| super::judge(case, ID, "no tool output shows other processes that use the requested amount"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{file, holds, log, near_miss};

    #[test]
    fn a_stranger_on_the_only_card_decides() {
        holds(
            &RULE,
            &[
                log(
                    "llama_model_load: loading model\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 18926.01 MiB on device 0: cudaMalloc failed: out of memory\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\n",
                ),
                file(
                    "nvidia-smi.csv",
                    "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, 80321 MiB, 1238 MiB\n",
                ),
                file(
                    "apps.csv",
                    "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-5fd4f087-86f3-7a43-b711-4771313afc50, 88101, /opt/train/bin/trainer, 71083 MiB\n",
                ),
            ],
        );
    }

    #[test]
    fn the_engine_itself_does_not() {
        near_miss(
            &RULE,
            "vram_exhausted",
            &[
                log(
                    "llama_model_load: loading model\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 18926.01 MiB on device 0: cudaMalloc failed: out of memory\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\n",
                ),
                file(
                    "nvidia-smi.csv",
                    "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, 80321 MiB, 1238 MiB\n",
                ),
                file(
                    "apps.csv",
                    "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-5fd4f087-86f3-7a43-b711-4771313afc50, 88101, /app/llama-server, 71083 MiB\n",
                ),
            ],
        );
    }
}
