//! Plays a table of samples: tests and demonstrations on machines without GPUs.
//!
//! A JSON object: `devices` as in [`Device`], `driver` as in [`Driver`], and `steps`, each with `at_ms` and what changes then: `readings`, `processes`
//! (all of them), `health`, `xids` (`[[device, code], …]`), `lost` (devices that answer no more). What a step leaves out
//! stays. Behind the last step all stays as it is, or `repeat_ms` begins it again.

use dualplane_base::order::Order as _;
use std::time::Duration;

use serde::Deserialize;

use super::{Device, DeviceId, Driver, Event, GpuGap, GpuProcess, Gpus, Health, Reading};
use crate::clock::Moment;

/// The table cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is no JSON of this form.
    #[error("the table of GPU samples: {0}")]
    Form(#[from] serde_json::Error),
    /// Something names a device that the list has not.
    #[error("the table of GPU samples names device {0}, but has only {1} devices")]
    Device(u16, usize),
}

#[derive(Debug, Deserialize)]
struct Script {
    devices: Vec<Device>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    driver: Driver,
    #[serde(default)]
    repeat_ms: Option<u64>,
    /// Why there are no GPUs: plays a machine without driver.
    #[serde(default)]
    gap: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    at_ms: u64,
    readings: Vec<Reading>,
    processes: Option<Vec<GpuProcess>>,
    health: Vec<Health>,
    xids: Vec<(DeviceId, u64)>,
    lost: Vec<DeviceId>,
}

/// GPUs of a table.
#[derive(Debug)]
pub struct Fake {
    script: Script,
    now_ms: u64,
    next: usize,
    readings: Vec<Reading>,
    processes: Vec<GpuProcess>,
    health: Vec<Health>,
    lost: Vec<DeviceId>,
    pending: Vec<(DeviceId, u64)>,
}

impl Fake {
    /// Reads a table and stands at its beginning.
    ///
    /// # Errors
    /// It has another form, or names a device that it does not list.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let mut script: Script = serde_json::from_str(text)?;
        script.steps.order_by_key(|s| s.at_ms);
        let count = script.devices.len();
        let named = script.steps.iter().flat_map(|s| {
            let processes = s.processes.iter().flatten().map(|p| p.device);
            s.readings
                .iter()
                .map(|r| r.device)
                .chain(processes)
                .chain(s.xids.iter().map(|x| x.0))
                .chain(s.lost.iter().copied())
        });
        if let Some(d) = named.into_iter().find(|d| usize::from(d.0) >= count) {
            return Err(ScriptError::Device(d.0, count));
        }
        let mut fake = Self {
            script,
            now_ms: 0,
            next: 0,
            readings: Vec::new(),
            processes: Vec::new(),
            health: Vec::new(),
            lost: Vec::new(),
            pending: Vec::new(),
        };
        fake.play();
        Ok(fake)
    }

    /// So many cards of 80 GiB, half full, with a process each: a machine to measure on.
    #[must_use]
    pub fn cards(count: u16) -> Self {
        let gib = 1_u64 << 30;
        let devices = (0..count).map(|i| Device {
            uuid: format!("GPU-{i:08x}-0000-0000-0000-000000000000"),
            index: u32::from(i),
            name: "NVIDIA H100 80GB HBM3".into(),
            pci: format!("0000:{i:02x}:00"),
            ..Device::default()
        });
        let readings = (0..count).map(|i| Reading {
            device: DeviceId(i),
            total: Some(dualplane_base::units::Bytes(80 * gib)),
            used: Some(dualplane_base::units::Bytes(40 * gib)),
            free: Some(dualplane_base::units::Bytes(40 * gib)),
            ..Reading::default()
        });
        let processes = (0..count).map(|i| GpuProcess {
            device: DeviceId(i),
            pid: u32::from(i) + 1000,
            used: Some(dualplane_base::units::Bytes(40 * gib)),
            other_kind: false,
        });
        Self {
            readings: readings.collect(),
            processes: processes.collect(),
            script: Script {
                devices: devices.collect(),
                steps: Vec::new(),
                driver: Driver::default(),
                repeat_ms: None,
                gap: None,
            },
            now_ms: 0,
            next: 0,
            health: Vec::new(),
            lost: Vec::new(),
            pending: Vec::new(),
        }
    }

    fn play(&mut self) {
        while let Some(step) = self.script.steps.get(self.next).filter(|s| s.at_ms <= self.now_ms) {
            for r in &step.readings {
                put(&mut self.readings, *r, |r| r.device);
            }
            for h in &step.health {
                put(&mut self.health, *h, |h| h.device);
            }
            if let Some(p) = &step.processes {
                self.processes.clone_from(p);
            }
            self.lost.extend(&step.lost);
            self.pending.extend(&step.xids);
            self.next += 1;
        }
    }
}

fn put<T>(list: &mut Vec<T>, new: T, device: impl Fn(&T) -> DeviceId) {
    match list.iter_mut().find(|t| device(t) == device(&new)) {
        Some(t) => *t = new,
        None => list.push(new),
    }
}

impl Gpus for Fake {
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap> {
        out.clear();
        if let Some(why) = &self.script.gap {
            return Err(GpuGap::NoDriver(why.clone()));
        }
        out.extend(self.script.devices.iter().cloned());
        Ok(())
    }

    fn read(&mut self, out: &mut Vec<Reading>) -> u32 {
        out.clear();
        out.extend(self.readings.iter().filter(|r| !self.lost.contains(&r.device)));
        u32::try_from(self.readings.len() - out.len()).unwrap_or(u32::MAX)
    }

    fn processes(&mut self, out: &mut Vec<GpuProcess>) {
        out.clear();
        out.extend(self.processes.iter().filter(|p| !self.lost.contains(&p.device)));
    }

    fn health(&mut self, out: &mut Vec<Health>) {
        out.clear();
        out.extend(&self.health);
    }

    fn events(&mut self, out: &mut Vec<Event>) {
        for (d, xid) in self.pending.drain(..) {
            if let Some(device) = self.script.devices.get(usize::from(d.0)) {
                out.push(Event { uuid: device.uuid.clone(), at: Moment::now(), xid: Some(xid) });
            }
        }
    }

    fn driver(&mut self) -> Driver {
        self.script.driver.clone()
    }

    fn advance(&mut self, by: Duration) {
        self.now_ms = self.now_ms.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        self.play();
        if let Some(again) = self.script.repeat_ms.filter(|r| *r > 0 && self.now_ms >= *r) {
            self.now_ms %= again;
            self.next = 0;
            self.lost.clear();
            self.play();
        }
    }
}
