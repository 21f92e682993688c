//! The rules of a verdict as people read them: `docs/rules.md` and `dualplane explain`.

use std::fmt::Write as _;

use dualplane_core::verdict::rules::{Over, Rule, Stage, TABLE};
use dualplane_core::verdict::weighing::WEIGHING;

/// What the page says before the table.
const HEAD: &str = "# The rules of a verdict

This page is written by the program: `dualplane explain --rules -o markdown`. A test compares the two.

Every rule is asked about an incident, from top to bottom. **The first one that holds decides**, and its id is
`verdict.decided_by` in the JSON. A rule that holds further down has *lost* to it; a rule that does not hold says why. Both
stand in `dualplane triage TARGET --why-not CLASS`. `dualplane explain RULE` shows one rule.

Several memory errors of one incident are first put into causal order (see [verdict.md](verdict.md)). Rules of the stage
`first_in_cause` hold for the first of them, so that only one of these holds, whatever their order here.

How many incidents exercise a rule: `dualplane dev corpus testdata/incidents`.
";

/// What the page says before the weighing rules.
const WEIGHED: &str = "
## Weighing

After a rule has decided, these are applied from top to bottom. They add evidence, doubt and further steps, and never change
the class.
";

/// All rules, as the page `docs/rules.md`.
#[must_use]
pub fn markdown() -> String {
    let mut out = HEAD.to_owned();
    // Writing into a String cannot fail.
    for stage in Stage::ALL {
        let _ = writeln!(out, "\n## `{}`: {}", stage.id(), stage.title());
        let rules: Vec<&Rule> = TABLE.iter().filter(|r| r.stage == stage).collect();
        // Rules of one stage often go before the same others; that is said once.
        let shared =
            rules.first().map(|r| reasons(r)).filter(|first| rules.iter().all(|r| reasons(r) == *first));
        for r in &rules {
            let _ = writeln!(out, "\n### `{}`\n", r.id);
            let _ = writeln!(out, "- decides: {}", classes(r));
            let _ = writeln!(out, "- when {}", r.when);
            let _ = writeln!(out, "- not: {}", r.near_miss);
            if shared.is_none() {
                for reason in reasons(r) {
                    let _ = writeln!(out, "- {reason}");
                }
            }
            let _ = writeln!(out, "- source: {}", r.source);
        }
        if let Some(shared) = shared.filter(|s| !s.is_empty()) {
            let _ = writeln!(out, "\nEach of them:\n");
            for reason in shared {
                let _ = writeln!(out, "- {reason}");
            }
        }
    }
    out.push_str(WEIGHED);
    for w in WEIGHING {
        let _ = writeln!(out, "\n### `{}`\n", w.id);
        let _ = writeln!(out, "- adds: {}\n- because: {}\n- source: {}", w.adds, w.because, w.source);
    }
    out
}

/// All rules, a line each, in their order.
#[must_use]
pub fn list() -> String {
    let mut out = String::new();
    for stage in Stage::ALL {
        let _ = writeln!(out, "{} ({})", stage.id(), stage.title());
        for r in TABLE.iter().filter(|r| r.stage == stage) {
            let _ = writeln!(out, "  {:<26} {}", r.id, plain_classes(r));
        }
    }
    let _ = writeln!(out, "weighing (applied after a rule has decided)");
    for w in WEIGHING {
        let _ = writeln!(out, "  {:<26} {}", w.id, w.adds);
    }
    out
}

/// What a rule goes before, each with its reason.
#[must_use]
pub fn reasons(rule: &Rule) -> Vec<String> {
    let of = |over: Over| match over {
        Over::Stage(s) => format!("the stage `{}`", s.id()),
        Over::Rule(id) => format!("`{id}`"),
    };
    rule.beats.iter().map(|b| format!("goes before {}: {}", of(b.over), b.because)).collect()
}

fn classes(rule: &Rule) -> String {
    rule.classes.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")
}

fn plain_classes(rule: &Rule) -> String {
    rule.classes.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ")
}
