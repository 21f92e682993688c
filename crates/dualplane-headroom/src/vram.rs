//! VRAM through the driver: the fullest of the cards that are asked for.

use dualplane_base::units::Bytes;
use dualplane_node::gpu::{Device, Fake, Gpus, Nvml, Reading};

use crate::decide::Vram;

/// A source of cards, with those that count.
pub struct VramReader {
    gpus: Box<dyn Gpus>,
    devices: Vec<Device>,
    readings: Vec<Reading>,
    /// UUIDs or indices; empty: all that the driver shows.
    wanted: Vec<String>,
}

impl VramReader {
    /// The driver's library, else a table of samples (tests on machines without a card).
    ///
    /// # Errors
    /// No driver, no card, or one that is wanted and not there; a sentence.
    pub fn open(wanted: Vec<String>, table: Option<&str>) -> Result<Self, String> {
        let mut gpus: Box<dyn Gpus> = match table {
            Some(text) => Box::new(Fake::from_json(text).map_err(|e| e.to_string())?),
            None => Nvml::boxed(None).map_err(|e| e.to_string())?,
        };
        let mut devices = Vec::new();
        gpus.devices(&mut devices).map_err(|e| e.to_string())?;
        let known = |w: &String| devices.iter().any(|d| names(d, w));
        if let Some(missing) = wanted.iter().find(|w| !known(w)) {
            let all: Vec<_> = devices.iter().map(|d| format!("{} ({})", d.index, d.uuid)).collect();
            return Err(format!("no GPU `{missing}`; there are {}", all.join(", ")));
        }
        Ok(Self { gpus, devices, readings: Vec::new(), wanted })
    }

    /// The card that is fullest; `None` where none answers.
    pub(crate) fn read(&mut self) -> Option<Vram> {
        self.gpus.read(&mut self.readings);
        let mut fullest: Option<Vram> = None;
        for reading in &self.readings {
            let Some(device) = self.devices.get(usize::from(reading.device.0)) else { continue };
            if !self.wanted.is_empty() && !self.wanted.iter().any(|w| names(device, w)) {
                continue;
            }
            let (Some(Bytes(used)), Some(Bytes(total))) = (reading.used, reading.total) else { continue };
            let fuller =
                |v: &Vram| u128::from(used) * u128::from(v.total) > u128::from(v.used) * u128::from(total);
            if total > 0 && fullest.as_ref().is_none_or(fuller) {
                fullest = Some(Vram { device: device.uuid.clone(), used, total });
            }
        }
        fullest
    }

    /// Lets a table go on; a driver needs no help.
    pub(crate) fn advance(&mut self, by: std::time::Duration) {
        self.gpus.advance(by);
    }
}

impl std::fmt::Debug for VramReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VramReader").field("devices", &self.devices.len()).finish_non_exhaustive()
    }
}

/// The UUID or its beginning, as `CUDA_VISIBLE_DEVICES` allows it, or the index of a card.
fn names(device: &Device, wanted: &str) -> bool {
    let by_index = device.card.is_none() && wanted.parse() == Ok(device.index);
    by_index || (wanted.len() >= 8 && device.uuid.starts_with(wanted))
}
