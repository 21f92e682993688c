//! GPUs behind one trait: NVML of the driver, the files of AMD's and Intel's drivers, or a table of samples that is played.
//!
//! A value that a card, a MIG device or a driver does not tell is `None`; why a whole source is missing is a [`GpuGap`].

mod fake;
mod model;
mod nvml;
mod nvml_events;
mod several;
mod sysfs;
mod thread;

use std::time::Duration;

pub use fake::{Fake, ScriptError};
pub use model::{Device, DeviceId, Driver, Event, GpuProcess, Health, Reading};
pub use nvml::Nvml;
pub use several::{Several, of_machine};
pub use sysfs::SysfsGpus;
pub use thread::{Batch, GpuThread};

/// Why no GPU can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuGap {
    /// `libnvidia-ml.so.1` is not there: no driver on the host, or it is not mounted into this container.
    #[error("NVML is not installed: {0}")]
    NoLibrary(String),
    /// A static binary has no loader for it.
    #[error(
        "this build is static, and NVML cannot be loaded into it: use the build for glibc, the image, a package or the wheel"
    )]
    Static,
    /// The library is there, the driver does not answer.
    #[error("the GPU driver does not answer: {0}")]
    NoDriver(String),
    /// One call failed.
    #[error("{call}: {why}")]
    Call {
        /// What was asked.
        call: &'static str,
        /// The driver's answer.
        why: String,
    },
}

/// GPUs of a machine. Every method appends to or replaces what it is given, so that nothing is allocated anew each second.
pub trait Gpus: Send {
    /// All cards, each followed by its MIG devices. Readings name a device by its place in this list.
    ///
    /// # Errors
    /// No card can be listed.
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap>;

    /// Memory, use, clocks, power of each device at this moment. Devices that do not answer are left out and counted.
    fn read(&mut self, out: &mut Vec<Reading>) -> u32;

    /// Processes with memory on each device.
    fn processes(&mut self, out: &mut Vec<GpuProcess>);

    /// Error counters; slower than [`Gpus::read`] and seldom needed.
    fn health(&mut self, out: &mut Vec<Health>);

    /// Xids and other events since the last call. Kernel messages tell the same with their text and before anybody listens.
    fn events(&mut self, out: &mut Vec<Event>);

    /// Versions of the driver. They do not change while it is loaded.
    fn driver(&mut self) -> Driver {
        Driver::default()
    }

    /// Lets a played table go on by so much; real GPUs need no help.
    fn advance(&mut self, _by: Duration) {}
}

/// A machine without GPUs, or where they cannot be read.
#[derive(Debug, Clone)]
pub struct NoGpus(pub GpuGap);

impl Gpus for NoGpus {
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap> {
        out.clear();
        Err(self.0.clone())
    }
    fn read(&mut self, out: &mut Vec<Reading>) -> u32 {
        out.clear();
        0
    }
    fn processes(&mut self, out: &mut Vec<GpuProcess>) {
        out.clear();
    }
    fn health(&mut self, out: &mut Vec<Health>) {
        out.clear();
    }
    fn events(&mut self, _out: &mut Vec<Event>) {}
}

#[cfg(test)]
mod tests;
