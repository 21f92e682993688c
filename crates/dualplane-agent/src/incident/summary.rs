//! An incident in a few lines: what `incidents ls` lists, `/metrics` counts and the Event says.

use serde::{Deserialize, Serialize};

/// Version of the form.
pub const SCHEMA: &str = "dualplane.incident/v1";

/// What happened to the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It ended.
    Death,
    /// Processes in it were killed by the OOM killer, it lives on.
    Kill,
    /// It ended, and nothing has said yet whether that was meant: a job that is done and a server that died look the same
    /// from the node.
    End,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The bundle is being written.
    #[default]
    Begun,
    /// The bundle is on the disk.
    Kept,
    /// It is judged as well.
    Judged,
    /// The bundle had to go for later ones; this summary stays.
    Dropped,
}

/// A summary, `ID.json` beside the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// `20261121T213812.345Z-NAMESPACE-POD-CONTAINER-RESTART`: sorts by time, is a name of a file.
    pub id: String,
    /// What happened.
    pub kind: Kind,
    /// How far it is.
    #[serde(default)]
    pub state: State,
    /// When, RFC 3339 with milliseconds.
    pub died_at: String,
    /// Node.
    pub node: String,
    /// Namespace; empty outside of Kubernetes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Pod; empty outside of Kubernetes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// UID of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// UID at the API server, where it is another: the folders of a static pod have its hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_uid: Option<String>,
    /// Container, else the unit or path of its group.
    pub container: String,
    /// 64 hex digits, where it has them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container_id: String,
    /// Which restart ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<u32>,
    /// It is the first death of its loop: the same pod and container.
    pub first: bool,
    /// Class of the verdict; `None` until it is judged, or where that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Plane of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<String>,
    /// The first memory error, one line, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The number of the kernel's record, within the boot, where the kernel killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_record: Option<u64>,
    /// What was killed was started with `kubectl exec`, not by the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_exec: bool,
    /// Exit code, where the API server told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Milliseconds from the end of the container's group, as the agent noticed it, to a bundle that survives a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_ms: Option<u64>,
    /// Bytes of the bundle.
    pub bytes: u64,
}

impl Summary {
    /// As its file holds it.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// What repeats: the same container of the same pod.
    #[must_use]
    pub fn loop_key(&self) -> LoopKey {
        let pod = if self.uid.is_empty() { &self.pod } else { &self.uid };
        (pod.clone(), self.container.clone())
    }
}

/// Pod and container of a crash loop.
pub type LoopKey = (String, String);
