//! `dualplane.change/v1`: what is kept of a change, so that it can be undone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::Edit;

/// Schema id of a record.
pub const SCHEMA: &str = "dualplane.change/v1";

/// How far a change came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// About to be sent: whether it was is not known, if nothing follows.
    Planned,
    /// The server made it.
    Applied,
    /// The server refused it; nothing was changed.
    Failed,
    /// The connection broke while it was sent.
    Unknown,
    /// Undone.
    RolledBack,
}

impl State {
    /// For a table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::RolledBack => "rolled back",
        }
    }
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// `deployments`.
    pub resource: String,
    /// Written through this subresource: `resize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// Namespace; absent for objects of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Uid: an object of the same name that was made later is another.
    pub uid: String,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind.to_ascii_lowercase(), self.name)
    }
}

/// What was changed of the ConfigMap from which the server takes its settings, before the object was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which object.
    pub object: ObjectRef,
    /// Content type of the patch.
    pub patch_type: String,
    /// The patch as it was sent, but for the resource version.
    pub patch: Value,
    /// Each changed path with its values before and after.
    pub changes: Vec<Edit>,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Its name for `rollback`.
    pub id: String,
    /// How far it came.
    pub state: State,
    /// When it was sent, RFC 3339.
    pub when: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// When it was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<String>,
    /// What made it: `dualplane 0.1.0`.
    pub tool: String,
    /// Who, as the kubeconfig names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// URL of the API server.
    pub server: String,
    /// Context of the kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Which object.
    pub object: ObjectRef,
    /// The ConfigMap that was changed before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_file: Option<Part>,
    /// Title of the action that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Content type of the patch.
    pub patch_type: String,
    /// The patch as it was sent, but for the resource version.
    pub patch: Value,
    /// Each changed path with its values before and after.
    pub changes: Vec<Edit>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that undoes it.
    pub undo: String,
}

impl Record {
    /// Reads a record; `None` where it is none, or of a schema that is not known.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|r| r.schema == SCHEMA)
    }

    /// As JSON.
    ///
    /// # Errors
    /// When a value cannot be written as JSON, which no value here can cause.
    pub fn render(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// What it changed, for one line of a table.
    #[must_use]
    pub fn what(&self) -> String {
        if let Some(action) = &self.action {
            return action.clone();
        }
        // What every path begins with tells nothing.
        let short = |path: String| path.strip_prefix("spec.template.spec.").unwrap_or(&path).to_owned();
        let file = self.settings_file.iter().flat_map(|f| &f.changes);
        let paths: Vec<String> = file.chain(&self.changes).map(|e| short(super::path::at(&e.path))).collect();
        paths.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn records_are_read_as_they_were_written() {
        let text = json!({"schema": SCHEMA, "id": "ab12", "state": "rolled_back", "when": "2026-11-21T12:00:00Z", "tool": "t",
            "server": "https://s/", "patch_type": "p", "patch": {"spec": {}}, "undo": "dualplane rollback ab12",
            "object": {"api_version": "apps/v1", "kind": "Deployment", "resource": "deployments", "namespace": "n", "name": "x", "uid": "u"},
            "changes": [{"path": ["spec", {"name": "s"}, "limits"], "after": {"memory": "2Gi"}}]});
        let record = Record::parse(text.to_string().as_bytes()).unwrap();
        assert_eq!((record.state, record.object.to_string().as_str()), (State::RolledBack, "deployment/x"));
        assert_eq!(record.what(), "spec[s].limits");
        assert_eq!(Record::parse(record.render().unwrap().as_bytes()), Some(record));
        let later = text.to_string().replace("change/v1", "change/v9");
        assert_eq!(Record::parse(later.as_bytes()), None);
        assert_eq!(Record::parse(b"{"), None);
    }
}
