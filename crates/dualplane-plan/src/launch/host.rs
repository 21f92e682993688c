//! What only the host plane asks of a launch: from flags, environment and the pod.

use serde::Serialize;

use dualplane_base::units::Bytes;

/// Settings that change host memory and nothing on the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostAsk {
    /// `--safetensors-load-strategy`.
    pub load_strategy: Option<String>,
    /// Ray starts the workers, with an object store in /dev/shm.
    pub ray: bool,
    /// `--nnodes`, `--data-parallel-size-local`: ranks may run on other machines.
    pub several_nodes: bool,
    /// `--nnodes`, or SGLang's; 1 where it is not given.
    pub nodes: u64,
    /// `--data-parallel-size-local`.
    pub local_copies: Option<u64>,
    /// `--enable-sleep-mode`: level 1 keeps all weights in pinned memory while asleep.
    pub sleep_mode: bool,
    /// `--mm-processor-cache-type shm`.
    pub shm_processor_cache: bool,
    /// `VLLM_MQ_MAX_CHUNK_BYTES_MB`, in MiB.
    pub queue_chunk_mib: Option<u64>,
    /// `LMCACHE_MAX_LOCAL_CPU_SIZE`, in bytes for each rank.
    pub lmcache_bytes: Option<u64>,
    /// `RUNAI_STREAMER_MEMORY_LIMIT`, in bytes.
    pub streamer_bytes: Option<u64>,
    /// SGLang `--hicache-ratio`: host pool as a multiple of the device's.
    pub hicache_ratio: Option<f64>,
    /// SGLang `--hicache-size`, in bytes for each rank.
    pub hicache_bytes: Option<u64>,
    /// llama.cpp `--cache-ram`, in bytes.
    pub prompt_cache_bytes: Option<u64>,
    /// llama.cpp `--mlock`.
    pub locked: bool,
    /// llama.cpp maps its file (`--no-mmap` reads it).
    pub mapped: bool,
    /// What the pod sets.
    pub pod: PodAsk,
}

impl Default for HostAsk {
    fn default() -> Self {
        Self {
            load_strategy: None,
            ray: false,
            several_nodes: false,
            nodes: 1,
            local_copies: None,
            sleep_mode: false,
            shm_processor_cache: false,
            queue_chunk_mib: None,
            lmcache_bytes: None,
            streamer_bytes: None,
            hicache_ratio: None,
            hicache_bytes: None,
            prompt_cache_bytes: None,
            locked: false,
            mapped: true,
            pod: PodAsk::default(),
        }
    }
}

/// What the pod's specification says about its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PodAsk {
    /// Memory limit of the container.
    pub limit: Option<Bytes>,
    /// Memory request of the container.
    pub request: Option<Bytes>,
    /// Size limit of the Memory volume on /dev/shm; `Some(None)`: a volume without a limit.
    pub shm: Option<Option<Bytes>>,
    /// Other volumes of medium Memory: mount path and size limit.
    pub memory_volumes: Vec<(String, Option<Bytes>)>,
    /// GPUs or MIG slices of the container.
    pub gpus: Option<u64>,
    /// The specification was read: that nothing stands here means that nothing is set.
    pub known: bool,
}

impl HostAsk {
    /// GPUs of the pod, where its specification tells.
    #[must_use]
    pub fn pod_gpus(&self) -> Option<u64> {
        self.pod.gpus
    }
}
