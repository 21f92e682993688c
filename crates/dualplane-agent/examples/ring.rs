//! What the ring costs: time of an append, bytes a second on the disk, time of a window. For `bench/ring.sh`; no part of
//! the product.
//!
//! `ring DIR CONTAINERS GPUS SECONDS MOVING`: so many rounds, one for each second, of which MOVING containers move.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing)]

use dualplane_agent::ring::{Note, Ring, RingLimits};
use dualplane_base::process::of_path;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::{Depth, Group, Kind, Limit, Memory, Pressure};
use dualplane_node::clock::{Moment, Span};
use dualplane_node::cri::Named;
use dualplane_node::gpu::{Device, DeviceId, GpuProcess, Reading};
use dualplane_node::node::Machine;
use dualplane_node::sample::Record;

const BOOT: &str = "b932d0cf-5916-41b7-ae0f-3282d92e7059";

fn container(slot: u16) -> Note {
    let uid = format!("9ebd9238-4ea3-417e-975f-{slot:012x}");
    let path = format!(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{slot:064x}.scope",
        uid.replace('-', "_")
    );
    let named = Named {
        namespace: "serving".into(),
        pod: format!("llm-7d4b9c5f6-{slot:05}"),
        uid: Some(uid.clone()),
        container: "vllm".into(),
        restart: Some(2),
        folder: Some(format!("/var/log/pods/serving_llm-7d4b9c5f6-{slot:05}_{uid}/vllm").into()),
    };
    Note::Container {
        slot,
        group: Group { kind: Kind::Container, identity: of_path(&path, 2) },
        named: Some(named),
        command: Vec::new(),
    }
}

/// Numbers that look random and are the same each time.
fn dice(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

fn round(second: u64, containers: u16, moving: u16, gpus: u16, seed: &mut u64, out: &mut Vec<Record>) {
    out.clear();
    let begin = Moment(second * 1_000_000_000 + dice(seed) % 100_000);
    let mut at = begin.0;
    let b = |n: u64| Some(Bytes(n));
    for slot in 0..containers {
        at += 8_000 + dice(seed) % 9_000;
        let moves = slot < moving;
        let used = (1_u64 << 30) + if moves { dice(seed) % (1 << 18) * 4096 } else { 0 };
        let m = Memory {
            current: b(used),
            peak: b(used),
            limit: Some(Limit::At(Bytes(64 << 30))),
            swap: b(0),
            anon: b(used - (used >> 2)),
            file: b(used >> 2),
            shmem: b(0),
            kernel: b(50 << 20),
            inactive_file: b(used >> 4),
            active_file: b(used >> 5),
            unevictable: b(0),
            major_faults: Some(if moves { second } else { 0 }),
            at_limit: Some(0),
            oom: Some(0),
            oom_kill: Some(0),
            oom_group_kill: Some(0),
            pressure: Pressure { some_us: Some(0), full_us: Some(0), full_avg10: Some(0) },
        };
        let full = moves || (second + u64::from(slot)).is_multiple_of(5);
        out.push(Record::container(slot, Moment(at), if full { Depth::Full } else { Depth::Usage }, &m));
    }
    let machine = Machine {
        total: b(1 << 40),
        available: b(dice(seed) % (1 << 26) * 4096),
        free: b(dice(seed) % (1 << 26) * 4096),
        cached: b(dice(seed) % (1 << 26) * 4096),
        anon: b(dice(seed) % (1 << 26) * 4096),
        ..Machine::default()
    };
    out.push(Record::node(Moment(at), &machine));
    for g in 0..gpus {
        let used = (40 << 30) + dice(seed) % 64 * (2 << 20);
        let reading = Reading {
            device: DeviceId(g),
            total: b(80 << 30),
            used: b(used),
            free: b((79 << 30) - used),
            reserved: b(1 << 30),
            busy: Some((dice(seed) % 101) as u32),
            memory_busy: Some((dice(seed) % 101) as u32),
            power_mw: Some(400_000 + (dice(seed) % 200_000) as u32),
            celsius: Some(55 + (dice(seed) % 4) as u32),
            throttle: Some(0),
            sm_mhz: Some(1980 - (dice(seed) % 16) as u32 * 15),
            memory_mhz: Some(2619),
        };
        out.push(Record::gpu(begin, &reading));
        let p =
            GpuProcess { device: DeviceId(g), pid: 4000 + u32::from(g), used: b(used), other_kind: false };
        out.push(Record::gpu_process(begin, &p, Some(g)));
    }
    let span = Span { from: begin, to: Moment(at) };
    out.push(Record::round(second, 1_800_000_000_000 + second as i64 * 1000, span, span, Some(span)));
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize| args[i].parse::<u16>().unwrap();
    let (containers, gpus, seconds, moving) = (number(2), number(3), u64::from(number(4)), number(5));
    let dir = std::path::Path::new(&args[1]);
    let (mut ring, _) = Ring::open(dir, RingLimits::default(), BOOT).unwrap();
    let device = |i: u16| Device {
        uuid: format!("GPU-{i:08x}-0000-0000-0000-000000000000"),
        index: u32::from(i),
        name: "NVIDIA H100 80GB HBM3".into(),
        pci: format!("0000:{i:02x}:00"),
        ..Device::default()
    };
    let notes: Vec<Note> =
        (0..containers).map(container).chain([Note::Devices((0..gpus).map(device).collect())]).collect();
    let (mut records, mut seed, mut times, mut count) = (Vec::new(), 1, Vec::new(), 0);
    for second in 0..seconds {
        round(second, containers, moving, gpus, &mut seed, &mut records);
        count += records.len();
        let begin = Moment::now();
        ring.append(&records, if second == 0 { &notes } else { &[] });
        times.push(Moment::now().since(begin));
    }
    let begin = Moment::now();
    ring.sync().unwrap();
    let sync = Moment::now().since(begin);
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "append of {} records: median {:?}, 98 % {:?}, 99.9 % {:?}, most {:?}",
        records.len(),
        at(0.5),
        at(0.98),
        at(0.999),
        at(1.0)
    );
    let written: u64 = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    let counts = ring.counts();
    println!(
        "{} bytes a second ({} raw), {} segments, {} bytes on the disk; sync {sync:?}",
        written / seconds,
        count as u64 * dualplane_node::sample::SIZE as u64 / seconds,
        counts.segments,
        counts.bytes
    );
    let last = seconds * 1_000_000_000;
    for (what, minutes, one) in [("one container", 10, true), ("all", 10, false), ("one container", 30, true)]
    {
        let begin = Moment::now();
        let from = Moment(last.saturating_sub(minutes * 60_000_000_000));
        let w = ring.window(from, Moment(last), &|p| !one || p.contains("000000000003.slice"));
        let took = Moment::now().since(begin);
        println!(
            "window of {minutes} min, {what}: {took:?}, {} rounds, {} containers",
            w.rounds.len(),
            w.containers.len()
        );
    }
    drop(ring);
    let begin = Moment::now();
    let (_, recovered) = Ring::open(dir, RingLimits::default(), BOOT).unwrap();
    println!("open: {:?}, {} containers recovered", Moment::now().since(begin), recovered.containers.len());
}
