//! The engine and its models: what it answers itself, and without an answer its command line and image.
//!
//! Only named keys are taken out of an answer: SGLang's server info, for one, holds the API key.

use serde_json::Value;

use super::model::{ContainerMap, Model};
use super::pods;
use super::told::{Attributes, Link};
use crate::evidence::kube::{list, str_at, text_of};
use crate::evidence::metrics;
use crate::plan::{EngineKind, cli};
use crate::verdict::Confidence;

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
/// Models of one answer that are kept: a server of many adapters lists them all.
const MOST_MODELS: usize = 64;
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

/// Adds what an engine answered.
pub(super) fn hear(c: &mut ContainerMap, question: &Question, body: &str) {
    let source = format!("engine's /{} on port {}", question.path, question.port);
    if question.path == "metrics" {
        return metrics_of(c, &source, body);
    }
    let Ok(value) = serde_json::from_str::<Value>(body) else { return };
    let mut heard = Heard { c, value: &value, source: &source };
    match question.path {
        "v1/models" => heard.models(),
        "version" | "api/version" => heard.keep(&[("/version", "version")]),
        "server_info" | "get_server_info" => heard.sglang(),
        "info" => heard.tgi(),
        "props" => heard.llama_cpp(),
        "api/ps" => heard.ollama(),
        "v2" => heard.triton(),
        _ => {}
    }
}

struct Heard<'a> {
    c: &'a mut ContainerMap,
    value: &'a Value,
    source: &'a str,
}

impl Heard<'_> {
    fn keep(&mut self, keys: &[(&str, &'static str)]) {
        for (pointer, name) in keys {
            if let Some(v) = self.value.pointer(pointer).filter(|v| !v.is_null() && !v.is_object()) {
                self.c.engine.tell(name, &text_of(v), self.source, Confidence::High);
            }
        }
    }

    fn engine(&mut self, name: &str) {
        self.c.engine.tell("engine", name, self.source, Confidence::High);
    }

    fn model(&mut self, id: &str, root: &str, max_len: Option<u64>) {
        let told = self.c.models.iter().filter(|m| m.id.confidence == Confidence::High).count();
        if id.is_empty() || told >= MOST_MODELS {
            return;
        }
        let root = (!root.is_empty() && root != id).then(|| crate::text::shorten(root, 300).into_owned());
        match self.c.models.iter_mut().find(|m| m.id.value == id && m.id.confidence == Confidence::High) {
            Some(known) => {
                known.root = known.root.take().or(root);
                known.max_len = known.max_len.or(max_len);
            }
            None => {
                let id = Link::new(id, self.source, Confidence::High);
                self.c.models.push(Model { id, root, max_len });
            }
        }
    }

    fn models(&mut self) {
        for m in list(self.value, "/data").iter().take(MOST_MODELS) {
            let by = match str_at(m, "/owned_by") {
                "vllm" => "vLLM",
                "sglang" => "SGLang",
                "llamacpp" => "llama.cpp",
                "tensorrt_llm" => "TensorRT-LLM",
                "library" => "Ollama",
                _ => "",
            };
            self.engine(by);
            let max_len = m.get("max_model_len").and_then(Value::as_u64);
            self.model(str_at(m, "/id"), str_at(m, "/root"), max_len);
        }
    }

    fn sglang(&mut self) {
        if self.value.get("model_path").is_none() {
            return;
        }
        self.engine("SGLang");
        self.keep(&[
            ("/version", "version"),
            ("/tp_size", "tensor parallel"),
            ("/mem_fraction_static", "mem_fraction_static"),
            ("/max_total_num_tokens", "KV cache tokens"),
            ("/kv_cache_dtype", "KV cache dtype"),
            ("/context_length", "context length"),
        ]);
        let root = str_at(self.value, "/model_path");
        let served = str_at(self.value, "/served_model_name");
        self.model(if served.is_empty() { root } else { served }, root, None);
    }

    fn tgi(&mut self) {
        if self.value.get("model_id").is_none() {
            return;
        }
        self.engine("TGI");
        self.keep(&[
            ("/version", "version"),
            ("/max_total_tokens", "max_total_tokens"),
            ("/max_concurrent_requests", "max_concurrent_requests"),
        ]);
        let max_len = self.value.get("max_total_tokens").and_then(Value::as_u64);
        self.model(str_at(self.value, "/model_id"), "", max_len);
    }

    fn llama_cpp(&mut self) {
        if self.value.get("default_generation_settings").is_none() {
            return;
        }
        self.engine("llama.cpp");
        self.keep(&[
            ("/build_info", "build"),
            ("/total_slots", "slots"),
            ("/default_generation_settings/n_ctx", "context of a slot"),
        ]);
        let root = str_at(self.value, "/model_path");
        let alias = str_at(self.value, "/model_alias");
        self.model(if alias.is_empty() { root } else { alias }, root, None);
    }

    fn ollama(&mut self) {
        self.engine("Ollama");
        for m in list(self.value, "/models").iter().take(MOST_MODELS) {
            let max_len = m.get("context_length").and_then(Value::as_u64);
            self.model(str_at(m, "/name"), "", max_len);
        }
    }

    fn triton(&mut self) {
        if str_at(self.value, "/name") == "triton" {
            self.engine("Triton");
            self.keep(&[("/version", "version")]);
        }
    }
}

/// `vllm:cache_config_info` carries the cache's settings as labels.
fn metrics_of(c: &mut ContainerMap, source: &str, body: &str) {
    let (samples, _) = metrics::parse(body, "metrics");
    if samples.iter().any(|s| s.name.starts_with("vllm:")) {
        c.engine.tell("engine", "vLLM", source, Confidence::High);
    }
    let Some(info) = samples.iter().find(|s| s.name == "vllm:cache_config_info") else { return };
    for (label, name) in [
        ("gpu_memory_utilization", "gpu_memory_utilization"),
        ("num_gpu_blocks", "KV cache blocks"),
        ("block_size", "tokens of a block"),
        ("kv_cache_size_tokens", "KV cache tokens"),
        ("cache_dtype", "KV cache dtype"),
    ] {
        let value = info.label(label).filter(|v| *v != "None").unwrap_or_default();
        c.engine.tell(name, value, source, Confidence::High);
    }
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

/// Names of the plan's engines stand in `endpoints`; a new one must not be forgotten there.
const _: fn(EngineKind) -> bool = |e| match e {
    EngineKind::Vllm
    | EngineKind::Sglang
    | EngineKind::Tgi
    | EngineKind::TensorrtLlm
    | EngineKind::LlamaCpp => true,
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn heard(path: &'static str, body: &Value) -> ContainerMap {
        let mut c = ContainerMap::default();
        hear(&mut c, &Question { container: "c".into(), port: 8000, path }, &body.to_string());
        c
    }

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
    fn answers_of_engines() {
        let c = heard(
            "v1/models",
            &json!({"data": [{"id": "qwen", "root": "Qwen/Qwen3-32B",
            "max_model_len": 8192, "owned_by": "vllm"}]}),
        );
        assert_eq!(c.engine.value("engine"), Some("vLLM"));
        assert_eq!((c.models[0].root.as_deref(), c.models[0].max_len), (Some("Qwen/Qwen3-32B"), Some(8192)));
        let c = heard(
            "server_info",
            &json!({"model_path": "/m", "version": "0.5.8", "api_key": "s3cret", "tp_size": 2}),
        );
        assert_eq!(c.engine.value("tensor parallel"), Some("2"));
        assert!(!format!("{c:?}").contains("s3cret"));
        let c =
            heard("props", &json!({"default_generation_settings": {"n_ctx": 4096}, "model_path": "/m.gguf"}));
        assert_eq!((c.engine.value("context of a slot"), c.models.len()), (Some("4096"), 1));
        let c = heard("api/ps", &json!({"models": [{"name": "llama3:8b", "context_length": 8192}]}));
        assert_eq!(c.models[0].id.value, "llama3:8b");
        let c = heard("info", &json!({"detail": "Not Found"}));
        assert!(c.engine.is_empty() && c.models.is_empty());
    }

    #[test]
    fn a_folder_serves_the_model_of_its_name() {
        let model = |id: &str| Model { id: Link::new(id, "s", Confidence::High), root: None, max_len: None };
        assert!(is_served(&model("Qwen/Qwen3-32B"), &[&model("/models/qwen3-32b/")]));
        assert!(!is_served(&model("Qwen/Qwen3-32B"), &[&model("meta/Llama-3")]));
    }
}
