//! The load tool that a team has already: run it, and find the file that it wrote.

use dualplane_base::order::Order as _;
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
            places.extend(words.iter().skip(1).flat_map(|w| named(w)));
            places.push(PathBuf::from("artifacts"));
            places.push(PathBuf::from("."));
        }
    }
    // The first place that has one: what the command line names goes before what lies around.
    places.iter().find_map(|place| {
        let mut files = Vec::new();
        list(place, 0, &mut files);
        files.retain(|(when, _)| given.is_some() || *when >= since);
        files.order_by(|a, b| b.cmp(a));
        files.into_iter().find_map(|(_, path)| {
            let text = fs::read_to_string(&path).ok()?;
            read(&text).map(|r| (path, r))
        })
    })
}

/// Paths that a word of a command line may name: itself, what stands behind `=`, each part of `kind=json,path=FILE` (guidellm from
/// 0.8 on), and Locust's `--csv PREFIX`.
fn named(word: &str) -> Vec<PathBuf> {
    let value = word.split_once('=').map_or(word, |(_, v)| v);
    let parts = word.split(',').filter_map(|p| p.rsplit_once('=')).map(|(_, v)| v.to_owned());
    let whole = [value.to_owned(), format!("{value}_stats.csv")];
    whole.into_iter().chain(parts).filter(|p| !p.is_empty()).map(PathBuf::from).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_its_file_in_each_tools_way() {
        let of = |word: &str, path: &str| named(word).iter().any(|p| p == Path::new(path));
        assert!(of("out.json", "out.json") && of("--output-path=out.json", "out.json"));
        assert!(of("kind=json,path=/tmp/out.json", "/tmp/out.json"));
        assert!(of("--output=kind=json,path=o.json", "o.json") && of("runs/lo", "runs/lo_stats.csv"));
    }
}
