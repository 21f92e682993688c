//! Which cluster, as whom: kubectl's rules for kubeconfig files, contexts, namespaces and impersonation.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use kube_client::client::AuthError;
use kube_client::config::{Config, KubeConfigOptions};

use crate::api::{Api, ApiError, Identity};
use crate::kubeconfig::{self, KubeconfigFault};

/// What the command line says of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `--kubeconfig`; else `$KUBECONFIG` (several files merge), `~/.kube/config`, the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
    /// `-n`; else the namespace of the context.
    pub namespace: Option<String>,
    /// `--as`.
    pub impersonate: Option<String>,
    /// `--as-group`.
    pub impersonate_groups: Vec<String>,
    /// `--request-timeout`: for one request, its repetitions included.
    pub timeout: Option<Duration>,
}

impl Access {
    /// Reads the configuration and prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiError::Access`] when no cluster is named or its credentials cannot be read.
    pub async fn connect(&self) -> Result<Api, ApiError> {
        let (mut config, mut identity) = self.config().await?;
        // Repetition is ours: it keeps to the deadline of its source and to Retry-After.
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(10));
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
            let by = identity.user.map_or_else(String::new, |by| format!(" (impersonated by {by})"));
            identity.user = Some(format!("{user}{by}"));
        }
        if !self.impersonate_groups.is_empty() {
            if config.auth_info.impersonate.is_none() {
                return Err(ApiError::Access("--as-group needs --as".into()));
            }
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let server = without_password(&config.cluster_url.to_string());
        let client = kube_client::Client::try_from(config).map_err(|e| ApiError::Access(chain(&e)))?;
        Ok(Api::new(client, server, namespace, self.timeout).known_as(identity))
    }

    async fn config(&self) -> Result<(Config, Identity), ApiError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let file = match &self.kubeconfig {
            Some(path) => kubeconfig::of_file(path),
            None => kubeconfig::of_environment(),
        };
        match file {
            Ok(file) => {
                let chosen = self.context.clone().or_else(|| file.current_context.clone());
                let entry = file.contexts.iter().find(|c| Some(&c.name) == chosen.as_ref());
                if let Some(name) = chosen.as_ref().filter(|_| entry.is_none()) {
                    let there: Vec<&str> = file.contexts.iter().take(20).map(|c| c.name.as_str()).collect();
                    return Err(ApiError::Access(format!(
                        "there is no context {name}; available contexts: {}",
                        there.join(", ")
                    )));
                }
                let user = entry.and_then(|c| c.context.as_ref()).and_then(|c| c.user.clone());
                let identity = Identity { context: chosen.clone(), user };
                let config = Config::from_custom_kubeconfig(file, &options).await.map_err(|e| {
                    let context = chosen.map_or_else(String::new, |c| format!("context {c}: "));
                    ApiError::Access(format!("{context}{}", chain(&e)))
                })?;
                Ok((config, identity))
            }
            // Like kubectl: inside a pod its service account is used where no file says otherwise.
            Err(KubeconfigFault::Missing(_)) if self.kubeconfig.is_none() && self.context.is_none() => {
                let config = Config::incluster().map_err(|_| {
                    ApiError::Access(
                        "no kubeconfig found: checked --kubeconfig, KUBECONFIG and ~/.kube/config, and \
                        this is not a pod"
                            .into(),
                    )
                })?;
                Ok((config, Identity { context: None, user: Some("the pod's service account".into()) }))
            }
            Err(e) => Err(ApiError::Access(chain(&e))),
        }
    }
}

/// An error with its causes: the outermost rarely says what is wrong.
pub(crate) fn chain(e: &(dyn Error + 'static)) -> String {
    if let Some(text) = discreet(e) {
        return text;
    }
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Errors that quote output with tokens in it, in words without these.
fn discreet(e: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(e);
    while let Some(e) = next {
        match e.downcast_ref::<AuthError>() {
            Some(AuthError::AuthExecRun { out, .. }) => {
                let said: String =
                    String::from_utf8_lossy(&out.stderr).trim().chars().take(MAX_SAID).collect();
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                return Some(format!(
                    "the credential plug-in of the kubeconfig failed ({}){said}",
                    out.status
                ));
            }
            Some(AuthError::AuthExecParse(_)) => {
                return Some("the credential plug-in of the kubeconfig printed no ExecCredential".into());
            }
            _ => next = e.source(),
        }
    }
    None
}

/// Of what a credential plug-in says.
const MAX_SAID: usize = 400;

/// A URL as it may be shown.
#[must_use]
pub(crate) fn without_password(url: &str) -> String {
    let from = url.find("://").map_or(0, |at| at + 3);
    match (url.get(..from), url.rfind('@').and_then(|at| url.get(at + 1..))) {
        (Some(scheme), Some(host)) => format!("{scheme}{host}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_urls_are_not_shown() {
        assert_eq!(without_password("https://u:p@prom:9090/x"), "https://prom:9090/x");
        assert_eq!(without_password("u:p@prom:9090/x"), "prom:9090/x");
        assert_eq!(without_password("http://prom"), "http://prom");
    }
}
