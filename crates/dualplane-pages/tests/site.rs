//! All pages over recorded incidents: each is whole, keeps the policy, and says what the report says. With
//! `DUALPLANE_PAGES_OUT=DIR` they are written, for the tests in a browser (`e2e/page`).
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

use common::{END, Kept, both_planes, frame, kept, page_of, place, recorded, xid};
use dualplane_core::knowledge::Knowledge;
use dualplane_incidents::{Cursor, Filter, Fleet, Incident, Time, Where};
use dualplane_pages::{Frame, assets, capacity, fleet, gpus, handover, list};

const NAMES: &[&str] = &[
    "sglang-hicache-over-limit",
    "real-live-child-oom",
    "real-live-lowered-limit",
    "real-agent-xid-of-another",
    "pressure-host-rising",
    "pressure-both-planes",
    "kv-full-then-sigkill",
    "llama-cpp-cuda-oom-load-b020",
    "llama-cpp-xid-hardware-c009",
    "llama-cpp-mig-slice-too-small-b079",
    "live-matrix-kv",
    "ollama-not-memory-b028",
    "caffe-check-failed-out-of-memory",
    "manifest-alone",
    "forms-mig-table",
];

/// The recorded ones and the composed one, which stands first.
fn all(knowledge: &Knowledge) -> Vec<Kept> {
    let mut out = vec![kept("both-planes", both_planes(), &place(), knowledge)];
    for (i, name) in NAMES.iter().enumerate() {
        let died_at = Some(Time::from_ms(END - (i as i64 + 1) * 31 * 3_600_000));
        let mut at = Where {
            cluster: Some(["eu-west-1", "us-east-2"][i % 2].to_owned()),
            died_at,
            ..Where::default()
        };
        if name.contains("cuda-oom") {
            (at.vram_total_bytes, at.vram_held_bytes) = (Some(24 << 30), Some(23 << 30));
        }
        if name.contains("xid") {
            at.gpus = place().gpus.into_iter().take(1).collect();
            at.gpus[0].ecc_uncorrected = Some(2);
            at.xids = vec![xid(79, &at.gpus[0].uuid), xid(94, &at.gpus[0].uuid)];
        } else if i % 3 == 0 {
            at.gpus = place().gpus;
        }
        out.push(kept(name, recorded(name), &at, knowledge));
    }
    out
}

/// A loop of deaths, so that lists have something to fold.
fn fleet_of(all: &[Kept]) -> Vec<Incident> {
    let mut incidents: Vec<Incident> = all.iter().map(|k| k.incident.clone()).collect();
    for n in 1..=6 {
        let mut again = all[0].incident.clone();
        again.id = format!("both-planes-{n}");
        again.died_at = Time::from_ms(END - n * 9 * 3_600_000);
        incidents.push(again);
    }
    incidents
}

fn write(name: &str, text: &str) {
    let Some(dir) = std::env::var_os("DUALPLANE_PAGES_OUT").map(PathBuf::from) else { return };
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What a browser would refuse under the policy, or run.
fn keeps_the_policy(page: &str) {
    for inline in [" style=\"", "<style", " onclick", " onload", " onerror", "javascript:", "http-equiv"] {
        assert!(!page.contains(inline), "{inline} in {page}");
    }
    for (at, _) in page.match_indices("<script") {
        let tag = &page[at..page[at..].find("</script>").unwrap() + at];
        assert!(tag.starts_with("<script src=\"/assets/") && tag.ends_with('>'), "{tag}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{page}");
}

#[test]
fn the_pages_say_what_the_reports_say() {
    let knowledge = Knowledge::embedded().unwrap();
    let all = all(&knowledge);
    let incidents = fleet_of(&all);
    let again: Vec<Incident> =
        incidents.iter().filter(|i| i.id.starts_with("both-planes-")).cloned().collect();
    for k in &all {
        let mine = if k.incident.id == "both-planes" { again.as_slice() } else { &[] };
        for print in [false, true] {
            let page = page_of(k, mine, print);
            keeps_the_policy(&page);
            assert!(page.contains(k.incident.class.as_str()), "{}", k.incident.id);
            let titles = k.report["actions"].as_array().unwrap().iter().map(|a| a["title"].as_str().unwrap());
            for title in titles {
                let shown = dualplane_base::text::markup(title);
                assert!(page.contains(&shown), "{}: {title}", k.incident.id);
            }
            write(&format!("incidents/{}{}.html", k.incident.id, if print { ".print" } else { "" }), &page);
        }
        let note = handover(&k.incident, &k.verdict, "https://example.com/incidents/x");
        // Nothing died of a server that lives at its limit.
        let class = if k.incident.pressure.is_some() { "no death" } else { k.incident.class.as_str() };
        assert!(note.contains(&format!("`{class}`")), "{note}");
        write(&format!("incidents/{}.md", k.incident.id), &note);
    }
    let first = page_of(&all[0], &again, false);
    for part in [
        "id=\"planes\"",
        "Host RAM of the container",
        "VRAM",
        "KV cache",
        "Requests",
        "data-planes=",
        "first error",
        "class=\"phase traffic\"",
        "id=\"route\"",
    ] {
        assert!(first.contains(part), "{part}");
    }
}

#[test]
fn the_rooms_of_a_fleet() {
    let knowledge = Knowledge::embedded().unwrap();
    let all = all(&knowledge);
    let mut incidents = fleet_of(&all);
    let statistics = Fleet::of(&incidents);
    let of_cause =
        |key: &str| statistics.worst.iter().find(|w| w.cause_key == key).map_or(1, |w| w.occurrences);
    for i in &mut incidents {
        i.occurrences = of_cause(&i.cause_key);
    }
    let cursor = Cursor::behind(&incidents[0]);
    for (name, query) in [
        ("index", ""),
        ("gpu", "plane=gpu"),
        ("each", "each=true"),
        ("words", "q=oom&cluster=eu-west-1"),
        ("nothing", "node=no-such-node"),
    ] {
        let filter = Filter::parse(query).unwrap();
        let shown: Vec<Incident> = filter.select(&incidents).into_iter().cloned().collect();
        let listing = list::Listing {
            filter: &filter,
            refused: None,
            incidents: &shown,
            continued: name == "each",
            next: (name == "index").then_some(&cursor),
            fleet: &statistics,
        };
        let page = list::page(&frame(), &listing);
        keeps_the_policy(&page);
        for i in &shown {
            assert!(page.contains(&format!("/incidents/{}\"", i.id)), "{}", i.id);
            if let Some(p) = i.pressure {
                let (_, row) = page.split_once(&format!("/incidents/{}\"", i.id)).unwrap();
                let before = page.len() - row.len();
                let begin = page[..before].rfind("<tr").unwrap();
                assert!(page[begin..before].contains(p.title()), "{}", i.id);
                assert!(!page[begin..before].contains("Unknown"), "{}", i.id);
            }
        }
        write(&format!("list/{name}.html"), &page);
    }
    let empty = Fleet::default();
    let none = Filter::default();
    let listing = list::Listing {
        filter: &none,
        refused: None,
        incidents: &[],
        continued: false,
        next: None,
        fleet: &empty,
    };
    write("list/empty.html", &list::page(&frame(), &listing));
    let refused = list::Listing { refused: Some("no filter is called \"nodes\""), ..listing };
    let page = list::page(&frame(), &refused);
    assert!(
        page.contains("role=\"alert\"") && !page.contains("has been received yet"),
        "a refused filter is no all-clear: {page}"
    );
    write("list/refused.html", &page);

    let meaning = |code: u32| knowledge.xid(code).map(|x| x.meaning.to_string());
    for (name, page) in [
        ("fleet", fleet::page(&frame(), &statistics, "the last 30 days")),
        ("fleet-empty", fleet::page(&frame(), &empty, "the last 30 days")),
        ("gpus", gpus::page(&frame(), &statistics.gpus, &meaning)),
        ("gpus-empty", gpus::page(&frame(), &[], &meaning)),
        ("card", gpus::card(&frame(), &statistics.gpus[0], &incidents, &meaning)),
        ("capacity", rooms_of_both_memories(capacity::page(&frame(), &statistics))),
        ("capacity-empty", capacity::page(&frame(), &empty)),
    ] {
        keeps_the_policy(&page);
        write(&format!("{name}.html"), &page);
    }
    for asset in assets() {
        let Some(dir) = std::env::var_os("DUALPLANE_PAGES_OUT").map(PathBuf::from) else { continue };
        let path = dir.join(asset.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, asset.bytes).unwrap();
    }
}

/// Host RAM and VRAM of workloads stand beside each other, by figures of their evidence.
fn rooms_of_both_memories(page: String) -> String {
    for part in [">Host RAM</span>", ">VRAM</span>", "it was killed at this limit", "it ran out"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    page
}

#[test]
fn behind_a_proxy_every_address_has_its_base() {
    let knowledge = Knowledge::embedded().unwrap();
    let k = kept("both-planes", both_planes(), &place(), &knowledge);
    let frame = Frame { base: "/dualplane", ..frame() };
    let death = dualplane_pages::incident::Death {
        incident: &k.incident,
        verdict: Ok(&k.verdict),
        scene: Some(&k.scene),
        again: &[],
        bundle: None,
        rehearsed: false,
        away: None,
    };
    let page = dualplane_pages::incident::page(&frame, &death, false);
    for attribute in ["href=\"/", "src=\"/", "action=\"/"] {
        for (at, found) in page.match_indices(attribute) {
            let rest = &page[at + found.len()..];
            assert!(rest.starts_with("dualplane/"), "{}", &rest[..rest.len().min(60)]);
        }
    }
}
