//! Which cluster, as whom: kubectl's rules for kubeconfig files, contexts, namespaces and impersonation.

use std::path::PathBuf;
use std::time::Duration;

use kube_client::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::api::{Api, Fault, Identity};

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
    /// [`Fault::Access`] when no cluster is named or its credentials cannot be read.
    pub async fn connect(&self) -> Result<Api, Fault> {
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
                return Err(Fault::Access("--as-group needs --as".into()));
            }
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.to_string();
        let client = kube_client::Client::try_from(config).map_err(|e| Fault::Access(chain(&e)))?;
        Ok(Api::new(client, server, namespace, self.timeout).known_as(identity))
    }

    async fn config(&self) -> Result<(Config, Identity), Fault> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let file = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        match file {
            Ok(file) => {
                let chosen = self.context.clone().or_else(|| file.current_context.clone());
                let entry = file.contexts.iter().find(|c| Some(&c.name) == chosen.as_ref());
                let user = entry.and_then(|c| c.context.as_ref()).and_then(|c| c.user.clone());
                let identity = Identity { context: chosen.clone(), user };
                let config = Config::from_custom_kubeconfig(file, &options).await.map_err(|e| {
                    let context = chosen.map_or_else(String::new, |c| format!("context {c}: "));
                    Fault::Access(format!("{context}{}", chain(&e)))
                })?;
                Ok((config, identity))
            }
            // Like kubectl: inside a pod its service account is used where no file says otherwise.
            Err(e) if self.kubeconfig.is_none() && self.context.is_none() && is_missing(&e) => {
                let config = Config::incluster().map_err(|_| {
                    Fault::Access(
                        "no kubeconfig: neither --kubeconfig nor KUBECONFIG nor ~/.kube/config, and this is no pod".into(),
                    )
                })?;
                Ok((config, Identity { context: None, user: Some("the pod's service account".into()) }))
            }
            Err(e) => Err(Fault::Access(chain(&e))),
        }
    }
}

fn is_missing(e: &KubeconfigError) -> bool {
    match e {
        KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet => true,
        KubeconfigError::ReadConfig(e, _) => e.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// An error with its causes: the outermost rarely says what is wrong.
pub(crate) fn chain(e: &dyn std::error::Error) -> String {
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
