//! `MemoryGuard` for Python servers: before each batch, is there room in the container's host RAM and in VRAM?
//!
//! `dualplane-headroom` reads and answers; this file is what Python sees of it. What people call is `dualplane/guard.py`.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use dualplane_headroom::{Allowed, HostReader, Meter, VramReader};

/// While a batch runs it is looked at so often: its peak is what the next one needs.
const BEAT: Duration = Duration::from_millis(10);

struct Shared {
    meter: Mutex<Meter>,
    opened: Condvar,
    epoch: Instant,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Meter> {
        // A panic elsewhere leaves numbers, and no half-made ones.
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }
}

/// Looks at running batches until the guard is gone.
fn watch(shared: Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        let now = shared.now();
        let mut meter = shared.lock();
        if meter.any_open() {
            meter.look(now);
            drop(meter);
            thread::sleep(BEAT);
        } else {
            // Woken by the next batch; now and then to notice that nobody holds the guard.
            let waited = shared.opened.wait_timeout(meter, Duration::from_secs(1));
            drop(waited);
        }
    }
}

/// Reads both planes and answers for batches. `MemoryGuard` is made of it.
#[pyclass(frozen, module = "dualplane._memory", name = "Meter")]
struct PyMeter {
    shared: Arc<Shared>,
    vram_gap: Option<String>,
}

fn allowed(host: f64, vram: Option<f64>, stall: f64) -> Allowed {
    Allowed { host, vram, stall }
}

#[pymethods]
impl PyMeter {
    #[new]
    #[pyo3(signature = (vram, gpus, gpu_table, proc_root, cgroup_root))]
    fn new(
        vram: Option<bool>,
        gpus: Vec<String>,
        gpu_table: Option<String>,
        proc_root: &str,
        cgroup_root: &str,
    ) -> PyResult<Self> {
        let host = HostReader::open(Path::new(proc_root), Path::new(cgroup_root), std::process::id());
        let (vram_reader, vram_gap) = if vram == Some(false) {
            (None, None)
        } else {
            match VramReader::open(gpus, gpu_table.as_deref()) {
                Ok(reader) => (Some(reader), None),
                Err(why) if vram == Some(true) => {
                    return Err(PyRuntimeError::new_err(format!("VRAM: {why}")));
                }
                Err(why) => (None, Some(why)),
            }
        };
        let mut meter = Meter::new(host, vram_reader);
        if meter.seen(0.0).is_none() {
            let why = format!(
                "no memory is shown by {cgroup_root} or {proc_root}/meminfo: MemoryGuard needs Linux"
            );
            return Err(PyRuntimeError::new_err(why));
        }
        let shared = Shared { meter: Mutex::new(meter), opened: Condvar::new(), epoch: Instant::now() };
        Ok(Self { shared: Arc::new(shared), vram_gap })
    }

    /// Whether a batch of `items` has room.
    #[pyo3(signature = (items, host, vram, stall, reusable))]
    fn has_room(&self, items: u64, host: f64, vram: Option<f64>, stall: f64, reusable: u64) -> bool {
        let now = self.shared.now();
        self.shared.lock().has_room(now, items, &allowed(host, vram, stall), reusable)
    }

    /// `(plane, sentence)` of the plane that has no room, or `None`.
    #[pyo3(signature = (items, host, vram, stall, reusable))]
    fn refusal(
        &self,
        items: u64,
        host: f64,
        vram: Option<f64>,
        stall: f64,
        reusable: u64,
    ) -> Option<(&'static str, String)> {
        let now = self.shared.now();
        let refused = self.shared.lock().refusal(now, items, &allowed(host, vram, stall), reusable);
        refused.map(|r| (r.plane(), r.words()))
    }

    /// The most items that have room, at most `wanted`.
    #[pyo3(signature = (wanted, host, vram, stall, reusable))]
    fn advise(&self, wanted: u64, host: f64, vram: Option<f64>, stall: f64, reusable: u64) -> u64 {
        let now = self.shared.now();
        self.shared.lock().advise(now, wanted, &allowed(host, vram, stall), reusable)
    }

    /// A batch begins; the number ends it.
    fn begin(&self, items: u64) -> PyResult<u64> {
        let mut meter = self.shared.lock();
        let id = meter.begin(self.shared.now(), items);
        drop(meter);
        // The thread is there from the first batch on, and once.
        if Arc::weak_count(&self.shared) == 0 {
            let weak = Arc::downgrade(&self.shared);
            let spawned = thread::Builder::new().name("dualplane-guard".into()).spawn(move || watch(weak));
            spawned.map_err(|e| PyRuntimeError::new_err(format!("no thread to watch the batch: {e}")))?;
        }
        self.shared.opened.notify_one();
        Ok(id)
    }

    /// The batch of this number is over.
    fn end(&self, id: u64) {
        let now = self.shared.now();
        self.shared.lock().end(now, id);
    }

    /// Bytes of host RAM and of VRAM that a batch of `items` needs; `None` before the first one.
    fn need(&self, items: u64) -> (Option<u64>, Option<u64>) {
        self.shared.lock().need(items)
    }

    /// What both planes show now.
    fn look<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let now = self.shared.now();
        let seen = self.shared.lock().seen(now);
        let seen = seen.ok_or_else(|| PyRuntimeError::new_err("host RAM can no longer be read"))?;
        let (host, vram) = (seen.host, seen.vram);
        let all = PyDict::new(py);
        all.set_item("scope", host.scope.word())?;
        all.set_item("limit", host.limit)?;
        all.set_item("held", host.held)?;
        all.set_item("used", host.used)?;
        all.set_item("stalled_percent", host.stalled)?;
        all.set_item("oom_kills", host.kills)?;
        all.set_item("growth_per_second", seen.growth)?;
        all.set_item("vram_device", vram.as_ref().map(|v| v.device.clone()))?;
        all.set_item("vram_used", vram.as_ref().map(|v| v.used))?;
        all.set_item("vram_total", vram.as_ref().map(|v| v.total))?;
        all.set_item("vram_gap", self.vram_gap.clone())?;
        all.set_item("asked", seen.asked)?;
        all.set_item("refused", seen.refused)?;
        Ok(all)
    }
}

/// Refuses what is no percentage, once and with words, so that the calls need not.
#[pyfunction]
fn check_percent(name: &str, value: f64) -> PyResult<f64> {
    if value.is_finite() && value > 0.0 && value <= 100.0 {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name} is a percentage above 0 and up to 100, not {value}")))
}

#[pymodule(gil_used = false)]
fn _memory(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMeter>()?;
    module.add_function(wrap_pyfunction!(check_percent, module)?)
}
