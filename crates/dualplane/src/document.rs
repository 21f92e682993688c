//! Documents of dualplane among its own inputs: of which kind and version one is, and whether it has keys that go, before its
//! fields are read.

use std::path::Path;

use dualplane_base::deprecation::DEPRECATED;
use dualplane_base::schema::{Id, id};
use serde_json::Value;

use crate::{deprecated, output};

/// What a document is instead of one of this kind, in words; `None` where it is one, or names no schema.
pub(crate) fn other(path: &Path, text: &str, kind: &str) -> Option<String> {
    let toml = path.extension().is_some_and(|e| e == "toml");
    let schema = if toml {
        toml::from_str::<toml::Table>(text).ok()?.get("schema")?.as_str()?.to_owned()
    } else {
        serde_json::from_str::<Value>(text).ok()?.get("schema")?.as_str()?.to_owned()
    };
    match id(&schema)? {
        Id::Known(s) if s.name == kind => {
            output::deprecated(&deprecated::read(toml, text, DEPRECATED));
            None
        }
        other => Some(other.to_string()),
    }
}
