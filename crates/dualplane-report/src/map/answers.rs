//! What engines answer of themselves.
//!
//! Only named keys are taken out of an answer: SGLang's server info, for one, holds the API key.

use serde_json::Value;

use super::engine::Question;
use super::model::{ContainerMap, Model};
use super::told::Link;
use dualplane_base::Confidence;
use dualplane_base::json::{list, str_at, text_of};
use dualplane_core::evidence::metrics;

/// Models of one answer that are kept: a server of many adapters lists them all.
const MOST_MODELS: usize = 64;

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
        let root =
            (!root.is_empty() && root != id).then(|| dualplane_base::text::shorten(root, 300).into_owned());
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
}
