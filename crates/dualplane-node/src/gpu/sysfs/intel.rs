//! xe and i915: memory of the tiles, clocks and reasons why they are low, energy and heat.

use dualplane_base::units::Bytes;

use super::files::Folder;
use super::sensors::Sensors;
use crate::clock::Moment;
use crate::gpu::Reading;

/// Tiles of a card: Ponte Vecchio has two.
const MAX_TILES: usize = 4;

/// As `nvmlClocksEventReasons` numbers them: a power cap (no fault), heat, and what the board asserts.
const POWER_CAP: u64 = 0x4;
const HEAT: u64 = 0x20;
const BOARD: u64 = 0x80;
/// Reasons that both drivers name, in `throttle/reason_NAME` and `throttle_reason_NAME`.
const REASONS: [(&str, u64); 8] = [
    ("pl1", POWER_CAP),
    ("pl2", POWER_CAP),
    ("pl4", POWER_CAP),
    ("thermal", HEAT),
    ("prochot", BOARD),
    ("ratl", HEAT),
    ("vr_thermalert", HEAT),
    ("vr_tdc", POWER_CAP),
];

/// Microjoules at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Energy {
    at: Moment,
    microjoules: u64,
}

/// xe tells it by tile, i915 of Intel's own releases in one file. An integrated unit has neither.
pub(super) fn total(node: &Folder, card: &Folder) -> Option<Bytes> {
    let tiles =
        (0..MAX_TILES).filter_map(|i| card.below(&format!("tile{i}")).number("physical_vram_size_bytes"));
    let tiles: Option<u64> = tiles.reduce(u64::saturating_add);
    tiles.or_else(|| node.number("lmem_total_bytes")).map(Bytes)
}

pub(super) fn read(
    node: &Folder,
    card: &Folder,
    sensors: Option<&Sensors>,
    energy: &mut Option<Energy>,
    r: &mut Reading,
) {
    let xe = card.below("tile0").below("gt0").below("freq0");
    let i915 = node.below("gt").below("gt0");
    r.sm_mhz = xe.small("act_freq").or_else(|| i915.small("rps_act_freq_mhz"));
    let throttle = xe.below("throttle");
    let told: Vec<(u64, u64)> = REASONS
        .into_iter()
        .filter_map(|(name, bit)| {
            let on = throttle.number(&format!("reason_{name}"));
            Some((on.or_else(|| i915.number(&format!("throttle_reason_{name}")))?, bit))
        })
        .collect();
    if !told.is_empty() {
        r.throttle = Some(told.iter().filter(|(on, _)| *on > 0).fold(0, |bits, (_, bit)| bits | bit));
    }
    let Some(s) = sensors else { return };
    r.celsius = s.celsius();
    let Some(microjoules) = s.microjoules() else { return };
    let now = Energy { at: Moment::now(), microjoules };
    if let Some(before) = *energy {
        let ms = u64::try_from(now.at.since(before.at).as_millis()).unwrap_or(u64::MAX);
        if ms == 0 {
            return;
        }
        // Microjoules in a millisecond are milliwatts.
        r.power_mw = u32::try_from(microjoules.saturating_sub(before.microjoules) / ms).ok();
    }
    *energy = Some(now);
}
