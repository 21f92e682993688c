//! The checkpoint's files as the caller saw them.

use serde::Serialize;

/// Sizes of a checkpoint's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// All weight files together, in bytes.
    pub bytes: Option<u64>,
    /// The largest of them, in bytes.
    pub largest_file: Option<u64>,
    /// They are pickled (`.bin`, `.pt`), not safetensors.
    pub bin: bool,
}
