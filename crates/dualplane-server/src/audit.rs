//! One line for whatever changes something or is refused: who, what, outcome. Without bodies, queries and tokens.

use std::fs::{File, OpenOptions};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::json;

/// Lines that may wait for the disk.
const QUEUE: usize = 4096;
/// Bytes after which a new file begins; the one before is kept.
const LARGEST: u64 = 64 << 20;
/// Characters of a path.
const PATH: usize = 300;

/// The log.
#[derive(Debug, Clone)]
pub struct Audit {
    lines: SyncSender<String>,
}

impl Audit {
    /// Appends to this file; `-` is standard output, as for an API server.
    ///
    /// # Errors
    ///
    /// Where it cannot be opened.
    pub fn open(path: PathBuf) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("audit".into());
        if path == Path::new("-") {
            thread.spawn(move || print(&queue))?;
        } else {
            let file = append(&path)?;
            thread.spawn(move || write(&queue, file, &path))?;
        }
        Ok(Self { lines })
    }

    /// Writes a line. A disk that is full loses lines; it must not end what serves.
    pub fn note(&self, at: &str, who: &str, from: &str, method: &str, path: &str, status: u16) {
        let path: String = path.chars().take(PATH).collect();
        let line =
            json!({"time": at, "who": who, "from": from, "method": method, "path": path, "status": status});
        let _ = self.lines.try_send(format!("{line}\n"));
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn print(queue: &Receiver<String>) {
    while let Ok(line) = queue.recv() {
        let _ = stdout().write_all(line.as_bytes());
    }
}

fn write(queue: &Receiver<String>, mut file: File, path: &Path) {
    let mut held = file.metadata().map_or(0, |m| m.len());
    while let Ok(line) = queue.recv() {
        if held > LARGEST && std::fs::rename(path, path.with_extension("1.jsonl")).is_ok() {
            match append(path) {
                Ok(new) => (file, held) = (new, 0),
                Err(_) => return,
            }
        }
        if file.write_all(line.as_bytes()).is_ok() {
            held += line.len() as u64;
        }
    }
}
