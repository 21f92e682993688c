//! The model server of a Kubernetes manifest, or of a pod: command, image, memory, volumes and devices.

use dualplane_base::order::Order as _;
use dualplane_plan::PlanError;
use dualplane_plan::PodAsk;
use dualplane_plan::cli::{self, CommandLine};

use dualplane_core::evidence::{Bundle, Container, ContainerKind, Pod};

/// Labels of nodes that name the card: the GPU feature discovery's, GKE's.
const CARD_LABELS: [&str; 2] = ["nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"];

/// The server that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// `namespace/name` of the object and name of the container.
    pub name: String,
    /// Its command line with what the pod sets.
    pub line: CommandLine,
    /// MIG profile that it asks for.
    pub mig: Option<String>,
    /// Card that its node selector or labels name.
    pub card: Option<String>,
    /// Its command or its variables join several pods to one engine: a LeaderWorkerSet, or a cluster of Ray.
    pub grouped: bool,
}

/// The container with a GPU, of all pods and templates; the first whose command is an engine's.
///
/// # Errors
/// [`PlanError::Unsupported`] where no container is a model server, [`PlanError::Contradiction`] as [`cli::parse`].
pub fn workload(bundle: &Bundle) -> Result<Workload, PlanError> {
    let mut found: Vec<(&Pod, &Container)> = bundle
        .pods
        .iter()
        .flat_map(|p| p.containers.iter().map(move |c| (p, c)))
        .filter(|(_, c)| !matches!(c.kind, ContainerKind::Init | ContainerKind::Ephemeral))
        .collect();
    // Containers with a GPU first; the order of the text among equals.
    found.order_by_key(|(_, c)| gpus(c).is_none());
    let mut failed = None;
    for (pod, container) in found {
        match server(pod, container) {
            Ok(found) => return Ok(found),
            Err(e @ PlanError::Contradiction { .. }) => return Err(e),
            Err(e) => {
                failed.get_or_insert(e);
            }
        }
    }
    Err(failed.unwrap_or_else(|| PlanError::unsupported("the manifest contains no model server container")))
}

/// The server that one container starts.
///
/// # Errors
/// As [`cli::parse`].
pub fn server(pod: &Pod, container: &Container) -> Result<Workload, PlanError> {
    let image = Some(container.image.as_str()).filter(|i| !i.is_empty());
    cli::parse(&container.args, &container.env, image).map(|line| of(pod, container, line))
}

/// Device plugin resources that are GPUs, with how many, and the profile where they are MIG slices.
fn gpus(c: &Container) -> Option<(u64, Option<String>)> {
    c.devices.iter().find_map(|(name, n)| {
        let profile = name.strip_prefix("nvidia.com/mig-").map(|p| p.trim_end_matches(".shared").to_owned());
        let gpu = profile.is_some() || name.starts_with("nvidia.com/gpu") || name == "amd.com/gpu";
        gpu.then_some((*n, profile))
    })
}

fn of(pod: &Pod, c: &Container, mut line: CommandLine) -> Workload {
    line.host.pod = ask(pod, c);
    let mig = gpus(c).and_then(|(_, mig)| mig);
    Workload {
        name: format!("{} container {}", pod.full_name(), c.name),
        line,
        mig,
        card: card(pod),
        grouped: grouped(c),
    }
}

/// What LeaderWorkerSet sets in its pods, vLLM's script for several nodes, and Ray's own command.
fn grouped(c: &Container) -> bool {
    let joins = |t: &str| ["LWS_", "multi-node-serving", "ray start", "RAY_"].iter().any(|j| t.contains(j));
    c.args.iter().any(|a| joins(a)) || c.env.iter().any(|(name, value)| joins(name) || joins(value))
}

/// What a container of this pod has of memory, volumes and devices.
pub(super) fn ask(pod: &Pod, c: &Container) -> PodAsk {
    let mut shm = None;
    let mut memory_volumes = Vec::new();
    for (path, limit) in pod.memory_mounts(c) {
        if path == "/dev/shm" {
            shm = Some(limit);
        } else {
            memory_volumes.push((path.to_owned(), limit));
        }
    }
    PodAsk {
        limit: c.memory_limit.or(pod.memory_limit),
        request: c.memory_request,
        shm,
        memory_volumes,
        gpus: gpus(c).map(|(n, _)| n),
        known: true,
    }
}

/// The card that the pod's node selector or labels name.
pub(super) fn card(pod: &Pod) -> Option<String> {
    card_label(&pod.selector)
}

/// The card that labels name.
pub(super) fn card_label(labels: &[(String, String)]) -> Option<String> {
    CARD_LABELS.iter().find_map(|l| labels.iter().find(|(k, _)| k == l)).map(|(_, v)| v.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_base::units::{Bytes, GIB};
    use dualplane_core::evidence::RawFile;
    use dualplane_plan::Version;

    fn read(text: &str) -> Result<Workload, PlanError> {
        let file = RawFile::new("deploy.yaml", text);
        workload(&Bundle::from_files(vec![file]))
    }

    const DEPLOYMENT: &str = r#"apiVersion: v1
kind: Service
metadata: {name: llm}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: serving}
spec:
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
      containers:
      - name: proxy
        image: envoyproxy/envoy:v1.30.0
      - name: server
        image: vllm/vllm-openai:v0.11.2
        command: [/bin/sh, -c]
        args: ["vllm serve $MODEL --tensor-parallel-size 2 --max-model-len=8192"]
        env: [{name: MODEL, value: Qwen/Qwen3-8B}]
        resources: {limits: {memory: 32Gi, nvidia.com/mig-2g.20gb: 2}}
        volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: tmp, mountPath: /cache}]
      volumes:
      - {name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}
      - {name: tmp, emptyDir: {medium: Memory}}
"#;

    #[test]
    fn the_container_with_the_gpu_is_the_server() {
        let w = read(DEPLOYMENT).unwrap();
        assert_eq!(w.name, "serving/llm container server");
        assert_eq!(w.line.model.as_deref(), Some("Qwen/Qwen3-8B"));
        assert_eq!((w.line.launch.tp, w.line.launch.version), (2, Version(0, 11, 2)));
        assert_eq!((w.mig.as_deref(), w.card.as_deref()), (Some("2g.20gb"), Some("NVIDIA-A100-SXM4-80GB")));
        let pod = &w.line.host.pod;
        assert_eq!(
            (pod.limit, pod.gpus, pod.shm),
            (Some(Bytes(32 * GIB)), Some(2), Some(Some(Bytes(2 * GIB))))
        );
        assert_eq!(pod.memory_volumes, [("/cache".to_owned(), None)]);
    }

    #[test]
    fn a_group_of_leader_and_workers_and_no_server_at_all() {
        let lws = DEPLOYMENT
            .replace("apps/v1", "leaderworkerset.x-k8s.io/v1")
            .replace("kind: Deployment", "kind: LeaderWorkerSet")
            .replace("\n  template:", "\n  leaderWorkerTemplate: {workerTemplate: WORKER}")
            .replace("\n    spec:\n", "\n");
        let inner = DEPLOYMENT.split_once("  template:\n").unwrap().1;
        let lws = format!(
            "{}  leaderWorkerTemplate:\n    size: 2\n    workerTemplate:\n{}",
            lws.split_once("  leaderWorkerTemplate").unwrap().0,
            inner.lines().map(|l| format!("  {l}\n")).collect::<String>()
        );
        assert_eq!(read(&lws).unwrap().line.model.as_deref(), Some("Qwen/Qwen3-8B"), "{lws}");
        assert!(
            read("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: nginx}]}").is_err()
        );
        assert!(read("nothing").is_err());
    }
}
