//! HTTP: a server that takes bundles, or an object store that takes a plain PUT.
//!
//! Requests are not signed here. A bearer token from a file serves Google Cloud Storage and a server of one's own;
//! a query in the URL serves shared-access signatures of a container (Azure, with the header `x-ms-blob-type: BlockBlob`)
//! and pre-authenticated requests. A presigned URL of S3 is for one object only, so S3 needs something in between that
//! signs, or a mounted bucket and [`super::Directory`].

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::tls::TlsConfig;

use super::{Sink, SinkError};
use crate::incident::{BUNDLE_SUFFIX, Summary};
use crate::publish::stable_hash;
use dualplane_client as client;

/// For a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// For a whole request: 100 MiB at 1 MiB/s.
const REQUEST: Duration = Duration::from_secs(120);
/// Tokens of service accounts are below 4 KiB.
const MAX_TOKEN: u64 = 64 << 10;
/// Of a refusal, to quote.
const MAX_ANSWER: u64 = 300;

/// How it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// To a name of its own.
    #[default]
    Put,
    /// To one address.
    Post,
}

/// A destination.
#[derive(Clone, Default)]
pub struct WebConfig {
    /// How.
    pub method: Method,
    /// With `{file}`, `{id}`, `{node}`, `{namespace}`, `{pod}`; a PUT without `{file}` and `{id}` appends the file to the
    /// path. Its query is a secret.
    pub url: String,
    /// File with a bearer token, read anew each time.
    pub token: Option<PathBuf>,
    /// Certificates to trust instead of the public ones.
    pub ca: Option<PathBuf>,
    /// More headers. Values are secrets.
    pub headers: Vec<(String, String)>,
    /// Send a token without TLS, to another host than this.
    pub token_in_clear: bool,
}

impl std::fmt::Debug for WebConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebConfig")
            .field("method", &self.method)
            .field("url", &shown(&self.url))
            .finish_non_exhaustive()
    }
}

/// The destination cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// No URL with http or https and a host.
    #[error("{0} is not an http or https URL")]
    Url(String),
    /// The token would be sent in the clear.
    #[error("{0} does not use TLS and would expose the token: use https or --send-token-in-clear")]
    Clear(String),
    /// Certificates cannot be read.
    #[error("certificates of {path}: {why}")]
    Ca {
        /// File.
        path: PathBuf,
        /// Reason.
        why: String,
    },
}

/// Sends the bundle, then the summary.
pub struct Web {
    config: WebConfig,
    agent: ureq::Agent,
    name: String,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Web {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// See [`WebError`].
    pub fn new(config: WebConfig) -> Result<Self, WebError> {
        let uri: http::Uri =
            fill(&config.url, |_| "x".into()).parse().map_err(|_| WebError::Url(shown(&config.url)))?;
        let host = uri.host().unwrap_or_default();
        let clear = match uri.scheme_str() {
            Some("https") => false,
            Some("http") => true,
            _ => return Err(WebError::Url(shown(&config.url))),
        };
        if clear && config.token.is_some() && !client::is_here(host) && !config.token_in_clear {
            return Err(WebError::Clear(shown(&config.url)));
        }
        let tls = match &config.ca {
            Some(path) => client::trusting(path).map_err(|why| WebError::Ca { path: path.clone(), why })?,
            None => TlsConfig::default(),
        };
        let agent = client::agent(REQUEST, CONNECT, tls);
        // Without its query: a signature that is renewed does not make another destination.
        let place = config.url.split('?').next().unwrap_or_default();
        let kind = if config.method == Method::Put { "put" } else { "post" };
        let name = format!("{kind}-{:08x}", stable_hash(&[place]) >> 32);
        Ok(Self { config, agent, name })
    }

    fn target(&self, summary: &Summary, file: &str) -> String {
        let url = &self.config.url;
        let named = url.contains("{file}") || url.contains("{id}") || self.config.method == Method::Post;
        let (path, query) = url.split_once('?').map_or((url.as_str(), None), |(p, q)| (p, Some(q)));
        let path = if named { path.to_owned() } else { format!("{}/{{file}}", path.trim_end_matches('/')) };
        let template = query.map_or_else(|| path.clone(), |q| format!("{path}?{q}"));
        fill(&template, |word| match word {
            "file" => file.to_owned(),
            "id" => summary.id.clone(),
            "node" => summary.node.clone(),
            "namespace" => summary.namespace.clone(),
            _ => summary.pod.clone(),
        })
    }

    fn token(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.config.token else { return Ok(None) };
        let mut token = String::new();
        let read = File::open(path).and_then(|f| f.take(MAX_TOKEN).read_to_string(&mut token));
        read.map_err(|e| format!("token file {}: {e}", path.display()))?;
        Ok(Some(token.trim().to_owned()))
    }

    fn send(
        &self,
        summary: &Summary,
        file: &str,
        kind: &str,
        body: impl ureq::AsSendBody,
    ) -> Result<(), SinkError> {
        let url = self.target(summary, file);
        let mut request = match self.config.method {
            Method::Put => self.agent.put(&url),
            Method::Post => self.agent.post(&url),
        };
        // By these a server knows what came before, also where all comes to one address.
        request = request
            .header("Content-Type", kind)
            .header("Idempotency-Key", file)
            .header("Dualplane-Incident", &summary.id);
        for (key, value) in &self.config.headers {
            request = request.header(key, value);
        }
        if let Some(token) = self.token().map_err(SinkError::Later)? {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let place = shown(&self.config.url);
        let mut answer =
            request.send(body).map_err(|e| SinkError::Later(format!("{place}: {}", reason(&e))))?;
        let status = answer.status().as_u16();
        let said = answer.body_mut().with_config().limit(MAX_ANSWER).lossy_utf8(true).read_to_string();
        let said = said.unwrap_or_default();
        let said = dualplane_base::text::printable(said.lines().next().unwrap_or_default()).into_owned();
        let why = format!("{place} answered {status} {said}").trim_end().to_owned();
        match status {
            200..=299 => Ok(()),
            // It is there already.
            409 => Ok(()),
            // This one will never be taken; everything else may be a matter of configuration.
            413 | 415 | 422 => Err(SinkError::Refused(why)),
            300..=399 => {
                Err(SinkError::Later(format!("{why}: redirects are not followed; use the final URL")))
            }
            401 | 403 => Err(SinkError::Later(format!("{why}: check the token"))),
            _ => Err(SinkError::Later(why)),
        }
    }
}

impl Sink for Web {
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether anybody answers there. What it answers is no matter: a store need not know HEAD, and the token is not
    /// shown to whoever it may be before there is something to send.
    fn check(&mut self) -> Result<(), String> {
        self.token()?;
        let place = self.config.url.split(['?', '{']).next().unwrap_or_default();
        let request = self.agent.head(place).config().timeout_global(Some(CONNECT)).build();
        request.call().map(|_| ()).map_err(|e| format!("{}: {}", shown(&self.config.url), reason(&e)))
    }

    fn deliver(&mut self, summary: &Summary, bundle: &Path) -> Result<(), SinkError> {
        let file = File::open(bundle).map_err(|e| SinkError::Later(format!("{}: {e}", bundle.display())))?;
        self.send(summary, &format!("{}{BUNDLE_SUFFIX}", summary.id), "application/zstd", &file)?;
        let json = serde_json::to_vec(summary).map_err(|e| SinkError::Refused(e.to_string()))?;
        self.send(summary, &format!("{}.json", summary.id), "application/json", json.as_slice())
    }
}

/// Puts values into a template, each as one segment of a path.
fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut out = template.to_owned();
    for word in ["file", "id", "node", "namespace", "pod"] {
        let place = format!("{{{word}}}");
        if out.contains(&place) {
            out = out.replace(&place, &dualplane_kube::api::path::segment(&value(word)));
        }
    }
    out
}

/// Scheme, host and path: no user, no password, no query.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_once('/').map_or((rest, None), |(h, p)| (h, Some(p)));
    let host = host.rsplit('@').next().unwrap_or_default();
    let path = path.map_or(String::new(), |p| format!("/{p}"));
    dualplane_base::text::printable(&format!("{scheme}://{host}{path}")).into_owned()
}

/// What went wrong, without the URL, which some errors quote.
fn reason(e: &ureq::Error) -> String {
    match e {
        ureq::Error::Timeout(t) => format!("no answer in time ({t})"),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            "the URL and headers do not form a valid request".into()
        }
        e => e.to_string(),
    }
}
