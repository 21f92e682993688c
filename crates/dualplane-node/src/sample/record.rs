//! A record of fixed size: header, a bit for each field that is there, the fields. Little endian.
//!
//! Fixed, so that a ring on a disk can be cut and searched without an index. A field that was not read or that the machine
//! does not tell has no bit; its 8 bytes are 0 and mean nothing. New fields go behind the old ones of their kind.

use dualplane_base::units::Bytes;

use crate::cgroup::{Depth, Limit, Memory, Pressure};
use crate::clock::{Moment, Span};
use crate::gpu::{DeviceId, GpuProcess, Health, Reading};
use crate::node::{Machine, Shm};

/// Fields of a record.
pub const FIELDS: usize = 20;
/// Bytes of a record.
pub const SIZE: usize = 16 + FIELDS * 8;
/// Says "there is no limit" in the field of a limit.
const UNLIMITED: u64 = u64::MAX;
/// Says "of no container that is known" in the field of a container.
const NO_SLOT: u64 = u64::MAX;

/// What a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A round: when each plane was read.
    Round = 1,
    /// A container.
    Container = 2,
    /// The machine.
    Node = 3,
    /// A GPU or MIG device.
    Gpu = 4,
    /// A process on a GPU.
    GpuProcess = 5,
    /// Error counters of a card.
    GpuHealth = 6,
    /// `/dev/shm` of a container's pod.
    Shm = 7,
    /// An engine's own counts, of the container that it runs in.
    Engine = 8,
}

impl RecordKind {
    const ALL: [Self; 8] = [
        Self::Round,
        Self::Container,
        Self::Node,
        Self::Gpu,
        Self::GpuProcess,
        Self::GpuHealth,
        Self::Shm,
        Self::Engine,
    ];

    /// The kind of a number; `None` for one of a later version.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|k| *k as u8 == number)
    }
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was read.
    pub at: Moment,
    /// What it is of.
    pub kind: RecordKind,
    /// Container or device; its name stands in a table beside the records.
    pub slot: u16,
    present: u32,
    values: [u64; FIELDS],
}

impl Record {
    fn new<const N: usize>(kind: RecordKind, slot: u16, at: Moment, fields: [Option<u64>; N]) -> Self {
        let mut record = Self { at, kind, slot, present: 0, values: [0; FIELDS] };
        for (i, (value, field)) in record.values.iter_mut().zip(fields).enumerate() {
            if let Some(n) = field {
                *value = n;
                record.present |= 1 << i;
            }
        }
        record
    }

    /// A field, where it is there.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<u64> {
        self.values.get(index).copied().filter(|_| self.present & (1 << index) != 0)
    }

    /// A bit for each field that is there.
    #[must_use]
    pub fn present(&self) -> u32 {
        self.present
    }

    /// A record of its parts, as a file keeps them. Values of fields that are not there become 0.
    #[must_use]
    pub fn of_parts(kind: RecordKind, slot: u16, at: Moment, present: u32, values: &[u64; FIELDS]) -> Self {
        let present = present & ((1 << FIELDS) - 1);
        let mut record = Self { at, kind, slot, present, values: [0; FIELDS] };
        for (i, (to, from)) in record.values.iter_mut().zip(values).enumerate() {
            if present & (1 << i) != 0 {
                *to = *from;
            }
        }
        record
    }

    /// A container. Only what was read this time is taken.
    #[must_use]
    pub fn container(slot: u16, at: Moment, depth: Depth, m: &Memory) -> Self {
        let b = |v: Option<Bytes>| v.map(|b| b.0).filter(|_| depth == Depth::Full);
        let full = |v: Option<u64>| v.filter(|_| depth == Depth::Full);
        let quick = |v: Option<u64>| v.filter(|_| depth >= Depth::Quick);
        let limit = m.limit.map(|l| l.bytes().map_or(UNLIMITED, |b| b.0));
        Self::new(
            RecordKind::Container,
            slot,
            at,
            [
                m.current.map(|b| b.0),
                b(m.peak),
                full(limit),
                b(m.swap),
                b(m.anon),
                b(m.file),
                b(m.shmem),
                b(m.kernel),
                b(m.inactive_file),
                b(m.active_file),
                b(m.unevictable),
                full(m.major_faults),
                full(m.at_limit),
                quick(m.oom),
                quick(m.oom_kill),
                quick(m.oom_group_kill),
                full(m.pressure.some_us),
                full(m.pressure.full_us),
                full(m.pressure.full_avg10),
            ],
        )
    }

    /// The memory of a container's record.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        let b = |i| self.field(i).map(Bytes);
        (self.kind == RecordKind::Container).then(|| Memory {
            current: b(0),
            peak: b(1),
            limit: self.field(2).map(|n| if n == UNLIMITED { Limit::Unlimited } else { Limit::At(Bytes(n)) }),
            swap: b(3),
            anon: b(4),
            file: b(5),
            shmem: b(6),
            kernel: b(7),
            inactive_file: b(8),
            active_file: b(9),
            unevictable: b(10),
            major_faults: self.field(11),
            at_limit: self.field(12),
            oom: self.field(13),
            oom_kill: self.field(14),
            oom_group_kill: self.field(15),
            pressure: Pressure {
                some_us: self.field(16),
                full_us: self.field(17),
                full_avg10: self.field(18),
            },
        })
    }

    /// The machine.
    #[must_use]
    pub fn node(at: Moment, m: &Machine) -> Self {
        let b = |v: Option<Bytes>| v.map(|b| b.0);
        Self::new(
            RecordKind::Node,
            0,
            at,
            [
                b(m.total),
                b(m.available),
                b(m.free),
                b(m.cached),
                b(m.shmem),
                b(m.anon),
                b(m.slab),
                b(m.unevictable),
                b(m.hugetlb),
                b(m.swap_total),
                b(m.swap_free),
                m.oom_kill,
                m.pressure.some_us,
                m.pressure.full_us,
                m.pressure.full_avg10,
            ],
        )
    }

    /// A GPU.
    #[must_use]
    pub fn gpu(at: Moment, r: &Reading) -> Self {
        let b = |v: Option<Bytes>| v.map(|b| b.0);
        let n = |v: Option<u32>| v.map(u64::from);
        let fields = [
            b(r.total),
            b(r.used),
            b(r.free),
            b(r.reserved),
            n(r.busy),
            n(r.memory_busy),
            n(r.power_mw),
            n(r.celsius),
            r.throttle,
            n(r.sm_mhz),
            n(r.memory_mhz),
        ];
        Self::new(RecordKind::Gpu, r.device.0, at, fields)
    }

    /// A process on a GPU, with the slot of its container.
    #[must_use]
    pub fn gpu_process(at: Moment, p: &GpuProcess, container: Option<u16>) -> Self {
        let slot = container.map_or(NO_SLOT, u64::from);
        let fields = [Some(u64::from(p.pid)), p.used.map(|b| b.0), Some(u64::from(p.other_kind)), Some(slot)];
        Self::new(RecordKind::GpuProcess, p.device.0, at, fields)
    }

    /// Pid, memory and container of a record of a process on a GPU.
    #[must_use]
    pub fn process(&self) -> Option<(u32, Option<Bytes>, Option<u16>)> {
        let pid = self.field(0).filter(|_| self.kind == RecordKind::GpuProcess)?;
        let slot = self.field(3).and_then(|s| u16::try_from(s).ok());
        Some((u32::try_from(pid).ok()?, self.field(1).map(Bytes), slot))
    }

    /// Error counters of a card.
    #[must_use]
    pub fn gpu_health(at: Moment, h: &Health) -> Self {
        let n = |v: Option<u32>| v.map(u64::from);
        let fields = [
            h.ecc_corrected,
            h.ecc_uncorrected,
            n(h.pcie_replays),
            n(h.nvlinks),
            h.nvlink_errors,
            h.ecc_corrected_lifetime,
            h.ecc_uncorrected_lifetime,
            n(h.remapped_corrected),
            n(h.remapped_uncorrected),
            h.remap_pending.map(u64::from),
            h.remap_failed.map(u64::from),
            h.pcie_sent,
            h.pcie_received,
            h.nvlink0_sent,
            h.nvlink0_received,
            n(h.memory_celsius),
            h.xids,
            n(h.last_xid),
        ];
        Self::new(RecordKind::GpuHealth, h.device.0, at, fields)
    }

    /// The machine of a record.
    #[must_use]
    pub fn machine(&self) -> Option<Machine> {
        let b = |i| self.field(i).map(Bytes);
        (self.kind == RecordKind::Node).then(|| Machine {
            total: b(0),
            available: b(1),
            free: b(2),
            cached: b(3),
            shmem: b(4),
            anon: b(5),
            slab: b(6),
            unevictable: b(7),
            hugetlb: b(8),
            swap_total: b(9),
            swap_free: b(10),
            oom_kill: self.field(11),
            pressure: Pressure {
                some_us: self.field(12),
                full_us: self.field(13),
                full_avg10: self.field(14),
            },
        })
    }

    /// The reading of a GPU's record.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        let b = |i| self.field(i).map(Bytes);
        let n = |i| self.field(i).and_then(|v| u32::try_from(v).ok());
        (self.kind == RecordKind::Gpu).then(|| Reading {
            device: DeviceId(self.slot),
            total: b(0),
            used: b(1),
            free: b(2),
            reserved: b(3),
            busy: n(4),
            memory_busy: n(5),
            power_mw: n(6),
            celsius: n(7),
            throttle: self.field(8),
            sm_mhz: n(9),
            memory_mhz: n(10),
        })
    }

    /// Error counters of a card's record.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        let n = |i| self.field(i).and_then(|v| u32::try_from(v).ok());
        (self.kind == RecordKind::GpuHealth).then(|| Health {
            device: DeviceId(self.slot),
            ecc_corrected: self.field(0),
            ecc_uncorrected: self.field(1),
            pcie_replays: n(2),
            nvlinks: n(3),
            nvlink_errors: self.field(4),
            ecc_corrected_lifetime: self.field(5),
            ecc_uncorrected_lifetime: self.field(6),
            remapped_corrected: n(7),
            remapped_uncorrected: n(8),
            remap_pending: self.field(9).map(|v| v != 0),
            remap_failed: self.field(10).map(|v| v != 0),
            pcie_sent: self.field(11),
            pcie_received: self.field(12),
            nvlink0_sent: self.field(13),
            nvlink0_received: self.field(14),
            memory_celsius: n(15),
            xids: self.field(16),
            last_xid: n(17),
        })
    }

    /// The process of a record draws, or is a client of MPS.
    #[must_use]
    pub fn other_kind(&self) -> bool {
        self.kind == RecordKind::GpuProcess && self.field(2) == Some(1)
    }

    /// `/dev/shm` of a container's pod.
    #[must_use]
    pub fn shm(slot: u16, at: Moment, shm: Shm) -> Self {
        Self::new(RecordKind::Shm, slot, at, [Some(shm.size.0), Some(shm.used.0)])
    }

    /// Size and use of `/dev/shm` of a record.
    #[must_use]
    pub fn shm_use(&self) -> Option<Shm> {
        (self.kind == RecordKind::Shm).then_some(())?;
        Some(Shm { size: Bytes(self.field(0)?), used: Bytes(self.field(1)?) })
    }

    /// An engine's own counts: share of its KV cache in use (millionths), requests that run and wait (thousandths, as
    /// some engines give averages), preemptions, requests that got a first token, microseconds that they waited for it,
    /// tokens of prompts, tokens that were generated.
    #[must_use]
    pub fn engine(slot: u16, at: Moment, fields: [Option<u64>; 8]) -> Self {
        Self::new(RecordKind::Engine, slot, at, fields)
    }

    /// A round: its number, and when containers, machine and GPUs were read.
    #[must_use]
    pub fn round(number: u64, wall_ms: i64, host: Span, node: Span, gpus: Option<Span>) -> Self {
        let fields = [
            Some(number),
            u64::try_from(wall_ms).ok(),
            Some(host.from.0),
            Some(host.to.0),
            Some(node.from.0),
            Some(node.to.0),
            gpus.map(|g| g.from.0),
            gpus.map(|g| g.to.0),
        ];
        Self::new(RecordKind::Round, 0, host.from, fields)
    }

    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let head = self.at.0.to_le_bytes().into_iter().chain(self.present.to_le_bytes());
        let head = head.chain(self.slot.to_le_bytes()).chain([self.kind as u8, 0]);
        let body = self.values.iter().flat_map(|v| v.to_le_bytes());
        for (to, from) in out.iter_mut().zip(head.chain(body)) {
            *to = from;
        }
        out
    }

    /// From bytes; `None` where the kind is unknown.
    #[must_use]
    pub fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk::<8>()?;
        let (present, rest) = rest.split_first_chunk::<4>()?;
        let (slot, rest) = rest.split_first_chunk::<2>()?;
        let (kind, rest) = rest.split_first_chunk::<2>()?;
        let kind = RecordKind::of(*kind.first()?)?;
        let mut values = [0; FIELDS];
        for (value, chunk) in values.iter_mut().zip(rest.as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*chunk);
        }
        Some(Self {
            at: Moment(u64::from_le_bytes(*at)),
            kind,
            slot: u16::from_le_bytes(*slot),
            present: u32::from_le_bytes(*present),
            values,
        })
    }
}
