//! Whose end it is.

use dualplane_node::cri::PodFolder;

use crate::incident::LoopKey;
use crate::view::ContainerView;

/// A container by its names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContainerRef {
    /// Namespace; empty outside of Kubernetes.
    pub namespace: String,
    /// Pod; empty outside of Kubernetes.
    pub pod: String,
    /// UID of the pod.
    pub uid: String,
    /// Container, else the first digits of its id, else its path.
    pub container: String,
    /// 64 hex digits; empty of a service.
    pub container_id: String,
    /// Which restart.
    pub restart: Option<u32>,
}

impl ContainerRef {
    /// Of a container as it was seen.
    #[must_use]
    pub fn of(c: &ContainerView) -> Self {
        let id = &c.group.identity;
        let container_id = id.container_id.clone().unwrap_or_default();
        match &c.named {
            Some(n) => Self {
                namespace: n.namespace.clone(),
                pod: n.pod.clone(),
                uid: n.uid.clone().or_else(|| id.pod_uid.clone()).unwrap_or_default(),
                container: n.container.clone(),
                container_id,
                restart: n.restart,
            },
            None => Self {
                uid: id.pod_uid.clone().unwrap_or_default(),
                container: c.title(),
                container_id,
                ..Self::default()
            },
        }
    }

    /// Of an instance of which only the folder of its log is known.
    #[must_use]
    pub fn of_folder(pod: &PodFolder, container: &str, restart: u32) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            pod: pod.pod.clone(),
            uid: pod.uid.clone(),
            container: container.to_owned(),
            container_id: String::new(),
            restart: Some(restart),
        }
    }

    /// What repeats.
    #[must_use]
    pub fn loop_key(&self) -> LoopKey {
        (if self.uid.is_empty() { self.pod.clone() } else { self.uid.clone() }, self.container.clone())
    }

    /// `namespace/pod`, else the container.
    #[must_use]
    pub fn pod_title(&self) -> String {
        if self.pod.is_empty() { self.container.clone() } else { format!("{}/{}", self.namespace, self.pod) }
    }
}
