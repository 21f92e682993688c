//! Records of changes on this machine: one file each below the user's state folder, so that they can be undone.

use dualplane_base::hash::fnv1a;
use dualplane_base::order::Order as _;
use std::io;
use std::path::{Path, PathBuf};

use dualplane_core::change::{Record, State};

use crate::commands::Failure;
use crate::{files, output};

/// A record is some KiB; a file beyond this is none.
const MAX_RECORD: u64 = 16 << 20;

/// The folder of the records.
#[derive(Debug)]
pub(crate) struct Changes {
    folder: PathBuf,
}

impl Changes {
    /// `$XDG_STATE_HOME/dualplane/changes`, else below `~/.local/state`.
    pub(crate) fn here() -> Result<Self, Failure> {
        let env = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let state = env("XDG_STATE_HOME")
            .or_else(|| env("LOCALAPPDATA"))
            .or_else(|| env("HOME").map(|home| home.join(".local/state")))
            .ok_or_else(|| Failure::NotChanged {
                why: "cannot store a record of the change: neither XDG_STATE_HOME nor HOME is set".into(),
                hint: Some("set one of them; without a record, the change could not be undone".into()),
            })?;
        Ok(Self { folder: state.join("dualplane/changes") })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// A name that no record has. Its parts only make it new; it is short because people type it.
    pub(crate) fn new_id(&self, seed: &str) -> String {
        let of = |turn| fnv1a(seed.bytes().chain([turn]));
        for turn in 0..u8::MAX {
            let hash = of(turn);
            let id = format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff));
            if !self.path(&id).exists() {
                return id;
            }
        }
        format!("{:016x}", of(u8::MAX))
    }

    /// Writes a record, new or again.
    pub(crate) fn write(&self, record: &Record) -> Result<(), Failure> {
        let path = self.path(&record.id);
        let text = record.render()?;
        make(&self.folder)
            .and_then(|()| files::write_whole(&path, text.as_bytes()))
            .map_err(|source| Failure::Unwritable { path, source })
    }

    /// All records, newest first. A file that is none is said and left alone.
    pub(crate) fn all(&self) -> Result<Vec<Record>, Failure> {
        let unreadable = |source| Failure::Unreadable { path: self.folder.clone(), source };
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(unreadable(e)),
        };
        let mut out = Vec::new();
        for entry in entries {
            let path = entry.map_err(unreadable)?.path();
            let hidden = path.file_name().is_none_or(|n| n.to_string_lossy().starts_with('.'));
            if hidden || path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let small = std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= MAX_RECORD);
            let record = small.then(|| std::fs::read(&path).ok()).flatten().and_then(|b| Record::parse(&b));
            match record {
                Some(record) if path == self.path(&record.id) => out.push(record),
                _ => output::note(&format!("ignored {}: it is not a change record", path.display())),
            }
        }
        out.order_by(|a, b| b.when.cmp(&a.when).then(b.id.cmp(&a.id)));
        Ok(out)
    }
}

/// The folder, for its owner alone: records hold the values that were changed.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        builder.mode(0o700);
        builder.create(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
    }
    #[cfg(not(unix))]
    builder.create(folder)
}

/// The record that a word names: an id, or the beginning of one alone.
pub(crate) fn find(records: Vec<Record>, word: &str) -> Result<Record, Failure> {
    let flag = |why: String| Failure::Flag { flag: "ID", why };
    let mut found: Vec<Record> = records.into_iter().filter(|r| r.id.starts_with(word)).collect();
    if let Some(exact) = found.iter().position(|r| r.id == word) {
        return Ok(found.swap_remove(exact));
    }
    let ids: Vec<&str> = found.iter().map(|r| r.id.as_str()).collect();
    match ids.as_slice() {
        [_] => found.pop().ok_or_else(|| flag(String::new())),
        [] => Err(flag(format!(
            "no change has the ID {word}; `{} rollback` lists all \
            changes",
            crate::invoked::name()
        ))),
        many => Err(flag(format!("{word} may be {}", many.join(", ")))),
    }
}

/// The last change that may have been made and was not undone.
pub(crate) fn last(records: Vec<Record>) -> Option<Record> {
    records.into_iter().find(|r| !matches!(r.state, State::Failed | State::RolledBack))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_core::change::{ObjectRef, SCHEMA};
    use serde_json::json;

    fn record(id: &str, when: &str, state: State) -> Record {
        let text = json!({"schema": SCHEMA, "id": id, "state": state, "when": when, "tool": "t", "server": "s",
            "object": ObjectRef { api_version: "v1".into(), kind: "Pod".into(), resource: "pods".into(),
                subresource: None, namespace: None, name: "p".into(), uid: "u".into() },
            "patch_type": "p", "patch": {}, "changes": [], "undo": "u"});
        Record::parse(text.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn records_are_kept_for_their_owner_and_read_again() {
        let home = tempfile::tempdir().unwrap();
        let changes = Changes { folder: home.path().join("a/changes") };
        assert!(changes.all().unwrap().is_empty());
        changes.write(&record("aa11", "2026-01-01T00:00:00Z", State::Planned)).unwrap();
        changes.write(&record("aa11", "2026-01-01T00:00:00Z", State::Applied)).unwrap();
        changes.write(&record("ab22", "2026-01-02T00:00:00Z", State::Failed)).unwrap();
        std::fs::write(changes.folder.join("broken.json"), b"{").unwrap();
        let all = changes.all().unwrap();
        assert_eq!(all.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["ab22", "aa11"]);
        assert_eq!(all[1].state, State::Applied);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&changes.folder), mode(&changes.path("aa11"))), (0o700, 0o600));
        }
        assert_ne!(changes.new_id("x"), "aa11");
        assert_eq!(find(all.clone(), "aa").unwrap().id, "aa11");
        assert!(find(all.clone(), "a").is_err() && find(all.clone(), "x").is_err());
        assert_eq!(last(all).unwrap().id, "aa11");
    }
}
