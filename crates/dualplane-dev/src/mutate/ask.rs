//! Questions to the oracle, asked once: answers stay on disk beside the requests.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::DevError;

/// One question.
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) config: Value,
    pub(super) request: Map<String, Value>,
}

/// The answers that are there, and those that the oracle gives to the rest. A question that was asked otherwise before is
/// asked again.
pub(super) fn answers(
    work: &Path,
    asked: &[Asked],
    oracle: Option<&str>,
) -> Result<HashMap<String, Value>, DevError> {
    let file = work.join("answers.jsonl");
    let known = read(&file)?;
    let open: Vec<&Asked> = asked.iter().filter(|a| !known.contains_key(&a.id)).collect();
    let mut requests = String::new();
    for a in &open {
        let _ = writeln!(requests, "{}", Value::Object(a.request.clone()));
    }
    let path = work.join("requests.jsonl");
    let unreadable = |path: &Path| {
        let path = path.to_path_buf();
        move |source| DevError::Unreadable { path, source }
    };
    fs::write(&path, requests).map_err(unreadable(&path))?;
    if let (Some(oracle), false) = (oracle, open.is_empty()) {
        let input = File::open(&path).map_err(unreadable(&path))?;
        let output = File::options().create(true).append(true).open(&file).map_err(unreadable(&file))?;
        // As the user typed it: a command with its arguments.
        let status =
            Command::new("sh").args(["-c", oracle]).stdin(input).stdout(Stdio::from(output)).status();
        let status = status.map_err(unreadable(Path::new(oracle)))?;
        if !status.success() {
            let why = format!("ended with {status}");
            return Err(DevError::Rejected { path: oracle.into(), why });
        }
        return read(&file);
    }
    Ok(known)
}

fn read(file: &Path) -> Result<HashMap<String, Value>, DevError> {
    if !file.is_file() {
        return Ok(HashMap::new());
    }
    let mut out = HashMap::new();
    for line in crate::read(file)?.lines() {
        // A line that was cut off with its process is asked again.
        let Ok(answer) = serde_json::from_str::<Value>(line) else { continue };
        if let Some(id) = answer.get("id").and_then(Value::as_str) {
            out.insert(id.to_owned(), answer);
        }
    }
    Ok(out)
}
