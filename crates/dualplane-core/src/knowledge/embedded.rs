//! The entries that are part of the program: signatures as `build.rs` wrote them, all else as JSON.
//!
//! Signatures are nine tenths of it, and a report needs some tens of a thousand. To read them all took a fifth of the time
//! of a short report; as constants they cost nothing.

use std::borrow::Cow;

use super::pattern::Pattern;
use super::signature::{HostMemory, Mark, Scope, Signature, Text};
use dualplane_base::{Class, Phase};

/// All but signatures.
pub(super) const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/knowledge.json"));

/// A text of the program.
const fn t(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

include!(concat!(env!("OUT_DIR"), "/signatures.rs"));
