//! A machine of numbers for tests of the ring: containers, devices and rounds that look as real ones do.

use dualplane_base::process::of_path;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::{Depth, Group, Kind, Limit, Memory, Pressure};
use dualplane_node::clock::{Moment, Span};
use dualplane_node::cri::Named;
use dualplane_node::gpu::{Device, DeviceId, GpuProcess, Reading};
use dualplane_node::node::Machine;
use dualplane_node::sample::Record;

use super::Note;

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const GIB: u64 = 1 << 30;

/// A small generator of numbers (splitmix64): the same bytes at each run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub(super) fn path(slot: u16) -> String {
    format!(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod9ebd9238_4ea3_417e_975f_{slot:012x}.slice/cri-containerd-{slot:064x}.scope"
    )
}

pub(super) fn container(slot: u16) -> Note {
    let group = Group { kind: Kind::Container, identity: of_path(&path(slot), 2) };
    let named = Named {
        namespace: "serving".into(),
        pod: format!("llm-{slot}"),
        uid: group.identity.pod_uid.clone(),
        container: "vllm".into(),
        restart: Some(2),
        folder: Some(
            format!("/var/log/pods/serving_llm-{slot}_9ebd9238-4ea3-417e-975f-{slot:012x}/vllm").into(),
        ),
    };
    Note::Container { slot, group, named: Some(named), command: Vec::new() }
}

pub(super) fn devices(count: u16) -> Note {
    let device = |i: u16| Device {
        uuid: format!("GPU-{i:08x}-0000-0000-0000-000000000000"),
        index: u32::from(i),
        name: "NVIDIA H100 80GB HBM3".into(),
        pci: format!("0000:{i:02x}:00"),
        ..Device::default()
    };
    Note::Devices((0..count).map(device).collect())
}

pub(super) fn memory(used: u64) -> Memory {
    let b = |n: u64| Some(Bytes(n));
    Memory {
        current: b(used),
        peak: b(used + 4096),
        limit: Some(if used.is_multiple_of(2) { Limit::At(Bytes(64 * GIB)) } else { Limit::Unlimited }),
        swap: b(0),
        anon: b(used / 2),
        file: b(used / 4),
        shmem: b(used / 8),
        kernel: None,
        inactive_file: b(used / 16),
        active_file: b(1),
        unevictable: b(2),
        major_faults: Some(3),
        at_limit: Some(used / GIB),
        oom: Some(0),
        oom_kill: Some(0),
        oom_group_kill: None,
        pressure: Pressure { some_us: Some(used / 3), full_us: Some(7), full_avg10: Some(11) },
    }
}

/// A round of a machine: `moving` of its containers move, all GPUs do.
pub(super) fn round(second: u64, containers: u16, moving: u16, gpus: u16, dice: &mut Dice) -> Vec<Record> {
    let begin = Moment(second * SECOND + dice.below(100_000));
    let mut at = begin.0;
    let mut out = Vec::new();
    for slot in 0..containers {
        at += 8_000 + dice.below(9_000);
        let used = u64::from(slot) * 100_000_000 + if slot < moving { dice.below(1 << 24) * 4096 } else { 0 };
        let depth = match (slot < moving, (second + u64::from(slot)).is_multiple_of(5)) {
            (true, _) | (_, true) => Depth::Full,
            _ => Depth::Usage,
        };
        out.push(Record::container(slot, Moment(at), depth, &memory(used & !1)));
    }
    let machine = Machine {
        total: Some(Bytes(512 * GIB)),
        available: Some(Bytes(dice.below(1 << 26) * 4096)),
        ..Machine::default()
    };
    out.push(Record::node(Moment(at), &machine));
    for g in 0..gpus {
        let used = Some(Bytes(40 * GIB + dice.below(256) * (2 << 20)));
        let reading = Reading {
            device: DeviceId(g),
            total: Some(Bytes(80 * GIB)),
            used,
            busy: Some(dice.below(101) as u32),
            power_mw: Some(400_000 + dice.below(99_999) as u32),
            celsius: Some(60),
            ..Reading::default()
        };
        out.push(Record::gpu(begin, &reading));
        let p = GpuProcess { device: DeviceId(g), pid: 4000 + u32::from(g), used, other_kind: false };
        out.push(Record::gpu_process(begin, &p, Some(g)));
    }
    let span = Span { from: begin, to: Moment(at) };
    out.push(Record::round(second, 1_800_000_000_000 + second as i64 * 1000, span, span, Some(span)));
    out
}
