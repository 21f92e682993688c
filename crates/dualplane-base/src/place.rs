//! Where something stands in the evidence.

use serde::Serialize;

/// A place in the evidence that a person can open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// Path relative to the target.
    pub file: String,
    /// Line, from 1; `None` for a field of an object.
    pub line: Option<u64>,
}
