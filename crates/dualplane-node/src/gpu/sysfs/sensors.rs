//! Sensors of a card below `hwmon`. Which number a sensor has differs by driver and kernel; its label says what it is.

use super::files::Folder;

/// Sensors of one kind.
const MAX_SENSORS: usize = 8;
/// The hottest place of the chip decides about its clocks: amdgpu calls it junction, xe the package.
const CHIP: [&str; 2] = ["junction", "pkg"];
const MEMORY: [&str; 2] = ["mem", "vram"];

#[derive(Debug)]
pub(super) struct Sensors {
    folder: Folder,
    chip: String,
    memory: Option<String>,
    clock: Option<String>,
    memory_clock: Option<String>,
}

impl Sensors {
    pub(super) fn of(folder: Folder) -> Self {
        let labelled = |kind: &str, labels: &[&str]| {
            (1..=MAX_SENSORS)
                .map(|i| format!("{kind}{i}"))
                .find(|s| folder.text(&format!("{s}_label")).is_some_and(|t| labels.contains(&t.trim())))
        };
        let input = |sensor: String| format!("{sensor}_input");
        Self {
            // Small cards have one sensor, without a label.
            chip: input(labelled("temp", &CHIP).unwrap_or_else(|| "temp1".to_owned())),
            memory: labelled("temp", &MEMORY).map(input),
            clock: labelled("freq", &["sclk"]).map(input),
            memory_clock: labelled("freq", &["mclk"]).map(input),
            folder,
        }
    }

    /// Thousandths of a degree in the file.
    fn degrees(&self, name: &str) -> Option<u32> {
        self.folder.number(name).and_then(|m| u32::try_from(m / 1000).ok())
    }

    /// Hertz in the file.
    fn clock(&self, name: Option<&String>) -> Option<u32> {
        self.folder.number(name?).and_then(|h| u32::try_from(h / 1_000_000).ok())
    }

    pub(super) fn celsius(&self) -> Option<u32> {
        self.degrees(&self.chip)
    }

    pub(super) fn memory_celsius(&self) -> Option<u32> {
        self.degrees(self.memory.as_ref()?)
    }

    pub(super) fn mhz(&self) -> Option<u32> {
        self.clock(self.clock.as_ref())
    }

    pub(super) fn memory_mhz(&self) -> Option<u32> {
        self.clock(self.memory_clock.as_ref())
    }

    /// Newer firmware tells power at the moment, older its average, both in microwatts.
    pub(super) fn milliwatts(&self) -> Option<u32> {
        let told = self.folder.number("power1_average").or_else(|| self.folder.number("power1_input"));
        told.and_then(|n| u32::try_from(n / 1000).ok())
    }

    pub(super) fn microjoules(&self) -> Option<u64> {
        self.folder.number("energy1_input")
    }
}
