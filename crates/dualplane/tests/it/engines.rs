//! Engines are data: outside of plans, code names one only where its messages or its arithmetic are meant.

use std::collections::BTreeSet;
use std::path::Path;

use dualplane_engines::Engines;

use crate::harness::root;
use crate::tidy::rust_files;

/// Files that name an engine, and why.
const NAMED: &[(&str, &str)] = &[
    ("dualplane-core/src/facts/host_pools.rs", "what the prompt cache holds is one message's number"),
    ("dualplane-core/src/verdict/candidates/log.rs", "a builder's messages about tactics that it skips"),
    ("dualplane-core/src/verdict/rules/failure/sglang_kills_itself.rs", "the rule's id"),
    ("dualplane-core/src/verdict/ranks.rs", "an operator's label"),
    ("dualplane-lint/src/policy.rs", "an operator's API group"),
    ("dualplane/src/commands/lint/live.rs", "an operator's API group"),
    ("dualplane-report/src/actions/kv/mod.rs", "one message's figure of the pool"),
    (
        "dualplane-report/src/planned/startlog.rs",
        "reads the start-up of the one engine whose log a plan calibrates",
    ),
    ("dualplane-dev/src/cpu.rs", "the engine whose starts the rows are"),
    ("dualplane-dev/src/harvest/coverage.rs", "how a launcher frames the lines of its children"),
    ("dualplane-dev/src/mutate/figures.rs", "a column of the oracle's answers"),
    ("dualplane-dev/src/oracle.rs", "a column of the oracle's rows"),
    ("dualplane-dev/src/sglang.rs", "a column of the answers"),
    ("dualplane-dev/src/startups/mod.rs", "a column of measured start-ups"),
    ("dualplane-dev/src/startups/others.rs", "a column of measured start-ups"),
];

/// The text before a file's tests, without comments.
fn code(text: &str) -> String {
    let body = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    body.lines().filter(|l| !l.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect()
}

/// A string begins with a name: `"vllm"`, `"vllm:…"`, `"vllm.…"`.
fn names_one(code: &str, names: &BTreeSet<String>) -> bool {
    code.split('"').skip(1).any(|s| {
        names.iter().any(|n| {
            s.strip_prefix(n.as_str()).is_some_and(|r| r.is_empty() || r.starts_with([':', '.', '_', '/']))
        })
    })
}

#[test]
fn code_names_engines_only_where_it_must() {
    let names: BTreeSet<String> = Engines::embedded()
        .iter()
        .flat_map(|d| d.aliases.iter().chain(&d.programs).chain([&d.id, &d.name]).cloned())
        .collect();
    assert!(names_one("f(\"vllm\")", &names) && names_one("x == \"sglang.y\"", &names));
    assert!(!names_one("f(\"vllmx\")", &names) && !names_one(&code("// \"vllm\"\n"), &names));
    let crates = root().join("crates");
    let mut files = Vec::new();
    rust_files(&crates, &mut files);
    let is_code = |p: &Path| {
        let text = p.to_string_lossy();
        let stem = p.file_stem().unwrap_or_default().to_string_lossy();
        text.contains("/src/")
            && !text.contains("dualplane-plan/")
            && !text.contains("/tests/")
            && !matches!(&*stem, "tests" | "examples" | "fixture" | "testing" | "fuzz" | "build")
    };
    let found: BTreeSet<String> = files
        .iter()
        .map(|p| p.strip_prefix(&crates).unwrap())
        .filter(|p| is_code(&Path::new("/").join(p)))
        .filter(|p| names_one(&code(&std::fs::read_to_string(crates.join(p)).unwrap()), &names))
        .map(|p| p.to_string_lossy().into_owned())
        .collect();
    let allowed: BTreeSet<String> = NAMED.iter().map(|(file, _)| (*file).to_owned()).collect();
    let new: Vec<_> = found.difference(&allowed).collect();
    assert!(new.is_empty(), "an engine is named in {new:?}: ask its head, or say here why it must be");
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(gone.is_empty(), "named no more in {gone:?}");
}
