//! Whatever a report, a log or a name holds: it changes no tag of a page, and nothing invisible stands in it.
//!
//! A page that is made of harmless words and the same page with planted ones must have the same tags with the same attributes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    missing_docs
)]

mod common;

use std::path::PathBuf;
use std::sync::OnceLock;

use common::payloads::payloads;
use common::{Kept, both_planes, frame, kept, page_of, place, recorded};
use dualplane_base::text::is_unsafe;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::timeline::Line;
use dualplane_incidents::{Filter, Fleet, Incident, Where};
use dualplane_pages::scene::{Excerpt, Mark, Planes, Row};
use dualplane_pages::{Scene, Verdict, capacity, fleet, gpus, handover, list};
use proptest::prelude::{ProptestConfig, proptest};
use proptest::prop_assert;
use serde_json::Value;

/// An incident that has everything that a page can show.
fn full() -> &'static (Value, Value, Scene) {
    static FULL: OnceLock<(Value, Value, Scene)> = OnceLock::new();
    FULL.get_or_init(|| {
        let knowledge = Knowledge::embedded().unwrap();
        let mut at = place();
        at.xids = vec![common::xid(79, "GPU-1")];
        let Kept { incident, mut report, scene, .. } = kept("full", both_planes(), &at, &knowledge);
        for (name, part) in [
            ("real-live-lowered-limit", "changes"),
            ("pressure-host-rising", "pressure"),
            ("real-k8s-two-containers-oom", "others"),
            ("sglang-hicache-over-limit", "cascade"),
            ("sglang-hicache-over-limit", "budget"),
            ("live-matrix-kv", "missing"),
        ] {
            let other = kept(name, recorded(name), &Where::default(), &knowledge).report;
            report[part] = other[part].clone();
            assert!(!report[part].is_null(), "{name} has no {part}");
        }
        let mut scene = scene;
        for s in &mut scene.planes.as_mut().unwrap().series {
            s.points.truncate(4);
        }
        (serde_json::to_value(incident).unwrap(), report, scene)
    })
}

/// Words that code matches on stay; everything else becomes the text.
fn planted(value: &Value, text: &str, key: &str) -> Value {
    const FIXED: &[&str] = &[
        "schema",
        "class",
        "plane",
        "phase",
        "confidence",
        "stage",
        "bound_by",
        "level",
        "died_at",
        "received_at",
        "died_at_from",
        "id",
    ];
    match value {
        Value::String(_) if !FIXED.contains(&key) => Value::String(text.to_owned()),
        Value::Array(all) => Value::Array(all.iter().map(|v| planted(v, text, key)).collect()),
        Value::Object(all) => all.iter().map(|(k, v)| (k.clone(), planted(v, text, k))).collect(),
        other => other.clone(),
    }
}

/// The same of what a bundle shows. Every field is named, so that a new one is asked whether it is a text.
fn planted_scene(scene: &Scene, text: &str) -> Scene {
    let own = || text.to_owned();
    let Scene { planes, log } = scene.clone();
    let planes = planes.map(|Planes { from, to, series, marks, phases }| {
        let line = |Line { measure, card, points }: Line| Line { measure, card: card.map(|_| own()), points };
        let mark = |Mark { at, kind, text: _ }: Mark| Mark { at, kind, text: own() };
        let (series, marks) = (series.into_iter().map(line).collect(), marks.into_iter().map(mark).collect());
        Planes { from, to, series, marks, phases }
    });
    let log = log.map(|Excerpt { file: _, rows, behind }| {
        let row = |Row { number, text: _, kind, meaning: _ }: Row| Row {
            number,
            text: own(),
            kind,
            meaning: own(),
        };
        Excerpt { file: own(), rows: rows.into_iter().map(row).collect(), behind }
    });
    Scene { planes, log }
}

/// The page of the incident in which every text is this one, and with `every` the other pages as well.
fn pages(text: &str, every: bool) -> Vec<(&'static str, String)> {
    let (incident, report, scene) = full();
    let incident: Incident = serde_json::from_value(planted(incident, text, "")).unwrap();
    let scene = planted_scene(scene, text);
    let report = planted(report, text, "");
    let verdict = Verdict::read(&report).unwrap();
    let fleet_of = Fleet::of([&incident]);
    let all = std::slice::from_ref(&incident);
    let filter = Filter { text: Some(text.to_owned()), loop_key: Some(text.to_owned()), ..Filter::default() };
    let filter = filter.with(dualplane_incidents::Dimension::Node, text);
    let listing = list::Listing {
        filter: &filter,
        refused: Some(text),
        incidents: all,
        continued: true,
        next: None,
        fleet: &fleet_of,
    };
    let meaning = |_| Some(text.to_owned());
    let kept = Kept { incident: incident.clone(), report, verdict, scene };
    let first = ("incident", page_of(&kept, all, false));
    if !every {
        return vec![first];
    }
    vec![
        first,
        ("print", page_of(&kept, all, true)),
        ("list", list::page(&frame(), &listing)),
        ("fleet", fleet::page(&frame(), &fleet_of, text)),
        ("gpus", gpus::page(&frame(), &fleet_of.gpus, &meaning)),
        ("card", gpus::card(&frame(), &fleet_of.gpus[0], all, &meaning)),
        ("capacity", capacity::page(&frame(), &fleet_of)),
        ("problem", dualplane_pages::problem(&frame(), text, text)),
    ]
}

/// Tags with the names of their attributes. Escaped text holds no angle bracket, so that each one is a tag's.
fn tags(page: &str) -> Vec<String> {
    let mut out = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, rest) = part.split_once('>').unwrap();
        assert!(!rest.contains('>'), "a stray bracket in {rest}");
        let mut names = String::new();
        let mut quoted = false;
        for c in tag.chars() {
            match c {
                '"' => quoted = !quoted,
                c if !quoted => names.push(c),
                _ => {}
            }
        }
        out.push(names);
    }
    out
}

/// Attributes that a browser follows or runs lead nowhere but below the server.
fn leads_home(page: &str) -> Result<(), String> {
    for attribute in [" href=\"", " src=\"", " action=\""] {
        for (at, found) in page.match_indices(attribute) {
            let value = &page[at + found.len()..];
            let value = &value[..value.find('"').unwrap()];
            if !(value.starts_with('/') && !value.starts_with("//") || value.starts_with('#')) {
                return Err(value.to_owned());
            }
        }
    }
    Ok(())
}

fn holds(text: &str, every: bool) -> Result<(), String> {
    static HARMLESS: OnceLock<Vec<Vec<String>>> = OnceLock::new();
    let harmless = HARMLESS.get_or_init(|| pages("harmless", true).iter().map(|(_, p)| tags(p)).collect());
    for ((name, page), want) in pages(text, every).iter().zip(harmless) {
        if tags(page) != *want {
            return Err(format!("{name}: {text:?} changed the tags"));
        }
        if let Some(c) = page.chars().find(|c| is_unsafe(*c) && *c != '\n') {
            return Err(format!("{name}: {c:?} of {text:?}"));
        }
        leads_home(page).map_err(|v| format!("{name}: a link to {v}"))?;
    }
    Ok(())
}

#[test]
fn two_hundred_payloads_change_no_page() {
    let all = payloads();
    assert_eq!(all.len(), 200);
    for (i, payload) in all.iter().enumerate() {
        // The other pages have the same parts: one in ten.
        let every = i % 10 == 0;
        holds(payload, every).unwrap();
        let Some(dir) = std::env::var_os("DUALPLANE_PAGES_OUT").map(PathBuf::from) else { continue };
        let dir = dir.join("hostile");
        std::fs::create_dir_all(&dir).unwrap();
        for (name, page) in pages(payload, every) {
            std::fs::write(dir.join(format!("{i}-{name}.html")), page).unwrap();
        }
    }
}

#[test]
fn the_note_for_the_next_shift_keeps_its_headings() {
    let headings = |text: &str| {
        let (incident, report, _) = full();
        let incident: Incident = serde_json::from_value(planted(incident, text, "")).unwrap();
        let verdict = Verdict::read(&planted(report, text, "")).unwrap();
        let note = handover(&incident, &verdict, "https://example.com/");
        assert!(!note.chars().any(|c| is_unsafe(c) && c != '\n'), "{note}");
        // What stands in a block of code is no heading; the block ends at as many ticks as it began with.
        let mut block: Option<String> = None;
        let heading = |line: &&str| {
            let line = line.trim_start();
            let ticks: String = line.chars().take_while(|c| *c == '`').collect();
            match &block {
                Some(open) if line == open => block = None,
                None if ticks.len() >= 3 => block = Some(ticks),
                _ => {}
            }
            block.is_none() && line.starts_with('#')
        };
        note.lines().filter(heading).count()
    };
    let want = headings("harmless");
    for payload in payloads() {
        assert_eq!(headings(&payload), want, "{payload}");
    }
    assert_eq!(headings("# a\n# b\n```\n# c"), want);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_text_changes_a_page(text in proptest::string::string_regex("(?s).{1,40}").unwrap()) {
        // What is all space is nothing to a page, and that is another page.
        let text = format!("a{text}");
        let told = holds(&text, true);
        prop_assert!(told.is_ok(), "{told:?}");
    }
}
