//! Rings in folders: what comes back, over segments, runs and boots; budgets; bytes that nobody wrote.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dualplane_base::process::of_path;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::{Depth, Group, Kind, Memory};
use dualplane_node::gpu::{DeviceId, GpuProcess, Health};
use dualplane_node::node::Shm;

use super::delta::{Decoder, Encoder};
use super::fixture::*;
use super::*;

const BOOT: &str = "b932d0cf-5916-41b7-ae0f-3282d92e7059";
const OTHER: &str = "0c0ffee0-5916-41b7-ae0f-3282d92e7059";

fn open(dir: &Path) -> (Ring, Recovered) {
    Ring::open(dir, RingLimits::default(), BOOT).unwrap()
}

fn all(_: &str) -> bool {
    true
}

fn everything(ring: &Ring) -> Window {
    ring.window(Moment(0), Moment(u64::MAX), &all)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    out.sort();
    out
}

/// Sums of lengths and of allocated blocks.
fn disk(dir: &Path) -> (u64, u64) {
    files(dir)
        .iter()
        .filter_map(|p| fs::metadata(p).ok())
        .fold((0, 0), |a, m| (a.0 + m.len(), a.1 + m.blocks() * 512))
}

#[test]
fn every_kind_of_record_comes_back_to_the_bit() {
    let d = tempfile::tempdir().unwrap();
    let (mut ring, recovered) = open(d.path());
    assert!(recovered.containers.is_empty() && recovered.last.is_none());
    let at = Moment(5 * SECOND);
    let health =
        Health { device: DeviceId(1), ecc_corrected: Some(u64::MAX), nvlinks: Some(18), ..Health::default() };
    let shm = Shm { size: Bytes(64 << 20), used: Bytes(1) };
    let hidden = GpuProcess { device: DeviceId(1), pid: 77, used: None, other_kind: true };
    let of_container = [
        Record::container(3, at, Depth::Full, &memory(GIB)),
        Record::container(3, at, Depth::Quick, &memory(GIB + 1)),
        Record::container(3, at, Depth::Usage, &Memory::default()),
        Record::container(3, Moment(0), Depth::Full, &memory(3)),
        Record::shm(3, at, shm),
        Record::engine(3, at, [Some(999_999), None, Some(u64::MAX), Some(0), None, Some(7), None, Some(9)]),
        Record::container(3, Moment(u64::MAX), Depth::Full, &memory(u64::MAX - 4096)),
    ];
    let mut records = of_container.to_vec();
    records.extend(round(6, 4, 4, 2, &mut Dice(1)));
    let marked = records.len();
    records.push(Record::gpu_health(at, &health));
    records.push(Record::gpu_process(at, &hidden, None));
    ring.append(&records, &[devices(2), container(0), container(1), container(2), container(3)]);
    ring.append(
        &[],
        &[Note::Engine {
            slot: 3,
            engine: Engine { engine: "vllm".into(), model: Some("m".into()), port: 1 },
        }],
    );
    ring.append(&[Record::shm(3, at, shm)], &[]);
    let w = everything(&ring);
    assert_eq!((w.torn, w.unknown, w.cut), (0, 0, false));
    let mut wanted = of_container.to_vec();
    wanted.push(Record::shm(3, at, shm));
    wanted.extend(records[of_container.len()..marked].iter().filter(|r| r.slot == 3 && r.memory().is_some()));
    wanted.sort_by_key(|r| r.at);
    let got = &w.containers[&path(3)];
    assert_eq!(got.records.len(), wanted.len());
    wanted.iter().for_each(|r| assert!(got.records.contains(r), "{r:?}"));
    assert!(got.records.is_sorted_by_key(|r| r.at));
    assert_eq!(got.named.as_ref().unwrap().pod, "llm-3");
    assert_eq!(got.engine.as_ref().unwrap().engine, "vllm");
    assert_eq!((w.containers.len(), w.gpus.len(), w.node.len(), w.rounds.len()), (4, 2, 1, 1));
    assert_eq!(w.rounds[0].field(1), Some(1_800_000_006_000));
    let gpu = &w.gpus[1];
    assert_eq!(gpu.health, [Record::gpu_health(at, &health)]);
    assert_eq!(
        gpu.readings,
        records.iter().filter(|r| r.reading().is_some() && r.slot == 1).copied().collect::<Vec<_>>()
    );
    let held: Vec<_> = gpu
        .processes
        .iter()
        .map(|p| (p.pid, p.used.is_some(), p.other_kind, p.container.as_deref()))
        .collect();
    assert_eq!(held, [(77, false, true, None), (4001, true, false, Some(path(1).as_str()))]);
    // Only what was asked for, by container and by time.
    let only = ring.window(at, at, &|p| p == path(3));
    assert_eq!(only.containers.keys().collect::<Vec<_>>(), [&path(3)]);
    assert_eq!(only.containers[&path(3)].records.len(), 6);
    assert!(only.node.is_empty());
}

#[test]
fn deltas_of_random_records_come_back() {
    let mut dice = Dice(7);
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    for _ in 0..300 {
        let records: Vec<Record> = (0..dice.below(200))
            .map(|_| {
                let kind = dualplane_node::sample::RecordKind::of(1 + dice.below(8) as u8).unwrap();
                let present = [0, 1, 0x7ffff, 0xfffff, 0xf][dice.below(5) as usize];
                let values =
                    std::array::from_fn(|_| if dice.below(3) == 0 { dice.next() } else { dice.below(9) });
                Record::of_parts(kind, dice.below(20) as u16, Moment(dice.next()), present, &values)
            })
            .collect();
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        assert_eq!(encoder.put(&records, &mut bytes), 0);
        assert_eq!(decoder.read(&bytes, &mut out), Some(()));
        assert_eq!(out, records);
    }
}

#[test]
fn a_new_run_knows_what_lived_and_what_was_dealt_with() {
    let d = tempfile::tempdir().unwrap();
    let (mut ring, _) = open(d.path());
    let at = |s: u64| Moment(s * SECOND);
    let full = |slot, s, used| Record::container(slot, at(s), Depth::Full, &memory(used));
    ring.append(
        &[full(0, 1, GIB), full(1, 1, GIB), full(2, 1, GIB)],
        &[container(0), container(1), container(2)],
    );
    let quick = Memory { current: Some(Bytes(5)), oom_kill: Some(1), ..Memory::default() };
    ring.append(&[Record::container(1, at(2), Depth::Quick, &quick)], &[]);
    ring.append(&[], &[Note::Gone { path: path(0), at: at(3) }]);
    assert_eq!(everything(&ring).containers[&path(0)].gone, Some(at(3)));
    drop(ring);
    // The second run has other numbers, and ends before it has seen all.
    let (mut ring, recovered) = open(d.path());
    let known = |r: &Recovered| r.containers.iter().map(|c| c.group.path().to_owned()).collect::<Vec<_>>();
    assert_eq!(known(&recovered), [path(1), path(2)]);
    let one = &recovered.containers[0];
    assert_eq!(
        (one.memory.current, one.memory.oom_kill, one.memory.anon),
        (Some(Bytes(5)), Some(1), Some(Bytes(GIB / 2)))
    );
    assert_eq!((one.at, recovered.last), (Some(at(2)), Some(at(2))));
    assert_eq!(one.named.as_ref().unwrap().restart, Some(2));
    assert_eq!(one.group, Group { kind: Kind::Container, identity: of_path(&path(1), 2) });
    let Note::Container { group, named, .. } = container(1) else { panic!() };
    ring.append(&[full(0, 4, 7)], &[Note::Container { slot: 0, group, named, command: Vec::new() }]);
    let w = everything(&ring);
    assert_eq!(w.containers[&path(1)].records.len(), 3, "of both runs");
    assert_eq!(w.containers[&path(0)].records.len(), 1);
    assert_eq!(w.containers[&path(0)].gone, Some(at(3)));
    drop(ring);
    let (mut ring, recovered) = open(d.path());
    assert_eq!(known(&recovered), [path(1), path(2)]);
    assert_eq!(recovered.containers[0].memory.current, Some(Bytes(7)));
    ring.append(&[], &[Note::Gone { path: path(1), at: at(9) }, Note::Gone { path: path(2), at: at(9) }]);
    drop(ring);
    assert!(open(d.path()).1.containers.is_empty());
    // A service has the same path in its next life.
    let (mut ring, _) = open(d.path());
    ring.append(&[full(5, 10, GIB)], &[container(5)]);
    ring.append(&[], &[Note::Gone { path: path(5), at: at(11) }]);
    ring.append(
        &[full(6, 12, GIB)],
        &[match container(5) {
            Note::Container { group, named, .. } => {
                Note::Container { slot: 6, group, named, command: Vec::new() }
            }
            n => n,
        }],
    );
    let w = everything(&ring);
    assert_eq!((w.containers[&path(5)].gone, w.containers[&path(5)].records.len()), (None, 2));
}

#[test]
fn boots_are_not_mixed_and_the_last_one_can_be_read() {
    let d = tempfile::tempdir().unwrap();
    let mut dice = Dice(3);
    let (mut ring, _) = Ring::open(d.path(), RingLimits::default(), OTHER).unwrap();
    ring.append(&round(100, 2, 2, 1, &mut dice), &[container(0), container(1), devices(1)]);
    for s in 101..400 {
        ring.append(&round(s, 2, 2, 1, &mut dice), &[]);
    }
    let second = Ring::open(d.path(), RingLimits::default(), BOOT).unwrap_err();
    assert!(second.to_string().contains("another agent"), "{second}");
    drop(ring);
    let (mut ring, recovered) = open(d.path());
    assert!(recovered.containers.is_empty() && recovered.last.is_none());
    ring.append(&round(1, 1, 1, 1, &mut dice), &[container(0), devices(1)]);
    assert_eq!(everything(&ring).rounds.len(), 1);
    assert_eq!(ring.earlier_boots(), [OTHER]);
    let end = ring.end_of(OTHER, Duration::from_secs(120), &|p| p == path(1)).unwrap();
    assert_eq!((end.rounds.len(), end.containers.len()), (120, 1));
    assert_eq!(end.rounds.last().unwrap().field(0), Some(399));
    assert!(ring.end_of("none", Duration::from_secs(1), &all).is_none());
}

#[test]
fn old_segments_go_and_the_budget_holds() {
    let d = tempfile::tempdir().unwrap();
    let limits = RingLimits { bytes: 512 << 10, keep: Duration::from_secs(300) };
    let (mut ring, _) = Ring::open(d.path(), limits, BOOT).unwrap();
    let notes: Vec<Note> = (0..110).map(container).chain([devices(8)]).collect();
    let mut dice = Dice(5);
    for s in 0..1200 {
        ring.append(&round(s, 110, 40, 8, &mut dice), if s == 0 { &notes } else { &[] });
        let (bytes, blocks) = disk(d.path());
        assert!(bytes <= limits.bytes && blocks <= limits.bytes, "{bytes} {blocks}");
        assert!(blocks <= ring.counts().bytes, "{blocks} {:?}", ring.counts());
    }
    let counts = ring.counts();
    assert!(counts.given_up > 0, "{counts:?}");
    assert_eq!((counts.failed_writes, counts.full_disk, counts.dropped_records), (0, 0, 0));
    let w = everything(&ring);
    assert!(w.rounds.len() > 30);
    assert!(
        w.rounds.windows(2).all(|p| p[1].field(0).unwrap() == p[0].field(0).unwrap() + 1),
        "the newest, without a hole"
    );
    assert_eq!(w.rounds.last().unwrap().field(0), Some(1199));
    assert_eq!((w.unknown, w.torn), (0, 0), "each segment names its containers");
    drop(ring);
    // With room, the time decides.
    let (mut ring, _) = Ring::open(d.path(), RingLimits { bytes: 24 << 20, ..limits }, BOOT).unwrap();
    for s in 1200..2400 {
        ring.append(&round(s, 110, 0, 8, &mut dice), if s == 1200 { &notes } else { &[] });
    }
    assert!((300..=362).contains(&everything(&ring).rounds.len()), "{}", everything(&ring).rounds.len());
    // A smaller budget holds at once.
    drop(ring);
    Ring::open(d.path(), RingLimits { bytes: 100_000, ..limits }, BOOT).unwrap();
    assert!(disk(d.path()).1 <= 100_000);
}

#[test]
fn ten_minutes_of_a_full_node_fit() {
    let d = tempfile::tempdir().unwrap();
    let (mut ring, _) = open(d.path());
    let notes: Vec<Note> = (0..110).map(container).chain([devices(8)]).collect();
    let mut dice = Dice(9);
    // Half an hour in which a third of all containers move all the time.
    for s in 0..1800 {
        ring.append(&round(s, 110, 37, 8, &mut dice), if s == 0 { &notes } else { &[] });
    }
    let counts = ring.counts();
    assert_eq!((counts.given_up, counts.dropped_records), (0, 0));
    assert!(counts.bytes < 24 << 20, "{counts:?}");
    ring.sync().unwrap();
    let w = ring.window(Moment(1200 * SECOND), Moment(1800 * SECOND), &|p| p == path(3));
    assert_eq!(w.rounds.len(), 600);
    assert_eq!(w.containers[&path(3)].records.len(), 600);
    eprintln!("{} bytes a second", counts.bytes / 1800);
}

#[test]
fn random_damage_is_read_over_and_never_a_panic() {
    let d = tempfile::tempdir().unwrap();
    let (mut ring, _) = open(d.path());
    let mut dice = Dice(11);
    ring.append(
        &round(0, 5, 5, 2, &mut dice),
        &[container(0), container(1), container(2), container(3), container(4), devices(2)],
    );
    for s in 1..130 {
        ring.append(&round(s, 5, 5, 2, &mut dice), &[]);
    }
    drop(ring);
    let names = files(d.path());
    assert_eq!(names.len(), 3);
    let good: BTreeMap<_, _> = names.iter().map(|p| (p.clone(), fs::read(p).unwrap())).collect();
    let mut torn = 0;
    for n in 0..60 {
        for (p, bytes) in &good {
            let mut bytes = bytes.clone();
            match dice.below(4) {
                0 => bytes.truncate(dice.below(bytes.len() as u64 + 1) as usize),
                1 => (0..=dice.below(9)).for_each(|_| {
                    let at = dice.below(bytes.len() as u64) as usize;
                    bytes[at] = dice.next() as u8;
                }),
                2 => bytes.extend((0..dice.below(5000)).map(|_| dice.next() as u8)),
                _ => bytes.resize(bytes.len() + 4096, 0),
            }
            fs::write(p, bytes).unwrap();
        }
        let (mut ring, recovered) = open(d.path());
        torn += recovered.torn + ring.counts().torn;
        ring.append(&round(1000 + n, 1, 1, 1, &mut dice), &[container(0), devices(1)]);
        let w = everything(&ring);
        assert_eq!(w.rounds.last().unwrap().field(0), Some(1000 + n), "it goes on behind any damage");
        drop(ring);
        files(d.path())
            .into_iter()
            .filter(|p| !good.contains_key(p))
            .for_each(|p| fs::remove_file(p).unwrap());
    }
    assert!(torn > 60, "{torn}");
    // Whole blocks with nonsense in them: the checksum is right.
    for _ in 0..2000 {
        let body: Vec<u8> = (0..dice.below(200)).map(|_| dice.next() as u8 >> dice.below(8)).collect();
        let mut out = Vec::new();
        let _ = Decoder::default().read(&body, &mut out);
        let mut bytes = segment::MAGIC.to_vec();
        Header::new(BOOT, 1).put(&mut bytes);
        let mut bytes = bytes[8..].to_vec();
        let kind = [block::Kind::Table, block::Kind::Notes, block::Kind::Records][dice.below(3) as usize];
        block::put(&mut bytes, kind, |o| o.extend_from_slice(&body));
        fs::write(&names[0], &bytes).unwrap();
        let mut reader = segment::Reader::new(&bytes).unwrap();
        while reader.next().is_some() {}
    }
    // What stands there and is none of ours.
    fs::write(d.path().join("zzzzzzzz-000001.seg"), "x").unwrap();
    fs::write(d.path().join("00000000-99999999999999999999.seg"), "x").unwrap();
    fs::create_dir(d.path().join("00000000-000777.seg")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", d.path().join("00000000-000778.seg")).unwrap();
    fs::write(d.path().join("00000000-000779.seg"), "").unwrap();
    let (ring, _) = open(d.path());
    assert!(!d.path().join("00000000-000779.seg").exists());
    assert_eq!(ring.counts().segments, 3);
}

#[test]
fn what_cannot_be_written_waits_in_memory() {
    let d = tempfile::tempdir().unwrap();
    let dir = d.path().join("ring");
    let (mut ring, _) = open(&dir);
    let mut dice = Dice(13);
    ring.append(&round(0, 3, 3, 1, &mut dice), &[container(0), container(1), container(2), devices(1)]);
    // Somebody takes the folder away; the next segment cannot be made.
    fs::rename(&dir, d.path().join("away")).unwrap();
    for s in 1..200 {
        ring.append(&round(s, 3, 3, 1, &mut dice), &[]);
    }
    let counts = ring.counts();
    assert!(counts.failed_writes > 100 && counts.waiting_bytes > 0, "{counts:?}");
    assert_eq!(counts.dropped_records, 0);
    assert!(ring.sync().is_err());
    assert_eq!(ring.window(Moment(61 * SECOND), Moment(u64::MAX), &all).rounds.len(), 139);
    fs::rename(d.path().join("away"), &dir).unwrap();
    ring.append(&round(200, 3, 3, 1, &mut dice), &[]);
    ring.sync().unwrap();
    assert_eq!(ring.counts().waiting_bytes, 0);
    drop(ring);
    assert_eq!(everything(&open(&dir).0).rounds.len(), 201);
    // Memory is bounded: the oldest goes.
    let (mut ring, _) = open(&dir);
    fs::rename(&dir, d.path().join("away")).unwrap();
    for s in 300..2300 {
        ring.append(&round(s, 200, 200, 1, &mut dice), &[]);
    }
    let counts = ring.counts();
    assert!(counts.waiting_bytes <= MEMORY as u64 && counts.dropped_records > 0, "{counts:?}");
}

#[test]
fn a_folder_that_somebody_removed_is_made_again() {
    let d = tempfile::tempdir().unwrap();
    let dir = d.path().join("state/ring");
    let (mut ring, _) = open(&dir);
    let mut dice = Dice(14);
    ring.append(&round(0, 2, 2, 1, &mut dice), &[container(0), container(1), devices(1)]);
    assert!(ring.is_there() && ring.trouble().is_none());
    fs::remove_dir_all(d.path().join("state")).unwrap();
    // The segment that is open has no name any more: nothing fails, and nothing would be found.
    ring.append(&round(1, 2, 2, 1, &mut dice), &[]);
    assert!(!ring.is_there() && ring.trouble().is_none());
    ring.remake().unwrap();
    assert!(ring.is_there());
    for s in 2..5 {
        ring.append(&round(s, 2, 2, 1, &mut dice), &[]);
    }
    assert_eq!(files(&dir).len(), 1);
    // Another agent must not take it meanwhile.
    let second = Ring::open(&dir, RingLimits::default(), BOOT).unwrap_err();
    assert_eq!(second.kind(), std::io::ErrorKind::ResourceBusy);
    drop(ring);
    let (ring, recovered) = open(&dir);
    assert_eq!(everything(&ring).rounds.len(), 3);
    assert_eq!(recovered.containers.len(), 2, "who is there is said again");
}

#[test]
fn why_a_round_could_not_be_written_is_told_until_it_can() {
    let d = tempfile::tempdir().unwrap();
    let dir = d.path().join("ring");
    let (mut ring, _) = open(&dir);
    fs::remove_dir(&dir).unwrap();
    let mut dice = Dice(15);
    ring.append(&round(0, 1, 1, 1, &mut dice), &[container(0), devices(1)]);
    assert!(ring.trouble().unwrap().contains("No such file"), "{:?}", ring.trouble());
    ring.remake().unwrap();
    ring.append(&round(1, 1, 1, 1, &mut dice), &[]);
    assert_eq!(ring.trouble(), None);
    drop(ring);
    assert_eq!(everything(&open(&dir).0).rounds.len(), 2, "what waited in memory is there as well");
}

#[test]
fn somebody_else_reads_the_ring_while_it_is_written() {
    let d = tempfile::tempdir().unwrap();
    let (mut ring, _) = open(d.path());
    let mut dice = Dice(16);
    ring.append(&round(0, 2, 2, 1, &mut dice), &[container(0), container(1), devices(1)]);
    for s in 1..130 {
        ring.append(&round(s, 2, 2, 1, &mut dice), &[]);
    }
    let before = files(d.path());
    let seen = look(d.path(), BOOT, Moment(0), Moment(u64::MAX), &all).unwrap();
    assert_eq!((seen.rounds.len(), seen.containers.len()), (130, 2));
    let part = look(d.path(), BOOT, Moment(100 * SECOND), Moment(u64::MAX), &all).unwrap();
    assert_eq!(part.rounds.len(), 30);
    assert!(look(d.path(), "another boot", Moment(0), Moment(u64::MAX), &all).unwrap().rounds.is_empty());
    assert_eq!(files(d.path()), before, "nothing is changed");
    ring.append(&round(130, 2, 2, 1, &mut dice), &[]);
    assert!(look(&d.path().join("none"), BOOT, Moment(0), Moment(1), &all).is_err());
}
