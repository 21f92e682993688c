//! The engine and its models by the pod's spec, and what is worth asking the engine itself.

use serde_json::Value;

use super::link::{Attributes, Link};
use super::model::Model;
use super::pods;
use dualplane_base::json::{list, str_at};
use dualplane_base::order::Order as _;
use dualplane_base::{Confidence, Version};
use dualplane_engines::{Descriptor, Engines, Kind, command_line as cmd};
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
const MAX_PORTS: usize = 3;
/// What is asked where the engine is not known: what servers answer most.
const USUAL: [&str; 6] = ["v1/models", "version", "info", "props", "api/version", "v2"];
/// Port unless told otherwise: most servers'.
const USUAL_PORT: u64 = 8000;
/// Flags of the API's port, where the engine is not known.
const PORT_FLAGS: [&str; 2] = ["--port", "--http-port"];

/// An engine by its container's spec.
pub(super) struct Spec {
    head: &'static Descriptor,
    pub(super) attributes: Attributes,
    pub(super) models: Vec<Model>,
}

/// The engine as far as the pod's spec tells it, and its models; none where the container is no engine.
pub(super) fn of_spec(container: &Value) -> Option<Spec> {
    let image = str_at(container, "/image");
    let words = words(container);
    let env: Vec<(String, String)> = list(container, "/env")
        .iter()
        .map(|e| (str_at(e, "/name").to_owned(), str_at(e, "/value").to_owned()))
        .collect();
    let line = cli::parse(&words, &env, Some(image).filter(|i| !i.is_empty())).ok();
    let by_command = by_command(&words, &env);
    let by_image = Engines::embedded().by_image(image).map(|n| n.server);
    let head = by_command.or(by_image)?;
    let mut a = Attributes::default();
    let command = "command line in the pod's spec";
    // Arguments of an image that its engine takes speak for that engine as well.
    if by_command.is_some() || (line.is_some() && head.kind == Kind::Engine) {
        a.tell("engine", &head.name, command, Confidence::Medium);
    } else {
        a.tell("engine", &head.name, "name of the image", Confidence::Low);
    }
    if let Some(version) = Version::of_image(image) {
        a.tell("version", &version.to_string(), "tag of the image", Confidence::Medium);
    }
    let root = line.and_then(|l| l.model);
    let served = flag(&words, &["--served-model-name", "--alias"]);
    let models = served.or_else(|| root.clone()).map(|id| Model {
        root: root.filter(|r| *r != id),
        id: Link::new(&id, command, Confidence::Medium),
        max_len: None,
    });
    Some(Spec { head, attributes: a, models: models.into_iter().collect() })
}

/// Whether a container of a pod is a model server, by its command or its image.
#[must_use]
pub fn has_engine(pod: &Value) -> bool {
    pods::containers(pod).any(|c| {
        by_command(&words(c), &[]).is_some() || Engines::embedded().by_image(str_at(c, "/image")).is_some()
    })
}

fn by_command(words: &[String], env: &[(String, String)]) -> Option<&'static Descriptor> {
    let commands = cmd::split(words, env);
    commands.iter().find_map(|c| Some(Engines::embedded().by_command(c)?.0))
}

fn words(container: &Value) -> Vec<String> {
    let of = |key: &str| list(container, key).iter().filter_map(Value::as_str).map(str::to_owned);
    of("/command").chain(of("/args")).collect()
}

/// The value of a flag, also behind a shell.
fn flag(words: &[String], names: &[&str]) -> Option<String> {
    let given = cmd::flags(&cmd::split(words, &[]).concat(), &[]);
    cmd::value(&given, names).map(str::to_owned)
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
        let head = spec.as_ref().map(|s| s.head);
        let usual = head.and_then(|d| d.ports.first()).map_or(USUAL_PORT, |p| u64::from(*p));
        let paths = match head {
            Some(d) if !d.asks.is_empty() => d.asks.iter().map(String::as_str).collect(),
            _ => USUAL.to_vec(),
        };
        let flags = match head {
            Some(d) if !d.port_flags.is_empty() => d.port_flags.iter().map(String::as_str).collect(),
            _ => PORT_FLAGS.to_vec(),
        };
        let given = flag(&words(c), &flags).and_then(|p| p.parse().ok());
        let declared = list(c, "/ports").iter().filter_map(|p| p.get("containerPort")?.as_u64());
        let mut ports: Vec<u64> = match given {
            Some(port) => vec![port],
            None => declared.collect(),
        };
        if ports.is_empty() {
            ports.push(usual);
        }
        ports.retain(|p| (1..=65_535).contains(p));
        ports.order_by_key(|p| *p != usual);
        ports.dedup();
        for port in ports.into_iter().take(MAX_PORTS) {
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
