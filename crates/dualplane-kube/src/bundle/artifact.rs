//! Which version of which model a container served: what its command asks for, what its log says was loaded, the image that
//! ran it, and the volume that the files lie on. Read from the files of a bundle, which are masked.

use std::collections::BTreeSet;

use dualplane_core::evidence::RawFile;
use dualplane_engines::command_line as cmd;
use serde::Serialize;
use serde_json::Value;

use crate::find::text;

/// Snapshots of one container that are told: a draft model and adapters have their own.
const MAX_SNAPSHOTS: usize = 8;
/// Characters of a name or a path.
const MAX_TEXT: usize = 512;
/// Flags of the engines that name the model, and those that name its version.
const MODEL: [&str; 6] = ["--model", "--model-path", "--model-id", "--model-tag", "-m", "--hf-repo"];
const REVISION: [&str; 3] = ["--revision", "--code-revision", "--tokenizer-revision"];

/// What one container served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ModelArtifact {
    /// Container.
    pub container: String,
    /// Name or path, as the command has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Branch, tag or commit that the command asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What was loaded from a Hugging Face cache, `ORGANISATION/NAME@COMMIT`, as paths in the log have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<String>,
    /// The volume below which the model's path lies: `persistentVolumeClaim llm-weights at /models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Image as the pod names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image with the digest that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
}

/// Those of the containers of which anything is known, by the pod and the logs among the files.
#[must_use]
pub fn of_files(files: &[RawFile]) -> Vec<ModelArtifact> {
    let pod = files.iter().find(|f| f.name == "pod.json").and_then(|f| serde_json::from_slice(&f.bytes).ok());
    let Some(pod): Option<Value> = pod else { return Vec::new() };
    list(&pod, "/spec/containers")
        .map(|c| of_container(&pod, c, files))
        .filter(|a| a.is_of_a_model())
        .collect()
}

impl ModelArtifact {
    /// A proxy beside the server has an image, too.
    fn is_of_a_model(&self) -> bool {
        self.model.is_some() || self.revision.is_some() || !self.snapshots.is_empty()
    }
}

fn list<'v>(object: &'v Value, at: &str) -> impl Iterator<Item = &'v Value> {
    object.pointer(at).and_then(Value::as_array).into_iter().flatten()
}

fn of_container(pod: &Value, container: &Value, files: &[RawFile]) -> ModelArtifact {
    let name = text(container, "/name");
    let words: Vec<String> = list(container, "/command")
        .chain(list(container, "/args"))
        .filter_map(|w| w.as_str().map(ToOwned::to_owned))
        .collect();
    // A script is one word of the list.
    let words = cmd::split(&words, &[]).concat();
    let model = flag(&words, &MODEL).or_else(|| served(&words));
    let status = list(pod, "/status/containerStatuses").find(|s| text(s, "/name") == name);
    let of_status = |at| status.map(|s| text(s, at)).filter(|t| !t.is_empty());
    ModelArtifact {
        revision: flag(&words, &REVISION),
        snapshots: snapshots(files, &name),
        volume: model.as_deref().and_then(|m| volume(pod, container, m)),
        image: Some(text(container, "/image")).filter(|i| !i.is_empty()).or_else(|| of_status("/image")),
        image_id: of_status("/imageID"),
        model,
        container: name,
    }
}

/// The value of the first of these flags that is there, `--flag VALUE` or `--flag=VALUE`. Behind Python, `-m` names a module.
fn flag(words: &[String], names: &[&str]) -> Option<String> {
    let value = |name: &str| {
        words.iter().enumerate().find_map(|(i, word)| {
            let own = word.strip_prefix(name)?;
            let before = i.checked_sub(1).and_then(|b| words.get(b));
            if name == "-m" && before.is_some_and(|b| b.contains("python")) {
                return None;
            }
            if own.is_empty() { words.get(i + 1).cloned() } else { own.strip_prefix('=').map(str::to_owned) }
        })
    };
    names.iter().find_map(|n| value(n)).and_then(|v| short(&v))
}

/// `vllm serve MODEL`.
fn served(words: &[String]) -> Option<String> {
    let at = words.iter().position(|w| w == "serve")?;
    words.get(at + 1).filter(|w| !w.starts_with('-')).and_then(|w| short(w))
}

fn short(word: &str) -> Option<String> {
    let word = word.trim_matches(['"', '\'']);
    (!word.is_empty() && !word.starts_with('-') && word.len() <= MAX_TEXT).then(|| word.to_owned())
}

/// `…/models--ORGANISATION--NAME/snapshots/COMMIT/…` in the container's logs.
fn snapshots(files: &[RawFile], container: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let prefix = format!("logs/{container}.");
    for log in files.iter().filter(|f| f.name.starts_with(&prefix)) {
        let log = String::from_utf8_lossy(&log.bytes);
        let mut parts = log.split("/snapshots/");
        let mut before = parts.next().unwrap_or_default();
        for after in parts {
            let commit: String = after.chars().take_while(char::is_ascii_hexdigit).take(64).collect();
            let folder = before.rsplit('/').next().unwrap_or_default();
            if let Some(name) = folder.strip_prefix("models--").filter(|n| n.len() <= MAX_TEXT)
                && commit.len() >= 7
                && found.len() < MAX_SNAPSHOTS
            {
                found.insert(format!("{}@{commit}", name.replacen("--", "/", 1)));
            }
            before = after;
        }
    }
    found.into_iter().collect()
}

/// The volume with the longest mount path above a path.
fn volume(pod: &Value, container: &Value, path: &str) -> Option<String> {
    let above = |m: &&Value| {
        let at = text(m, "/mountPath");
        let at = at.trim_end_matches('/');
        !at.is_empty() && path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mount = list(container, "/volumeMounts").filter(above).max_by_key(|m| text(m, "/mountPath").len())?;
    let volume = list(pod, "/spec/volumes").find(|v| text(v, "/name") == text(mount, "/name"))?;
    let (kind, source) = volume.as_object()?.iter().find(|(k, _)| *k != "name")?;
    let which = ["/claimName", "/path", "/reference", "/driver", "/name"];
    let which = which.iter().map(|at| text(source, at)).find(|w| !w.is_empty()).unwrap_or_default();
    Some(format!("{kind} {which} at {}", text(mount, "/mountPath")).replace("  ", " "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn files(container: &Value, volumes: &Value, log: &str) -> Vec<RawFile> {
        let pod = json!({
            "spec": {"containers": [container, {"name": "proxy", "image": "envoy:1"}], "volumes": volumes},
            "status": {"containerStatuses": [{"name": "vllm", "imageID": "docker.io/vllm/vllm-openai@sha256:abc"}]},
        });
        vec![
            RawFile::new("pod.json", pod.to_string()),
            RawFile::new("logs/vllm.previous.log", log.to_owned()),
        ]
    }

    #[test]
    fn a_hub_model_has_its_revision_its_snapshot_and_its_image() {
        let c = json!({"name": "vllm", "image": "vllm/vllm-openai:v0.11.0",
            "command": ["vllm", "serve", "Qwen/Qwen3-32B"], "args": ["--revision=main", "--max-model-len", "8192"]});
        let log = "INFO loading /root/.cache/huggingface/hub/models--Qwen--Qwen3-32B/snapshots/9216db5781bf21249d130ec9da846c4624c16137/config.json\n\
            again /hub/models--Qwen--Qwen3-32B/snapshots/9216db5781bf21249d130ec9da846c4624c16137\nno /data/snapshots/2026\n";
        let all = of_files(&files(&c, &json!([]), log));
        assert_eq!(all.len(), 1, "the proxy serves no model: {all:?}");
        let a = &all[0];
        assert_eq!((a.model.as_deref(), a.revision.as_deref()), (Some("Qwen/Qwen3-32B"), Some("main")));
        assert_eq!(a.snapshots, ["Qwen/Qwen3-32B@9216db5781bf21249d130ec9da846c4624c16137"]);
        assert_eq!(a.image_id.as_deref(), Some("docker.io/vllm/vllm-openai@sha256:abc"));
        assert_eq!((a.image.as_deref(), a.volume.as_deref()), (Some("vllm/vllm-openai:v0.11.0"), None));
    }

    #[test]
    fn a_path_leads_to_its_volume_also_out_of_a_script() {
        let c = json!({"name": "vllm", "command": ["sh", "-c", "exec python3 -m sglang.launch_server --model-path /models/llama/8b --port 80"],
            "volumeMounts": [{"name": "all", "mountPath": "/"}, {"name": "weights", "mountPath": "/models/llama"},
                             {"name": "other", "mountPath": "/models/ll"}]});
        let volumes = json!([{"name": "weights", "persistentVolumeClaim": {"claimName": "llm-weights", "readOnly": true}},
            {"name": "all", "emptyDir": {}}, {"name": "other", "hostPath": {"path": "/x"}}]);
        let a = of_files(&files(&c, &volumes, "")).remove(0);
        assert_eq!(a.volume.as_deref(), Some("persistentVolumeClaim llm-weights at /models/llama"));
        let c = json!({"name": "vllm", "args": ["--model", "/data/m"], "volumeMounts": [{"name": "d", "mountPath": "/data/"}]});
        let a = of_files(&files(&c, &json!([{"name": "d", "image": {"reference": "reg/model:7"}}]), ""))
            .remove(0);
        assert_eq!(a.volume.as_deref(), Some("image reg/model:7 at /data/"));
    }

    #[test]
    fn what_serves_no_model_says_nothing() {
        let c = json!({"name": "vllm", "command": ["sleep", "1"], "args": ["--revision"]});
        assert!(of_files(&files(&c, &json!([]), "x/snapshots/y")).is_empty());
        assert!(of_files(&[]).is_empty() && of_files(&[RawFile::new("pod.json", "{".to_owned())]).is_empty());
    }
}
