//! `--calibration FILE`: the residual of a start-up, as TOML where the name ends so, else as JSON.

use std::fs;
use std::path::Path;

use dualplane_plan::Calibration;

use super::Failure;
use crate::document;

/// A residual has a dozen lines.
const MAX_FILE: u64 = 1 << 20;

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "toml")
}

pub(super) fn write(path: &Path, residual: &Calibration) -> Result<(), Failure> {
    let text = if is_toml(path) {
        toml::to_string_pretty(residual)
            .map_err(|e| Failure::Flag { flag: "--calibration", why: e.to_string() })?
    } else {
        serde_json::to_string_pretty(residual)? + "\n"
    };
    fs::write(path, text).map_err(|source| Failure::Unreadable { path: path.to_owned(), source })
}

pub(super) fn read(path: &Path) -> Result<Calibration, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let wrong =
        |why: String| Failure::Flag { flag: "--calibration", why: format!("{}: {why}", path.display()) };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(wrong("it is too large to be a residual".into()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    // Before a field is missed that a newer version has no more.
    if let Some(other) = document::other(path, &text, "calibration") {
        return Err(wrong(other));
    }
    if is_toml(path) {
        toml::from_str(&text).map_err(|e| wrong(e.to_string()))
    } else {
        serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))
    }
}
