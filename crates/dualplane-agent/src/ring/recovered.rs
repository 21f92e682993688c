//! What the runs before knew: containers that lived when the agent ended. One of them that is not there now died unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dualplane_node::cgroup::{Group, Memory};
use dualplane_node::clock::Moment;
use dualplane_node::cri::Named;
use dualplane_node::node::Shm;
use dualplane_node::sample::{FIELDS, Record, RecordKind};

use super::files::Files;
use super::note::Note;
use super::segment::{self, Item, Range, Reader};

/// What earlier runs of this boot left.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// Containers that were known and not marked as gone, by path.
    pub containers: Vec<RecoveredContainer>,
    /// The last record of all.
    pub last: Option<Moment>,
    /// Segments that ended before their bytes did.
    pub torn: u64,
}

/// A container as an earlier run last saw it.
#[derive(Debug, Clone)]
pub struct RecoveredContainer {
    /// Which.
    pub group: Group,
    /// Its names.
    pub named: Option<Named>,
    /// Command of its first process, secrets masked; empty where it is not known.
    pub command: Vec<String>,
    /// Its memory, each field as new as it was ever read.
    pub memory: Memory,
    /// Use of `/dev/shm` of its pod.
    pub shm: Option<Shm>,
    /// Its last record; `None` where none is kept.
    pub at: Option<Moment>,
}

#[derive(Debug)]
struct Known {
    group: Group,
    named: Option<Named>,
    command: Vec<String>,
    run: u64,
    last: Option<Record>,
    shm: Option<Shm>,
}

/// Reads all segments of this boot, in their order. Their ranges are kept for windows.
pub(super) fn recover(files: &mut Files, boot: &str) -> Recovered {
    let mut out = Recovered::default();
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut bytes = Vec::new();
    for s in files.of_boot_mut(boot) {
        if segment::load(&s.path, &mut bytes).is_err() {
            continue;
        }
        let Some(mut reader) = Reader::new(&bytes) else { continue };
        let run = reader.header.run;
        let mut slots: BTreeMap<u16, String> = BTreeMap::new();
        while let Some(item) = reader.next() {
            match item {
                Item::Table(notes) => {
                    // A segment between was lost: what this run does not list any more was dealt with in it.
                    let paths = notes.iter().filter_map(|n| match n {
                        Note::Container { group, .. } => Some(group.path()),
                        _ => None,
                    });
                    let listed: BTreeSet<&str> = paths.collect();
                    known.retain(|path, k| k.run != run || listed.contains(path.as_str()));
                    notes.into_iter().for_each(|n| take(n, run, &mut slots, &mut known));
                }
                Item::Notes(notes) => notes.into_iter().for_each(|n| take(n, run, &mut slots, &mut known)),
                Item::Records(records) => {
                    s.range = Range::with(s.range, records);
                    for r in records {
                        if let Some(k) = slots.get(&r.slot).and_then(|path| known.get_mut(path)) {
                            k.record(r);
                        }
                    }
                }
            }
        }
        out.torn += u64::from(reader.torn);
        out.last = out.last.max(s.range.map(|r| r.to));
    }
    out.containers = known.into_values().map(Known::recovered).collect();
    out
}

/// From when to when the records of one file are.
pub(super) fn range_of(path: &Path) -> Option<Range> {
    let mut bytes = Vec::new();
    segment::load(path, &mut bytes).ok()?;
    let mut reader = Reader::new(&bytes)?;
    let mut range = None;
    while let Some(item) = reader.next() {
        if let Item::Records(records) = item {
            range = Range::with(range, records);
        }
    }
    range
}

fn take(note: Note, run: u64, slots: &mut BTreeMap<u16, String>, known: &mut BTreeMap<String, Known>) {
    match note {
        Note::Container { slot, group, named, command } => {
            let path = group.path().to_owned();
            slots.insert(slot, path.clone());
            let k = known.entry(path).or_insert(Known {
                group,
                named: None,
                command: Vec::new(),
                run,
                last: None,
                shm: None,
            });
            k.run = run;
            k.named = named.or(k.named.take());
            if !command.is_empty() {
                k.command = command;
            }
        }
        Note::Gone { path, .. } => {
            known.remove(&path);
        }
        Note::Devices(_) | Note::Engine { .. } => {}
    }
}

impl Known {
    fn record(&mut self, r: &Record) {
        match r.kind {
            RecordKind::Container => self.last = Some(self.last.map_or(*r, |old| over(r, &old))),
            RecordKind::Shm => self.shm = r.shm_use().or(self.shm),
            _ => {}
        }
    }

    fn recovered(self) -> RecoveredContainer {
        RecoveredContainer {
            group: self.group,
            named: self.named,
            command: self.command,
            memory: self.last.and_then(|r| r.memory()).unwrap_or_default(),
            shm: self.shm,
            at: self.last.map(|r| r.at),
        }
    }
}

/// A record, with the fields that it has not from an older one.
fn over(new: &Record, old: &Record) -> Record {
    let mut values = [0; FIELDS];
    for (i, value) in values.iter_mut().enumerate() {
        *value = new.field(i).or(old.field(i)).unwrap_or_default();
    }
    Record::of_parts(new.kind, new.slot, new.at, new.present() | old.present(), &values)
}
