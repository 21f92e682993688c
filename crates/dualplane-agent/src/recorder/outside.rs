//! Whom the recorder asks of a bundle: a judge, and the API server where there is one.

use std::path::Path;

use serde_json::Value;

use super::container_ref::ContainerRef;

/// A verdict in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// Class, as `dualplane.verdict/v2` writes it.
    pub class: String,
    /// Plane.
    pub plane: String,
    /// The first memory error, one line, masked.
    pub trigger: Option<String>,
}

impl Judged {
    /// A plane, or a card that broke, is what no clean end has.
    pub(super) fn is_memory(&self) -> bool {
        !matches!(self.plane.as_str(), "" | "none")
    }
}

/// Judges one bundle.
pub trait Judge: Send {
    /// Judges the bundle at a path.
    ///
    /// # Errors
    /// Why there is no verdict, in one line.
    fn judge(&mut self, bundle: &Path) -> Result<Judged, String>;
}

/// How a look at the API server went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterTrouble {
    /// It cannot be asked: address, certificate, credentials.
    Access(String),
    /// It answers, and does not let the agent read what it needs.
    Rights(String),
}

/// The API server, where there is one.
pub trait Cluster: Send {
    /// Whether it can be asked at all: a wrong token is known before the first death.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&mut self) -> Result<(), ClusterTrouble>;

    /// The pod as it is now; `None` where it is gone or another has its name.
    ///
    /// # Errors
    /// Why it could not be asked, in one line.
    fn pod(&mut self, who: &ContainerRef) -> Result<Option<Value>, String>;

    /// Events of the pod with this UID.
    ///
    /// # Errors
    /// Why they could not be asked for, in one line.
    fn events(&mut self, namespace: &str, uid: &str) -> Result<Value, String>;
}
