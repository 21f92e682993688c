//! However a recorded pod is cut, stripped, quoted or joined: never a wrong plane, and where OOMKilled still stands as a
//! reason, the host plane.
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
use dualplane_report as report;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

/// Cuts that are drawn.
const CASES: u32 = 1500;

/// A recorded pod in the three forms that kubectl prints, as lines.
struct Printed {
    name: String,
    plane: Plane,
    forms: Vec<Vec<String>>,
}

fn recorded() -> Vec<Printed> {
    let mut out = Vec::new();
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/incidents")).unwrap()
    {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let read = |file: &str| std::fs::read_to_string(dir.join(file)).ok();
        let Some(pod) = read("pod.json").filter(|_| name.starts_with("real-")) else { continue };
        let mut pod: Value = serde_json::from_str(&pod).unwrap();
        if pod["kind"] != "Pod" {
            continue;
        }
        // Nobody pastes what kubectl hides.
        pod["metadata"].as_object_mut().unwrap().remove("annotations");
        let truth: Value = serde_json::from_str(&read("truth.json").unwrap()).unwrap();
        let plane = Class::ALL.iter().find(|c| c.as_str() == truth["class"]).unwrap().plane();
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let json = lines(serde_json::to_string_pretty(&pod).unwrap());
        let yaml = lines(dualplane_base::yaml::manifest(&pod));
        out.push(Printed { name, plane, forms: vec![describe(&pod), yaml, json] });
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(out.len() > 20, "{}", out.len());
    out
}

/// The part of `kubectl describe pod` that tells of containers, with its head and foot.
fn describe(pod: &Value) -> Vec<String> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let (meta, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
    let mut out = vec![
        format!("Name:             {}", text(&meta["name"])),
        format!("Namespace:        {}", text(&meta["namespace"])),
        format!("Node:             {}/192.0.2.2", text(&spec["nodeName"])),
        format!("Status:           {}", text(&status["phase"])),
    ];
    for (title, of, told) in [
        ("Init Containers:", "initContainers", "initContainerStatuses"),
        ("Containers:", "containers", "containerStatuses"),
    ] {
        let Some(containers) = spec[of].as_array() else { continue };
        out.push(title.to_owned());
        for c in containers {
            let none = Vec::new();
            let all = status[told].as_array().unwrap_or(&none);
            let Some(s) = all.iter().find(|s| s["name"] == c["name"]) else { continue };
            out.push(format!("  {}:", text(&c["name"])));
            out.push(format!("    Container ID:  {}", text(&s["containerID"])));
            out.push(format!("    Image:         {}", text(&c["image"])));
            for (label, key) in [("State:          ", "state"), ("Last State:     ", "lastState")] {
                let Some((word, run)) = s[key].as_object().and_then(|m| m.iter().next()) else { continue };
                let (first, rest) = word.split_at(1);
                out.push(format!("    {label}{}{rest}", first.to_uppercase()));
                for (label, key) in [
                    ("Reason:       ", "reason"),
                    ("Message:      ", "message"),
                    ("Exit Code:    ", "exitCode"),
                ] {
                    if !run[key].is_null() {
                        out.push(format!("      {label}{}", text(&run[key])));
                    }
                }
                if word != "waiting" {
                    out.push("      Started:      Sat, 21 Nov 2026 12:52:38 +0000".to_owned());
                }
            }
            out.push(format!("    Ready:          {}", if s["ready"] == true { "True" } else { "False" }));
            out.push(format!("    Restart Count:  {}", s["restartCount"]));
            if let Some(limit) = c["resources"]["limits"]["memory"].as_str() {
                out.push("    Limits:".to_owned());
                out.push(format!("      memory:  {limit}"));
            }
        }
    }
    out.push("Volumes:          <none>".to_owned());
    out.push("QoS Class:        Burstable".to_owned());
    out
}

/// What is done to the lines of a cut.
#[derive(Debug, Clone, Copy)]
enum Change {
    Nothing,
    Strip,
    Quote,
    Bullet(&'static str),
    Tabs,
    Join(&'static str),
    Crlf,
    Nbsp,
    Box,
    Numbers,
}

fn changed(lines: &[String], change: Change) -> String {
    let each = |f: &dyn Fn(&str) -> String| lines.iter().map(|l| f(l)).collect::<Vec<_>>().join("\n") + "\n";
    match change {
        Change::Nothing => each(&str::to_owned),
        Change::Strip => each(&|l| l.trim().to_owned()),
        Change::Quote => each(&|l| format!("> {l}")),
        Change::Bullet(mark) => each(&|l| format!("{mark} {}", l.trim())),
        Change::Tabs => each(&|l| l.replace("    ", "\t")),
        Change::Join(by) => lines.iter().map(|l| l.trim()).collect::<Vec<_>>().join(by),
        Change::Crlf => each(&str::to_owned).replace('\n', "\r\n"),
        Change::Nbsp => each(&|l| l.replace(' ', "\u{a0}")),
        Change::Box => each(&|l| format!("│ {l} │")),
        Change::Numbers => {
            lines.iter().enumerate().map(|(i, l)| format!("{:4}  {l}\n", i + 17)).collect::<String>()
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Nothing),
        Just(Change::Strip),
        Just(Change::Quote),
        prop_oneof![Just("-"), Just("*"), Just("•")].prop_map(Change::Bullet),
        Just(Change::Tabs),
        prop_oneof![Just(" "), Just(" / "), Just(", ")].prop_map(Change::Join),
        Just(Change::Crlf),
        Just(Change::Nbsp),
        Just(Change::Box),
        Just(Change::Numbers),
    ]
}

/// Lines of a cut that are left out, as the bits that are set: half of the cuts have none.
fn holes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), any::<(u64, u64)>().prop_map(|(a, b)| a & b)]
}

#[test]
fn no_cut_of_a_pod_gives_a_wrong_plane_and_oom_killed_is_host() {
    let knowledge = Knowledge::embedded().unwrap();
    let pods = recorded();
    let mut runner = TestRunner::new_with_rng(
        Config { cases: CASES, failure_persistence: None, ..Config::default() },
        TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]),
    );
    let drawn = (0..pods.len(), 0..3usize, any::<(u16, u16)>(), change(), holes());
    let mut kills = 0;
    runner
        .run(&drawn, |(pod, form, (a, b), change, holes)| {
            let p = &pods[pod];
            let lines = &p.forms[form];
            let from = usize::from(a) % lines.len();
            let to = from + 1 + usize::from(b) % (lines.len() - from);
            let kept = lines[from..to].iter().enumerate().filter(|(i, _)| holes >> (i % 64) & 1 == 0);
            let kept: Vec<String> = kept.map(|(_, l)| l.clone()).collect();
            let text = changed(&kept, change);
            let files = vec![RawFile::new("stdin", text.clone())];
            let reports = report::triage_all("stdin", files, Vec::new(), &knowledge);
            let class = reports[0].verdict.class;
            let plane = class.plane();
            prop_assert!(
                plane == Plane::None || plane == p.plane,
                "{} {change:?}: {class} for {}:\n{text}",
                p.name,
                p.plane
            );
            if text.contains("OOMKilled") {
                prop_assert_eq!(plane, Plane::Host, "{} {:?}:\n{}", p.name, change, text);
            }
            Ok(())
        })
        .unwrap();
    // The same without chance: each line that holds the reason, alone and with its neighbours.
    for p in &pods {
        for lines in &p.forms {
            for (i, _) in lines.iter().enumerate().filter(|(_, l)| l.contains("OOMKilled")) {
                for reach in 0..4 {
                    let cut = &lines[i.saturating_sub(reach)..(i + reach + 1).min(lines.len())];
                    let files = vec![RawFile::new("stdin", changed(cut, Change::Nothing))];
                    let reports = report::triage_all("stdin", files, Vec::new(), &knowledge);
                    assert_eq!(reports[0].verdict.class.plane(), Plane::Host, "{}: {cut:#?}", p.name);
                    kills += 1;
                }
            }
        }
    }
    assert!(kills > 100, "{kills}");
}
