//! Several sources of GPUs as one: a machine may have cards of two vendors.

use std::path::Path;
use std::time::Duration;

use super::{Device, DeviceId, Driver, Event, GpuGap, GpuProcess, Gpus, Health, NoGpus, Reading, SysfsGpus};

/// What can be read on this machine: NVIDIA's cards where its library was loaded or an exporter tells them, those of AMD and Intel below `/sys`.
#[must_use]
pub fn of_machine(nvidia: Result<Box<dyn Gpus>, GpuGap>, sys: &Path) -> Box<dyn Gpus> {
    match (nvidia, SysfsGpus::below(sys)) {
        (Ok(nvidia), None) => nvidia,
        (Ok(nvidia), Some(others)) => Box::new(Several::new(vec![nvidia, Box::new(others)])),
        (Err(_), Some(others)) => Box::new(others),
        (Err(gap), None) => Box::new(NoGpus(gap)),
    }
}

/// One source behind another: the devices of each follow those of the one before it.
pub struct Several {
    all: Vec<(Box<dyn Gpus>, u16)>,
}

impl Several {
    /// Of these.
    #[must_use]
    pub fn new(all: Vec<Box<dyn Gpus>>) -> Self {
        Self { all: all.into_iter().map(|g| (g, 0)).collect() }
    }
}

impl std::fmt::Debug for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Several").field("sources", &self.all.len()).finish_non_exhaustive()
    }
}

fn moved(id: DeviceId, by: u16) -> DeviceId {
    DeviceId(id.0.saturating_add(by))
}

impl Gpus for Several {
    fn devices(&mut self, out: &mut Vec<Device>) -> Result<(), GpuGap> {
        out.clear();
        let mut first = None;
        let mut one = Vec::new();
        for (gpus, base) in &mut self.all {
            *base = u16::try_from(out.len()).unwrap_or(u16::MAX);
            match gpus.devices(&mut one) {
                Ok(()) => out.extend(one.drain(..).map(|mut d| {
                    d.card = d.card.map(|c| moved(c, *base));
                    d
                })),
                Err(gap) => first = first.or(Some(gap)),
            }
        }
        // One vendor's fault does not hide the other's cards.
        if out.is_empty() { first.map_or(Ok(()), Err) } else { Ok(()) }
    }

    fn read(&mut self, out: &mut Vec<Reading>) -> u32 {
        out.clear();
        let (mut silent, mut one) = (0, Vec::new());
        for (gpus, base) in &mut self.all {
            silent += gpus.read(&mut one);
            out.extend(one.drain(..).map(|r| Reading { device: moved(r.device, *base), ..r }));
        }
        silent
    }

    fn processes(&mut self, out: &mut Vec<GpuProcess>) {
        out.clear();
        let mut one = Vec::new();
        for (gpus, base) in &mut self.all {
            gpus.processes(&mut one);
            out.extend(one.drain(..).map(|p| GpuProcess { device: moved(p.device, *base), ..p }));
        }
    }

    fn health(&mut self, out: &mut Vec<Health>) {
        out.clear();
        let mut one = Vec::new();
        for (gpus, base) in &mut self.all {
            gpus.health(&mut one);
            out.extend(one.drain(..).map(|h| Health { device: moved(h.device, *base), ..h }));
        }
    }

    fn events(&mut self, out: &mut Vec<Event>) {
        self.all.iter_mut().for_each(|(g, _)| g.events(out));
    }

    fn driver(&mut self) -> Driver {
        self.all.first_mut().map(|(g, _)| g.driver()).unwrap_or_default()
    }

    fn advance(&mut self, by: Duration) {
        self.all.iter_mut().for_each(|(g, _)| g.advance(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Fake;

    fn fake(text: &str) -> Box<dyn Gpus> {
        Box::new(Fake::from_json(text).unwrap())
    }

    #[test]
    fn devices_of_the_second_follow_those_of_the_first() {
        let one = fake(
            r#"{"devices": [{"uuid": "GPU-a"}, {"uuid": "GPU-b"}], "driver": {"version": "570.1"}, "steps": [
            {"at_ms": 0, "readings": [{"device": 1, "used": 5}], "processes": [{"device": 0, "pid": 7}]}]}"#,
        );
        let two = fake(
            r#"{"devices": [{"uuid": "0x1"}, {"uuid": "part", "card": 0}], "steps": [{"at_ms": 0,
            "readings": [{"device": 0, "used": 6}], "processes": [{"device": 1, "pid": 8}], "health": [{"device": 0}]}]}"#,
        );
        let mut both = Several::new(vec![one, two]);
        let (mut d, mut r, mut p, mut h) = (vec![], vec![], vec![], vec![]);
        both.devices(&mut d).unwrap();
        assert_eq!((d.len(), d[2].uuid.as_str(), d[3].card), (4, "0x1", Some(DeviceId(2))));
        assert_eq!(both.read(&mut r), 0);
        assert_eq!(r.iter().map(|r| r.device.0).collect::<Vec<_>>(), [1, 2]);
        both.processes(&mut p);
        assert_eq!(p.iter().map(|p| (p.device.0, p.pid)).collect::<Vec<_>>(), [(0, 7), (3, 8)]);
        both.health(&mut h);
        assert_eq!(h.iter().map(|h| h.device.0).collect::<Vec<_>>(), [2]);
        assert_eq!(both.driver().version.as_deref(), Some("570.1"));
    }

    #[test]
    fn one_that_fails_does_not_hide_the_other() {
        let gap = GpuGap::NoDriver("gone".into());
        let none = || Box::new(NoGpus(GpuGap::NoDriver("gone".into()))) as Box<dyn Gpus>;
        let mut d = vec![];
        Several::new(vec![none(), fake(r#"{"devices": [{"uuid": "0x1"}]}"#)]).devices(&mut d).unwrap();
        assert_eq!(d.len(), 1);
        assert_eq!(Several::new(vec![none(), none()]).devices(&mut d), Err(gap));
    }

    #[test]
    fn without_cards_the_reason_is_that_of_the_library() {
        let d = tempfile::tempdir().unwrap();
        let gap = GpuGap::NoLibrary("libnvidia-ml.so.1".into());
        assert_eq!(of_machine(Err(gap.clone()), d.path()).devices(&mut vec![]), Err(gap));
    }
}
