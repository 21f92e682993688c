//! Whole objects to apply: a Deployment, a StatefulSet with a volume for the weights, a LeaderWorkerSet over several pods.

use std::fmt::Write as _;

use super::emit::{cpus, device, flag, list, quoted, served, word};
use crate::Answer;
use dualplane_base::units::{Bytes, GIB};

/// Bytes a second that a first load reads at least: a download, or a network volume.
const SLOW_READ: u64 = 200_000_000;
/// Seconds for imports, compiling, the profile run and graphs.
const AROUND_LOADING: u64 = 300;
const PROBE_PERIOD: u64 = 10;
/// Where the hub's files are kept in the engine's image.
const CACHE: &str = "/root/.cache/huggingface";

/// What a pod is in its group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Alone,
    Leader,
    Worker,
}

/// A Deployment of one pod, with probes from the time that loading takes.
pub(super) fn deployment(a: &Answer) -> String {
    let name = object_name(&served(a));
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels: {{app: {name}}}\nspec:\n  replicas: 1\n  \
         # The old pod gives its GPUs back before the new one asks for them.\n  strategy: {{type: Recreate}}\n  selector:\n    \
         matchLabels: {{app: {name}}}\n  template:\n    metadata:\n      labels: {{app: {name}}}\n    spec:\n{}",
        indented(&pod(a, Role::Alone, false), 6)
    )
}

/// A StatefulSet of one pod, whose volume keeps the weights over restarts.
pub(super) fn stateful_set(a: &Answer) -> String {
    let name = object_name(&served(a));
    // Checkpoints are a little larger than what is loaded of them, and a download is written beside the old one.
    let storage = (weights(a) / GIB * 6 / 5 + 7).div_ceil(5) * 5;
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  clusterIP: None\n  selector: {{app: {name}}}\n  ports:\n    \
         - {{name: http, port: 8000}}\n---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: {name}\n  \
         labels: {{app: {name}}}\nspec:\n  serviceName: {name}\n  replicas: 1\n  selector:\n    matchLabels: {{app: {name}}}\n  \
         template:\n    metadata:\n      labels: {{app: {name}}}\n    spec:\n{}  volumeClaimTemplates:\n    - metadata: {{name: weights}}\n      \
         spec:\n        accessModes: [ReadWriteOnce]\n        resources:\n          requests: {{storage: {storage}Gi}}\n",
        indented(&pod(a, Role::Alone, true), 6)
    )
}

/// A LeaderWorkerSet: the pods of one engine start, and start again, together.
pub(super) fn group(a: &Answer) -> String {
    let name = object_name(&served(a));
    let mut out = format!(
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: {name}\n  labels: {{app: {name}}}\nspec:\n  \
         replicas: 1\n  leaderWorkerTemplate:\n    size: {}\n    restartPolicy: RecreateGroupOnPodRestart\n",
        a.line.pods()
    );
    for (key, role) in [("leaderTemplate", Role::Leader), ("workerTemplate", Role::Worker)] {
        let _ = write!(
            out,
            "    {key}:\n      metadata:\n        labels: {{app: {name}}}\n      spec:\n{}",
            indented(&pod(a, role, false), 8)
        );
    }
    out
}

/// Weights of one pod.
fn weights(a: &Answer) -> u64 {
    a.plan.as_ref().map_or(0, |p| p.gpu.weights_bytes.expected).saturating_mul(a.gpus_of_pod())
}

/// The specification of a pod, at the left margin.
fn pod(a: &Answer, role: Role, keeps_weights: bool) -> String {
    let mut out = String::new();
    if a.gpu.device_name.starts_with("NVIDIA") {
        let product = a.gpu.device_name.split(" MIG ").next().unwrap_or_default().replace(' ', "-");
        let _ = writeln!(
            out,
            "nodeSelector: {{nvidia.com/gpu.product: {product}}}  # label of GPU feature discovery"
        );
    }
    let _ = write!(
        out,
        "tolerations:\n  - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}\nterminationGracePeriodSeconds: 60\ncontainers:\n  \
         - name: server\n    image: vllm/vllm-openai:v{}\n{}",
        a.line.launch.version,
        indented(&command(a, role), 4)
    );
    if role != Role::Worker {
        out.push_str(&indented(&probes(a), 4));
    }
    let (cpu, most) = cpus(a);
    let (device, gpus) = (device(a), a.gpus_of_pod());
    let h = &a.host;
    let _ = write!(
        out,
        "    resources:\n      requests: {{cpu: \"{cpu}\", memory: {}Gi, {device}: \"{gpus}\"}}\n      limits: {{cpu: \"{most}\", memory: \
         {}Gi, {device}: \"{gpus}\"}}\n",
        h.request_bytes / GIB,
        h.limit_bytes / GIB,
    );
    let shm = h.shm_size_bytes / GIB;
    if shm > 0 || keeps_weights {
        out.push_str("    volumeMounts:\n");
    }
    if shm > 0 {
        out.push_str("      - {name: shm, mountPath: /dev/shm}\n");
    }
    if keeps_weights {
        let _ = writeln!(out, "      - {{name: weights, mountPath: {CACHE}}}");
    }
    if shm > 0 {
        let _ =
            writeln!(out, "volumes:\n  - name: shm\n    emptyDir: {{medium: Memory, sizeLimit: {shm}Gi}}");
    }
    out
}

/// The engine's command. In a group a shell reads what the group's controller sets in each pod.
fn command(a: &Answer, role: Role) -> String {
    let model = served(a);
    if role == Role::Alone {
        let mut out = format!("command: [vllm, serve, {}]\nargs:\n", quoted(&model));
        for (name, value) in list(a) {
            let _ = writeln!(out, "  - {}", quoted(&flag(name, &value)));
        }
        return out;
    }
    let mut words = vec!["exec vllm serve".to_owned(), word(&model)];
    words.extend(list(a).iter().map(|(name, value)| word(&flag(name, value))));
    match a.line.host.local_copies.filter(|n| *n < a.line.launch.dp) {
        Some(copies) => {
            words.push("--data-parallel-address=$LWS_LEADER_ADDRESS --data-parallel-rpc-port=13345".into());
            if role == Role::Worker {
                words.push(format!("--headless --data-parallel-start-rank=$((LWS_WORKER_INDEX * {copies}))"));
            }
        }
        None => {
            words.push("--node-rank=$LWS_WORKER_INDEX --master-addr=$LWS_LEADER_ADDRESS".into());
            if role == Role::Worker {
                words.push("--headless".into());
            }
        }
    }
    format!("command: [sh, -c]\nargs:\n  - {}\n", quoted(&words.join(" ")))
}

fn probes(a: &Answer) -> String {
    let weights = weights(a);
    let seconds = weights / SLOW_READ + AROUND_LOADING;
    let probe = "httpGet: {path: /health, port: http}";
    format!(
        "ports:\n  - {{name: http, containerPort: 8000}}\nstartupProbe:\n  {probe}\n  periodSeconds: {PROBE_PERIOD}\n  failureThreshold: {}  \
         # {} at 200 MB/s and {AROUND_LOADING} s around it: {seconds} s\nreadinessProbe:\n  {probe}\n  periodSeconds: {PROBE_PERIOD}\n  \
         timeoutSeconds: 5\nlivenessProbe:\n  {probe}\n  periodSeconds: {PROBE_PERIOD}\n  timeoutSeconds: 10\n  failureThreshold: 6\n",
        seconds.div_ceil(PROBE_PERIOD),
        Bytes(weights)
    )
}

fn indented(text: &str, by: usize) -> String {
    text.lines().map(|l| format!("{:by$}{l}\n", "")).collect()
}

/// A name that Kubernetes takes.
fn object_name(model: &str) -> String {
    let last = model.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(53)
        .collect();
    let name = name.trim_matches('-');
    // A label's value and a Service's name begin with a letter.
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.to_owned()
    } else {
        format!("llm-{name}").trim_matches('-').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_kubernetes_takes() {
        assert_eq!(object_name("01-ai/Yi_1.5"), "yi-1-5");
        assert_eq!(object_name("/models/7B"), "llm-7b");
    }
}
