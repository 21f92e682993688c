//! Reads one group through descriptors that stay open: one `pread` a file, nothing allocated.
//!
//! A descriptor of a group that was removed answers `ENODEV`: that is how the end of a container is noticed at once, and
//! why its last values must be kept by whoever read them.

use std::fs::File;
use std::io;
use std::path::Path;

use dualplane_base::units::Bytes;

use super::{Group, Hierarchy, Limit, Memory, Pressure, Version};
use crate::number::{leading, read_again};

/// How much of a group is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Usage alone: one file.
    Usage,
    /// Usage and OOM counters: two files, no statistics to be summed over processors by the kernel.
    Quick,
    /// Everything.
    Full,
}

/// The group is gone: its container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vanished;

/// One group, open.
#[derive(Debug)]
pub struct Reader {
    version: Version,
    current: Option<File>,
    peak: Option<File>,
    /// `memory.events`; on v1 `memory.oom_control`.
    events: Option<File>,
    /// `memory.max`; on v1 its count of failures, as the limit stands in the statistics.
    max: Option<File>,
    stat: Option<File>,
    swap: Option<File>,
    pressure: Option<File>,
    /// The tightest limit above the group (v2).
    above: Limit,
    unopened: u32,
}

impl Reader {
    /// Opens the files of a group. Those that this kernel has not are left out.
    ///
    /// # Errors
    /// The group has no usage file: it is gone, or this is no group of the memory controller.
    pub fn open(hierarchy: &Hierarchy, group: &Group) -> io::Result<Self> {
        let dir = hierarchy.dir(group);
        let mut unopened = 0;
        let mut open = |dir: &Path, name: &str| match File::open(dir.join(name)) {
            Ok(f) => Some(f),
            Err(e) => {
                // A missing file is this kernel's answer; too many open files is ours.
                unopened += u32::from(e.kind() != io::ErrorKind::NotFound);
                None
            }
        };
        let v2 = hierarchy.version == Version::V2;
        let pick = |two, one| if v2 { two } else { one };
        let current = open(&dir, pick("memory.current", "memory.usage_in_bytes"));
        if current.is_none() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no usage file"));
        }
        let unified = hierarchy.unified.as_ref().map(|u| u.join(group.path().trim_start_matches('/')));
        let pressed = if v2 { Some(&dir) } else { unified.as_ref() };
        Ok(Self {
            version: hierarchy.version,
            peak: open(&dir, pick("memory.peak", "memory.max_usage_in_bytes")),
            events: open(&dir, pick("memory.events", "memory.oom_control")),
            max: open(&dir, pick("memory.max", "memory.failcnt")),
            stat: open(&dir, "memory.stat"),
            swap: if v2 { open(&dir, "memory.swap.current") } else { None },
            pressure: pressed.and_then(|d| open(d, "memory.pressure")),
            above: if v2 { above(&hierarchy.memory, &dir) } else { Limit::Unlimited },
            current,
            unopened,
        })
    }

    /// Files that are there and could not be opened: no descriptors left, or no right to read.
    #[must_use]
    pub fn unopened(&self) -> u32 {
        self.unopened
    }

    /// Descriptors that are held.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        let all =
            [&self.current, &self.peak, &self.events, &self.max, &self.stat, &self.swap, &self.pressure];
        all.into_iter().filter(|f| f.is_some()).count()
    }

    /// Reads the group into `memory`; fields beyond `depth` keep what they were.
    ///
    /// # Errors
    /// The group is gone.
    pub fn read(&self, depth: Depth, buffer: &mut [u8], memory: &mut Memory) -> Result<(), Vanished> {
        self.usage(buffer, memory)?;
        if depth >= Depth::Quick {
            self.events(buffer, memory)?;
        }
        if depth == Depth::Full { self.statistics(buffer, memory) } else { Ok(()) }
    }

    /// Reads what [`Depth::Usage`] covers.
    pub(crate) fn usage(&self, buffer: &mut [u8], memory: &mut Memory) -> Result<(), Vanished> {
        memory.current = number(self.current.as_ref(), buffer)?.map(Bytes);
        Ok(())
    }

    /// Reads what [`Depth::Quick`] adds.
    pub(crate) fn events(&self, buffer: &mut [u8], memory: &mut Memory) -> Result<(), Vanished> {
        if let Some(text) = content(self.events.as_ref(), buffer)? {
            memory.events(text);
        }
        Ok(())
    }

    /// Reads what [`Depth::Full`] adds.
    pub(crate) fn statistics(&self, buffer: &mut [u8], memory: &mut Memory) -> Result<(), Vanished> {
        memory.peak = number(self.peak.as_ref(), buffer)?.map(Bytes);
        if let Some(text) = content(self.stat.as_ref(), buffer)? {
            match self.version {
                Version::V1 => memory.stat_v1(text),
                Version::V2 => memory.stat_v2(text),
            }
        }
        match self.version {
            Version::V1 => memory.at_limit = number(self.max.as_ref(), buffer)?,
            Version::V2 => {
                let own = content(self.max.as_ref(), buffer)?.and_then(Limit::parse);
                memory.limit = own.map(|l| l.tighter(self.above));
                memory.swap = number(self.swap.as_ref(), buffer)?.map(Bytes);
            }
        }
        memory.pressure = content(self.pressure.as_ref(), buffer)?.map(Pressure::parse).unwrap_or_default();
        Ok(())
    }
}

/// The tightest limit between a group and the root.
fn above(root: &Path, dir: &Path) -> Limit {
    let between = dir.ancestors().skip(1).take_while(|d| d.starts_with(root) && *d != root);
    between
        .filter_map(|d| Limit::parse(&std::fs::read(d.join("memory.max")).ok()?))
        .fold(Limit::Unlimited, Limit::tighter)
}

fn content<'b>(file: Option<&File>, buffer: &'b mut [u8]) -> Result<Option<&'b [u8]>, Vanished> {
    let Some(file) = file else { return Ok(None) };
    match read_again(file, buffer) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => Err(Vanished),
        // Pressure that is switched off by `psi=0`, or a group without the controller.
        Err(_) => Ok(None),
    }
}

fn number(file: Option<&File>, buffer: &mut [u8]) -> Result<Option<u64>, Vanished> {
    Ok(content(file, buffer)?.and_then(leading))
}
