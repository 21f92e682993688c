//! Which stage ends a start, and as what.

use super::{Step, stages};
use crate::card::{Placed, embedded, place};
use crate::cli;
use crate::host::{Checkpoint, HostInput, host};
use crate::launch::CommandLine;
use crate::model::{Model, ModelFiles};
use crate::outcome::Verdict;
use crate::stages::Stages;
use dualplane_base::units::{Bytes, GIB};
use dualplane_base::{Class, Version};

fn of(command: &str, card: &str, change: impl Fn(&mut CommandLine)) -> Stages {
    let mut line = cli::parse(&[command.to_owned()], &[], None).unwrap();
    change(&mut line);
    let entry = crate::catalogue::find(line.model.as_deref().unwrap()).unwrap();
    let files = ModelFiles {
        config: entry.config(),
        hf_quant_config: entry.hf_quant_config(),
        ..ModelFiles::default()
    };
    let model = Model::read(&files).unwrap();
    let Placed { gpu, .. } = place(&embedded().unwrap(), Some(card), None).unwrap();
    let plan = crate::plan(&model, &line.launch, &gpu).unwrap();
    let input = HostInput {
        line: &line,
        model: Some(&model),
        plan: Some(&plan),
        files: Checkpoint::default(),
        cpu: false,
    };
    stages(&line, &gpu, Some(&plan), &host(input))
}

fn end(s: &Stages) -> Option<(Step, Class, Verdict)> {
    s.ending.as_ref().map(|e| (e.step, e.class, e.verdict))
}

#[test]
fn weights_larger_than_the_card_end_in_torch_while_they_load() {
    let s = of("vllm serve meta-llama/Llama-3.1-70B-Instruct", "A100-40GB", |_| {});
    assert_eq!(end(&s), Some((Step::Load, Class::CudaOomLoad, Verdict::Refused)));
    let line = &s.ending.unwrap().line;
    assert!(
        line.starts_with("torch.OutOfMemoryError: CUDA out of memory.") && line.contains("39.49 GiB"),
        "{line}"
    );
    // Those that the card holds, and the share does not, are the engine's own refusal.
    let s = of("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.3", "H100-80GB", |_| {});
    assert_eq!(end(&s).map(|e| (e.0, e.1)), Some((Step::KvCache, Class::KvCacheCapacity)));
    let s = of("vllm serve Qwen/Qwen3-32B", "A100-80GB:2g.20gb", |_| {});
    assert_eq!(end(&s), Some((Step::Load, Class::MigSliceTooSmall, Verdict::Refused)));
}

#[test]
fn a_pool_that_the_host_shares_holds_both() {
    let at = |share: &str| {
        let s =
            of(&format!("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization {share}"), "DGX Spark", |_| {});
        end(&s).map(|e| (e.0, e.1, e.2))
    };
    // What machines of this kind had free before a start: 101.3 to 114.5 of 121.69 GiB.
    assert_eq!(at("0.97"), Some((Step::Context, Class::GpuCapacityConflict, Verdict::Refused)));
    assert_eq!(at("0.92"), Some((Step::Context, Class::GpuCapacityConflict, Verdict::Uncertain)));
    assert_eq!(at("0.75"), None);
    // Measured, the host's own use is known.
    let s = of("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.85", "GB10", |l| {
        l.launch.free_gpu_bytes = Some(115 * GIB);
    });
    assert_eq!(end(&s), None);
    // The share alone would fit, the pod's RAM beside it does not.
    let s = of("vllm serve Qwen/Qwen3-8B --max-model-len 4096", "Jetson Orin NX", |_| {});
    assert_eq!(end(&s).map(|e| e.2), Some(Verdict::Refused));
}

#[test]
fn a_share_that_leaves_no_room_for_the_context() {
    let at = |share: &str| {
        let s =
            of(&format!("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization {share}"), "H100-80GB", |_| {});
        end(&s)
    };
    assert_eq!(at("1.0"), Some((Step::Context, Class::GpuCapacityConflict, Verdict::Refused)));
    assert_eq!(at("0.994"), Some((Step::Context, Class::GpuCapacityConflict, Verdict::Uncertain)));
    assert_eq!(at("0.95"), None);
}

#[test]
fn graphs_beside_the_share_need_room() {
    let at = |share: f64| {
        let s = of("vllm serve Qwen/Qwen3-0.6B", "L4", |l| {
            l.launch.version = Version(0, 11, 0);
            l.launch.gpu_memory_utilization = Some(share);
        });
        end(&s)
    };
    assert_eq!(at(0.9), None);
    assert_eq!(at(0.96), Some((Step::WarmUp, Class::CudaOomLoad, Verdict::Uncertain)));
}

#[test]
fn a_pool_that_is_given_must_fit_the_card() {
    let s = of("vllm serve Qwen/Qwen3-8B --kv-cache-memory-bytes 100G", "H100-80GB", |_| {});
    assert_eq!(end(&s), Some((Step::KvCache, Class::CudaOomLoad, Verdict::Refused)));
}

#[test]
fn the_pods_limit_ends_the_stage_that_reaches_it() {
    let at = |gib: u64, more: &str| {
        let s = of(&format!("vllm serve Qwen/Qwen3-8B {more}"), "H100-80GB", |l| {
            l.host.pod.limit = Some(Bytes(gib * GIB));
        });
        end(&s)
    };
    assert_eq!(at(2, ""), Some((Step::ProcessStart, Class::HostOomKilled, Verdict::Refused)));
    assert_eq!(at(40, ""), None);
    // Whole files in RAM are larger than the processes.
    assert_eq!(at(6, "--load-format pt"), Some((Step::Load, Class::HostOomKilled, Verdict::Refused)));
    assert_eq!(
        at(40, "--kv-offloading-size 64"),
        Some((Step::KvCache, Class::HostOomKilled, Verdict::Refused))
    );
    let s = of("vllm serve Qwen/Qwen3-8B --load-format pt", "H100-80GB", |l| {
        l.host.pod.limit = Some(Bytes(6 * GIB))
    });
    assert_eq!(s.verdict, Verdict::Refused);
    assert!(s.ending.unwrap().line.contains("Killed process"));
}

#[test]
fn use_of_the_card_never_shrinks_but_for_activations() {
    let s = of("vllm serve Qwen/Qwen3-8B", "H100-80GB", |_| {});
    let at = |step: Step| s.list.iter().find(|x| x.step == step).unwrap().gpu_bytes.unwrap().expected;
    assert!(at(Step::Context) < at(Step::Load) && at(Step::Load) < at(Step::Profile));
    assert!(at(Step::Profile) < at(Step::KvCache) && at(Step::KvCache) <= at(Step::Graphs));
    assert!(at(Step::Graphs) < at(Step::WarmUp));
    assert!(s.list.iter().all(|x| x.step != Step::Repack), "nothing to repack in 16 bits");
    let q = of("vllm serve Qwen/Qwen3-32B-FP8", "H100-80GB", |_| {});
    assert!(q.list.iter().any(|x| x.step == Step::Repack));
}

#[test]
fn a_launch_over_nodes_is_told_for_one_pod() {
    let of = |command: &str| {
        let line = cli::parse(&[command.to_owned()], &[], None).unwrap();
        (line.pods(), line.gpus_of_pod())
    };
    assert_eq!(of("vllm serve m -tp 8 -pp 2 --nnodes 2"), (2, 8));
    assert_eq!(of("vllm serve m -tp 2 -dp 8 --data-parallel-size-local 2"), (4, 4));
    assert_eq!(of("vllm serve m -tp 4"), (1, 4));
    assert_eq!(of("python -m sglang.launch_server --model-path m --tp 16 --nnodes 2"), (2, 8));
}
