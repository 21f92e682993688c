//! Every recorded incident as a fleet keeps it: what its report says stays what it was, and Xids are those of its evidence.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    missing_docs
)]

use std::path::Path;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_incidents::{Fleet, Incident, Time, Where, is_id, items, of_report};
use serde_json::Value;

fn files(root: &Path, dir: &Path, out: &mut Vec<RawFile>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files(root, &path, out);
        } else if !matches!(name.as_str(), "truth.json" | "expected.txt") {
            out.push(RawFile::new(name, std::fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn recorded_deaths_stay_what_their_reports_say() {
    let knowledge = Knowledge::embedded().unwrap();
    let now = Time::parse("2027-01-01T00:00:00Z").unwrap();
    let mut all: Vec<Incident> = Vec::new();
    let (mut with_xid, mut living, mut with_vram) = (0, 0, 0);
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/incidents")).unwrap()
    {
        let dir = entry.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let mut evidence = Vec::new();
        files(&dir, &dir, &mut evidence);
        // The largest take most of the time and hold nothing of another kind.
        if evidence.iter().map(|f| f.bytes.len()).sum::<usize>() > 48 * 1024 {
            continue;
        }
        let reports = dualplane_report::triage_all(&name, evidence, Vec::new(), &knowledge);
        let document: Value =
            serde_json::from_str(&dualplane_report::json::render(&reports).unwrap()).unwrap();
        assert!(is_id(&name), "{name}");
        for (n, report) in items(&document).into_iter().enumerate() {
            let i = of_report(&format!("{name}.{n}"), report, &Where::default(), now).unwrap();
            assert_eq!(report["verdict"]["class"], i.class.as_str(), "{name}");
            assert_eq!(report["verdict"]["plane"], i.plane.as_str(), "{name}");
            assert_eq!(report["verdict"]["title"], i.title, "{name}");
            assert_eq!(report["subject"]["pod"].as_str().unwrap_or(""), i.pod, "{name}");
            assert_eq!(report["trigger"].is_null(), i.trigger.is_none(), "{name}");
            // Who lives at a limit is no death, and nobody else is said to live.
            let at_limit = report["verdict"]["decided_by"] == dualplane_core::verdict::rules::UNDER_PRESSURE;
            assert_eq!(at_limit, i.pressure.is_some(), "{name}");
            living += usize::from(at_limit);
            let planned = &report["budget"]["expected"]["gpu"];
            assert_eq!(planned.is_null(), i.vram.planned.is_none(), "{name}");
            with_vram += usize::from(i.vram.planned.is_some() || i.vram.total_bytes.is_some());
            if report["trigger"]["signature"].as_str().is_some_and(|s| s.starts_with("xid.")) {
                let code =
                    report["trigger"]["signature"].as_str().unwrap().trim_start_matches("xid.").to_owned();
                assert!(i.xids.iter().any(|x| x.code.to_string() == code), "{name}: {:?}", i.xids);
                with_xid += 1;
            }
            all.push(i);
        }
    }
    assert!(all.len() > 300 && with_xid > 8, "{} of which {with_xid} with an Xid", all.len());
    assert!(living > 3 && with_vram > 3, "{living} live at a limit, {with_vram} tell VRAM");
    let fleet = Fleet::of(&all);
    assert_eq!(fleet.incidents, all.len() as u64);
    assert_eq!(fleet.by_class.values().sum::<u64>(), fleet.incidents);
    for (dimension, shares) in &fleet.by {
        for share in shares {
            assert_eq!(share.by_class.values().sum::<u64>(), share.count, "{dimension}");
        }
    }
}
