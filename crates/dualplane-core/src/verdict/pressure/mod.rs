//! How a server that lives stands against its limits, on both planes: a finding beside the verdict, no class of death.
//!
//! The sources are those of a moment (kubectl top, memory files of a cgroup, nvidia-smi) and of a time (series of
//! Prometheus or of the agent). What is of a dead instance says nothing here.

mod gpu;
mod growth;
mod host;
mod living;
pub(super) mod missing;
pub(super) mod thresholds;

use dualplane_base::order::Order as _;
pub use growth::Growth;
pub(super) use growth::of as growth_of;
pub(super) use living::{Living, containers as living_containers};
pub use thresholds::VRAM_HIGH;

use super::{Plane, Subject};
use crate::evidence::Bundle;
use crate::facts::{Facts, Place};
use crate::time::Stamp;
use crate::units::Bytes;

/// How near a use is to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Well below it, or where it belongs.
    Normal,
    /// Near it.
    Near,
    /// At it, or there within a day.
    High,
}

impl Level {
    /// Stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Near => "near",
            Self::High => "high",
        }
    }
}

/// Which plane binds the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Neither.
    None,
    /// Host RAM.
    Host,
    /// VRAM or the KV cache.
    Gpu,
    /// Both.
    Both,
}

impl Bound {
    /// Stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
            Self::Gpu => "gpu",
            Self::Both => "both",
        }
    }
}

/// One use against its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Plane.
    pub plane: Plane,
    /// How near.
    pub level: Level,
    /// `working set of container vllm`, `VRAM of GPU 0`, `KV cache`.
    pub what: String,
    /// Whose host RAM it is, where told.
    pub container: Option<String>,
    /// Used and limit; a KV cache tells only its share.
    pub bytes: Option<(Bytes, Bytes)>,
    /// Used of the limit.
    pub share: f64,
    /// When it was measured, where told.
    pub stamp: Option<Stamp>,
    /// Where it stands.
    pub place: Place,
    /// Why the level is not what the share alone says, or what else it means.
    pub note: Option<String>,
    /// How it grows.
    pub growth: Option<Growth>,
}

impl Reading {
    /// `VRAM of GPU 0: 76.20 GiB of 79.65 GiB (96 %)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let percent = self.share * 100.0;
        match self.bytes {
            Some((used, limit)) => format!("{}: {used} of {limit} ({percent:.0} %)", self.what),
            None => format!("{}: {percent:.0} % full", self.what),
        }
    }

    /// The same with how it grows.
    #[must_use]
    pub fn told(&self) -> String {
        let growth = self.growth.as_ref().map(|g| format!(", {}", g.sentence())).unwrap_or_default();
        format!("{}{growth}", self.sentence())
    }

    /// Raises the level where the limit will be reached soon.
    fn foreseen(mut self) -> Self {
        if self.growth.as_ref().is_some_and(|g| g.is_pressing(self.share)) {
            self.level = Level::High;
        }
        self
    }
}

/// Both planes of a living server.
#[derive(Debug, Clone)]
pub struct Pressure {
    /// Which binds it.
    pub bound: Bound,
    /// Host first, the fullest of a plane first.
    pub readings: Vec<Reading>,
}

impl Pressure {
    /// The fullest of a plane.
    #[must_use]
    pub fn worst(&self, plane: Plane) -> Option<&Reading> {
        self.readings.iter().find(|r| r.plane == plane)
    }
}

/// Readings of one plane that are kept.
const KEPT: usize = 8;

/// Reads both planes; `None` where nothing tells of a server that lives.
pub(super) fn of(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<Pressure> {
    let living = living::containers(bundle, subject);
    if living.is_empty() {
        return None;
    }
    let mut host = host::readings(bundle, subject, &living);
    let mut gpu = gpu::readings(bundle, facts, subject, &living);
    for plane in [&mut host, &mut gpu] {
        plane.order_by(|a, b| b.level.cmp(&a.level).then(b.share.total_cmp(&a.share)));
        plane.truncate(KEPT);
    }
    let high = |plane: &[Reading]| plane.first().is_some_and(|r| r.level == Level::High);
    let bound = match (high(&host), high(&gpu)) {
        (true, true) => Bound::Both,
        (true, false) => Bound::Host,
        (false, true) => Bound::Gpu,
        (false, false) => Bound::None,
    };
    host.append(&mut gpu);
    (!host.is_empty()).then_some(Pressure { bound, readings: host })
}
