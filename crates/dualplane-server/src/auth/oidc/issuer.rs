//! Asks the issuer: what it says about itself (OpenID Connect Discovery), its keys, and a token for the code of a login. Every answer
//! is bounded, no redirect is followed, and nothing goes without TLS beyond this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use dualplane_client as client;
use dualplane_incidents::encode;
use http::Uri;
use serde::Deserialize;
use serde_json::Value;
use ureq::tls::TlsConfig;

use super::crypto::Jwk;

/// For a connection, and for an answer.
const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const ANSWER: u64 = 1 << 20;
/// Keys of an issuer: it has a few.
const KEYS: usize = 100;
/// Bytes of the file of a secret.
const SECRET: usize = 4096;

/// What it says about itself.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Provider {
    issuer: String,
    jwks_uri: String,
    #[serde(default)]
    pub(super) authorization_endpoint: String,
    #[serde(default)]
    token_endpoint: String,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// A code, and what was sent when it was asked for.
#[derive(Debug)]
pub(super) struct Code<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) redirect: &'a str,
}

/// An issuer, and as whom it is asked.
#[derive(Debug, Clone)]
pub(super) struct Issuer {
    pub(super) url: String,
    pub(super) client: String,
    secret: Option<PathBuf>,
    agent: ureq::Agent,
}

/// Nobody else reads what is sent there, and nobody else answers.
pub(super) fn safe(url: &str) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|_| format!("{url:?} is no address"))?;
    let host = uri.host().ok_or_else(|| format!("{url:?} names no host"))?;
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if client::is_here(host) => Ok(()),
        _ => Err(format!("{url} is not https: who answers there could be anybody")),
    }
}

impl Issuer {
    pub(super) fn new(
        url: String,
        id: String,
        secret: Option<PathBuf>,
        ca: Option<&Path>,
    ) -> Result<Self, String> {
        safe(&url)?;
        let tls = match ca {
            Some(file) => client::trusting(file).map_err(|e| format!("{}: {e}", file.display()))?,
            None => TlsConfig::default(),
        };
        let agent = client::agent(WHOLE, CONNECT, tls);
        Ok(Self { url, client: id, secret, agent })
    }

    fn read(url: &str, answer: Result<http::Response<ureq::Body>, ureq::Error>) -> Result<Value, String> {
        let mut answer = answer.map_err(|e| format!("{url}: {e}"))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec();
        let body = body.map_err(|e| format!("{url}: {e}"))?;
        if status.as_u16() != 200 {
            return Err(format!("{url} answered {status}"));
        }
        serde_json::from_slice(&body).map_err(|_| format!("{url} answered no JSON"))
    }

    fn get(&self, url: &str) -> Result<Value, String> {
        safe(url)?;
        Self::read(url, self.agent.get(url).header("accept", "application/json").call())
    }

    /// What it says about itself. Waits for the network.
    pub(super) fn provider(&self) -> Result<Provider, String> {
        let at = format!("{}/.well-known/openid-configuration", self.url.trim_end_matches('/'));
        let found: Provider = serde_json::from_value(self.get(&at)?).map_err(|e| format!("{at}: {e}"))?;
        if found.issuer != self.url {
            return Err(format!(
                "{at} is of the issuer {:?}: give --oidc-issuer-url exactly so, if it is the one that you mean",
                found.issuer
            ));
        }
        Ok(found)
    }

    /// Its keys; those of kinds that are not known are left out. Waits for the network.
    pub(super) fn keys(&self, provider: &Provider) -> Result<Vec<Jwk>, String> {
        let answer = self.get(&provider.jwks_uri)?;
        let all = answer.get("keys").and_then(Value::as_array);
        let all = all.ok_or_else(|| format!("{} holds no keys", provider.jwks_uri))?;
        Ok(all.iter().take(KEYS).filter_map(|k| Jwk::deserialize(k).ok()).collect())
    }

    fn secret(&self) -> Result<Option<String>, String> {
        let Some(file) = &self.secret else { return Ok(None) };
        // Read anew: it may have been changed.
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        match text.trim() {
            s if s.is_empty() || s.len() > SECRET => Err(format!("{} holds no secret", file.display())),
            s => Ok(Some(s.to_owned())),
        }
    }

    /// The ID token for a code. Waits for the network.
    pub(super) fn exchange(&self, provider: &Provider, code: &Code<'_>) -> Result<String, String> {
        let url = provider.token_endpoint.as_str();
        safe(url)?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.code),
            ("redirect_uri", code.redirect),
            ("client_id", self.client.as_str()),
            ("code_verifier", code.verifier),
        ];
        let mut request = self.agent.post(url).header("accept", "application/json");
        let secret = self.secret()?;
        if let Some(secret) = &secret {
            let ways = &provider.token_endpoint_auth_methods_supported;
            // Without a list it is `client_secret_basic` (Discovery, section 3).
            if ways.is_empty() || ways.iter().any(|w| w == "client_secret_basic") {
                // As a form and RFC 6749, section 2.3.1, want it.
                let pair = format!("{}:{}", encode(&self.client), encode(secret));
                let pair = base64::engine::general_purpose::STANDARD.encode(pair);
                request = request.header("authorization", format!("Basic {pair}"));
            } else {
                form.push(("client_secret", secret.as_str()));
            }
        }
        let answer = Self::read(url, request.send_form(form))?;
        let token = answer.get("id_token").and_then(Value::as_str);
        token.map(ToOwned::to_owned).ok_or_else(|| format!("{url} answered no ID token"))
    }
}
