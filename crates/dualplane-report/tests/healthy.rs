//! Logs of runs that went well, recorded from real engines from start to orderly stop, with refused requests at every log
//! level: alone they give no failure, and in front of an incident's log they change nothing.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use std::path::Path;

use common::incidents;
use dualplane_base::Class;
use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::Verdict;

fn logs() -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/healthy");
    let files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<_> = files
        .filter(|p| p.extension().is_some_and(|e| e == "log"))
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap()))
        .collect();
    all.sort();
    assert!(all.len() >= 6, "{}", all.len());
    all
}

fn verdict(files: Vec<RawFile>, knowledge: &Knowledge) -> Verdict {
    dualplane_report::triage_all("incident", files, Vec::new(), knowledge).remove(0).verdict
}

#[test]
fn a_run_that_went_well_is_no_failure() {
    let k = Knowledge::embedded().unwrap();
    for (name, bytes) in logs() {
        let v = verdict(vec![RawFile::new("previous.log", bytes)], &k);
        assert_eq!(v.class, Class::NotMemory, "{name}: {}", v.summary);
        assert!(v.trigger.is_none(), "{name}: {}", v.summary);
        let rule = dualplane_core::verdict::rules::rule(v.decided_by).unwrap();
        assert_ne!(rule.stage, dualplane_core::verdict::rules::Stage::Failure, "{name}: {}", v.summary);
    }
}

/// An earlier run of the server stands in the same log: the report is of the end.
#[test]
fn in_front_of_an_incident_it_changes_nothing() {
    let k = Knowledge::embedded().unwrap();
    let healthy = logs();
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (i, (name, files)) in incidents().into_iter().enumerate() {
        let Some(at) = files
            .iter()
            .position(|f| f.name == "previous.log")
            .filter(|_| files.iter().all(|f| f.sifted.is_none()))
        else {
            continue;
        };
        tried += 1;
        let copies = |prefix: &[u8]| -> Vec<RawFile> {
            let of = |(i, f): (usize, &RawFile)| {
                let bytes = if i == at { [prefix, &f.bytes].concat() } else { f.bytes.clone() };
                RawFile::new(f.name.clone(), bytes)
            };
            files.iter().enumerate().map(of).collect()
        };
        let before = verdict(copies(b""), &k);
        let (log, prefix) = &healthy[i % healthy.len()];
        // Its own stamps would be those of a later day than the incident's.
        let prefix: String = String::from_utf8_lossy(prefix)
            .split_inclusive('\n')
            .filter(|l| !l.starts_with("[W1122 "))
            .map(|l| {
                l.find(" 11-22 ")
                    .map_or(l.to_owned(), |i| [&l[..i], &l[i + " 11-22 12:00:00".len()..]].concat())
            })
            .collect();
        let after = verdict(copies(prefix.as_bytes()), &k);
        let said = |v: &Verdict| (v.class, v.trigger.as_ref().map(|t| t.text.clone()), v.decided_by);
        if said(&before) != said(&after) {
            wrong.push(format!(
                "{name} behind {log}: {} ({}) -> {} ({}): {}",
                before.class, before.decided_by, after.class, after.decided_by, after.summary
            ));
        }
    }
    assert!(tried > 150, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}
