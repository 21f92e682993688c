//! A server that leaks on the VRAM plane, played by a table of what the driver tells: half an hour of it goes the way that a
//! measurement goes, from the cards' readings to the report's drift.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use dualplane_node::gpu::Fake;
use dualplane_runs::{Gather, Setup};
use dualplane_stats::random::Random;

use super::{State, Whose};

const MIB: u64 = 1 << 20;
/// Between two samples.
const STEP: u64 = 10;
/// Of a neighbour on the same card.
const OTHER: u32 = 4_000_000;

/// Half an hour of a card on which the server holds some 6 GiB and leaks so much an hour, beside a neighbour that leaks as well.
fn table(own: u32, leak: u64, neighbour: u64, seed: u64) -> String {
    let mut text = String::from(
        r#"{"devices":[{"uuid":"GPU-a","index":0,"name":"NVIDIA L40S","pci":"0000:4a:00"}],"steps":["#,
    );
    let mut chance = Random::new(seed);
    for i in 0..=1800 / STEP {
        // The caching allocator takes and gives blocks of 2 MiB.
        let noise = chance.bits() % 4 * 2 * MIB;
        let grown = |per_hour: u64| per_hour * MIB * i * STEP / 3600;
        let (mine, theirs) = (6144 * MIB + grown(leak) + noise, 1024 * MIB + grown(neighbour));
        let comma = if i == 0 { "" } else { "," };
        write!(
            text,
            r#"{comma}{{"at_ms":{},"readings":[{{"device":0,"total":{},"used":{}}}],"processes":[{{"device":0,"pid":{own},"used":{mine}}},{{"device":0,"pid":{OTHER},"used":{theirs}}}]}}"#,
            i * STEP * 1000,
            46_068 * MIB,
            mine + theirs,
        )
        .unwrap();
    }
    text.push_str("]}");
    text
}

/// What the report says of the growth: by the hour in MiB, and whether it is called growth.
fn drift(leak: u64, neighbour: u64, seed: u64) -> (f64, bool) {
    let own = std::process::id();
    let fake = Fake::from_json(&table(own, leak, neighbour, seed)).unwrap();
    let whose =
        Whose { pid: Some(own), proc_root: "/proc".into(), gpus: Some(Box::new(fake)), ..Whose::default() };
    let (clock, mut state) = (Instant::now(), State::new(whose));
    let mut gather = Gather::new(Setup::default());
    gather.counts_from(0.0);
    for i in 0..=1800 / STEP {
        state.read = Instant::now().checked_sub(Duration::from_secs(if i == 0 { 0 } else { STEP })).unwrap();
        let mut s = state.sample(clock);
        s.at = (i * STEP) as f64;
        gather.sample(s);
    }
    let d = gather.finish(1800.0, false).vram.unwrap().drift.unwrap();
    (d.bytes_per_hour / MIB as f64, d.grows)
}

#[test]
fn fifty_mib_an_hour_of_vram_are_seen_within_half_an_hour() {
    for seed in 0..20 {
        let (per_hour, grows) = drift(50, 0, seed);
        assert!(grows && (45.0..55.0).contains(&per_hour), "{seed}: {per_hour}");
    }
}

/// A hundred servers that hold what they hold, each beside a neighbour whose leak is not theirs.
#[test]
fn a_neighbour_s_leak_is_not_the_server_s() {
    let alarms: Vec<u64> = (0..100).filter(|seed| drift(0, 400, *seed).1).collect();
    assert!(alarms.is_empty(), "{alarms:?}");
}
