//! Layers inside of a crate, as a test: a module uses modules of lower layers only, so no modules form a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::harness::root;
use crate::tidy::rust_files;

/// Modules of a crate and which of their siblings each one uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The core: each row may use the rows above it. Modules of one row do not know each other.
const CORE: &[&[&str]] =
    &[&["evidence", "knowledge"], &["facts"], &["redact", "sift"], &["change", "verdict"]];

/// Plans.
const PLAN: &[&[&str]] = &[
    &["quantity"],
    &["arith", "catalogue", "gpu", "printed", "repair", "traffic", "version"],
    &["outcome"],
    &["card", "model"],
    &["launch", "properties"],
    &["calibrate", "drafter", "fit", "host"],
    &["weights"],
    &["engines"],
    &["cli", "stages"],
    &["answer"],
    &["choose", "pasteable", "rough"],
    &["ways"],
    &["edges"],
    &["preflight"],
    &["report"],
];

/// What is told of a verdict.
const REPORT: &[&[&str]] = &[
    &["page", "planned", "runbook", "words"],
    &["budget"],
    &["actions", "map"],
    &["about", "changes", "handover", "headline", "mask", "memory", "pictures", "places"],
    &["html", "json", "markdown", "overview", "rules", "text"],
];

/// Rules for manifests.
const LINT: &[&[&str]] = &[
    &["memo", "reads"],
    &["expression", "finding", "planned", "yaml"],
    &["baseline", "object", "place", "rule"],
    &["fix", "read", "server", "suppress"],
    &["checks", "policy", "report"],
    &["linter"],
    &["examples"],
];

/// Alerts for Prometheus.
const ALERTS: &[&[&str]] =
    &[&["rule"], &["expression", "quantity"], &["select"], &["emit"], &["examples", "show"]];

/// Dashboards for Grafana.
const DASHBOARDS: &[&[&str]] =
    &[&["board", "grid"], &["query", "variable"], &["ready"], &["panel"], &["emit", "show"], &["examples"]];

#[test]
fn modules_use_lower_layers_only() {
    for (name, layers) in [
        ("core", CORE),
        ("plan", PLAN),
        ("report", REPORT),
        ("lint", LINT),
        ("alerts", ALERTS),
        ("dashboards", DASHBOARDS),
    ] {
        let graph = read(&root().join(format!("crates/dualplane-{name}/src")));
        assert!(graph.values().any(|uses| !uses.is_empty()), "{graph:?}");
        assert_eq!(broken(&graph, layers), Vec::<String>::new(), "dualplane-{name}");
        assert_eq!(in_a_cycle(&graph), BTreeSet::new(), "dualplane-{name}");
    }
}

#[test]
fn a_use_of_a_higher_layer_and_a_cycle_are_found() {
    let of = |pairs: &[(&str, &[&str])]| -> Graph {
        pairs.iter().map(|(m, uses)| ((*m).into(), uses.iter().map(|u| (*u).into()).collect())).collect()
    };
    let layers: &[&[&str]] = &[&["low", "beside"], &["high"]];
    let good = of(&[("low", &[]), ("beside", &[]), ("high", &["low", "beside"])]);
    assert!(broken(&good, layers).is_empty() && in_a_cycle(&good).is_empty());
    let bad = of(&[("low", &["high"]), ("beside", &["low"]), ("high", &["low"]), ("new", &[])]);
    assert_eq!(broken(&bad, layers).len(), 3, "upwards, sideways, and in no layer");
    assert_eq!(in_a_cycle(&bad), ["high", "low"].map(String::from).into());
    // Also one of several steps, and what only leads into it is not in it.
    let ring = of(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])]);
    assert_eq!(in_a_cycle(&ring), ["a", "b", "c"].map(String::from).into());
}

#[test]
fn references_are_read_in_every_spelling() {
    let text = "//! [`crate::comment`]\n\
        use crate::{one::{A, B}, two,\n  three::C};\n\
        use crate::four::D;\n\
        fn f() { crate::five::g(super::super::six::h()) } // crate::behind\n\
        #[cfg(test)]\n#[allow(clippy::x)]\nmod tests {\n use crate::test_only::E;\n}\n";
    let mut found = BTreeSet::new();
    references(text, 2, &mut found);
    assert_eq!(found, ["one", "two", "three", "four", "five", "six"].map(String::from).into());
    // From the top of a module, one step up is the crate.
    let mut found = BTreeSet::new();
    references("use super::seven::F;\nuse super::G;", 1, &mut found);
    assert_eq!(found, ["seven", "G"].map(String::from).into());
}

/// What is wrong with a graph, by its table of layers.
fn broken(graph: &Graph, layers: &[&[&str]]) -> Vec<String> {
    let layer = |name: &str| layers.iter().position(|l| l.contains(&name));
    let mut out = Vec::new();
    for (module, uses) in graph {
        let Some(own) = layer(module) else {
            out.push(format!("`{module}` is in no layer: give it one here and in ARCHITECTURE.md"));
            continue;
        };
        let not_below = uses.iter().filter(|u| layer(u).is_some_and(|l| l >= own));
        out.extend(not_below.map(|u| format!("`{module}` may not use `{u}`")));
    }
    out
}

/// Modules from which uses lead back to themselves.
fn in_a_cycle(graph: &Graph) -> BTreeSet<String> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            open.extend(graph.get(next).into_iter().flatten().filter(|u| seen.insert((*u).clone())));
        }
        seen
    };
    graph.keys().filter(|m| reached(m).contains(*m)).cloned().collect()
}

/// The graph of a crate's modules, without what only tests use.
fn read(src: &Path) -> Graph {
    let mut files = Vec::new();
    rust_files(src, &mut files);
    let mut graph = Graph::new();
    for file in &files {
        let parts: Vec<&str> = file
            .strip_prefix(src)
            .unwrap()
            .iter()
            .map(|p| p.to_str().unwrap().trim_end_matches(".rs"))
            .collect();
        let (Some(module), Some(last)) = (parts.first(), parts.last()) else { continue };
        if ["lib", "main"].contains(module) || only_for_tests(file) {
            continue;
        }
        let depth = parts.len() - usize::from(*last == "mod");
        let text = std::fs::read_to_string(file).unwrap();
        references(&text, depth, graph.entry((*module).to_owned()).or_default());
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, uses) in &mut graph {
        uses.retain(|u| u != module && modules.contains(u));
    }
    graph
}

/// Whether the file is declared as a module of tests.
fn only_for_tests(file: &Path) -> bool {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let parent = std::fs::read_to_string(file.with_file_name("mod.rs")).unwrap_or_default();
    let declared = format!("mod {name};");
    parent.split("#[cfg(test)]").skip(1).any(|behind| {
        behind.lines().find(|l| !l.trim().is_empty() && !l.starts_with("#[")).is_some_and(|l| l == declared)
    })
}

/// Adds what a file uses of its crate's top modules; `depth` is the length of its own path.
fn references(text: &str, depth: usize, into: &mut BTreeSet<String>) {
    let lines: Vec<&str> = text.lines().collect();
    // Tests stand at the end of a file.
    let tests = |i: usize| {
        let item = lines[i..].iter().find(|l| !l.starts_with("#["));
        lines[i] == "#[cfg(test)]" && item.is_some_and(|l| l.starts_with("mod tests {"))
    };
    let end = (0..lines.len()).find(|i| tests(*i)).unwrap_or(lines.len());
    let code: String =
        lines[..end].iter().map(|l| format!("{}\n", l.split("//").next().unwrap_or_default())).collect();
    let up = "super::".repeat(depth);
    for prefix in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                heads(&code[at + prefix.len()..], into);
            }
        }
    }
}

/// First names of a path, or of each path of a `{…}`.
fn heads(rest: &str, into: &mut BTreeSet<String>) {
    let name =
        |s: &str| s.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(list) = rest.strip_prefix('{') else {
        into.insert(name(rest));
        return;
    };
    let (mut depth, mut start) = (1, 0);
    for (i, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                into.insert(name(&list[start..i]));
                start = i + 1;
            }
            _ => {}
        }
        if depth == 0 {
            into.insert(name(&list[start..i]));
            break;
        }
    }
}
