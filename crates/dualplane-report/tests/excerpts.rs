//! Excerpts as people paste them, labelled: `testdata/excerpts`, one file a form.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::path::Path;

use dualplane_base::{Class, Plane};
use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_report::{self as report, Report};
use serde::Deserialize;

/// Of all excerpts, percent.
const RIGHT: usize = 97;

#[derive(Deserialize)]
struct Form {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    class: OneOrMore,
    /// Reports, one a pod.
    #[serde(default = "one")]
    pods: usize,
    confidence: Option<String>,
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

fn one() -> usize {
    1
}

impl Case {
    fn wanted(&self) -> Vec<&str> {
        match &self.class {
            OneOrMore::One(c) => vec![c.as_str()],
            OneOrMore::More(all) => all.iter().map(String::as_str).collect(),
        }
    }
}

fn forms() -> Vec<(String, Form)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/excerpts");
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let form = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            out.push((path.file_stem().unwrap().to_string_lossy().into_owned(), form));
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

fn triage(text: &str, knowledge: &Knowledge) -> Vec<Report> {
    report::triage_all("stdin", vec![RawFile::new("stdin", text)], Vec::new(), knowledge)
}

fn plane(class: &str) -> Plane {
    Class::ALL.iter().find(|c| c.as_str() == class).unwrap_or_else(|| panic!("{class}")).plane()
}

#[test]
fn excerpts_get_their_class_and_never_a_wrong_plane() {
    let knowledge = Knowledge::embedded().unwrap();
    let (mut all, mut wrong) = (0, Vec::new());
    for (form, cases) in forms() {
        for case in cases.case {
            all += 1;
            let reports = triage(&case.text, &knowledge);
            let v = &reports[0].verdict;
            let wanted = case.wanted();
            let planes: Vec<Plane> = wanted.iter().map(|c| plane(c)).collect();
            assert!(
                v.class.plane() == Plane::None || planes.contains(&v.class.plane()),
                "{form}: {}: wrong plane: {}",
                case.name,
                v.class
            );
            assert!(
                v.class != Class::NotMemory || wanted.contains(&"not_memory"),
                "{form}: {}: not_memory without a proof",
                case.name
            );
            let sure = case.confidence.as_ref().is_none_or(|c| c == v.confidence.as_str());
            if !wanted.contains(&v.class.as_str()) || reports.len() != case.pods || !sure {
                wrong.push(format!(
                    "{form}: {}: {} ({}), {} reports",
                    case.name,
                    v.class,
                    v.confidence,
                    reports.len()
                ));
            }
        }
    }
    assert!(all >= 300, "{all}");
    assert!((all - wrong.len()) * 100 >= all * RIGHT, "{} of {all} are wrong: {wrong:#?}", wrong.len());
}

#[test]
fn a_container_without_a_name_is_no_other_one() {
    let knowledge = Knowledge::embedded().unwrap();
    let v = &triage("OOMKilled\n", &knowledge)[0].verdict;
    assert_eq!((v.class, v.sequence.len()), (Class::HostOomKilled, 1), "{:#?}", v.sequence);
}

#[test]
fn words_of_a_person_are_said_to_be_no_more() {
    let knowledge = Knowledge::embedded().unwrap();
    for text in ["my pod keeps getting OOMKilled", "getting CUDA out of memory on my A100"] {
        let v = &triage(text, &knowledge)[0].verdict;
        assert!(v.summary.contains("rests on quoted words only"), "{}", v.summary);
    }
}
