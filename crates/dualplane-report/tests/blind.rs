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
const THIRD: (&str, usize) = ("third.tsv", 75); // first run: 55, and nine in the wrong plane
const FOURTH: (&str, usize) = ("fourth.tsv", 74); // first run: 69, and two in the wrong plane
/// All of them: messages that were looked at while the grammar was written.
const TRAINING: usize = 274;

fn is(want: &str, class: Class) -> bool {
    match want {
        "vram" => class.plane() == Plane::Gpu && class != Class::KvCacheCapacity,
        "kv" => class == Class::KvCacheCapacity,
        "host" => class.plane() == Plane::Host,
        "hardware" => class.plane() == Plane::Hardware,
        "none" => class.plane() == Plane::None,
        "unsaid" => class == Class::Unknown,
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

#[test]
fn messages_of_the_third_set() {
    judged(THIRD);
}

#[test]
fn messages_of_the_fourth_set() {
    judged(FOURTH);
}

#[test]
fn messages_that_the_grammar_was_made_with() {
    let (right, all, misses) = read("words/training.tsv");
    assert!(misses.other_plane.is_empty() && right >= TRAINING, "{right} of {all}:\n{misses:?}");
}

fn judged((name, least): (&str, usize)) {
    let (right, all, misses) = read(&format!("blind/{name}"));
    assert_eq!(all, 80);
    assert!(misses.other_plane.is_empty() && right >= least, "{right} of {all}:\n{misses:?}");
}

/// What was judged otherwise than labelled.
#[derive(Default)]
struct Misses {
    /// Not known: no harm.
    unknown: String,
    /// The other plane accused.
    other_plane: String,
}

impl std::fmt::Debug for Misses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}other plane:\n{}", self.unknown, self.other_plane)
    }
}

/// How many of a file are judged as labelled, of how many, and the others.
fn read(name: &str) -> (usize, usize, Misses) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    let text = std::fs::read_to_string(file).unwrap();
    let knowledge = Knowledge::embedded().unwrap();
    let (mut right, mut all, mut misses) = (0, 0, Misses::default());
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
        if class.plane() == Plane::None { &mut misses.unknown } else { &mut misses.other_plane }
            .push_str(&told);
    }
    (right, all, misses)
}
