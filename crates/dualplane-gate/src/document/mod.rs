//! `dualplane.measure/v1`: one build of a model server, and what it held and did in one or several runs.
//!
//! The document is flat and closed: each field has its unit in its name, and what was not measured is `null`, never 0.
//! A file may hold several runs of the same build, and several files may hold one each: [`Measure::runs`] says how it went,
//! the rest says what was measured and on what.

mod read;
mod run;
mod subject;
#[cfg(test)]
mod tests;

pub use read::{ReadError, read, write};
pub use run::{
    Distribution, Drift, Failed, GpuFaults, HostSplit, Kv, Line, Load, PlaneFigures, ProcessMemory, Queue,
    Requests, Restart, Run, Series, Throughput, Timing, Use, Window,
};
pub use subject::{Cost, Gpu, Hardware, SafeLoad, Shape, Slo, Subject, Tool};

use serde::{Deserialize, Serialize};

/// The id of the form.
pub const SCHEMA: &str = "dualplane.measure/v1";

/// The whole document.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// [`SCHEMA`].
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// When it was begun, as the caller's clock says it: RFC 3339.
    #[serde(default)]
    pub started_at: Option<String>,
    /// When it was written.
    #[serde(default)]
    pub ended_at: Option<String>,
    /// Which server was measured.
    pub subject: Subject,
    /// On what it ran.
    pub hardware: Hardware,
    /// The shape of the requests; none where none were sent.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// What counts as a good request; none where nobody said.
    #[serde(default)]
    pub slo: Option<Slo>,
    /// What the machine costs; none where nobody said.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// The most load that stayed safe, where it was searched for.
    #[serde(default)]
    pub safe: Option<SafeLoad>,
    /// Runs of this build with these settings, each from a start of the server or of the load on.
    pub runs: Vec<Run>,
}

impl Measure {
    /// An empty document of one build.
    #[must_use]
    pub fn new(tool: Tool) -> Self {
        Self { schema: SCHEMA.to_owned(), tool, ..Self::default() }
    }
}
