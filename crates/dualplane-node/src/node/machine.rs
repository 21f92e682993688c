//! `/proc/meminfo`, the pressure of the machine, and the kernel's count of OOM kills, through descriptors that stay open.

use std::fs::File;
use std::path::Path;

use dualplane_base::units::Bytes;

use crate::cgroup::Pressure;
use crate::number::{kilobytes, pairs, read_again};

/// Memory of the machine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Machine {
    /// All of it.
    pub total: Option<Bytes>,
    /// Memory available to a new process without swapping.
    pub available: Option<Bytes>,
    /// Unused.
    pub free: Option<Bytes>,
    /// Page cache, including tmpfs.
    pub cached: Option<Bytes>,
    /// tmpfs, shared and pinned memory.
    pub shmem: Option<Bytes>,
    /// Anonymous.
    pub anon: Option<Bytes>,
    /// Kernel slabs that cannot be reclaimed.
    pub slab: Option<Bytes>,
    /// Locked memory.
    pub unevictable: Option<Bytes>,
    /// Pages reserved as huge pages: no container can have them otherwise.
    pub hugetlb: Option<Bytes>,
    /// Swap space.
    pub swap_total: Option<Bytes>,
    /// Unused swap space.
    pub swap_free: Option<Bytes>,
    /// Processes that the OOM killer killed since boot, anywhere on the machine.
    pub oom_kill: Option<u64>,
    /// Waiting for memory.
    pub pressure: Pressure,
}

/// The files, open.
#[derive(Debug)]
pub struct NodeReader {
    meminfo: Option<File>,
    pressure: Option<File>,
    vmstat: Option<File>,
}

impl NodeReader {
    /// Opens what is below `/proc`, or where a DaemonSet has the host's mounted.
    #[must_use]
    pub fn open(proc_root: &Path) -> Self {
        let open = |name: &str| File::open(proc_root.join(name)).ok();
        Self { meminfo: open("meminfo"), pressure: open("pressure/memory"), vmstat: open("vmstat") }
    }

    /// Reads all. With `kills` also `/proc/vmstat`, which the kernel sums up over processors: not needed each time.
    pub fn read(&self, kills: bool, buffer: &mut [u8], m: &mut Machine) {
        if let Some(text) = self.meminfo.as_ref().and_then(|f| read_again(f, buffer).ok()) {
            take(text, m);
        }
        let pressure = self.pressure.as_ref().and_then(|f| read_again(f, buffer).ok());
        m.pressure = pressure.map(Pressure::parse).unwrap_or_default();
        if kills && let Some(text) = self.vmstat.as_ref().and_then(|f| read_again(f, buffer).ok()) {
            m.oom_kill = pairs(text).find(|(k, _)| *k == b"oom_kill").map(|(_, n)| n);
        }
    }
}

fn take(text: &[u8], m: &mut Machine) {
    for (key, bytes) in kilobytes(text) {
        let field = match key {
            b"MemTotal" => &mut m.total,
            b"MemAvailable" => &mut m.available,
            b"MemFree" => &mut m.free,
            b"Cached" => &mut m.cached,
            b"Shmem" => &mut m.shmem,
            b"AnonPages" => &mut m.anon,
            b"SUnreclaim" => &mut m.slab,
            b"Unevictable" => &mut m.unevictable,
            b"Hugetlb" => &mut m.hugetlb,
            b"SwapTotal" => &mut m.swap_total,
            b"SwapFree" => &mut m.swap_free,
            _ => continue,
        };
        *field = Some(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_from_fixtures_and_what_is_missing() {
        let d = tempfile::tempdir().unwrap();
        std::fs::write(d.path().join("meminfo"), "MemTotal: 4 kB\nMemAvailable:  3 kB\nShmem: 0 kB\n")
            .unwrap();
        std::fs::write(d.path().join("vmstat"), "nr_free_pages 1\noom_kill 741\n").unwrap();
        let (mut b, mut m) = ([0; 16384], Machine::default());
        let reader = NodeReader::open(d.path());
        reader.read(false, &mut b, &mut m);
        assert_eq!((m.total, m.available, m.oom_kill), (Some(Bytes(4096)), Some(Bytes(3072)), None));
        reader.read(true, &mut b, &mut m);
        assert_eq!((m.shmem, m.oom_kill, m.swap_total), (Some(Bytes(0)), Some(741), None));
        assert_eq!(m.pressure, Pressure::default());
    }

    #[test]
    fn this_machine() {
        let (mut b, mut m) = ([0; 16384], Machine::default());
        NodeReader::open(Path::new("/proc")).read(true, &mut b, &mut m);
        assert!(m.total.unwrap() > m.available.unwrap());
        assert!(m.oom_kill.is_some());
    }
}
