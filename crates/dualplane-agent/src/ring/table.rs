//! What lives now: the notes that a new segment repeats, so that it can be read without the ones before.

use std::collections::BTreeMap;

use super::note::Note;

/// Notes by what they are of, as lines.
#[derive(Debug, Default)]
pub(super) struct Table {
    containers: BTreeMap<u16, (String, Vec<u8>)>,
    engines: BTreeMap<u16, Vec<u8>>,
    devices: Vec<u8>,
}

impl Table {
    pub(super) fn take(&mut self, note: &Note) {
        let mut line = Vec::new();
        note.put(&mut line);
        match note {
            Note::Container { slot, group, .. } => {
                self.containers.insert(*slot, (group.path().to_owned(), line));
            }
            Note::Gone { path, .. } => {
                let engines = &mut self.engines;
                self.containers.retain(|slot, (own, _)| {
                    let stays = own != path;
                    if !stays {
                        engines.remove(slot);
                    }
                    stays
                });
            }
            Note::Devices(_) => self.devices = line,
            Note::Engine { slot, .. } => {
                self.engines.insert(*slot, line);
            }
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let containers = self.containers.values().map(|(_, line)| line);
        for line in containers.chain(self.engines.values()).chain([&self.devices]) {
            out.extend_from_slice(line);
        }
    }
}
