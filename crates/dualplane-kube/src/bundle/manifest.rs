//! What a bundle says of itself.

use std::collections::BTreeMap;

use dualplane_core::evidence::Gap;
use serde::Serialize;

use super::artifact::ModelArtifact;
use crate::capture::Source;

/// Version of the layout. A reader that does not know it still reads the files.
pub const SCHEMA: &str = "dualplane.bundle/v1";

/// `manifest.json` of a bundle.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// What wrote it.
    pub tool: String,
    /// When, RFC 3339.
    pub captured_at: String,
    /// `namespace/pod`.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// When its last instance ended, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_at: Option<String>,
    /// Each source with how it went.
    pub sources: Vec<Source>,
    /// Which versions of which models its containers served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelArtifact>,
    /// What is missing.
    pub gaps: Vec<Gap>,
    /// How often each rule of redaction masked something.
    pub redacted: BTreeMap<String, u64>,
    /// How often the API server asked to wait.
    pub server_asked_to_wait: u64,
}

impl Manifest {
    /// As JSON.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
