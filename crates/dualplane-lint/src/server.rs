//! Which containers are model servers, told alike here and by an API server's CEL.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_engines::{Engines, Kind};
use serde_json::Value;

use crate::memo::Memo;
use crate::rule::Servers;

/// Words by which servers are known.
#[derive(Debug)]
pub(crate) struct Known {
    images: Vec<String>,
    not_images: Vec<String>,
    commands: Vec<String>,
    not_commands: Vec<String>,
    /// By image and command.
    roles: Memo<String, Role>,
}

/// What a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Role {
    server: bool,
    beside: bool,
}

/// Containers that are kept, some 200 bytes each.
const MEMO: usize = 2048;

/// Beginnings of the names of devices that hold a model.
const GPUS: [&str; 2] = ["nvidia.com/", "amd.com/gpu"];

impl Known {
    pub(crate) fn new(servers: &Servers) -> Self {
        let counts =
            |d: &&dualplane_engines::Descriptor| d.kind == Kind::Engine || servers.hosts.contains(&d.id);
        let of = |words: fn(&dualplane_engines::Descriptor) -> &Vec<String>| -> Vec<String> {
            let all = Engines::embedded().iter().filter(counts).flat_map(|d| words(d).iter());
            let mut all: Vec<String> = all.map(|w| w.trim_end_matches('*').to_owned()).collect();
            all.sort();
            all.dedup();
            all
        };
        let images = of(|d| &d.images).into_iter().chain(servers.images.iter().cloned()).collect();
        Self {
            images,
            not_images: servers.not_images.clone(),
            commands: of(|d| &d.launchers),
            not_commands: servers.not_commands.clone(),
            roles: Memo::new(MEMO),
        }
    }

    /// Whether a container is a model server.
    pub(crate) fn is_server(&self, c: &Value) -> bool {
        self.role(c).server
    }

    /// Whether a container is told to be none: a client, a router, one that waits for somebody to log in.
    pub(crate) fn is_beside(&self, c: &Value) -> bool {
        self.role(c).beside
    }

    fn role(&self, c: &Value) -> Role {
        let mut key = str_at(c, "/image").to_ascii_lowercase();
        let image = key.len();
        // No image has a line end.
        key.push('\n');
        key.push_str(&command(c));
        let ask = |key: &String| {
            let (image, words) = key.split_at_checked(image).unwrap_or_default();
            self.told(image, words)
        };
        self.roles.get_by(key, ask)
    }

    fn told(&self, image: &str, words: &str) -> Role {
        let has = |all: &[String], text: &str| all.iter().any(|w| text.contains(w.as_str()));
        let name = image.rsplit('/').next().unwrap_or_default();
        let (other, client) = (has(&self.not_images, name), has(&self.not_commands, words));
        Role {
            server: !other && (has(&self.commands, words) || has(&self.images, image) && !client),
            beside: other || client,
        }
    }

    /// [`Known::is_server`] as CEL over `c`.
    pub(crate) fn cel(&self) -> String {
        let quoted = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
            format!("[{}]", words.join(", "))
        };
        let image = "(has(c.image) ? c.image.lowerAscii() : '')";
        let words = "((has(c.command) ? c.command : []) + (has(c.args) ? c.args : [])).join(' ')";
        let name = format!("{image}.substring({image}.lastIndexOf('/') + 1)");
        format!(
            "(!{not}.exists(w, {name}.contains(w)) && ({commands}.exists(w, {words}.contains(w)) || \
             {images}.exists(w, {image}.contains(w)) && !{clients}.exists(w, {words}.contains(w))))",
            not = quoted(&self.not_images),
            clients = quoted(&self.not_commands),
            images = quoted(&self.images),
            commands = quoted(&self.commands),
        )
    }
}

/// Whether a container asks for a GPU.
pub(crate) fn has_gpu(c: &Value) -> bool {
    let limits = c.pointer("/resources/limits").and_then(Value::as_object);
    limits.into_iter().flatten().any(|(k, _)| GPUS.iter().any(|g| k.starts_with(g)))
}

/// [`has_gpu`] as CEL over `c`.
pub(crate) const GPU_CEL: &str = "(has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(k, \
    k.startsWith('nvidia.com/') || k.startsWith('amd.com/gpu')))";

/// Command and arguments in one line.
fn command(c: &Value) -> String {
    let words: Vec<String> = list(c, "/command").iter().chain(list(c, "/args")).map(text_of).collect();
    words.join(" ")
}

/// All words of a container that a rule's `mentions` may name.
pub(crate) fn haystack(c: &Value) -> String {
    let mut out = format!("{} {}", str_at(c, "/image"), command(c));
    for e in list(c, "/env") {
        out.push_str(&format!(" {}={}", str_at(e, "/name"), e.get("value").map(text_of).unwrap_or_default()));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::expression::{Expression, Scope, of};
    use crate::rule::Rules;

    #[test]
    fn servers_are_told_by_image_and_command_here_and_there() {
        let known = Known::new(&Rules::embedded().servers);
        let cel = Expression::new(&known.cel());
        for (image, args, server) in [
            ("vllm/vllm-openai:v0.11.2", json!(["--model", "m"]), true),
            // Registries that keep copies.
            ("harbor.example/dockerhub-proxy/vllm/vllm-openai:v0.11.2", json!([]), true),
            ("gateway.example:5000/router/lmsysorg/sglang:v0.5.8", json!([]), true),
            ("registry.example/own:1", json!(["python3", "-m", "vllm.entrypoints.openai.api_server"]), true),
            ("registry.example/own:1", json!(["python3", "serve.py"]), false),
            ("lmcache/lmstack-router:v0.1.7", json!([]), false),
            ("nvcr.io/nvidia/tritonserver:26.07-py3-sdk", json!(["perf_analyzer", "-m", "m"]), false),
            ("nvcr.io/nvidia/vllm:25.09-py3", json!(["pip install genai-perf && genai-perf profile"]), false),
            ("vllm/vllm-openai:v0.11.2", json!(["sleep infinity"]), false),
            // A server beside its client is a server.
            ("vllm/vllm-openai:v0.11.2", json!(["vllm serve m & vllm bench serve --model m"]), true),
        ] {
            let c = json!({"image": image, "args": args});
            assert_eq!(known.is_server(&c), server, "{image} {args}");
            let mut scope = Scope::new();
            scope.set("c", of(&c));
            assert_eq!(cel.holds(&scope), Ok(server), "{image} {args}");
        }
    }
}
