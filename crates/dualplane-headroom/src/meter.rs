//! Looks at both planes, remembers batches, answers. Time is given by the caller as seconds of one clock.

use crate::decide::{Allowed, Held, Refusal, Vram, refusal, share};
use crate::growth::Growth;
use crate::host::{Host, HostReader, Scope};
use crate::need::Needs;
use crate::vram::VramReader;

/// Between two whole looks, which read the group's statistics: the kernel sums them up for some ten microseconds. Between
/// them each answer reads the group's usage, one number.
const HOST_FRESH: f64 = 0.005;
/// Between two questions to the driver, which take up to a millisecond.
const VRAM_FRESH: f64 = 0.05;

/// A batch that runs.
#[derive(Debug, Clone, Copy)]
struct Open {
    id: u64,
    items: u64,
    since: f64,
    /// The dearest item that was seen while it ran.
    host_item: u64,
    vram_item: u64,
}

/// Reads, remembers, answers.
#[derive(Debug)]
pub struct Meter {
    host_reader: HostReader,
    vram_reader: Option<VramReader>,
    host: Option<Host>,
    vram: Option<Vram>,
    looked: f64,
    vram_looked: f64,
    growth: Growth,
    host_needs: Needs,
    vram_needs: Needs,
    open: Vec<Open>,
    next_id: u64,
    /// Held while no batch was open.
    host_idle: u64,
    vram_idle: u64,
    /// Seconds of the longest of the last batches, which fades.
    batch_seconds: f64,
    refused: u64,
    asked: u64,
}

impl Meter {
    /// Before its first look.
    #[must_use]
    pub fn new(host_reader: HostReader, vram_reader: Option<VramReader>) -> Self {
        Self {
            host_reader,
            vram_reader,
            host: None,
            vram: None,
            looked: f64::NEG_INFINITY,
            vram_looked: f64::NEG_INFINITY,
            growth: Growth::default(),
            host_needs: Needs::default(),
            vram_needs: Needs::default(),
            open: Vec::new(),
            next_id: 0,
            host_idle: 0,
            vram_idle: 0,
            batch_seconds: 0.0,
            refused: 0,
            asked: 0,
        }
    }

    /// Looks at what is older than it may be.
    pub fn look(&mut self, now: f64) {
        if now - self.looked >= HOST_FRESH {
            self.host = self.host_reader.read();
            self.looked = now;
            if let Some(host) = &self.host {
                self.growth.look(now, host.held);
            }
        }
        if now - self.vram_looked >= VRAM_FRESH
            && let Some(reader) = &mut self.vram_reader
        {
            if self.vram_looked.is_finite() {
                reader.advance(std::time::Duration::from_secs_f64(now - self.vram_looked));
            }
            self.vram = reader.read();
            self.vram_looked = now;
        }
        self.note_peaks();
    }

    /// What rose since no batch was open, by item of those that are.
    fn note_peaks(&mut self) {
        let (host, vram) = (self.host.map_or(0, |h| h.held), self.vram.as_ref().map_or(0, |v| v.used));
        let items = self.items_open();
        if items == 0 {
            (self.host_idle, self.vram_idle) = (host, vram);
            return;
        }
        let host_item = host.saturating_sub(self.host_idle).div_ceil(items);
        let vram_item = vram.saturating_sub(self.vram_idle).div_ceil(items);
        for open in &mut self.open {
            open.host_item = open.host_item.max(host_item);
            open.vram_item = open.vram_item.max(vram_item);
        }
    }

    fn items_open(&self) -> u64 {
        self.open.iter().map(|o| o.items).sum()
    }

    /// Whether a batch runs.
    #[must_use]
    pub fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The group's own number moved since the last whole look: what came is held until a look shows that it was page cache.
    fn host_now(&mut self) -> Option<Host> {
        let host = self.host?;
        let moved =
            self.host_reader.usage().filter(|(_, limit)| host.scope == Scope::Cgroup && *limit == host.limit);
        let came = moved.map_or(0, |(usage, _)| usage.saturating_sub(host.used));
        Some(Host { held: host.held.saturating_add(came), used: host.used.saturating_add(came), ..host })
    }

    /// The whole answer. `reusable`: bytes of VRAM that this process's own allocator holds and would use again.
    pub fn refusal(&mut self, now: f64, items: u64, allowed: &Allowed, reusable: u64) -> Option<Refusal> {
        self.look(now);
        let host = self.host_now();
        let open = self.items_open();
        let vram = self.vram.clone().map(|v| Vram { used: v.used.saturating_sub(reusable), ..v });
        let host_held = host
            .as_ref()
            .map(|h| (h, Held { now: h.held, idle: self.host_idle, open, needs: &self.host_needs }));
        let vram_held = vram.as_ref().map(|v| {
            let idle = self.vram_idle.saturating_sub(reusable);
            (v, Held { now: v.used, idle, open, needs: &self.vram_needs })
        });
        refusal(host_held, vram_held, self.growth.per_second(), self.batch_seconds, items, allowed)
    }

    /// The most items that have room, at most `wanted`.
    pub fn advise(&mut self, now: f64, wanted: u64, allowed: &Allowed, reusable: u64) -> u64 {
        self.look(now);
        let open = self.items_open();
        let mut most = wanted;
        if let Some(host) = &self.host {
            let held = Held { now: host.held, idle: self.host_idle, open, needs: &self.host_needs };
            most = most.min(held.items_within(share(host.limit, allowed.host), wanted));
        }
        if let (Some(vram), Some(percent)) = (&self.vram, allowed.vram) {
            let now = vram.used.saturating_sub(reusable);
            let held =
                Held { now, idle: self.vram_idle.saturating_sub(reusable), open, needs: &self.vram_needs };
            most = most.min(held.items_within(share(vram.total, percent), wanted));
        }
        if most > 0 && self.refusal(now, most, allowed, reusable).is_some() { 0 } else { most }
    }

    /// A batch begins; its number ends it.
    pub fn begin(&mut self, now: f64, items: u64) -> u64 {
        self.look(now);
        self.next_id += 1;
        let id = self.next_id;
        self.open.push(Open { id, items: items.max(1), since: now, host_item: 0, vram_item: 0 });
        id
    }

    /// The batch is over; what it took is learnt. Twice the same id does nothing.
    pub fn end(&mut self, now: f64, id: u64) {
        let Some(at) = self.open.iter().position(|o| o.id == id) else { return };
        self.look(now);
        let over = self.open.swap_remove(at);
        self.host_needs.learn(over.items, over.host_item.saturating_mul(over.items));
        if self.vram_reader.is_some() {
            self.vram_needs.learn(over.items, over.vram_item.saturating_mul(over.items));
        }
        self.batch_seconds = (self.batch_seconds * 0.9).max(now - over.since);
        if self.open.is_empty() {
            self.looked = f64::NEG_INFINITY;
        }
    }

    /// Both planes as of now. `None`: host RAM can no longer be read.
    pub fn seen(&mut self, now: f64) -> Option<Look> {
        self.look(now);
        let growth = self.growth.per_second();
        Some(Look {
            host: self.host?,
            vram: self.vram.clone(),
            growth,
            asked: self.asked,
            refused: self.refused,
        })
    }

    /// Bytes of host RAM and of VRAM that a batch of `items` needs; `None` before the first one.
    #[must_use]
    pub fn need(&self, items: u64) -> (Option<u64>, Option<u64>) {
        (self.host_needs.of(items), self.vram_needs.of(items))
    }

    /// [`Self::refusal`] as a yes or no, counted.
    pub fn has_room(&mut self, now: f64, items: u64, allowed: &Allowed, reusable: u64) -> bool {
        let refused = self.refusal(now, items, allowed, reusable).is_some();
        self.asked += 1;
        self.refused += u64::from(refused);
        !refused
    }
}

/// What [`Meter::seen`] shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Host RAM.
    pub host: Host,
    /// The fullest card.
    pub vram: Option<Vram>,
    /// Bytes a second that held host RAM grows; `None` before some seconds.
    pub growth: Option<f64>,
    /// Questions so far.
    pub asked: u64,
    /// Questions that were answered with no.
    pub refused: u64,
}
