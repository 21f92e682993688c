//! An object with the places in it where pods are described.

use dualplane_base::json::{list, str_at};
use serde_json::Value;

use crate::finding::Source;

/// Kinds that a compose file and Triton's configuration of a model get: they have none of their own.
pub(crate) const COMPOSE: &str = "Compose";
pub(crate) const TRITON: &str = "TritonModel";

/// Kinds with pods in them, and where; `*` stands for each item of a list. [`PODS`] says the same to an API server.
const WHERE: &[(&str, &[&str])] = &[
    ("Pod", &["/spec"]),
    ("PodTemplate", &["/template/spec"]),
    ("Deployment", &["/spec/template/spec"]),
    ("StatefulSet", &["/spec/template/spec"]),
    ("DaemonSet", &["/spec/template/spec"]),
    ("ReplicaSet", &["/spec/template/spec"]),
    ("Job", &["/spec/template/spec"]),
    ("CronJob", &["/spec/jobTemplate/spec/template/spec"]),
    ("Rollout", &["/spec/template/spec"]),
    (
        "LeaderWorkerSet",
        &["/spec/leaderWorkerTemplate/workerTemplate/spec", "/spec/leaderWorkerTemplate/leaderTemplate/spec"],
    ),
    ("InferenceService", &["/spec/predictor", "/spec/predictor/workerSpec"]),
    (
        "LLMInferenceService",
        &["/spec/template", "/spec/worker", "/spec/prefill/template", "/spec/prefill/worker"],
    ),
    ("RayCluster", &["/spec/headGroupSpec/template/spec", "/spec/workerGroupSpecs/*/template/spec"]),
    (
        "RayService",
        &[
            "/spec/rayClusterConfig/headGroupSpec/template/spec",
            "/spec/rayClusterConfig/workerGroupSpecs/*/template/spec",
        ],
    ),
];

/// Pods of an object as an API server's CEL finds them.
pub(crate) const PODS: &str = "\
object.kind == 'Pod' ? [object.spec] : \
object.kind == 'PodTemplate' ? [object.template.spec] : \
object.kind == 'CronJob' ? [object.spec.jobTemplate.spec.template.spec] : \
object.kind == 'LeaderWorkerSet' ? [object.spec.leaderWorkerTemplate.workerTemplate.spec] + \
(has(object.spec.leaderWorkerTemplate.leaderTemplate) ? [object.spec.leaderWorkerTemplate.leaderTemplate.spec] : []) : \
object.kind == 'InferenceService' ? ([object.spec.predictor] + \
(has(object.spec.predictor.workerSpec) ? [object.spec.predictor.workerSpec] : [])).filter(p, has(p.containers)) : \
object.kind == 'LLMInferenceService' ? \
((has(object.spec.template) ? [object.spec.template] : []) + (has(object.spec.worker) ? [object.spec.worker] : []) + \
(has(object.spec.prefill) && has(object.spec.prefill.template) ? [object.spec.prefill.template] : []) + \
(has(object.spec.prefill) && has(object.spec.prefill.worker) ? [object.spec.prefill.worker] : []))\
.filter(p, has(p.containers)) : \
object.kind == 'RayCluster' ? [object.spec.headGroupSpec.template.spec] + \
(has(object.spec.workerGroupSpecs) ? object.spec.workerGroupSpecs.map(g, g.template.spec) : []) : \
object.kind == 'RayService' ? [object.spec.rayClusterConfig.headGroupSpec.template.spec] + \
(has(object.spec.rayClusterConfig.workerGroupSpecs) ? object.spec.rayClusterConfig.workerGroupSpecs.map(g, g.template.spec) : []) : \
[object.spec.template.spec]";

/// Kinds without pods that rules look at.
const OTHERS: &[&str] = &[
    "HorizontalPodAutoscaler",
    "ScaledObject",
    "VerticalPodAutoscaler",
    "PodDisruptionBudget",
    "PodMonitor",
    COMPOSE,
    TRITON,
];

/// Whether any rule may look at such an object.
pub(crate) fn is_of_interest(kind: &str) -> bool {
    WHERE.iter().any(|(k, _)| *k == kind) || OTHERS.contains(&kind)
}

/// Whether a workload that is judged itself owns an object, so that the object is told of with it. A pod of a node's folder
/// runs whatever is said of it. What KServe makes of its kinds is judged, because most of it stands in none of them; so is
/// what an operator's own kind owns, at which nobody looks.
pub(crate) fn is_owned(value: &Value) -> bool {
    list(value, "/metadata/ownerReferences").iter().any(|o| owners().any(|k| k == str_at(o, "/kind")))
}

/// [`is_owned`] as CEL over `object`.
pub(crate) fn not_owned() -> String {
    let kinds: Vec<String> = owners().map(|k| format!("'{k}'")).collect();
    format!(
        "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, o.kind in [{}])",
        kinds.join(", ")
    )
}

fn owners() -> impl Iterator<Item = &'static str> {
    kinds_with_pods().filter(|k| !k.ends_with("InferenceService")).chain(["ScaledObject", "Node"])
}

/// Kinds with pods.
pub(crate) fn kinds_with_pods() -> impl Iterator<Item = &'static str> {
    WHERE.iter().map(|(k, _)| *k)
}

/// An object.
#[derive(Debug, Clone)]
pub struct Object {
    /// All of it.
    pub value: Value,
    /// Where it stands.
    pub source: Source,
    /// Its place in the document: an item of a list, else empty.
    pub pointer: String,
    /// Kind.
    pub kind: String,
    /// Namespace, where it names one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A pod's specification in an object.
#[derive(Debug, Clone)]
pub struct Pods<'a> {
    /// Pointer to it.
    pub pointer: String,
    /// It.
    pub spec: &'a Value,
}

impl Object {
    /// An object of a value.
    #[must_use]
    pub fn new(value: Value, source: Source) -> Self {
        let kind = str_at(&value, "/kind").to_owned();
        let namespace = str_at(&value, "/metadata/namespace").to_owned();
        let mut name = str_at(&value, "/metadata/name").to_owned();
        if name.is_empty() {
            name = str_at(&value, "/metadata/generateName").to_owned();
        }
        Self { value, source, pointer: String::new(), kind, namespace, name }
    }

    /// `kind namespace/name`, to look it up by.
    #[must_use]
    pub fn is(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.kind == kind && self.namespace == namespace && self.name == name
    }

    /// The pods that it describes.
    #[must_use]
    pub fn pods(&self) -> Vec<Pods<'_>> {
        let places = WHERE.iter().find(|(k, _)| *k == self.kind).map_or(&[][..], |(_, p)| p);
        let mut out = Vec::new();
        for place in places {
            match place.split_once("/*") {
                None => out.extend(self.pod_at((*place).to_owned())),
                Some((list, rest)) => {
                    let count = self.value.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
                    out.extend((0..count).filter_map(|i| self.pod_at(format!("{list}/{i}{rest}"))));
                }
            }
        }
        out
    }

    fn pod_at(&self, pointer: String) -> Option<Pods<'_>> {
        let spec = self.value.pointer(&pointer)?;
        spec.get("containers").is_some_and(Value::is_array).then_some(Pods { pointer, spec })
    }

    /// Replicas that it asks for: 1 where it does not say.
    #[must_use]
    pub fn replicas(&self) -> u64 {
        self.value.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
    }
}

/// Containers of a pod with their pointers; `initContainers` and the like are none.
pub(crate) fn containers<'a>(pod: &Pods<'a>) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    items(pod, "containers")
}

/// Volumes of a pod with their pointers.
pub(crate) fn volumes<'a>(pod: &Pods<'a>) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    items(pod, "volumes")
}

fn items<'a>(pod: &Pods<'a>, key: &str) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    let at = format!("{}/{key}", pod.pointer);
    let all = pod.spec.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().enumerate();
    all.filter(|(_, v)| v.is_object()).map(move |(i, v)| (format!("{at}/{i}"), v))
}
