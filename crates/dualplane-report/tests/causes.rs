//! What lies beneath a lack of VRAM, and how busy a living server is, on an incident for each.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use dualplane_core::verdict::Verdict;
use dualplane_core::verdict::busy::{Held, State};

fn judged(incident: &str) -> Verdict {
    let files = common::files(&common::root().join("testdata/incidents").join(incident));
    assert!(!files.is_empty(), "{incident}");
    common::triage(files).remove(0).verdict
}

#[test]
fn the_row_with_the_most_evidence_comes_first() {
    for (incident, row) in [
        ("live-matrix-weights", "weights that are too large"),
        ("live-matrix-kv", "more length and concurrency"),
        ("live-matrix-edge", "settings at the edge"),
        ("live-matrix-sharding", "a wrong split"),
        ("live-matrix-scheduling", "scheduling:"),
    ] {
        let v = judged(incident);
        let first = v.causes.get(1).unwrap_or_else(|| panic!("{incident}: {:#?}", v.causes));
        assert!(first.title.starts_with(row) && !first.rejected, "{incident}: {:#?}", v.causes);
        assert!(!first.supports.is_empty(), "{incident}");
        let against: Vec<_> = v.causes.iter().filter(|c| c.rejected && c.class == v.class).collect();
        assert!(against.iter().all(|c| !c.against.is_empty()), "{incident}: {against:#?}");
    }
}

#[test]
fn files_that_were_loaded_are_evidence() {
    let v = judged("live-matrix-weights");
    let told = v.causes.iter().flat_map(|c| &c.supports).map(|c| c.proof.id()).collect::<Vec<_>>();
    assert!(told.contains(&"launch.shards"), "{told:?}");
}

#[test]
fn each_living_server_gets_its_reading() {
    for (incident, state) in [
        ("live-busy-saturated", State::Saturated),
        ("live-busy-overloaded", State::Overloaded),
        ("live-busy-throttled", State::Held(Held::Cpu)),
        ("live-busy-late-untold", State::Untold),
        ("live-busy-queue-untold", State::Untold),
    ] {
        let v = judged(incident);
        let busy = v.busy.unwrap_or_else(|| panic!("{incident}: {:#?}", v.causes));
        assert_eq!(busy.state, state, "{incident}: {busy:#?}");
        assert!(!busy.supports.is_empty(), "{incident}");
        // What cannot be told comes with the command that tells it.
        let commands: Vec<&str> = v.missing.iter().filter_map(|g| g.command.as_deref()).collect();
        let asked = commands.iter().any(|c| c.contains("metrics.prom"));
        assert_eq!(asked, state == State::Untold, "{incident}: {commands:#?}");
    }
}

#[test]
fn as_many_copies_as_were_there_fit() {
    let files = common::files(&common::root().join("testdata/incidents/live-triton-one-instance-too-many"));
    let report = common::triage(files).remove(0);
    let titles: Vec<&str> = report.actions.iter().map(|a| a.title.as_str()).collect();
    let want = "Set the count of the instance_group in the config.pbtxt of asr to 3 (from 4)";
    assert!(titles.contains(&want), "{titles:#?}");
}
