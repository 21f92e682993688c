//! What engines answer of themselves.
//!
//! Only named keys are taken out of an answer: SGLang's server info, for one, holds the API key.

use serde_json::Value;

use super::engine::Question;
use super::link::Link;
use super::model::{ContainerMap, Model};
use dualplane_base::Confidence;
use dualplane_base::json::{list, str_at, text_of};
use dualplane_core::evidence::metrics;
use dualplane_engines::{Answer, Engines};

/// Models of one answer that are kept: a server of many adapters lists them all.
const MAX_MODELS: usize = 64;

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
        "version" | "api/version" => heard.keep("/version", "version"),
        path => heard.answer(path),
    }
}

struct Heard<'a> {
    c: &'a mut ContainerMap,
    value: &'a Value,
    source: &'a str,
}

impl Heard<'_> {
    fn keep(&mut self, pointer: &str, name: &'static str) {
        if let Some(v) = self.value.pointer(pointer).filter(|v| !v.is_null() && !v.is_object()) {
            self.c.engine.tell(name, &text_of(v), self.source, Confidence::High);
        }
    }

    fn engine(&mut self, name: &str) {
        self.c.engine.tell("engine", name, self.source, Confidence::High);
    }

    fn model(&mut self, id: &str, root: &str, max_len: Option<u64>) {
        let told = self.c.models.iter().filter(|m| m.id.confidence == Confidence::High).count();
        if id.is_empty() || told >= MAX_MODELS {
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
        for m in list(self.value, "/data").iter().take(MAX_MODELS) {
            let owner = str_at(m, "/owned_by");
            let by = Engines::embedded().iter().find(|d| d.owned_by.iter().any(|o| o == owner));
            self.engine(by.map_or("", |d| &d.name));
            let max_len = m.get("max_model_len").and_then(Value::as_u64);
            self.model(str_at(m, "/id"), str_at(m, "/root"), max_len);
        }
    }

    /// An answer of a path that only some engines have: the first head that knows it.
    fn answer(&mut self, path: &str) {
        let heads = Engines::embedded().iter();
        let all = heads.flat_map(|d| d.answer.iter().filter(|a| a.path == path).map(move |a| (d, a)));
        for (d, a) in all {
            let Some(known) = self.value.pointer(&a.known_by) else { continue };
            let other = a.unless.as_ref().is_some_and(|p| self.value.pointer(p).is_some());
            if other || a.known_as.as_ref().is_some_and(|text| known.as_str() != Some(text)) {
                continue;
            }
            self.engine(&d.name);
            for (pointer, name) in &a.keep {
                self.keep(pointer, name);
            }
            match &a.list {
                Some(items) => {
                    for item in list(self.value, items).iter().take(MAX_MODELS) {
                        self.model_of(a, item);
                    }
                }
                None => self.model_of(a, self.value),
            }
            return;
        }
    }

    fn model_of(&mut self, a: &Answer, item: &Value) {
        let id = a.model.iter().map(|p| str_at(item, p)).find(|id| !id.is_empty()).unwrap_or_default();
        let root = a.root.as_ref().map_or("", |p| str_at(item, p));
        let max_len = a.max_len.as_ref().and_then(|p| item.pointer(p)?.as_u64());
        self.model(id, root, max_len);
    }
}

/// A series may carry an engine's settings as labels.
fn metrics_of(c: &mut ContainerMap, source: &str, body: &str) {
    let (samples, _) = metrics::parse(body, "metrics");
    let heads = Engines::embedded().iter();
    for (d, a) in heads.flat_map(|d| d.answer.iter().filter(|a| a.path == "metrics").map(move |a| (d, a))) {
        if samples.iter().any(|s| s.name.starts_with(&a.known_by)) {
            c.engine.tell("engine", &d.name, source, Confidence::High);
        }
        let Some(info) = samples.iter().find(|s| Some(&s.name) == a.series.as_ref()) else { continue };
        for (label, name) in &a.keep {
            let value = info.label(label).filter(|v| *v != "None").unwrap_or_default();
            c.engine.tell(name, value, source, Confidence::High);
        }
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
