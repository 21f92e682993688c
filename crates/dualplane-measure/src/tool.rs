//! The load tool that a team has already: run it, and find the file that it wrote.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::SystemTime;

use dualplane_runs::tools::{MAX_FILE, Results, read};

/// Levels of folders that are looked into.
const DEEPEST: usize = 4;
/// Files that are looked at.
const MAX_FILES: usize = 2_000;

/// Starts a tool; it keeps this terminal.
///
/// # Errors
/// It cannot be started.
pub fn run(words: &[String]) -> io::Result<Child> {
    let (program, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program).args(rest).spawn()
}

/// Asks a tool to end in order.
pub fn ask_to_end(tool: &Child) {
    if let Some(pid) = i32::try_from(tool.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The newest result file that was written since: at `given`, at paths that the command line names, or in this folder.
#[must_use]
pub fn results(words: &[String], given: Option<&Path>, since: SystemTime) -> Option<(PathBuf, Results)> {
    let mut places: Vec<PathBuf> = Vec::new();
    match given {
        Some(path) => places.push(path.to_owned()),
        None => {
            for word in words.iter().skip(1) {
                let value = word.split_once('=').map_or(word.as_str(), |(_, v)| v);
                places.push(PathBuf::from(value));
                // Locust's --csv PREFIX.
                places.push(PathBuf::from(format!("{value}_stats.csv")));
            }
            places.push(PathBuf::from("artifacts"));
            places.push(PathBuf::from("."));
        }
    }
    // The first place that has one: what the command line names goes before what lies around.
    places.iter().find_map(|place| {
        let mut files = Vec::new();
        list(place, 0, &mut files);
        files.retain(|(when, _)| given.is_some() || *when >= since);
        files.sort_by(|a, b| b.cmp(a));
        files.into_iter().find_map(|(_, path)| {
            let text = fs::read_to_string(&path).ok()?;
            read(&text).map(|r| (path, r))
        })
    })
}

fn list(place: &Path, depth: usize, out: &mut Vec<(SystemTime, PathBuf)>) {
    let Ok(about) = fs::metadata(place) else { return };
    if about.is_file() {
        let ends = place.extension().is_some_and(|e| e == "json" || e == "csv");
        if ends && about.len() <= MAX_FILE && out.len() < MAX_FILES {
            out.push((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), place.to_owned()));
        }
        return;
    }
    if depth >= DEEPEST {
        return;
    }
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        // Links are not followed.
        if entry.file_type().is_ok_and(|t| !t.is_symlink()) && out.len() < MAX_FILES {
            list(&entry.path(), depth + 1, out);
        }
    }
}
