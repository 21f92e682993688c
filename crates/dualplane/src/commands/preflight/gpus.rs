//! The driver's answer as the core takes it: through NVML in a thread of its own, or a table that is played.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use dualplane_node::gpu::{Batch, Device, Fake, GpuGap, GpuThread, Gpus, Nvml};
use dualplane_plan::preflight::{self as core, Card};

use super::Failure;
use super::holders::ContainerLookup;

/// A driver that is loaded late answers within seconds; one that hangs does not at all.
const PATIENCE: Duration = Duration::from_secs(20);
/// A table of GPU samples.
const MAX_TABLE: u64 = 16 << 20;
/// Where the library is when no runtime has put it into the loader's way: the GPU operator's driver container, GKE.
const OTHER_PLACES: [&str; 2] =
    ["/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"];

/// GPUs, or why there are none.
pub(super) struct Driver {
    thread: Result<GpuThread, GpuGap>,
}

impl Driver {
    pub(super) fn open(table: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = table else { return Ok(Self { thread: load() }) };
        let unreadable = |source| Failure::Unreadable { path: path.to_owned(), source };
        let wrong =
            |why: String| Failure::Flag { flag: "--gpu-table", why: format!("{}: {why}", path.display()) };
        let mut text = String::new();
        let file = fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_TABLE + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_TABLE {
            return Err(wrong("the file is too large for a table of GPU samples".into()));
        }
        let fake = Fake::from_json(&text).map_err(|e| wrong(e.to_string()))?;
        Ok(Self { thread: start(Box::new(fake)) })
    }

    /// All devices with their holders, and the driver. The last: it is of no use to ask again.
    pub(super) fn look(
        &mut self,
        host_proc: Option<&Path>,
    ) -> (Result<Vec<Card>, String>, core::Driver, bool) {
        if matches!(self.thread, Err(GpuGap::NoDriver(_) | GpuGap::Call { .. })) {
            self.thread = load();
        }
        let gap = |gap: &GpuGap| {
            (
                Err(gap.to_string()),
                core::Driver::default(),
                matches!(gap, GpuGap::NoLibrary(_) | GpuGap::Static),
            )
        };
        let thread = match &mut self.thread {
            Ok(thread) => thread,
            Err(e) => return gap(e),
        };
        thread.ask(true, false);
        let Some(batch) = thread.answer(PATIENCE) else {
            let why = format!("the GPU driver has not answered for {} s", PATIENCE.as_secs());
            return (Err(why), core::Driver::default(), false);
        };
        let told = core::Driver { version: batch.driver.version.clone(), cuda: batch.driver.cuda };
        let answer = match &batch.gap {
            Some(g) => gap(g),
            None => (Ok(cards(&batch, &mut ContainerLookup::new(host_proc))), told, false),
        };
        thread.done(batch);
        answer
    }
}

fn start(gpus: Box<dyn Gpus>) -> Result<GpuThread, GpuGap> {
    GpuThread::start(gpus).map_err(|e| GpuGap::Call { call: "a thread for the driver", why: e.to_string() })
}

/// Loads NVML; already that can hang.
fn load() -> Result<GpuThread, GpuGap> {
    let (send, receive) = sync_channel(1);
    let spawned = thread::Builder::new().name("nvml".into()).spawn(move || {
        let mut loaded = Nvml::load(None);
        for place in OTHER_PLACES.map(Path::new).into_iter().filter(|p| p.exists()) {
            if !matches!(loaded, Err(GpuGap::NoLibrary(_))) {
                break;
            }
            loaded = Nvml::load(Some(place));
        }
        // The receiver has gone if it took too long.
        let _ = send.send(loaded);
    });
    let failed = |why: String| GpuGap::Call { call: "nvmlInit", why };
    spawned.map_err(|e| failed(e.to_string()))?;
    let loaded = receive
        .recv_timeout(PATIENCE)
        .map_err(|_| failed(format!("no answer within {} s", PATIENCE.as_secs())))?;
    start(Box::new(loaded?))
}

fn cards(batch: &Batch, owners: &mut ContainerLookup) -> Vec<Card> {
    let readings: HashMap<usize, _> = batch.readings.iter().map(|r| (usize::from(r.device.0), r)).collect();
    let one = |(i, d): (usize, &Device)| {
        let r = readings.get(&i);
        let of_it = batch.processes.iter().filter(|p| usize::from(p.device.0) == i);
        Card {
            index: d.index,
            uuid: d.uuid.clone(),
            name: d.name.clone(),
            parent: d.card.map(|c| usize::from(c.0)),
            mig: d.mig == Some(true),
            capability: d.capability,
            total: r.and_then(|r| r.total),
            used: r.and_then(|r| r.used),
            free: r.and_then(|r| r.free),
            reserved: r.and_then(|r| r.reserved),
            processes: of_it.map(|p| owners.holder(p.pid, p.used)).collect(),
        }
    };
    batch.devices.iter().enumerate().map(one).collect()
}
