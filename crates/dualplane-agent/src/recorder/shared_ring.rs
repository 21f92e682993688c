//! The ring as the recorder writes it and the keeper reads it: notes beside the rounds, and the window before a death.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dualplane_core::evidence::RawFile;
use dualplane_node::clock::Moment;
use dualplane_node::cri::Named;
use dualplane_node::gpu::Device;

use super::freeze::Freeze;
use crate::ring::{Engine, Note, Ring};
use crate::series::{self, Labels, LastIncident};
use crate::view::View;

/// The window ends with the death and begins so long before.
const BEFORE: Duration = Duration::from_secs(10 * 60);

/// The ring, shared.
#[derive(Debug, Clone)]
pub(super) struct SharedRing {
    pub(super) ring: Arc<Mutex<Ring>>,
    pub(super) node: String,
}

impl SharedRing {
    pub(super) fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Series of a frozen container; `last` is how its instance before died.
    pub(super) fn series(&self, freeze: &Freeze, last: Option<LastIncident>) -> Vec<RawFile> {
        let to = freeze.noticed;
        let from = Moment(to.0.saturating_sub(u64::try_from(BEFORE.as_nanos()).unwrap_or(u64::MAX)));
        let path = freeze.container.as_ref().map(|c| c.group.path());
        // The ring is held for a moment only: the next round must not wait for this.
        let snapshot = self.ring().snapshot(from, to);
        let window = snapshot.window(from, to, &|p| Some(p) == path);
        let who = &freeze.who;
        let labels = Labels {
            node: self.node.clone(),
            namespace: who.namespace.clone(),
            pod: who.pod.clone(),
            container: who.container.clone(),
            last,
        };
        series::matrix(&window, &labels)
    }
}

/// Says in notes what changed since the last round.
#[derive(Debug, Default)]
pub(super) struct Notes {
    noted: HashMap<u16, (Option<Named>, Vec<String>)>,
    /// Commands that were masked: those of a loop are all the same.
    masked: HashMap<Vec<String>, Vec<String>>,
    devices: Vec<Device>,
    engines: HashMap<u16, Engine>,
}

/// Commands that are remembered masked.
const MAX_MASKED: usize = 256;

impl Notes {
    /// What the ring does not know yet. Commands are masked by the caller's function before they leave.
    pub(super) fn of(&mut self, view: &View, mask: &dyn Fn(Vec<String>) -> Vec<String>) -> Vec<Note> {
        let mut out = Vec::new();
        for c in view.containers.values() {
            // Of the first process: workers have commands of their own.
            let words = c.processes.processes.iter().min_by_key(|p| p.pid).map(|p| &p.words);
            let known = self.noted.get(&c.slot);
            let same = known.is_some_and(|(named, command)| {
                *named == c.named && words.is_none_or(|w| w.is_empty() || w == command)
            });
            if same {
                continue;
            }
            let raw = words.cloned().unwrap_or_default();
            if self.masked.len() >= MAX_MASKED {
                self.masked.clear();
            }
            let command = self.masked.entry(raw.clone()).or_insert_with(|| mask(raw.clone())).clone();
            out.push(Note::Container {
                slot: c.slot,
                group: c.group.clone(),
                named: c.named.clone(),
                command,
            });
            self.noted.insert(c.slot, (c.named.clone(), raw));
        }
        self.noted.retain(|slot, _| view.containers.contains_key(slot));
        for (slot, e) in view.containers.values().filter_map(|c| Some((c.slot, c.engine.as_ref()?))) {
            let engine = Engine { engine: e.engine.to_owned(), model: e.model.clone(), port: e.port };
            if self.engines.get(&slot) != Some(&engine) {
                out.push(Note::Engine { slot, engine: engine.clone() });
                self.engines.insert(slot, engine);
            }
        }
        self.engines.retain(|slot, _| view.containers.contains_key(slot));
        let devices = view.gpus.iter().map(|g| &g.device);
        if !devices.clone().eq(self.devices.iter()) {
            self.devices = devices.cloned().collect();
            out.push(Note::Devices(self.devices.clone()));
        }
        out
    }
}
