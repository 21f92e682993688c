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

/// Of 80 each: how many must be judged right. The first runs, before anything was learned from them, are told beside.
const FIRST: (&str, usize) = ("messages.tsv", 72); // first run: 56
const SECOND: (&str, usize) = ("second.tsv", 73); // first run: 35, and two in the wrong plane

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
    judged(FIRST);
}

#[test]
fn messages_of_the_second_set() {
    judged(SECOND);
}

fn judged((name, least): (&str, usize)) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blind").join(name);
    let text = std::fs::read_to_string(file).unwrap();
    let knowledge = Knowledge::embedded().unwrap();
    let (mut right, mut all, mut missed, mut wrong) = (0, 0, String::new(), String::new());
    for row in text.lines().filter(|l| !l.starts_with('#')) {
        let [want, source, line] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let line = line.replace("\\n", "\n");
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
        let told = format!("wanted {want}, got {class}: {source}: {line}\n");
        if class.plane() == Plane::None { &mut missed } else { &mut wrong }.push_str(&told);
    }
    assert_eq!(all, 80);
    assert!(wrong.is_empty() && right >= least, "{right} of {all}:\n{missed}other plane:\n{wrong}");
}
