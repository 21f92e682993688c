//! The engine and its models by the pod's spec, and what is worth asking the engine itself.

use serde_json::Value;

use super::model::Model;
use super::pods;
use super::told::{Attributes, Link};
use dualplane_base::Confidence;
use dualplane_base::json::{list, str_at};
use dualplane_plan::cli;

/// A request to an engine, through the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Container that listens.
    pub container: String,
    /// Port.
    pub port: u64,
    /// Path without its leading slash.
    pub path: &'static str,
}

/// What an engine answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Namespace of the pod.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// What was asked.
    pub question: Question,
    /// The body.
    pub body: String,
}

/// Ports of one container that are asked.
const MOST_PORTS: usize = 3;
/// Servers whose arithmetic is not planned, by a word of their image.
const OTHER_IMAGES: &[(&str, &str)] = &[("tritonserver", "Triton"), ("ollama", "Ollama")];

/// The engine as far as the pod's spec tells it, and its models; none where the container is no engine.
pub(super) fn of_spec(container: &Value) -> Option<(Attributes, Vec<Model>)> {
    let image = str_at(container, "/image");
    let words = words(container);
    let env: Vec<(String, String)> = list(container, "/env")
        .iter()
        .map(|e| (str_at(e, "/name").to_owned(), str_at(e, "/value").to_owned()))
        .collect();
    let line = cli::parse(&words, &env, Some(image).filter(|i| !i.is_empty())).ok();
    let other = OTHER_IMAGES.iter().find(|(word, _)| image.contains(word)).map(|(_, name)| *name);
    let by_image = other.map(str::to_owned).or_else(|| Some(cli::engine_of_image(image)?.to_string()));
    if line.is_none() && by_image.is_none() {
        return None;
    }
    let mut a = Attributes::default();
    let command = "command line in the pod's spec";
    match (&line, other) {
        (Some(l), None) => a.tell("engine", &l.launch.engine.to_string(), command, Confidence::Medium),
        _ => a.tell("engine", &by_image.unwrap_or_default(), "name of the image", Confidence::Low),
    }
    if let Some(version) = cli::image_version(image) {
        a.tell("version", &version.to_string(), "tag of the image", Confidence::Medium);
    }
    let root = line.and_then(|l| l.model);
    let served = flag(&words, &["--served-model-name", "--alias"]);
    let models = served.or_else(|| root.clone()).map(|id| Model {
        root: root.filter(|r| *r != id),
        id: Link::new(&id, command, Confidence::Medium),
        max_len: None,
    });
    Some((a, models.into_iter().collect()))
}

fn words(container: &Value) -> Vec<String> {
    let of = |key: &str| list(container, key).iter().filter_map(Value::as_str).map(str::to_owned);
    of("/command").chain(of("/args")).collect()
}

/// The value of a flag: `--port 8000` or `--port=8000`, also inside one word for a shell.
fn flag(words: &[String], names: &[&str]) -> Option<String> {
    let mut split = words.iter().flat_map(|w| w.split_whitespace());
    while let Some(word) = split.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        if names.contains(&name) {
            return value.or_else(|| split.next()).map(|v| v.trim_matches(['"', '\'']).to_owned());
        }
    }
    None
}

/// Port unless told otherwise, and what to ask there.
fn endpoints(engine: Option<&str>) -> (u64, &'static [&'static str]) {
    match engine {
        Some("vLLM") => (8000, &["version", "v1/models", "metrics"]),
        Some("SGLang") => (30000, &["server_info", "get_server_info", "v1/models"]),
        Some("TGI") => (80, &["info"]),
        Some("TensorRT-LLM") => (8000, &["version", "v1/models"]),
        Some("llama.cpp") => (8080, &["props", "v1/models"]),
        Some("Ollama") => (11434, &["api/version", "api/ps"]),
        Some("Triton") => (8000, &["v2"]),
        _ => (8000, &["v1/models", "version", "info", "props", "api/version", "v2"]),
    }
}

/// What is worth asking a pod's engines; nothing of a container that does not run, or is neither engine nor has a GPU.
#[must_use]
pub fn questions(pod: &Value) -> Vec<Question> {
    let mut out = Vec::new();
    for c in pods::containers(pod) {
        let name = str_at(c, "/name");
        let runs = pods::status(pod, name).is_some_and(|s| s.pointer("/state/running").is_some());
        let spec = of_spec(c);
        let gpu = !pods::limits(c).is_empty() || !list(c, "/resources/claims").is_empty();
        if !runs || (spec.is_none() && !gpu) {
            continue;
        }
        let (usual, paths) = endpoints(spec.as_ref().and_then(|(a, _)| a.value("engine")));
        let given = flag(&words(c), &["--port", "--http-port"]).and_then(|p| p.parse().ok());
        let declared = list(c, "/ports").iter().filter_map(|p| p.get("containerPort")?.as_u64());
        let mut ports: Vec<u64> = match given {
            Some(port) => vec![port],
            None => declared.collect(),
        };
        if ports.is_empty() {
            ports.push(usual);
        }
        ports.retain(|p| (1..=65_535).contains(p));
        ports.sort_by_key(|p| *p != usual);
        ports.dedup();
        for port in ports.into_iter().take(MOST_PORTS) {
            let of_port = paths.iter().map(|path| Question { container: name.to_owned(), port, path });
            out.extend(of_port);
        }
    }
    out
}

/// Whether the command line means one of the models that the engine answers with.
pub(super) fn is_served(spec: &Model, answered: &[&Model]) -> bool {
    let base = |t: &str| t.trim_end_matches('/').rsplit('/').next().unwrap_or(t).to_ascii_lowercase();
    let names: Vec<&str> = std::iter::once(spec.id.value.as_str()).chain(spec.root.as_deref()).collect();
    answered.iter().any(|m| {
        let answers = std::iter::once(m.id.value.as_str()).chain(m.root.as_deref());
        // A model of the hub is often served from a folder of the same name.
        answers.into_iter().any(|a| names.iter().any(|n| *n == a || base(n) == base(a)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_to_ask_whom() {
        let pod = |c: Value, state: &str| json!({"spec": {"containers": [c]}, "status": {"containerStatuses": [{"name": "c", "state": {state: {}}}]}});
        let vllm = json!({"name": "c", "image": "vllm/vllm-openai:v0.11.0", "args": ["--model", "a/b", "--port=9000"],
            "ports": [{"containerPort": 22}]});
        let of = |p: &Value| questions(p).into_iter().map(|q| (q.port, q.path)).collect::<Vec<_>>();
        assert_eq!(
            of(&pod(vllm.clone(), "running")),
            [(9000, "version"), (9000, "v1/models"), (9000, "metrics")]
        );
        assert!(of(&pod(vllm, "terminated")).is_empty());
        assert!(of(&pod(json!({"name": "c", "image": "nginx"}), "running")).is_empty());
        let unknown = json!({"name": "c", "image": "x", "resources": {"limits": {"amd.com/gpu": 1}}});
        assert_eq!(of(&pod(unknown, "running")).len(), 6);
    }

    #[test]
    fn a_folder_serves_the_model_of_its_name() {
        let model = |id: &str| Model { id: Link::new(id, "s", Confidence::High), root: None, max_len: None };
        assert!(is_served(&model("Qwen/Qwen3-32B"), &[&model("/models/qwen3-32b/")]));
        assert!(!is_served(&model("Qwen/Qwen3-32B"), &[&model("meta/Llama-3")]));
    }
}
