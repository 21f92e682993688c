//! Counts Xid events by GPU, code and sub-code: a loop writes thousands of lines that say one thing.

use std::collections::BTreeMap;

use dualplane_core::facts::{XidEvent, pci_address};
use serde::{Deserialize, Serialize};

/// Kinds that are told apart. A node has 16 GPUs and some hundred codes, of which few occur.
const MAX_KINDS: usize = 4096;

/// What is one thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct XidKey {
    /// UUID of the GPU where it is known, else its PCI address.
    pub gpu: String,
    /// Code.
    pub code: u32,
    /// What tells two events of one code apart: [`sub_code`].
    pub sub: String,
}

/// How often, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XidCount {
    /// Lines.
    pub count: u64,
    /// Microseconds since boot of the first.
    pub first_us: u64,
    /// … of the last.
    pub last_us: u64,
    /// Number of the first record: its line can be found again.
    pub first_number: u64,
}

/// Counts by kind within one boot.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct XidCounts {
    counts: BTreeMap<XidKey, XidCount>,
    /// Lines of kinds beyond the limit.
    pub other: u64,
}

impl XidCounts {
    /// Takes one event in; says the how manieth of its kind it is.
    pub fn add(&mut self, event: &XidEvent, uuid: Option<&str>, number: u64, us: u64) -> u64 {
        let gpu = uuid.map(str::to_owned).or_else(|| pci_address(&event.pci));
        let gpu = gpu.unwrap_or_else(|| event.pci.clone());
        let key = XidKey { gpu, code: event.code, sub: sub_code(event) };
        if !self.counts.contains_key(&key) && self.counts.len() >= MAX_KINDS {
            self.other += 1;
            return self.other;
        }
        let c = self.counts.entry(key).or_insert_with(|| XidCount {
            count: 0,
            first_us: us,
            last_us: us,
            first_number: number,
        });
        c.count += 1;
        c.last_us = us;
        c.count
    }

    /// All kinds, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = (&XidKey, &XidCount)> {
        self.counts.iter()
    }

    /// All lines.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().map(|c| c.count).sum::<u64>() + self.other
    }

    /// Puts kept counts back.
    pub(super) fn restore(kept: Vec<(XidKey, XidCount)>, other: u64) -> Self {
        Self { counts: kept.into_iter().take(MAX_KINDS).collect(), other }
    }
}

/// What tells two events of one code apart, where the driver prints it: the recovery action (154), the kind and severity of
/// a link event (144 to 150), the function of a GSP timeout (119). Empty for the others, whose numbers differ each time.
#[must_use]
pub fn sub_code(event: &XidEvent) -> String {
    let words = |n: usize| event.detail.split_whitespace().take(n).collect::<Vec<_>>().join(" ");
    match event.code {
        144..=150 => words(2),
        154 => event
            .detail
            .rsplit_once('(')
            .and_then(|(_, r)| r.split_once(')'))
            .map(|(action, _)| action.to_owned())
            .unwrap_or_default(),
        119 => event
            .detail
            .split_once("function ")
            .and_then(|(_, r)| r.split([' ', ',']).next())
            .map(|f| format!("function {f}"))
            .unwrap_or_default(),
        _ => String::new(),
    }
}
