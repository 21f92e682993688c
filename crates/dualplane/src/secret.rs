//! Secrets: from a file or a variable, never from arguments, which every user of the machine can list. A file is the better
//! of both: what runs as the same user, and every program that is started from here, reads the environment.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::commands::Failure;

/// No token and no password is longer.
const MAX: u64 = 64 << 10;

/// Where a secret may stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret {
    /// The variable that holds it.
    pub(crate) variable: &'static str,
    /// The variable that names its file; it goes first.
    pub(crate) file: &'static str,
}

/// Of Prometheus.
pub(crate) const PROMETHEUS: Secret =
    Secret { variable: "DUALPLANE_PROMETHEUS_TOKEN", file: "DUALPLANE_PROMETHEUS_TOKEN_FILE" };
/// Of Loki.
pub(crate) const LOKI: Secret =
    Secret { variable: "DUALPLANE_LOKI_TOKEN", file: "DUALPLANE_LOKI_TOKEN_FILE" };
/// Of an engine that asks for a key.
pub(crate) const ENGINE: Secret =
    Secret { variable: "DUALPLANE_ENGINE_TOKEN", file: "DUALPLANE_ENGINE_TOKEN_FILE" };
/// Of Hugging Face, by the names that its own tools have.
pub(crate) const HUGGING_FACE: Secret = Secret { variable: "HF_TOKEN", file: "HF_TOKEN_PATH" };

impl Secret {
    /// What is given, without the white space around it; `None`: nothing is.
    ///
    /// # Errors
    /// The file cannot be read, or holds nothing that could be sent.
    pub(crate) fn read(self) -> Result<Option<String>, Failure> {
        let Some(path) = env::var_os(self.file).filter(|p| !p.is_empty()) else {
            let given = env::var(self.variable).unwrap_or_default();
            return Ok(Some(given.trim().to_owned()).filter(|t| !t.is_empty()));
        };
        of_file(self.file, Path::new(&path)).map(Some)
    }
}

/// What this file holds, named by this flag or variable, without the white space around it.
///
/// # Errors
/// The file cannot be read, or holds nothing that could be sent.
pub(crate) fn of_file(flag: &'static str, path: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::Flag { flag, why: format!("{}: {why}", path.display()) };
    let mut text = String::new();
    File::open(path)
        .and_then(|f| f.take(MAX + 1).read_to_string(&mut text))
        .map_err(|e| failed(e.to_string()))?;
    let secret = text.trim();
    if secret.is_empty() {
        return Err(failed("the file is empty".into()));
    }
    if text.len() as u64 > MAX || secret.contains(['\n', '\r', '\0']) {
        return Err(failed("a token is one line of at most 64 KiB".into()));
    }
    Ok(secret.to_owned())
}
