//! The API server as the agent asks it: a dead pod and its events. Without it everything works but exit codes and Events.

use std::path::Path;
use std::time::Duration;

use dualplane_agent::recorder::{Cluster, ClusterTrouble, ContainerRef};
use dualplane_kube::access::Access;
use dualplane_kube::api::{Api, ApiError};
use dualplane_kube::node_pods;
use serde_json::{Value, json};

/// For one answer: the judge has other bundles to judge.
const WITHIN: Duration = Duration::from_secs(3);

/// As whom: the pod's account, or a file that was named. `None` where neither is there: nobody is asked unbidden.
pub(super) fn access(kubeconfig: Option<&Path>, none: bool) -> Option<Access> {
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    (!none && (in_pod || kubeconfig.is_some())).then(|| Access {
        kubeconfig: kubeconfig.map(Path::to_path_buf),
        timeout: Some(WITHIN),
        ..Access::default()
    })
}

/// Asks, and connects anew where credentials ran out.
pub(super) struct ApiServer {
    access: Access,
    runtime: tokio::runtime::Runtime,
    api: Option<Api>,
}

impl ApiServer {
    pub(super) fn new(access: Access) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { access, runtime, api: None })
    }

    fn ask<T>(&mut self, ask: impl AsyncFnOnce(&Api) -> Result<T, ApiError>) -> Result<T, ApiError> {
        let api = match self.api.take() {
            Some(api) => api,
            None => self.runtime.block_on(self.access.connect())?,
        };
        let answer = self.runtime.block_on(ask(&api));
        if !matches!(&answer, Err(ApiError::Access(_) | ApiError::Unauthorized(_))) {
            self.api = Some(api);
        }
        answer
    }
}

impl Cluster for ApiServer {
    fn check(&mut self) -> Result<(), ClusterTrouble> {
        match self.ask(async |api| node_pods::check(api, WITHIN).await) {
            Ok(()) => Ok(()),
            Err(e @ ApiError::Forbidden { .. }) => Err(ClusterTrouble::Rights(e.to_string())),
            Err(e) => Err(ClusterTrouble::Access(e.to_string())),
        }
    }

    fn pod(&mut self, who: &ContainerRef) -> Result<Option<Value>, String> {
        let (namespace, name) = (who.namespace.as_str(), who.pod.as_str());
        match self.ask(async |api| node_pods::pod(api, namespace, name, WITHIN).await) {
            Ok(pod) => {
                let uid = pod.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
                // A StatefulSet gives the name to the next pod. A static pod's folder has its hash, not its UID.
                let hash =
                    pod.pointer("/metadata/annotations/kubernetes.io~1config.hash").and_then(Value::as_str);
                let same = who.uid.is_empty() || uid == who.uid || hash == Some(&who.uid);
                Ok(same.then_some(pod))
            }
            Err(ApiError::NotFound(_)) => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    }

    fn events(&mut self, namespace: &str, uid: &str) -> Result<Value, String> {
        let listed = self.ask(async |api| node_pods::events_of(api, namespace, uid).await);
        listed
            .map(|l| json!({"apiVersion": "v1", "kind": "List", "items": l.items}))
            .map_err(|e| e.to_string())
    }
}
