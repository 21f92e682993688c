//! Xid codes: NVIDIA's catalogue as data, with the action and who else is hit.

use serde::Deserialize;

/// What an Xid says about the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidKind {
    /// A GPU, memory, bus, link or driver fault that ends work.
    Hardware,
    /// A fault that the program caused or may have caused.
    Application,
    /// A consequence: channels of an ended process are cleaned up.
    Cleanup,
    /// Not by itself the end of a workload.
    Info,
}

/// One code of the catalogue.
#[derive(Debug, Deserialize)]
pub struct Xid {
    /// The number that the driver prints.
    pub code: u32,
    /// Short name.
    pub name: String,
    /// One sentence.
    pub meaning: String,
    /// Kind.
    pub kind: XidKind,
    /// No program can cause it: it leads before faults of programs on the same GPU, whichever was printed first.
    #[serde(default)]
    pub leads: bool,
    /// The vendor's bucket for the immediate action.
    #[serde(default)]
    pub immediate: String,
    /// The vendor's bucket for the investigation.
    #[serde(default)]
    pub investigate: String,
    /// `restart_app`, `reset_gpu`, `drain_and_reset`, `reboot_node`, `rma_check`, `follow_154`, `none`.
    pub action: String,
    /// `process`, `gpu`, `nvlink_peers`, `node`.
    #[serde(default)]
    pub affects: String,
    /// Who else is hit, one sentence.
    #[serde(default)]
    pub affects_text: String,
    /// What to run to decide between reset and replacement.
    #[serde(default)]
    pub then: Commands,
    /// Where it was read.
    #[serde(default)]
    pub source: String,
}

/// One command or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Commands {
    /// One text.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Default for Commands {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Commands {
    /// As a list.
    #[must_use]
    pub fn list(&self) -> Vec<&str> {
        match self {
            Self::One(s) => vec![s.as_str()],
            Self::Many(v) => v.iter().map(String::as_str).collect(),
        }
    }
}
