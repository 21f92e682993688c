//! What the sender of a report knows of the place: the report alone names no cluster and often no model.

use serde::{Deserialize, Serialize};

use crate::incident::{Gpu, Xid};

/// Where it happened. What is given here stands before what the report tells; what is absent is taken from the report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Where {
    /// Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Workload that made the pod, like `vllm` of `vllm-6c9f7d5b48-x2kqm`; taken from the pod's name where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Image with its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Model that was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Cards of the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// VRAM of the fullest of them, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vram_total_bytes: Option<u64>,
    /// The most of it that was in use, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vram_held_bytes: Option<u64>,
    /// Xids that the sender saw near the death.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub xids: Vec<Xid>,
    /// When it died, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub died_at: Option<crate::Time>,
}
