//! Services of a cluster as the configuration says them: whom to ask for each, and what each of its pods is as a server.

use std::path::PathBuf;

use serde::Deserialize;

use crate::check::{some_room, together};
use crate::clients::Peer;
use crate::config::{Config, ConfigError, ServerConfig, Target, bad};
use crate::discover::{ApiServer, Wanted, own_namespace};
use crate::slices::Found;

/// A Service of a cluster: what stands of each of its pods, as in `[[server]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// `NAME`, in the guard's own namespace, or `NAMESPACE/NAME`.
    pub name: String,
    /// Name or number of the pods' port; may be left out where there is one.
    #[serde(default)]
    pub port: String,
    /// They speak TLS.
    #[serde(default)]
    pub tls: bool,
    /// Path before every request's own.
    #[serde(default)]
    pub path: String,
    /// As of a server.
    pub kv_tokens: Option<u64>,
    /// As of a server.
    pub block_tokens: Option<u64>,
    /// As of a server.
    pub requests: Option<u64>,
    /// The page of the agent of each pod's node: `http://{node}:10980/metrics`.
    pub agent: Option<String>,
    /// The server on that page: `{namespace}/{pod}/CONTAINER`.
    pub container: Option<String>,
    /// As of a server.
    #[serde(default)]
    pub unpaged: bool,
    /// As of a server.
    #[serde(default)]
    pub prefix_cache: bool,
    /// As of a server.
    #[serde(default)]
    pub tokenize: bool,
}

/// How to reach the API server; by default as any pod does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// `https://HOST:PORT`, or `http://` on this machine.
    pub api: Option<String>,
    /// File with a token.
    pub token: Option<PathBuf>,
    /// File with certificates.
    pub ca: Option<PathBuf>,
}

/// A Service that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// Whom to ask for it.
    pub wanted: Wanted,
    /// What was said of it.
    pub said: ServiceConfig,
}

impl Service {
    /// Whether another is this one, asked in the same way: what was heard of one holds for the other.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.name == other.name && self.wanted == other.wanted
    }

    /// One of its pods as a server.
    #[must_use]
    pub fn target(&self, found: &Found) -> Target {
        let said = &self.said;
        let fill = |text: &Option<String>| {
            let text = text.as_deref()?.replace("{node}", &found.node);
            Some(text.replace("{namespace}", &found.namespace).replace("{pod}", &found.name))
        };
        let scheme = if said.tls { "https" } else { "http" };
        let prefix = said.path.trim_end_matches('/').to_owned();
        let url = format!("{scheme}://{}{prefix}", found.authority);
        let server = ServerConfig {
            kv_tokens: said.kv_tokens,
            block_tokens: said.block_tokens,
            requests: said.requests,
            agent: fill(&said.agent),
            container: fill(&said.container),
            unpaged: said.unpaged,
            prefix_cache: said.prefix_cache,
            tokenize: said.tokenize,
            ..ServerConfig::at(&url)
        };
        Target {
            name: found.name.clone(),
            scheme,
            authority: found.authority.clone(),
            peer: Peer::new(scheme, &found.authority),
            prefix,
            service: Some(self.name.clone()),
            said: server,
        }
    }
}

impl Config {
    /// Its Services, checked.
    pub(crate) fn services(&self) -> Result<Vec<Service>, ConfigError> {
        let mut out: Vec<Service> = Vec::new();
        if self.service.is_empty() {
            return Ok(out);
        }
        let k = &self.kubernetes;
        let api = ApiServer::of(k.api.as_deref(), k.token.as_deref(), k.ca.as_deref())
            .or_else(|why| bad("kubernetes.api", why))?;
        for (i, said) in self.service.iter().enumerate() {
            let key = |field: &str| format!("service[{i}].{field}");
            let (namespace, name) = match said.name.split_once('/') {
                Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
                None => match own_namespace() {
                    Some(namespace) => (namespace, said.name.clone()),
                    None => {
                        return bad(
                            key("name"),
                            "expected NAMESPACE/NAME: this is no pod with a namespace of its own",
                        );
                    }
                },
            };
            // They become part of a path.
            if ![&namespace, &name].into_iter().all(|n| is_label(n)) {
                return bad(key("name"), format!("{} is not NAME or NAMESPACE/NAME of a Service", said.name));
            }
            let full = format!("{namespace}/{name}");
            if out.iter().any(|s| s.name == full) {
                return bad(key("name"), format!("{full} stands here twice"));
            }
            some_room(&key, [said.kv_tokens, said.block_tokens, said.requests])?;
            together(&key, &said.agent, &said.container, "{namespace}/{pod}/CONTAINER")?;
            if !(said.path.is_empty() || said.path.starts_with('/')) || said.path.contains(['?', '#', ' ']) {
                return bad(key("path"), "is no path such as /v1");
            }
            let wanted = Wanted { api: api.clone(), namespace, name, port: said.port.clone() };
            out.push(Service { name: full, wanted, said: said.clone() });
        }
        Ok(out)
    }
}

/// A name as Kubernetes has them for namespaces and Services (RFC 1123).
fn is_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
