//! What the sender must not forget: how far it has read, what waits, what each channel was told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use dualplane_incidents::{Incident, Time};
use dualplane_notify::Desk;
use serde::{Deserialize, Serialize};

const FILE: &str = "notify.json";
const DEAD: &str = "notify-dead.jsonl";
/// Messages that wait; a fleet that dies at once is told of by these and by its page.
const ITEMS: usize = 10_000;

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) target: String,
    pub(super) incident: String,
    pub(super) due: Time,
    pub(super) tries: u32,
    /// It was decided to send it, with so many folded into it.
    pub(super) decided: Option<u64>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) from: Time,
    /// Those of the last moments, which may come to light out of order.
    seen: BTreeSet<(Time, String)>,
    pub(super) items: Vec<Item>,
    desks: BTreeMap<String, Desk>,
}

/// Longer than anything waits.
const FAR_MS: i64 = 8 * 86_400_000;

impl State {
    /// What was kept; a sender that is new begins now, and tells nothing of the past. Older versions kept it in a file.
    pub(super) fn load(saved: Option<&str>, folder: &Path, now: Time) -> Result<Self, String> {
        let read = |bytes: &[u8], of: &str| {
            serde_json::from_slice(bytes)
                .map_err(|e| format!("{of} cannot be read: {e}; remove it to begin anew"))
        };
        if let Some(body) = saved {
            return read(body.as_bytes(), "the state of `notify` in the table `states`");
        }
        let path = folder.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => read(&bytes, &path.display().to_string()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Ok(Self { from: now, seen: BTreeSet::new(), items: Vec::new(), desks: BTreeMap::new() })
            }
            Err(e) => Err(format!("cannot read {}: {e}", path.display())),
        }
    }

    /// As it is kept.
    pub(super) fn body(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// It was not seen before; those before `start` are forgotten.
    pub(super) fn is_new(&mut self, i: &Incident, start: Time) -> bool {
        self.seen.retain(|(at, _)| *at >= start);
        self.from = self.from.max(i.received_at);
        self.seen.insert((i.received_at, i.id.clone()))
    }

    /// Nothing more is read until some are sent.
    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= ITEMS
    }

    /// One that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Item> {
        // What a clock that had jumped put off is due: no quiet hours last for a week.
        let far = Time::from_ms(now.ms().saturating_add(FAR_MS));
        let at = self.items.iter().position(|i| i.due <= now || i.due > far)?;
        Some(self.items.remove(at))
    }

    pub(super) fn desk(&mut self, target: &str) -> &mut Desk {
        self.desks.entry(target.to_owned()).or_default()
    }
}

/// Keeps what could not be sent.
pub(super) fn bury(folder: &Path, item: &Item, why: &str, now: Time) -> io::Result<()> {
    let line = serde_json::json!({"at": now, "channel": item.target, "incident": item.incident, "tries": item.tries, "why": why});
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join(DEAD))?;
    writeln!(file, "{line}")
}
